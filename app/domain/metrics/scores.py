"""What the metrics are computed from: one judge's scores of one cell, counted."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from app.domain.instruments.dimension import Scale
from app.domain.judging.verdict import VerdictStatus
from app.domain.metrics.metric import FloatArray, IntArray

UNKNOWN_INSTRUCTION = -1


class RunValues(NamedTuple):
    """A metric of the runs that have it.

    Attributes:
        values: Shape (k,).
        runs: Shape (k,): positions of these runs among the sorted runs.
    """

    values: FloatArray
    runs: IntArray


@dataclass(frozen=True, eq=False)
class CellScores:
    """One judge's verdicts on one cell (model × persona × task) and one dimension, counted by response.

    R responses have verdicts; a response none of whose units is scored has a row of zeros.

    Attributes:
        scale: The dimension's scale.
        level: Index of the persona's level among ``scale.levels``.
        runs: Shape (R,): the run to which each response belongs; any integers.
        instructions: Shape (R,): the persona instruction of each response's run, -1 where it is unknown.
        histograms: Shape (R, ``scale.size``): how many units of each response got each score, lowest score first.
        excluded: How many units have no score, by status; statuses that are absent count 0.

    Raises:
        ValueError: If shapes disagree, a count is negative, the level does not exist, ``excluded`` counts scored
            units, or one run has two instructions.
    """

    scale: Scale
    level: int
    runs: IntArray
    instructions: IntArray
    histograms: IntArray
    excluded: Mapping[VerdictStatus, int]

    def __post_init__(self) -> None:
        responses = len(self.runs)
        if self.histograms.shape != (responses, self.scale.size):
            raise ValueError(
                f"histograms must have the shape ({responses}, {self.scale.size}), not {self.histograms.shape}"
            )
        if self.runs.shape != (responses,) or self.instructions.shape != (responses,):
            raise ValueError("runs and instructions must have one entry for each response")
        if not 0 <= self.level < len(self.scale.levels):
            raise ValueError(f"level must index one of {len(self.scale.levels)} levels, not {self.level}")
        if VerdictStatus.SCORED in self.excluded:
            raise ValueError("excluded counts units without a score; scored units are counted by histograms")
        if (self.histograms < 0).any() or any(count < 0 for count in self.excluded.values()):
            raise ValueError("counts of units must not be negative")
        if (self.instructions != self.run_instructions[self.run_index]).any():
            raise ValueError("instructions must be the same for all responses of a run")

    @cached_property
    def grid(self) -> IntArray:
        """Shape (``scale.size``,): the scale's scores, lowest first."""
        return np.arange(self.scale.minimum, self.scale.maximum + 1, dtype=np.int64)

    @cached_property
    def counts(self) -> IntArray:
        """Shape (R,): scored units of each response."""
        return np.asarray(self.histograms.sum(axis=1, dtype=np.int64))

    @cached_property
    def totals(self) -> IntArray:
        """Shape (R,): sum of each response's scores."""
        return np.asarray(self.histograms @ self.grid, dtype=np.int64)

    @cached_property
    def scored(self) -> npt.NDArray[np.bool_]:
        """Shape (R,): whether a response has any scored unit."""
        return self.counts > 0

    @cached_property
    def _runs(self) -> tuple[IntArray, IntArray, IntArray]:
        return np.unique(self.runs, return_index=True, return_inverse=True)

    @property
    def run_count(self) -> int:
        """Number of runs that have responses."""
        return len(self._runs[0])

    @property
    def run_index(self) -> IntArray:
        """Shape (R,): position of each response's run among the sorted runs."""
        return self._runs[2]

    @property
    def run_instructions(self) -> IntArray:
        """Shape (``run_count``,): the persona instruction of each run, in the runs' sorted order."""
        return np.asarray(self.instructions[self._runs[1]])

    @property
    def run_ids(self) -> IntArray:
        """Shape (``run_count``,): the runs that have responses, sorted."""
        return self._runs[0]

    @cached_property
    def run_histograms(self) -> IntArray:
        """Shape (``run_count``, ``scale.size``): how many units of each run got each score, in the runs' sorted order."""
        found = np.zeros((self.run_count, self.scale.size), dtype=np.int64)
        np.add.at(found, self.run_index, self.histograms)
        return found

    def run_means(self, values: FloatArray, responses: npt.NDArray[np.bool_]) -> RunValues:
        """Means over each run's responses, for the runs that have any: the step from response to run.

        Args:
            values: Shape (m,): the metric of the m responses that have it, in the responses' order.
            responses: Shape (R,), m of them true: which responses these are.

        Returns:
            The k runs' means, k ≤ ``run_count``.
        """
        index = self.run_index[responses]
        counts = np.bincount(index, minlength=self.run_count)
        sums = np.bincount(index, weights=values, minlength=self.run_count)
        used = counts > 0
        return RunValues(np.asarray(sums[used] / counts[used]), np.flatnonzero(used))


NO_SCORED_UNIT = "no_scored_unit: no unit of the cell has a score"
