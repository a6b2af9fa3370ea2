"""Rank correlations of two series with ties: Kendall's τ_b (1945) and Spearman's ρ (1904), with intervals by clusters."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from app.domain.metrics.metric import FloatArray, IntArray, Metric
from app.domain.statistics.resampling import percentile_interval

FEWEST_ITEMS = 3
RANGE = (-1.0, 1.0)

PERMUTATIONS = 1_999
"""The smallest p is 0.0005, which is below the papers' .001."""
ROUNDING = 1e-12
MOST_NUMBERS = 1_000_000
"""Of tables that are looked at together."""

Coefficient = Callable[[FloatArray], FloatArray]
"""A coefficient of each table of counts, one value of the first series a row, one of the second a column; NaN without one."""


def kendall_tau(
    first: FloatArray, second: FloatArray, clusters: IntArray, weights: FloatArray, of: str = "responses"
) -> Metric:
    """τ_b: concordant less discordant pairs of items, over the geometric mean of the pairs that each series tells apart.

    Args:
        first: Shape (n,).
        second: Shape (n,).
        clusters: Shape (n,): which cluster each item belongs to, from 0.
        weights: Shape (clusters, b): how often each cluster is drawn in each resample.
        of: What the clusters are.
    """
    return _correlation(_tau_b, first, second, clusters, weights, None, of)


def spearman_rho(
    first: FloatArray, second: FloatArray, clusters: IntArray, weights: FloatArray, of: str = "responses"
) -> Metric:
    """ρ: Pearson's r of the ranks, tied items sharing the mean of theirs. Arguments as of :func:`kendall_tau`."""
    return _correlation(_rho, first, second, clusters, weights, None, of)


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


def permutation_test(
    first: FloatArray, second: FloatArray, clusters: IntArray, draws: np.random.Generator
) -> tuple[float | None, float | None]:
    """How often τ_b and ρ would be as far from 0 as they are if the two had nothing to do with each other; ``None`` without them.

    The second values are exchanged at random between clusters with as many items, each cluster's together: within one they may depend on each
    other. Monte Carlo, with the data as one of the arrangements (Davison and Hinkley, 1997, section 4.3), so that a p is never 0.

    Args:
        first: As of :func:`kendall_tau`, like the two that follow.
        second: Shape (n,).
        clusters: Shape (n,).
        draws: Where chance comes from.
    """
    crossed = _Crossed.of(first, second)
    if isinstance(crossed, str):
        return None, None
    values = [abs(crossed.values(each, None)[0]) for each in (_tau_b, _rho)]
    as_far = np.ones(2)
    step = max(1, MOST_NUMBERS // len(first))
    for start in range(0, PERMUTATIONS, step):
        exchanged = _exchanged(clusters, min(step, PERMUTATIONS - start), draws)
        for n, coefficient in enumerate((_tau_b, _rho)):
            found = np.abs(crossed.values(coefficient, None, exchanged))
            as_far[n] += (found >= values[n] - ROUNDING).sum()
    tau, rho = (as_far / (1 + PERMUTATIONS)).tolist()
    return tau, rho


def _exchanged(clusters: IntArray, number: int, draws: np.random.Generator) -> IntArray:
    """Shape (number, n): whose value each item has, clusters of as many items having exchanged theirs."""
    _, sizes = np.unique(clusters, return_counts=True)
    of_cluster = np.split(np.argsort(clusters, kind="stable"), sizes.cumsum()[:-1])
    exchanged = np.tile(np.arange(len(clusters)), (number, 1))
    for size in np.unique(sizes):
        blocks = np.array([each for each in of_cluster if len(each) == size])
        orders = draws.permuted(np.tile(np.arange(len(blocks)), (number, 1)), axis=1)
        exchanged[:, blocks.ravel()] = blocks[orders].reshape(number, -1)
    return exchanged


@dataclass(frozen=True, slots=True, eq=False)
class _Crossed:
    """Two series as rows and columns of a table.

    Attributes:
        row: Shape (n,): which value of the first series each item has.
        column: Shape (n,): of the second.
        shape: How many values each has.
    """

    row: IntArray
    column: IntArray
    shape: tuple[int, int]

    @classmethod
    def of(cls, first: FloatArray, second: FloatArray) -> "_Crossed | str":
        """The table, or why there is none."""
        if len(first) < FEWEST_ITEMS:
            return f"too_few_items: {len(first)} items; a rank correlation needs {FEWEST_ITEMS}"
        rows, row = np.unique(first, return_inverse=True)
        columns, column = np.unique(second, return_inverse=True)
        if len(rows) == 1 or len(columns) == 1:
            return "no_variation: one of the two has the same value everywhere"
        return cls(row, column, (len(rows), len(columns)))

    def values(
        self, coefficient: Coefficient, counts: FloatArray | None, exchanged: IntArray | None = None
    ) -> FloatArray:
        """A coefficient of each of b tables, some at a time, so that none takes much memory.

        Args:
            coefficient: Which.
            counts: Shape (n, b): how often each item counts; ``None`` for once.
            exchanged: Shape (b, n): whose second value each item has; ``None`` for its own.
        """
        size = self.shape[0] * self.shape[1]
        places = (self.row * self.shape[1] + self.column)[None]
        if exchanged is not None:
            places = self.row * self.shape[1] + self.column[exchanged]
        number = len(places) if counts is None else counts.shape[1]
        step, found = max(1, MOST_NUMBERS // max(size, len(self.row))), []
        for start in range(0, number, step):
            part = range(start, min(number, start + step))
            offsets = size * np.arange(len(part))[:, None]
            where = (places if len(places) == 1 else places[part.start : part.stop]) + offsets
            each = None if counts is None else counts[:, part.start : part.stop].T.ravel()
            flat = np.bincount(where.ravel(), weights=each, minlength=size * len(part))
            found.append(coefficient(flat.reshape(-1, *self.shape).astype(np.float64)))
        return np.concatenate(found)


def _correlation(
    coefficient: Coefficient,
    first: FloatArray,
    second: FloatArray,
    clusters: IntArray,
    weights: FloatArray,
    stands_for: FloatArray | None,
    of: str = "responses",
) -> Metric:
    crossed = _Crossed.of(first, second)
    if isinstance(crossed, str):
        return Metric.missing(crossed)
    drawn_items = weights[clusters]
    if stands_for is not None:
        drawn_items = drawn_items * stands_for[:, None]
    value = float(crossed.values(coefficient, None if stands_for is None else stands_for[:, None])[0])
    draws = crossed.values(coefficient, drawn_items)
    count = len(np.unique(clusters))
    return Metric.of(value, len(first)).within(percentile_interval(value, draws, count, RANGE, of))


def _tau_b(tables: FloatArray) -> FloatArray:
    concordant = np.zeros_like(tables)  # items with smaller values of both series
    concordant[:, 1:, 1:] = tables.cumsum(1).cumsum(2)[:, :-1, :-1]
    discordant = np.zeros_like(tables)  # a smaller value of the first series, a greater one of the second
    discordant[:, 1:, :-1] = tables.cumsum(1)[:, :, ::-1].cumsum(2)[:, :, ::-1][:, :-1, 1:]
    pairs = _pairs(tables.sum((1, 2)))
    apart = (pairs - _pairs(tables.sum(2)).sum(1)) * (pairs - _pairs(tables.sum(1)).sum(1))
    above = (tables * (concordant - discordant)).sum((1, 2))
    return _quotients(above, np.sqrt(np.maximum(0.0, apart)))


def _rho(tables: FloatArray) -> FloatArray:
    rows, columns = tables.sum(2), tables.sum(1)
    one, other = _centred_ranks(rows), _centred_ranks(columns)
    spreads = (rows * one**2).sum(1) * (columns * other**2).sum(1)
    above = (one[:, None] @ tables @ other[:, :, None])[:, 0, 0]
    return _quotients(above, np.sqrt(spreads))


def _centred_ranks(counts: FloatArray) -> FloatArray:
    """The mean rank of each value, less the mean of all ranks; of each table."""
    return np.asarray(counts.cumsum(1) - counts / 2 - counts.sum(1, keepdims=True) / 2)


def _pairs(count: FloatArray) -> FloatArray:
    return np.asarray(count * (count - 1) / 2)


def _quotients(above: FloatArray, below: FloatArray) -> FloatArray:
    found = np.divide(above, below, out=np.full(len(above), np.nan), where=below > 0)
    return np.asarray(np.clip(found, *RANGE))
