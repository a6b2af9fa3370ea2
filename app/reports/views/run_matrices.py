"""Distances between runs in the cells with the lowest RC_atom."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from app.domain.metrics.metric import FloatArray, IntArray
from app.domain.results.contract import CellResult

Json = Mapping[str, Any]

MATRICES = 4
MOST_RUNS = 60
"""More runs are not drawn: the paper's cells have 30."""
STEPS = 10
UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class RunMatrix:
    """One cell's runs against each other.

    Attributes:
        cell: Which cell.
        steps: Shape (n, n), a row and a column for each run that has a score: from 0 (farthest apart) to ``STEPS`` - 1 (alike), or ``UNKNOWN``.
        farthest: The two runs that are farthest apart, and their distance; a mean over judges.
    """

    cell: CellResult
    steps: IntArray
    farthest: tuple[int, int, float]

    @property
    def runs(self) -> int:
        """How many runs are drawn."""
        return len(self.steps)


def varying_cells(cells: Sequence[CellResult]) -> list[CellResult]:
    """The few cells with the lowest RC_atom, the lowest first."""
    known = [(found, cell) for cell in cells if (found := cell.metrics["rc_atom"].value) is not None]
    return [cell for _, cell in sorted(known, key=itemgetter(0))][:MATRICES]


def run_matrices(cells: Sequence[CellResult], distances: Sequence[Json]) -> list[RunMatrix]:
    """The matrices of some cells.

    Args:
        cells: Of the results.
        distances: Each one's distances, as ``/v1/jobs/{id}/distances`` tells them.
    """
    drawn = (_matrix(cell, found) for cell, found in zip(cells, distances, strict=True))
    return [matrix for matrix in drawn if matrix is not None]


def _matrix(cell: CellResult, found: Json) -> RunMatrix | None:
    far = _over_judges([judge["distances"] for judge in found["by_judge"]])
    heard = [place for place in range(len(far)) if not np.isnan(far[place, place])][:MOST_RUNS]
    runs, far = [found["runs"][place]["run"] for place in heard], far[np.ix_(heard, heard)]
    apart = np.where(np.isnan(far) | np.eye(len(runs), dtype=bool), -1.0, far)
    if apart.max(initial=-1.0) < 0:
        return None
    one, other = np.unravel_index(int(apart.argmax()), apart.shape)
    steps = np.minimum(STEPS - 1, (1 - np.nan_to_num(far) / found["width"]) * STEPS).astype(np.int64)
    return RunMatrix(
        cell, np.where(apart < 0, UNKNOWN, steps), (runs[int(one)], runs[int(other)], float(apart.max()))
    )


def _over_judges(judges: Sequence[Sequence[Sequence[float | None]]]) -> FloatArray:
    """Shape (runs, runs): the mean over the judges who scored both runs; NaN where none did."""
    far = np.array(judges, dtype=np.float64)
    known = ~np.isnan(far)
    sums, counts = np.where(known, far, 0.0).sum(axis=0), known.sum(axis=0)
    return np.asarray(np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0))
