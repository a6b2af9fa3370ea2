"""All metrics of one cell, from one judge or from several."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from app.domain.judging.verdict import VerdictStatus
from app.domain.metrics.metric import Metric, MetricSet, values_of
from app.domain.metrics.registry import METRICS
from app.domain.metrics.scores import CellScores


@dataclass(frozen=True, slots=True)
class UnitCounts:
    """Judged units by what became of the judgement; a unit judged by two judges counts twice.

    Attributes:
        scored: Have a score.
        not_applicable: Say nothing about the trait, according to the judge.
        refused: The response was a refusal, or the judge refused.
        unparsed: The judge's reply could not be read.
        failed: The judge could not be called.
        filtered: The content filter of the judge's provider refused the prompt, or stopped the reply.
    """

    scored: int = 0
    not_applicable: int = 0
    refused: int = 0
    unparsed: int = 0
    failed: int = 0
    filtered: int = 0

    @property
    def total(self) -> int:
        """Units of any status."""
        return self.scored + self.not_applicable + self.refused + self.filtered + self.unparsed + self.failed

    @classmethod
    def sum(cls, counts: Sequence["UnitCounts"]) -> "UnitCounts":
        """Counts added up, status by status."""
        return cls(
            **{field.name: sum(getattr(count, field.name) for count in counts) for field in fields(cls)}
        )


@dataclass(frozen=True, slots=True)
class ResponseCounts:
    """Responses, and those that a metric had to leave out; a response judged by two judges counts twice.

    Attributes:
        total: Responses with verdicts.
        without_scored_unit: Have no metric at all.
        with_one_scored_unit: Have no IC_atom.
    """

    total: int = 0
    without_scored_unit: int = 0
    with_one_scored_unit: int = 0


@dataclass(frozen=True, slots=True)
class RunCounts:
    """Runs, and those that the metrics could use.

    Attributes:
        total: Runs with responses.
        used: Runs with a scored unit; with several judges, by the judge who has the fewest.
    """

    total: int = 0
    used: int = 0


@dataclass(frozen=True, slots=True)
class CellMetrics:
    """A cell's metrics, which are read by name, and what was counted and left out on the way to them.

    Attributes:
        metrics: The metrics and their parts.
        units: Units by status.
        responses: Responses with and without what the metrics need.
        runs: Runs with and without a scored unit.
        scores: How many units got each score of the scale, lowest score first; empty where that is not known.
    """

    metrics: MetricSet
    units: UnitCounts = UnitCounts()
    responses: ResponseCounts = ResponseCounts()
    runs: RunCounts = RunCounts()
    scores: tuple[int, ...] = ()

    def __getitem__(self, name: str) -> Metric:
        return self.metrics[name]


def measure(scores: CellScores) -> CellMetrics:
    """All metrics of one cell by one judge."""
    return CellMetrics(
        metrics={name: found for metric in METRICS for name, found in metric.measure(scores).items()},
        units=UnitCounts(
            scored=int(scores.counts.sum()),
            not_applicable=scores.excluded.get(VerdictStatus.NOT_APPLICABLE, 0),
            refused=scores.excluded.get(VerdictStatus.REFUSED, 0),
            unparsed=scores.excluded.get(VerdictStatus.UNPARSED, 0),
            failed=scores.excluded.get(VerdictStatus.FAILED, 0),
            filtered=scores.excluded.get(VerdictStatus.FILTERED, 0),
        ),
        responses=ResponseCounts(
            total=len(scores.runs),
            without_scored_unit=int((~scores.scored).sum()),
            with_one_scored_unit=int((scores.counts == 1).sum()),
        ),
        runs=RunCounts(
            total=scores.run_count,
            used=len(np.unique(scores.run_index[scores.scored])),
        ),
        scores=tuple(scores.histograms.sum(axis=0).tolist()),
    )


def combine_judges(judges: Sequence[CellMetrics]) -> CellMetrics:
    """The mean of several judges' metrics of the same cell, each judge having judged alone.

    A metric's value is the mean over the judges who have it; its n is the smallest of theirs, because n counts runs
    (or pairs of runs), which more judges do not multiply. Units, their scores and responses are judgements, and are added
    up.

    Args:
        judges: One or more judges' metrics of one cell.

    Returns:
        The combined metrics; those of a single judge unchanged.

    Raises:
        ValueError: If there is no judge.
    """
    if not judges:
        raise ValueError("judges must name at least one judge's metrics")
    if len(judges) == 1:
        return judges[0]
    responses = [judge.responses for judge in judges]
    return CellMetrics(
        metrics={name: _over_judges([judge[name] for judge in judges]) for name in judges[0].metrics},
        units=UnitCounts.sum([judge.units for judge in judges]),
        responses=ResponseCounts(
            total=sum(count.total for count in responses),
            without_scored_unit=sum(count.without_scored_unit for count in responses),
            with_one_scored_unit=sum(count.with_one_scored_unit for count in responses),
        ),
        runs=RunCounts(
            total=max(judge.runs.total for judge in judges),
            used=min(judge.runs.used for judge in judges),
        ),
        scores=tuple(map(sum, zip(*(judge.scores for judge in judges), strict=True))),
    )


def _over_judges(metrics: Sequence[Metric]) -> Metric:
    values = values_of(metrics)
    if not len(values):
        return metrics[0]
    return Metric.of(float(values.mean()), min(metric.n for metric in metrics if metric.value is not None))
