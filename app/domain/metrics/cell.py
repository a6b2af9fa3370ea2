"""All metrics of one cell, from one judge or from several."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from pydantic import ConfigDict, Field

from app.domain.contract import Answer
from app.domain.judging.verdict import VerdictStatus
from app.domain.metrics.definition import MetricDefinition
from app.domain.metrics.metric import Metric, MetricSet, values_of
from app.domain.metrics.registry import METRICS
from app.domain.metrics.scores import CellScores


class UnitCounts(Answer):
    """Judged sentences by verdict status."""

    # A sentence that two judges judged counts twice.
    model_config = ConfigDict(frozen=True)

    total: int
    scored: int
    not_applicable: int
    refused: int
    unparsed: int
    failed: int
    filtered: int = Field(0, description="Refused by the content filter of the judge's provider.")

    @classmethod
    def of(
        cls,
        *,
        scored: int = 0,
        not_applicable: int = 0,
        refused: int = 0,
        unparsed: int = 0,
        failed: int = 0,
        filtered: int = 0,
    ) -> Self:
        """The counts with their total."""
        return cls(
            total=scored + not_applicable + refused + unparsed + failed + filtered,
            scored=scored,
            not_applicable=not_applicable,
            refused=refused,
            unparsed=unparsed,
            failed=failed,
            filtered=filtered,
        )

    @classmethod
    def sum(cls, counts: Sequence["UnitCounts"]) -> Self:
        """Counts added up, status by status."""
        return cls(**{name: sum(getattr(count, name) for count in counts) for name in cls.model_fields})


NO_UNITS = UnitCounts.of()


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
class MeasuredMetrics:
    """A cell's metrics, which are read by name, and what was counted and left out on the way to them.

    Attributes:
        metrics: The metrics and their parts.
        units: Units by status.
        responses: Responses with and without what the metrics need.
        runs: Runs with and without a scored unit.
        scores: How many units got each score of the scale, lowest score first; empty where that is not known.
    """

    metrics: MetricSet
    units: UnitCounts = NO_UNITS
    responses: ResponseCounts = ResponseCounts()
    runs: RunCounts = RunCounts()
    scores: tuple[int, ...] = ()

    def __getitem__(self, name: str) -> Metric:
        return self.metrics[name]


def measure(scores: CellScores, metrics: Sequence[MetricDefinition] = METRICS) -> MeasuredMetrics:
    """Metrics of one cell by one judge: all, or some."""
    return MeasuredMetrics(
        metrics={name: found for metric in metrics for name, found in metric.measure(scores).items()},
        units=UnitCounts.of(
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


def combine_judges(judges: Sequence[MeasuredMetrics]) -> MeasuredMetrics:
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
    return MeasuredMetrics(
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
