"""ACC_atom where responses or verdicts are missing: refusals as out of character, and the bounds of what is possible."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from pydantic import ConfigDict, Field, PrivateAttr

from app.domain.contract import Answer
from app.domain.metrics.metric import FloatArray, IntArray, Metric
from app.domain.metrics.scores import RunValues
from app.domain.statistics.variability import Variability


class Corrected(Answer):
    """How missing responses and verdicts could affect ACC_atom. Not in the papers."""

    model_config = ConfigDict(frozen=True)

    # Refusals: the composite strategy of ICH E9 (R1), also called non-responder imputation.
    acc_atom_composite: Metric = Field(
        description="ACC_atom with each refusal counted as a response entirely out of character."
    )
    # The worst-case bounds of Horowitz and Manski (2000).
    acc_atom_bounds: tuple[float, float] | None = Field(
        description="ACC_atom if everything missing were out of character, and if everything were in "
        "character."
    )
    _varied: Variability | None = PrivateAttr(None)

    @classmethod
    def of(cls, composite: Metric, bounds: tuple[float, float] | None, varied: Variability | None) -> Self:
        """With how the composite varies, from which totals' intervals follow."""
        found = cls(acc_atom_composite=composite, acc_atom_bounds=bounds)
        found._varied = varied
        return found

    @property
    def varied(self) -> Variability | None:
        """How the composite varies; ``None`` for totals."""
        return self._varied


NOT_CORRECTED = Corrected.of(Metric.missing("not_counted: missing responses are not known"), None, None)


@dataclass(frozen=True, eq=False)
class JudgedResponses:
    """One judge's verdicts on the answers of a cell, refusals aside; all of shape (R,).

    Attributes:
        runs: Each answer's run.
        in_level: Its units with a score in the persona's level.
        scored: Its units with a score.
        unusable: Its units without a readable verdict; those that are not applicable are none of them.
    """

    runs: IntArray
    in_level: IntArray
    scored: IntArray
    unusable: IntArray

    @property
    def complete(self) -> bool:
        """Whether ACC_atom needs no assumption about any of them."""
        return bool((self.scored > 0).all() and not self.unusable.any())


def composite_shares(judged: JudgedResponses, refused: IntArray) -> RunValues:
    """Each run's mean share of units in the persona's level, a refusal's being 0; ``runs`` are the runs' own numbers.

    Args:
        judged: The answers.
        refused: Shape (r,): each refusal's run.
    """
    known = judged.scored > 0
    shares = judged.in_level[known] / judged.scored[known]
    runs = np.concatenate([judged.runs[known], refused])
    values = np.concatenate([shares, np.zeros(len(refused))])
    numbers, index = np.unique(runs, return_inverse=True)
    return RunValues(np.bincount(index, weights=values) / np.bincount(index), numbers)


def share_bounds(judged: JudgedResponses, planned: Sequence[tuple[int, int]]) -> tuple[float, float] | None:
    """ACC_atom by one judge if all that is missing were out of character, and if all were in character.

    A sentence without a readable verdict may have had any score; a response without a scored sentence any share. Sentences
    that are not applicable stay left out, as the paper has it.

    Args:
        judged: The answers.
        planned: Each run of the cell and how many responses it shall have.

    Returns:
        Both ends, 0–1; ``None`` where no run is planned.
    """
    if not planned:
        return None
    known = judged.scored > 0
    units = judged.scored[known] + judged.unusable[known]
    lowest = judged.in_level[known] / units
    highest = (judged.in_level[known] + judged.unusable[known]) / units
    numbers = np.array([run for run, _ in planned], dtype=np.int64)
    places = np.searchsorted(numbers, judged.runs[known])
    size = len(numbers)
    present = np.bincount(places, minlength=size)
    wanted = np.maximum(present, [count for _, count in planned])
    low = np.bincount(places, weights=lowest, minlength=size).astype(np.float64)
    high = np.bincount(places, weights=highest, minlength=size) + (wanted - present)
    return _mean(low, wanted), _mean(high, wanted)


def _mean(sums: FloatArray, counts: IntArray) -> float:
    used = counts > 0
    return float(np.clip((sums[used] / counts[used]).mean(), 0, 1)) if used.any() else 0.0
