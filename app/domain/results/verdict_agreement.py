"""How far several judges agree on the same sentences, over all of a job and in its tasks and dimensions."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from pydantic import Field

from app.domain.contract import Answer
from app.domain.instruments.dimension import Scale
from app.domain.metrics.metric import FloatArray, IntArray, Metric
from app.domain.results.totals import MIXED_SCALES
from app.domain.statistics.agreement import kappa_draws
from app.domain.statistics.groups import PersonaSample
from app.domain.statistics.krippendorff import NO_SCORE, NO_VARIATION, alpha_within, coincidences
from app.domain.statistics.resampling import percentile_interval, ratio_draws

GROUPINGS = ((), ("task",), ("dimension",))
NO_JOINT = "no_joint_unit: no unit has a score from two judges"
_CORRELATION = (-1.0, 1.0)
_SHARE = (0.0, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class JointScores:
    """How often the judges gave a unit of one cell which scores.

    Attributes:
        persona: The persona's id.
        task: The task's id.
        dimension: The dimension's id.
        scale: Its scale.
        scores: Shape (m, judges): scores from 0, the scale's lowest; -1 where a judge has none.
        counts: Shape (m,): how many units have these scores.
    """

    persona: str
    task: str
    dimension: str
    scale: Scale
    scores: IntArray
    counts: IntArray


class PairAgreement(Answer):
    """How well two judges agree; n counts the sentences that both scored."""

    judges: tuple[str, str]
    left_out: int = Field(description="Sentences that only one of them scored.")
    quadratic_kappa: Metric = Field(
        description="Cohen's κ with quadratic weights, −1 to 1; 0 is chance, 1 perfect."
    )
    exact_agreement: Metric = Field(description="Share of sentences with the same score.")
    mean_absolute_difference: Metric = Field(description="In points of the scale; 0 is perfect.")


class VerdictAgreement(Answer):
    """How well all judges agree in one group of cells; n counts the sentences with at least two scores."""

    by: list[str] = Field(description="What the group's cells have in common; empty for all cells.")
    task: str | None = None
    dimension: str | None = None
    left_out: int = Field(description="Sentences that only one judge scored.")
    alpha_ordinal: Metric = Field(description="Ordinal Krippendorff's α, at most 1; 0 is chance.")
    alpha_interval: Metric = Field(description="Interval Krippendorff's α.")
    pairs: list[PairAgreement] = Field(description="Every pair of judges, in the judges' order.")


def verdict_agreement(
    cells: Sequence[JointScores], judges: Sequence[str], sample: PersonaSample
) -> tuple[VerdictAgreement, ...]:
    """The judges' agreement over all cells, then task by task and dimension by dimension.

    Args:
        cells: One for each cell and trait of the job.
        judges: The judges' labels, in the order of the scores' columns; at least two.
        sample: The job's personas, which are drawn anew for the intervals, each with all its units.
    """
    return tuple(
        _agreement(dict(zip(by, keys, strict=True)), found, judges, sample)
        for by in GROUPINGS
        for keys, found in sorted(_grouped(cells, by).items())
    )


def _grouped(cells: Sequence[JointScores], by: tuple[str, ...]) -> dict[tuple[str, ...], list[JointScores]]:
    groups: dict[tuple[str, ...], list[JointScores]] = {}
    for cell in cells:
        groups.setdefault(tuple(getattr(cell, name) for name in by), []).append(cell)
    return groups


def _agreement(
    keys: dict[str, str], cells: Sequence[JointScores], judges: Sequence[str], sample: PersonaSample
) -> VerdictAgreement:
    units = _Units(cells, sample)
    return VerdictAgreement(
        by=list(keys),
        **keys,
        left_out=int(units.counts[units.given == 1].sum()),
        alpha_ordinal=units.alpha(ordinal=True),
        alpha_interval=units.alpha(ordinal=False),
        pairs=[units.pair(judges, one, other) for one, other in combinations(range(len(judges)), 2)],
    )


class _Units:
    """A group's units: rows of scores, and whose they are."""

    def __init__(self, cells: Sequence[JointScores], sample: PersonaSample) -> None:
        # Scores of different scales are not the same by being the same number.
        self._mixed = len({cell.scale for cell in cells}) > 1
        self._size = cells[0].scale.size
        self._personas = sorted({cell.persona for cell in cells})
        self._weights = sample.weights_of(self._personas)
        lengths = [len(cell.counts) for cell in cells]
        self._persona = np.repeat(
            np.searchsorted(self._personas, [cell.persona for cell in cells]).astype(np.int64), lengths
        )
        self._scores = np.concatenate([cell.scores for cell in cells])
        self.counts = np.concatenate([cell.counts for cell in cells])
        self.given = (self._scores != NO_SCORE).sum(axis=1)

    def alpha(self, *, ordinal: bool) -> Metric:
        if self._mixed:
            return Metric.missing(MIXED_SCALES)
        several = self.given > 1
        units = int(self.counts[several].sum())
        if not units:
            return Metric.missing(NO_JOINT)
        personas, clusters = np.unique(self._persona[several], return_inverse=True)
        tables = coincidences(self._scores[several], self.counts[several], clusters, self._size)
        return alpha_within(tables, self._weights[personas], units, ordinal=ordinal)

    def pair(self, judges: Sequence[str], one: int, other: int) -> PairAgreement:
        columns = self._scores[:, [one, other]]
        known = (columns != NO_SCORE).sum(axis=1)
        left_out = int(self.counts[known == 1].sum())
        labels = (judges[one], judges[other])
        both = known == len(labels)
        if self._mixed or not both.any():
            none = Metric.missing(MIXED_SCALES if self._mixed else NO_JOINT)
            return PairAgreement(
                judges=labels,
                left_out=left_out,
                quadratic_kappa=none,
                exact_agreement=none,
                mean_absolute_difference=none,
            )
        persona, first, second, counts = self._table(columns[both], self._persona[both], self.counts[both])
        units, clusters = int(counts.sum()), len(np.unique(persona))

        def whole(values: FloatArray) -> FloatArray:
            return ratio_draws(values * counts, counts, np.ones((len(counts), 1)))

        def resampled(values: FloatArray) -> FloatArray:
            return ratio_draws(values * counts, counts, self._weights[persona])

        def mean(values: FloatArray, bounds: tuple[float, float]) -> Metric:
            return _within(Metric.of(float(whole(values)[0]), units), resampled(values), clusters, bounds)

        kappa = float(kappa_draws(first, second, whole)[0])
        draws = kappa_draws(first, second, resampled)
        return PairAgreement(
            judges=labels,
            left_out=left_out,
            quadratic_kappa=Metric.missing(NO_VARIATION)
            if np.isnan(kappa)
            else _within(Metric.of(kappa, units), draws, clusters, _CORRELATION),
            exact_agreement=mean((first == second).astype(np.float64), _SHARE),
            mean_absolute_difference=mean(np.abs(first - second), (0.0, float(self._size - 1))),
        )

    def _table(
        self, columns: IntArray, personas: IntArray, counts: IntArray
    ) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
        """The different (persona, score, score), and how many units have each."""
        rows = (personas * self._size + columns[:, 0]) * self._size + columns[:, 1]
        totals = np.bincount(rows, weights=counts)
        found = np.flatnonzero(totals)
        first, second = found // self._size % self._size, found % self._size
        return (
            found // self._size**2,
            first.astype(np.float64),
            second.astype(np.float64),
            totals[found].astype(np.float64),
        )


def _within(metric: Metric, draws: FloatArray, clusters: int, bounds: tuple[float, float]) -> Metric:
    assert metric.value is not None  # noqa: S101 - only existing ones have draws
    return metric.within(percentile_interval(metric.value, draws, clusters, bounds, "personas"))
