"""The matrices of the cells that vary most: the right squares, of the right cells, as the domain measures them."""

import re
from collections.abc import Sequence

import numpy as np
import pytest

from app.domain.judged import JudgedResponse
from app.reports.run_matrices import MATRICES, MOST_RUNS, RunMatrices, RunMatrix
from tests.unit.reports.sample import response_of, results_of, sample


def drawn(responses: Sequence[JudgedResponse], runs: int) -> list[RunMatrix]:
    matrices = RunMatrices(results_of(responses, runs)["cells"])
    for response in responses:
        matrices.add(response)
    return matrices.matrices()


def squares(matrix: RunMatrix) -> dict[tuple[int, int], int]:
    """Each square's step, by run and run."""
    return {
        (int(y), int(x)): step
        for step, path in matrix.shades
        for x, y in re.findall(r"M(\d+) (\d+)h1v1h-1z", path)
    }


def test_each_square_is_two_runs_and_silent_runs_have_none() -> None:
    responses = [
        response_of("I sang.", ("I sang.", score), run=run) for run, score in enumerate((5, 1, None, 4))
    ]
    (matrix,) = drawn(responses, 4)
    # Runs 0, 1 and 3: 5 and 1 are as far apart as the scale allows, 5 and 4 a quarter, 1 and 4 three quarters.
    assert squares(matrix) == {
        (0, 1): 0, (1, 0): 0, (0, 2): 7, (2, 0): 7, (1, 2): 2, (2, 1): 2,
    }  # fmt: skip
    assert matrix.farthest == (0, 1, 4.0)


def test_the_worst_cells_are_drawn_and_their_distances_average_to_their_rc_atom() -> None:
    job = sample()
    values = sorted(
        value for cell in job.results["cells"] if (value := cell["metrics"]["rc_atom"]["value"]) is not None
    )
    found = drawn(job.responses, 4)
    assert [m.cell["metrics"]["rc_atom"]["value"] for m in found] == values[:MATRICES]
    for matrix in found:
        steps = np.array(list(squares(matrix).values()))
        # A step is a tenth of the scale, and RC_atom 1 − 2d/width: to a tenth, the mean of steps says the same.
        assert 2 * (steps.mean() + 0.5) / 10 - 1 == pytest.approx(
            matrix.cell["metrics"]["rc_atom"]["value"], abs=0.11
        )


def test_the_runs_of_a_large_cell_are_cut_and_a_cell_of_one_run_is_not_drawn() -> None:
    many = [response_of("I sang.", ("I sang.", 1 + run % 5), run=run) for run in range(MOST_RUNS + 5)]
    (matrix,) = drawn(many, len(many))
    assert matrix.runs == MOST_RUNS
    assert len(squares(matrix)) == MOST_RUNS * (MOST_RUNS - 1)
    assert drawn(many[:1], 1) == []
