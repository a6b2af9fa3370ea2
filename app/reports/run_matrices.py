"""How far the runs are apart in the cells that vary most when they are repeated: what their RC_atom is the mean of."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.domain.judged import JudgedResponse
from app.domain.metrics.metric import FloatArray
from app.domain.metrics.rc_atom import run_distances

Json = Mapping[str, Any]

MATRICES = 4
MOST_RUNS = 60
"""More runs are not drawn: the paper's cells have 30, and a matrix of 60 takes some 40 kB."""
STEPS = 10

_Key = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class RunMatrix:
    """One cell's matrix as squares on a grid of runs.

    Attributes:
        cell: The cell of the results document.
        runs: Rows, and columns.
        shades: For each step that occurs, 0 (farthest apart) to ``STEPS`` - 1 (alike), an SVG path of its squares.
        farthest: The two runs that are farthest apart, and their distance; a mean over judges.
    """

    cell: Json
    runs: int
    shades: Sequence[tuple[int, str]]
    farthest: tuple[int, int, float]


class RunMatrices:
    """Collects the scores of the few cells that are drawn, response by response.

    Args:
        cells: The results document's; those with the lowest RC_atom are drawn.
    """

    def __init__(self, cells: Sequence[Json]) -> None:
        known = [cell for cell in cells if cell["metrics"]["rc_atom"]["value"] is not None]
        worst = sorted(known, key=lambda cell: cell["metrics"]["rc_atom"]["value"])[:MATRICES]
        self._cells: dict[_Key, Json] = {
            (cell["model"], cell["persona"], cell["task"], cell["dimension"]): cell for cell in worst
        }
        self._counts: dict[_Key, dict[tuple[str, int], FloatArray]] = defaultdict(dict)

    def add(self, response: JudgedResponse) -> None:
        """Counts a response's scores, if its cell is drawn."""
        for unit in response.units:
            for verdict in unit.verdicts:
                key = (response.model, response.persona, response.task, verdict.dimension)
                if verdict.score is None or key not in self._cells:
                    continue
                scale = self._cells[key]["scale"]
                histogram = self._counts[key].setdefault(
                    (verdict.judge, response.run), np.zeros(scale["maximum"] - scale["minimum"] + 1)
                )
                histogram[verdict.score - scale["minimum"]] += 1

    def matrices(self) -> list[RunMatrix]:
        """The matrices, that of the lowest RC_atom first."""
        drawn = (self._matrix(cell, self._counts[key]) for key, cell in self._cells.items())
        return [matrix for matrix in drawn if matrix is not None]

    def _matrix(self, cell: Json, counts: Mapping[tuple[str, int], FloatArray]) -> RunMatrix | None:
        runs = sorted({run for _, run in counts})[:MOST_RUNS]
        distances = _mean_distances(counts, runs)
        far = np.where(np.isnan(distances) | np.eye(len(runs), dtype=bool), -1.0, distances)
        if far.max(initial=-1.0) < 0:
            return None
        one, other = np.unravel_index(int(far.argmax()), far.shape)
        width = cell["scale"]["maximum"] - cell["scale"]["minimum"]
        steps = np.minimum(STEPS - 1, ((1 - far / width) * STEPS).astype(np.int64))
        shades = [(step, _squares((steps == step) & (far >= 0))) for step in range(STEPS)]
        return RunMatrix(
            cell=cell,
            runs=len(runs),
            shades=[(step, path) for step, path in shades if path],
            farthest=(runs[int(one)], runs[int(other)], float(far.max())),
        )


def _mean_distances(counts: Mapping[tuple[str, int], FloatArray], runs: Sequence[int]) -> FloatArray:
    """Shape (runs, runs): distances, the mean over the judges who scored both runs; NaN where none did."""
    sums, judges = np.zeros((2, len(runs), len(runs)))
    for judge in sorted({judge for judge, _ in counts}):
        rows = [n for n, run in enumerate(runs) if (judge, run) in counts]
        histograms = np.array([counts[judge, runs[n]] for n in rows])
        cdfs = histograms.cumsum(axis=1)[:, :-1] / histograms.sum(axis=1, keepdims=True)
        sums[np.ix_(rows, rows)] += run_distances(cdfs)
        judges[np.ix_(rows, rows)] += 1
    return np.asarray(np.divide(sums, judges, out=np.full(sums.shape, np.nan), where=judges > 0))


def _squares(places: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> str:
    return "".join(f"M{x} {y}h1v1h-1z" for y, x in np.argwhere(places).tolist())
