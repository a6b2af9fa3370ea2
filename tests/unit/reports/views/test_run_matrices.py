"""The matrices of the cells that vary most: the right squares, of the right cells, from the distances that the API tells."""

from typing import Any

import numpy as np

from app.reports.views.run_matrices import (
    MATRICES,
    MOST_RUNS,
    UNKNOWN,
    RunMatrix,
    run_matrices,
    varying_cells,
)
from tests.unit.reports.sample import sample
from tests.unit.results_sample import CELL, read

(VARYING,) = read({"cells": [CELL]}).cells


def distances(*judges: list[list[float | None]], runs: int = 4, width: int = 4) -> dict[str, Any]:
    return {
        "width": width,
        "runs": [{"run": 10 + run} for run in range(runs)],
        "by_judge": [{"distances": rows} for rows in judges],
    }


def drawn(found: dict[str, Any]) -> list[RunMatrix]:
    return run_matrices([VARYING], [found])


def test_each_square_is_two_runs_and_silent_runs_have_none() -> None:
    rows: list[list[float | None]] = [
        [0.0, 4.0, None, 1.0],
        [4.0, 0.0, None, 3.0],
        [None, None, None, None],
        [1.0, 3.0, None, 0.0],
    ]
    (matrix,) = drawn(distances(rows))
    # Runs 10, 11 and 13: 4 is as far apart as the scale allows, 1 a quarter of it, 3 three quarters.
    assert matrix.steps.tolist() == [[UNKNOWN, 0, 7], [0, UNKNOWN, 2], [7, 2, UNKNOWN]]
    assert matrix.farthest == (10, 11, 4.0)


def test_a_distance_is_the_mean_over_the_judges_who_scored_both_runs() -> None:
    one: list[list[float | None]] = [[0.0, 1.0], [1.0, 0.0]]
    other: list[list[float | None]] = [[0.0, 3.0], [3.0, 0.0]]
    silent: list[list[float | None]] = [[0.0, None], [None, None]]
    (matrix,) = drawn(distances(one, other, silent, runs=2))
    assert matrix.farthest == (10, 11, 2.0)
    assert matrix.steps[0, 1] == 5


def test_the_cells_with_the_lowest_rc_atom_are_chosen() -> None:
    cells = read(sample().results).cells
    values = sorted(v for cell in cells if (v := cell.metrics["rc_atom"].value) is not None)
    chosen = varying_cells(cells)
    assert [cell.metrics["rc_atom"].value for cell in chosen] == values[:MATRICES]


def test_the_runs_of_a_large_cell_are_cut_and_a_cell_of_one_run_is_not_drawn() -> None:
    many = MOST_RUNS + 5
    rows = np.abs(np.subtract.outer(np.arange(many), np.arange(many)) % 5).astype(float).tolist()
    (matrix,) = drawn(distances(rows, runs=many))
    assert matrix.runs == MOST_RUNS
    assert (matrix.steps != UNKNOWN).sum() == MOST_RUNS * (MOST_RUNS - 1)
    assert drawn(distances([[0.0]], runs=1)) == []
