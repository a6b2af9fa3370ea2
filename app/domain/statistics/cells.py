"""A cell's metrics with their intervals over its runs and over its wordings."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from app.domain.metrics.cell import MeasuredMetrics, combine_judges, measure
from app.domain.metrics.definition import UNIT_RANGE, Estimate, MetricDefinition
from app.domain.metrics.interval import Interval
from app.domain.metrics.metric import IntArray, Metric, MetricSet
from app.domain.metrics.registry import METRICS, RANGES, range_of
from app.domain.metrics.scores import NO_SCORED_UNIT, UNKNOWN_INSTRUCTION, CellScores, RunValues
from app.domain.statistics import design
from app.domain.statistics.design import (
    FEWEST_WORDINGS,
    FEWEST_WORDINGS_OF_SPREAD,
    DesignCell,
    Error,
    Shape,
    Stratum,
)
from app.domain.statistics.resampling import FEWEST_CLUSTERS, likely_share, too_few, unanimous
from app.domain.statistics.variability import Variability, of_mean, over_judges, variability

_ESTIMATES = {name: metric.estimate for metric in METRICS for name in metric.names}
TURNS = (
    "dependent_turns: several texts of a cell are turns of one conversation, which depend on each other and are"
    " no repeated runs"
)
"""Of cells whose texts are turns."""
NOT_ESTIMATED = Interval.missing("not_estimated: only the value is computed")
"""Of the ceiling of RC_atom, which depends on the runs by their pooled scores alone."""
BALANCED = Interval.missing("unstable: the runs differ, and yet it is the same without any one of them")
"""Of runs of which half lie at one place and half at another."""
_ROUNDING = 10**-9
_OF_RUNS = {Estimate.SPREAD, Estimate.SAMPLE_SPREAD, Estimate.DISTANCES, Estimate.EXCESS}
"""How far runs are apart."""


@dataclass(frozen=True, slots=True, eq=False)
class CellEstimate:
    """A cell's metrics with intervals.

    Attributes:
        metrics: Over all judges.
        by_judge: Each judge's own, by label.
        varied: How each metric over all judges varies; what totals need to know of runs and wordings.
    """

    metrics: MeasuredMetrics
    by_judge: Mapping[str, MeasuredMetrics]
    varied: Mapping[str, Variability]


def shape_of(name: str) -> Shape:
    """On which scale a metric's intervals are symmetrical."""
    estimate = _ESTIMATES[name]
    if name == "acc":
        return Shape.HITS
    if estimate is Estimate.MEAN:
        return Shape.SHARE if RANGES[name] == UNIT_RANGE else Shape.PLAIN
    return Shape.PLAIN if estimate is Estimate.EXCESS else Shape.LOSS


def fewest_wordings(name: str) -> int:
    """How many wordings tell how others like them would change a metric."""
    return FEWEST_WORDINGS_OF_SPREAD if _ESTIMATES[name] in _OF_RUNS else FEWEST_WORDINGS


def estimate_cell(
    by_judge: Mapping[str, CellScores], runs: IntArray, wanted: Sequence[MetricDefinition] = METRICS
) -> CellEstimate:
    """A cell's metrics and the intervals around them.

    Args:
        by_judge: Each judge's scores of the cell, by label; at least one, on one scale.
        runs: Shape (K,): the different runs of the cell's text, sorted; all that any judge's scores name.
        wanted: Which metrics.
    """
    ranges = _ranges(next(iter(by_judge.values())))
    own = {judge: measure(scores, wanted) for judge, scores in by_judge.items()}
    varied = {judge: variability(scores, runs, own[judge].metrics) for judge, scores in by_judge.items()}
    metrics = combine_judges(list(own.values()))
    together = _over_judges(metrics.metrics, varied)
    return CellEstimate(
        metrics=_with_intervals(metrics, together, ranges),
        by_judge={judge: _with_intervals(found, varied[judge], ranges) for judge, found in own.items()},
        varied=together,
    )


def of_turns(estimate: CellEstimate, conversations: int) -> CellEstimate:
    """A cell's metrics where texts are turns of conversations: no interval, no comparison of runs, n counts conversations."""

    def dependent(found: MeasuredMetrics) -> MeasuredMetrics:
        metrics = {name: _of_turns(name, metric, conversations) for name, metric in found.metrics.items()}
        return replace(found, metrics=metrics)

    by_judge = {judge: dependent(found) for judge, found in estimate.by_judge.items()}
    return CellEstimate(dependent(estimate.metrics), by_judge, {})


def _of_turns(name: str, metric: Metric, conversations: int) -> Metric:
    if metric.value is None or _ESTIMATES[name] in _OF_RUNS:
        return Metric.missing(TURNS)
    return without_intervals(Metric.of(metric.value, conversations), "ci95", "ci95_wordings")


def without_intervals(metric: Metric, *names: str) -> Metric:
    """A metric of dependent texts, with the reason in place of its intervals."""
    return metric.within(**dict.fromkeys(names, Interval.missing(TURNS)))


def estimate_mean(
    by_judge: Mapping[str, RunValues], wordings: Mapping[int, int]
) -> tuple[Metric, Variability | None]:
    """A figure from 0 to 1 that is a mean over runs, with its intervals, and how it varies.

    Args:
        by_judge: Each judge's value of each run that has one, by label; ``runs`` are the runs' own numbers.
        wordings: By run, where it is known.
    """
    found = [each for each in by_judge.values() if len(each.values)]
    if not found:
        return Metric.missing(NO_SCORED_UNIT), None
    runs = np.unique(np.concatenate([each.runs for each in found]))
    of_judges = [
        of_mean(each, np.array([wordings.get(run, UNKNOWN_INSTRUCTION) for run in each.runs.tolist()]), runs)
        for each in found
    ]
    varied = over_judges(float(np.mean([each.value for each in of_judges])), of_judges)
    metric = Metric.of(varied.value, varied.count)
    return _within(metric, varied, UNIT_RANGE, Estimate.MEAN, Shape.SHARE, FEWEST_WORDINGS), varied


def _ranges(scores: CellScores) -> dict[str, tuple[float, float]]:
    """Each metric's least and greatest value in a cell."""
    scale = (float(scores.scale.minimum), float(scores.scale.maximum))
    return {
        name: range_of(name, scale) if metric.range_in_cell is None else metric.range_in_cell(scores)
        for metric in METRICS
        for name in metric.names
    }


def _over_judges(
    metrics: MetricSet, by_judge: Mapping[str, Mapping[str, Variability]]
) -> dict[str, Variability]:
    found = {}
    for name, metric in metrics.items():
        of_judges = [own[name] for own in by_judge.values() if name in own]
        if metric.value is not None and of_judges:
            found[name] = over_judges(metric.value, of_judges)
    return found


def _with_intervals(
    metrics: MeasuredMetrics, varied: Mapping[str, Variability], ranges: Mapping[str, tuple[float, float]]
) -> MeasuredMetrics:
    found = {
        name: _within(
            metric, varied[name], ranges[name], _ESTIMATES[name], shape_of(name), fewest_wordings(name)
        )
        if name in varied
        else metric.within(NOT_ESTIMATED)
        for name, metric in metrics.metrics.items()
    }
    return replace(metrics, metrics=found)


def _within(
    metric: Metric,
    varied: Variability,
    bounds: tuple[float, float],
    estimate: Estimate,
    shape: Shape,
    wordings: int,
) -> Metric:
    cell = [DesignCell("", Stratum("", "", ""), varied)]
    of_runs, of_wordings = design.over_runs(cell), design.over_wordings(cell, wordings)
    return metric.within(
        too_few(varied.count, "runs")
        if varied.count < FEWEST_CLUSTERS
        else _interval(varied, of_runs, bounds, estimate, shape),
        ci95_wordings=_interval(varied, of_wordings, bounds, estimate, shape),
    )


def _interval(
    varied: Variability, error: Error | str, bounds: tuple[float, float], estimate: Estimate, shape: Shape
) -> Interval:
    if isinstance(error, Error) and error.none and estimate is not Estimate.MEAN:
        return _alike(varied.value, error.clusters, estimate, bounds)
    return design.interval(varied.value, error, bounds, shape)


def _alike(value: float, clusters: int, estimate: Estimate, bounds: tuple[float, float]) -> Interval:
    """As many runs as are likely are alike; the rest may be anything: pairs at full distance, or one extreme each."""
    share = likely_share(clusters)
    if estimate is Estimate.ROOT:
        squares = unanimous((1 - value) ** 2, clusters, (0.0, (1 - bounds[0]) ** 2))
        low, high = squares.ends or (0.0, 0.0)
        return Interval.around(value, 1 - math.sqrt(high), 1 - math.sqrt(low), bounds)
    if value < 1 - _ROUNDING:
        return BALANCED
    spread = estimate in {Estimate.SPREAD, Estimate.SAMPLE_SPREAD}
    worst = 2 * math.sqrt(share * (1 - share)) if spread else 2 * (1 - share**2)
    return Interval.around(value, 1 - worst, value, bounds)
