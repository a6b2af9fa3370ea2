"""Rank correlations of two series with ties: Kendall's τ_b (1945) and Spearman's ρ (1904), with intervals by clusters."""

from collections.abc import Callable

import numpy as np

from app.domain.metrics.metric import FloatArray, IntArray, Metric
from app.domain.statistics.resampling import percentile_interval

FEWEST_ITEMS = 3
RANGE = (-1.0, 1.0)

Coefficient = Callable[[FloatArray], float]
"""A coefficient of a table of counts, one value of the first series a row, one of the second a column; NaN without one."""


def kendall_tau(first: FloatArray, second: FloatArray, clusters: IntArray, weights: FloatArray) -> Metric:
    """τ_b: concordant less discordant pairs of items, over the geometric mean of the pairs that each series tells apart.

    Args:
        first: Shape (n,).
        second: Shape (n,).
        clusters: Shape (n,): which cluster each item belongs to, from 0.
        weights: Shape (clusters, b): how often each cluster is drawn in each resample.
    """
    return _correlation(_tau_b, first, second, clusters, weights, None)


def spearman_rho(first: FloatArray, second: FloatArray, clusters: IntArray, weights: FloatArray) -> Metric:
    """ρ: Pearson's r of the ranks, tied items sharing the mean of theirs. Arguments as of :func:`kendall_tau`."""
    return _correlation(_rho, first, second, clusters, weights, None)


def weighted_kendall_tau(
    first: FloatArray, second: FloatArray, clusters: IntArray, weights: FloatArray, stands_for: FloatArray
) -> Metric:
    """:func:`kendall_tau` of the population from which the items were drawn: a pair of items counts wᵢwⱼ times.

    Args:
        first: As of :func:`kendall_tau`, like the three that follow.
        second: Shape (n,).
        clusters: Shape (n,).
        weights: Shape (clusters, b).
        stands_for: Shape (n,): for how many items of the population each stands.
    """
    return _correlation(_tau_b, first, second, clusters, weights, stands_for)


def weighted_spearman_rho(
    first: FloatArray, second: FloatArray, clusters: IntArray, weights: FloatArray, stands_for: FloatArray
) -> Metric:
    """:func:`spearman_rho` of that population. Arguments as of :func:`weighted_kendall_tau`."""
    return _correlation(_rho, first, second, clusters, weights, stands_for)


def _correlation(
    coefficient: Coefficient,
    first: FloatArray,
    second: FloatArray,
    clusters: IntArray,
    weights: FloatArray,
    stands_for: FloatArray | None,
) -> Metric:
    if len(first) < FEWEST_ITEMS:
        return Metric.missing(f"too_few_items: {len(first)} items; a rank correlation needs {FEWEST_ITEMS}")
    rows, row = np.unique(first, return_inverse=True)
    columns, column = np.unique(second, return_inverse=True)
    if len(rows) == 1 or len(columns) == 1:
        return Metric.missing("no_variation: one of the two has the same value everywhere")
    shape, places = (len(rows), len(columns)), row * len(columns) + column

    def table(counts: FloatArray | None) -> FloatArray:
        flat = np.bincount(places, weights=counts, minlength=shape[0] * shape[1])
        return flat.reshape(shape).astype(np.float64)

    value = coefficient(table(stands_for))
    drawn_items = weights[clusters] if stands_for is None else weights[clusters] * stands_for[:, None]
    draws = np.array([coefficient(table(drawn)) for drawn in drawn_items.T])
    count = len(np.unique(clusters))
    return Metric.of(value, len(first)).within(percentile_interval(value, draws, count, RANGE, "responses"))


def _tau_b(table: FloatArray) -> float:
    concordant = np.zeros_like(table)  # items with smaller values of both series
    concordant[1:, 1:] = table.cumsum(0).cumsum(1)[:-1, :-1]
    discordant = np.zeros_like(table)  # a smaller value of the first series, a greater one of the second
    discordant[1:, :-1] = table.cumsum(0)[:, ::-1].cumsum(1)[:, ::-1][:-1, 1:]
    pairs = _pairs(table.sum())
    apart = (pairs - _pairs(table.sum(1)).sum()) * (pairs - _pairs(table.sum(0)).sum())
    return _quotient(float((table * (concordant - discordant)).sum()), float(np.sqrt(max(0.0, apart))))


def _rho(table: FloatArray) -> float:
    one, other = _centred_ranks(table.sum(1)), _centred_ranks(table.sum(0))
    spreads = float((table.sum(1) * one**2).sum() * (table.sum(0) * other**2).sum())
    return _quotient(float(one @ table @ other), float(np.sqrt(spreads)))


def _centred_ranks(counts: FloatArray) -> FloatArray:
    """The mean rank of each value, less the mean of all ranks."""
    return np.asarray(counts.cumsum() - counts / 2 - counts.sum() / 2)


def _pairs(count: FloatArray) -> FloatArray:
    return np.asarray(count * (count - 1) / 2)


def _quotient(above: float, below: float) -> float:
    return float(np.clip(above / below, *RANGE)) if below > 0 else float("nan")
