"""A cell's metrics with their intervals: runs are resampled, all judges' alike."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from app.domain.metrics.cell import CellMetrics, combine_judges, measure
from app.domain.metrics.definition import UNIT_RANGE, Estimate
from app.domain.metrics.interval import Interval
from app.domain.metrics.metric import FloatArray, IntArray, Metric
from app.domain.metrics.rc_atom import distributions
from app.domain.metrics.rc_atom_corrected import chance_distance_of, excess
from app.domain.metrics.registry import METRICS, range_of
from app.domain.metrics.scores import NO_SCORED_UNIT, UNKNOWN_INSTRUCTION, CellScores, RunValues
from app.domain.statistics.groups import Influence
from app.domain.statistics.pair_sums import (
    all_pairs,
    distance_sums,
    half_square_sums,
    others,
    pairs_among,
    pairs_within,
    with_unit,
)
from app.domain.statistics.resampling import (
    FEWEST_CLUSTERS,
    cluster_counts,
    likely_share,
    percentile_interval,
    studentized_interval,
    too_few,
)
from app.domain.statistics.variation import (
    Variation,
    Varied,
    joined,
    mean_of,
    of_mean,
    of_pairs,
    transformed,
)

_ESTIMATES = {name: metric.estimate for metric in METRICS for name in metric.names}
NOT_ESTIMATED = Interval.missing("not_estimated: only the value is computed")
"""Of the ceiling of RC_atom, which depends on the runs by their pooled scores alone."""
_STUDENTIZED = {Estimate.SPREAD, Estimate.SAMPLE_SPREAD, Estimate.DISTANCES}
VALUES_AT_ONCE = 2**18
"""Of runs times resamples: 2 MiB an array, of which there are a dozen, however many runs a cell has."""

_ALIKE = 10**-12
"""A loss so small is 0, rounding apart: all runs are alike."""


@dataclass(frozen=True, slots=True, eq=False)
class CellEstimate:
    """A cell's metrics with intervals.

    Attributes:
        metrics: Over all judges.
        by_judge: Each judge's own, by label.
        influences: By metric, where two runs or more have it; what totals need to know of the runs.
    """

    metrics: CellMetrics
    by_judge: Mapping[str, CellMetrics]
    influences: Mapping[str, Influence]


def estimate_cell(
    by_judge: Mapping[str, CellScores], runs: IntArray, seed: int, key: Sequence[str]
) -> CellEstimate:
    """A cell's metrics and the intervals around them.

    Args:
        by_judge: Each judge's scores of the cell, by label; at least one, on one scale.
        runs: Shape (K,): the different runs of the cell's text, sorted; all that any judge's scores name.
        seed: The job's.
        key: Model, persona and task; traits that share a text share its resamples.
    """
    ends = _ranges(next(iter(by_judge.values())))
    metrics = {judge: measure(scores) for judge, scores in by_judge.items()}
    varied, combined = _vary(by_judge, runs, cluster_counts(seed, ("runs", *key), len(runs)))
    return CellEstimate(
        metrics=_with_intervals(combine_judges(list(metrics.values())), combined, ends),
        by_judge={judge: _with_intervals(found, varied[judge], ends) for judge, found in metrics.items()},
        influences={
            name: (found.scaled_influence, found.runs) for name, found in combined.items() if found.runs > 1
        },
    )


def _ranges(scores: CellScores) -> dict[str, tuple[float, float]]:
    """Each metric's least and greatest value in a cell."""
    scale = (float(scores.scale.minimum), float(scores.scale.maximum))
    return {
        name: range_of(name, scale) if metric.range_in_cell is None else metric.range_in_cell(scores)
        for metric in METRICS
        for name in metric.names
    }


def estimate_mean(
    by_judge: Mapping[str, RunValues], seed: int, key: Sequence[str]
) -> tuple[Metric, Influence | None]:
    """A figure from 0 to 1 that is a mean over runs, with its interval, and what the runs do to it.

    Args:
        by_judge: Each judge's value of each run that has one, by label; ``runs`` are the runs' own numbers.
        seed: As for :func:`estimate_cell`, like ``key``.
        key: Model, persona and task.
    """
    found = [each for each in by_judge.values() if len(each.values)]
    if not found:
        return Metric.missing(NO_SCORED_UNIT), None
    runs = np.unique(np.concatenate([each.runs for each in found]))
    counts = cluster_counts(seed, ("runs", *key), len(runs))
    places = [np.searchsorted(runs, each.runs) for each in found]
    at_once = max(1, VALUES_AT_ONCE // len(runs))
    parts = []
    for start in range(0, counts.shape[1], at_once):
        weights = counts[:, start : start + at_once].astype(np.float64)
        means = [of_mean(each.values, at, weights) for each, at in zip(found, places, strict=True)]
        parts.append(mean_of(means).varied(weights))
    varied = joined(parts)
    interval = percentile_interval(varied.value, varied.draws, varied.runs, UNIT_RANGE, "runs")
    influence = (varied.scaled_influence, varied.runs) if varied.runs > 1 else None
    return Metric.of(varied.value, varied.runs).within(interval), influence


def _vary(
    by_judge: Mapping[str, CellScores], runs: IntArray, counts: npt.NDArray[np.uint8]
) -> tuple[dict[str, dict[str, Varied]], dict[str, Varied]]:
    """How each metric varies, by judge and over all judges; some resamples at a time, however many runs there are."""
    measured = {judge: _measured(scores, runs) for judge, scores in by_judge.items()}
    own: dict[str, dict[str, list[Varied]]] = {judge: {} for judge in by_judge}
    together: dict[str, list[Varied]] = {}
    at_once = max(1, VALUES_AT_ONCE // max(1, len(runs)))
    for start in range(0, counts.shape[1], at_once):
        weights = counts[:, start : start + at_once].astype(np.float64)
        varying = {judge: _variations(found, weights) for judge, found in measured.items()}
        for judge, found in varying.items():
            for name, variation in found.items():
                own[judge].setdefault(name, []).append(variation.varied(weights))
        for name in _ESTIMATES:
            of_judges = [found[name] for found in varying.values() if name in found]
            if len(of_judges) > 1:
                together.setdefault(name, []).append(mean_of(of_judges).varied(weights))
    varied = {judge: _joined(found) for judge, found in own.items()}
    combined = _joined(together)
    for found_alone in varied.values():
        combined = found_alone | combined  # what only one judge has is the same over all
    return varied, {name: combined[name] for name in _ESTIMATES if name in combined}


def _joined(found: Mapping[str, Sequence[Varied]]) -> dict[str, Varied]:
    return {name: joined(parts) for name, parts in found.items()}


class _Measured(NamedTuple):
    """What no resample changes of one judge's scores of a cell of K runs.

    Attributes:
        width: The scale's.
        values: By metric that is a mean or a spread of runs' values: these, and where their runs stand among the K.
        cdfs: As from :func:`distributions`, like ``instructions``.
        instructions: Of the same runs.
        places: Where those stand among the K.
        chance: Their mean distance if all of them were alike; 0 for fewer than two.
    """

    width: int
    values: Mapping[str, RunValues]
    cdfs: FloatArray
    instructions: IntArray
    places: IntArray
    chance: float


def _measured(scores: CellScores, runs: IntArray) -> _Measured:
    places = np.searchsorted(runs, scores.run_ids)
    by_run = {metric.by_run: metric.by_run(scores) for metric in METRICS if metric.by_run is not None}
    of_metrics = {metric.name: by_run[metric.by_run] for metric in METRICS if metric.by_run is not None}
    cdfs, instructions, used = distributions(scores)
    return _Measured(
        width=scores.scale.width,
        values={name: RunValues(values, places[used]) for name, (values, used) in of_metrics.items()},
        cdfs=cdfs,
        instructions=instructions,
        places=places[used],
        chance=chance_distance_of(scores) if len(used) > 1 else 0.0,
    )


def _variations(measured: _Measured, weights: FloatArray) -> dict[str, Variation]:
    """How each metric that exists varies; of spreads and distances their loss, 1 − metric."""
    found: dict[str, Variation] = {}
    for name, (values, places) in measured.values.items():
        if _ESTIMATES[name] is Estimate.SAMPLE_SPREAD:
            varying = _of_sample(found["rc"]) if "rc" in found else None
        else:
            varying = _varying(_ESTIMATES[name], values, places, weights, measured.width)
        if varying is not None:
            found[name] = varying
    return found | _distance_losses(measured, weights)


def _varying(
    estimate: Estimate, values: FloatArray, places: IntArray, weights: FloatArray, width: int
) -> Variation | None:
    if not len(values):
        return None
    if estimate is Estimate.MEAN:
        return of_mean(values, places, weights)
    if estimate is Estimate.ROOT:
        return _root(of_mean(values, places, weights), width)
    return _spread_loss(values, places, weights, width)


def _of_sample(spread: Variation) -> Variation:
    """A spread with the denominator n − 1, from that with n."""
    factor = math.sqrt(spread.runs / (spread.runs - 1))
    slopes = np.full(len(spread.draws), factor)
    return transformed(spread, factor * spread.draws, factor * spread.value, slopes, factor)


def _root(mean: Variation, width: int) -> Variation:
    """1 − 2√m / width of a mean square m."""
    slope = 2 / width
    return transformed(
        mean,
        1 - slope * np.sqrt(mean.draws),
        1 - slope * math.sqrt(mean.value),
        np.zeros(len(mean.draws)),
        -slope / 2 / math.sqrt(mean.value) if mean.value > 0 else 0.0,
    )


def _distance_losses(measured: _Measured, weights: FloatArray) -> dict[str, Variation]:
    """The loss of RC_atom and of its two parts, 2d / width; and RC_atom beyond chance."""
    cdfs, instructions, places = measured.cdfs, measured.instructions, measured.places
    own = with_unit(weights[places])
    every = all_pairs(distance_sums(cdfs, own), own)
    known = instructions != UNKNOWN_INSTRUCTION
    whole = every if known.all() else pairs_among(known, cdfs, own)
    same = pairs_within(cdfs, instructions, whole.weights)
    slope = 2 / measured.width
    found = {}
    for name, sums in (
        ("rc_atom", every),
        ("rc_atom_within_instruction", same),
        ("rc_atom_across_instructions", others(whole, same)),
    ):
        distance = of_pairs(sums, places, len(weights))
        if distance is None:
            continue
        if sums is every:
            found["rc_atom_corrected"] = _beyond_chance(distance, measured.chance, slope)
        found[name] = transformed(
            distance,
            slope * distance.draws,
            slope * distance.value,
            np.full(len(distance.draws), slope),
            slope,
        )
    return found


def _beyond_chance(distance: Variation, chance: float, slope: float) -> Variation:
    """1 − 2√(d² − d₀²) / width, d₀ as it is. Where d comes near d₀ the slope has no end: it is taken over a standard error of d."""
    error = math.sqrt(float((distance.influence**2).sum()))
    low, high = (excess(max(0.0, distance.value + way * error), chance) for way in (-1, 1))
    return transformed(
        replace(distance, errors=None),
        1 - slope * np.sqrt(np.maximum(0.0, distance.draws**2 - chance**2)),
        1 - slope * excess(distance.value, chance),
        np.zeros(len(distance.draws)),
        -slope * (high - low) / (2 * error) if error > _ALIKE else 0.0,
    )


def _spread_loss(values: FloatArray, places: IntArray, weights: FloatArray, width: int) -> Variation | None:
    """RC's loss 2σ / width from s², the runs' variance with the denominator n − 1; σ² = s² (n − 1) / n."""
    own = with_unit(weights[places])
    variance = of_pairs(all_pairs(half_square_sums(values, own), own), places, len(weights))
    if variance is None:
        return None
    scale = 2 * math.sqrt((variance.runs - 1) / variance.runs) / width
    roots = np.sqrt(variance.draws)
    slopes = np.divide(scale / 2, roots, out=np.zeros(len(roots)), where=roots > 0)
    root = math.sqrt(variance.value)
    return transformed(variance, scale * roots, scale * root, slopes, scale / 2 / root if root > 0 else 0.0)


def _with_intervals(
    metrics: CellMetrics, varied: Mapping[str, Varied], ranges: Mapping[str, tuple[float, float]]
) -> CellMetrics:
    found = dict(metrics.metrics)
    for name, variation in varied.items():
        value = found[name].value
        if value is None:
            continue
        found[name] = found[name].within(_interval(_ESTIMATES[name], value, variation, ranges[name]))
    for name in found.keys() - varied.keys():
        found[name] = found[name].within(NOT_ESTIMATED)
    return replace(metrics, metrics=found)


def _interval(estimate: Estimate, value: float, varied: Varied, bounds: tuple[float, float]) -> Interval:
    if estimate in _STUDENTIZED:
        return _pair_interval(estimate, value, varied, bounds)
    if estimate is Estimate.ROOT:
        return _root_interval(value, varied, bounds)
    if estimate is Estimate.EXCESS and varied.runs >= FEWEST_CLUSTERS and np.nanmin(varied.draws) == value:
        return _alike_interval(estimate, value, varied.runs, bounds)
    return percentile_interval(value, varied.draws, varied.runs, bounds, "runs")


def _root_interval(value: float, varied: Varied, bounds: tuple[float, float]) -> Interval:
    """That of the mean square, whose root it is."""
    most = (1 - bounds[0]) ** 2
    found = percentile_interval((1 - value) ** 2, (1 - varied.draws) ** 2, varied.runs, (0.0, most), "runs")
    if found.low is None or found.high is None:
        return found
    return Interval.around(value, 1 - math.sqrt(found.high), 1 - math.sqrt(found.low), bounds)


def _alike_interval(estimate: Estimate, value: float, runs: int, bounds: tuple[float, float]) -> Interval:
    """As many runs as are likely are alike; the rest may be anything: pairs at full distance, or one extreme each."""
    share = likely_share(runs)
    spread = estimate in {Estimate.SPREAD, Estimate.SAMPLE_SPREAD}
    worst = 2 * math.sqrt(share * (1 - share)) if spread else 2 * (1 - share**2)
    return Interval.around(value, 1 - worst, value, bounds)


def _pair_interval(estimate: Estimate, value: float, loss: Varied, bounds: tuple[float, float]) -> Interval:
    if loss.runs < FEWEST_CLUSTERS or loss.draw_errors is None:
        return too_few(loss.runs, "runs")
    if loss.value < _ALIKE:
        return _alike_interval(estimate, value, loss.runs, bounds)
    ends = studentized_interval(loss.value, loss.error, loss.draws, loss.draw_errors, loss.runs, "runs")
    return ends if isinstance(ends, Interval) else Interval.around(value, 1 - ends[1], 1 - ends[0], bounds)
