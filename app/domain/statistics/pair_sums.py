"""Sums over all pairs of runs, weighted by resamples, in memory that grows with the runs and not with the pairs."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.domain.metrics.metric import FloatArray, IntArray
from app.domain.metrics.rc_atom import run_distances

BoolArray = npt.NDArray[np.bool_]

FEW_RUNS = 512
"""Up to so many, a matrix of all pairs is quicker."""

_NOTHING = 10**-13
"""A mean square so small is rounding: scores' means differ by a two-thousandth at least, in a run of 32,767 at most."""


@dataclass(frozen=True, slots=True, eq=False)
class PairSums:
    """What n runs make of their pairs, in the runs as they are and in m resamples of them.

    Attributes:
        weights: Shape (n, 1 + m): each run's weight; first 1, then what it has in every resample.
        reach: Shape (n, 1 + m): by run, the sum over its pairs of the other's weight.
        apart: Shape (n, 1 + m): the same of the other's weight times the distance.
    """

    weights: FloatArray
    reach: FloatArray
    apart: FloatArray


def with_unit(weights: FloatArray) -> FloatArray:
    """Shape (n, 1 + m), as :class:`PairSums` has them: the runs as they are, and resampled."""
    return np.column_stack([np.ones(len(weights)), weights])


def all_pairs(apart: FloatArray, weights: FloatArray) -> PairSums:
    """Every pair of runs, by the sums of their distances."""
    return PairSums(weights, weights.sum(axis=0) - weights, apart)


def pairs_among(some: BoolArray, cdfs: FloatArray, weights: FloatArray) -> PairSums:
    """Every pair of some of the runs; the others are in none.

    Args:
        some: Shape (n,): which.
        cdfs: As for :func:`distance_sums`.
        weights: Shape (n, 1 + m).
    """
    among = some[:, None]
    own = weights * among
    return PairSums(own, (own.sum(axis=0) - own) * among, distance_sums(cdfs, own) * among)


def pairs_within(cdfs: FloatArray, groups: IntArray, weights: FloatArray) -> PairSums:
    """The pairs of runs of one group, by their distance.

    Args:
        cdfs: As for :func:`distance_sums`.
        groups: Shape (n,): each run's group.
        weights: Shape (n, 1 + m); 0 for runs that are in no pair.
    """
    reach, apart = np.zeros_like(weights), np.zeros_like(weights)
    for group in np.unique(groups):
        inside = groups == group
        own = weights[inside]
        reach[inside] = own.sum(axis=0) - own
        apart[inside] = distance_sums(cdfs[inside], own)
    return PairSums(weights, reach, apart)


def others(every: PairSums, some: PairSums) -> PairSums:
    """The pairs that are not among some of them; rounding makes none nearer than 0."""
    return PairSums(every.weights, every.reach - some.reach, np.maximum(every.apart - some.apart, 0.0))


def distance_sums(cdfs: FloatArray, weights: FloatArray) -> FloatArray:
    """By run, the sum over all others of their weight times the Wasserstein-1 distance to them.

    On a grid of step 1 that distance is Σ |CDFᵢ − CDFⱼ|, and in one column, sorted, the sum is that of the gaps below a run, each times the
    weight of all that lies below it, and likewise above: n log n, nothing is subtracted, and equal rows are exactly 0 apart.

    Args:
        cdfs: Shape (n, c): cumulative score distributions.
        weights: Shape (n, m).

    Returns:
        Shape (n, m).
    """
    if len(cdfs) <= FEW_RUNS:
        return run_distances(cdfs) @ weights
    sums = np.zeros_like(weights)
    for column in cdfs.T:
        order = np.argsort(column, kind="stable")
        gaps = np.diff(column[order])[:, None]
        upto = weights[order].cumsum(axis=0)
        far = np.zeros_like(weights)
        far[1:] = (gaps * upto[:-1]).cumsum(axis=0)
        far[:-1] += (gaps * (upto[-1] - upto[:-1]))[::-1].cumsum(axis=0)[::-1]
        sums[order] += far
    return sums


def half_square_sums(values: FloatArray, weights: FloatArray) -> FloatArray:
    """By run, the sum over all others of their weight times half the squared difference: in the mean over pairs, the variance.

    Args:
        values: Shape (n,).
        weights: Shape (n, m).

    Returns:
        Shape (n, m).
    """
    if len(values) <= FEW_RUNS:
        return 0.5 * (values[:, None] - values) ** 2 @ weights
    centred = values - values.mean()
    total = weights.sum(axis=0)
    squares = centred**2
    sums = 0.5 * (squares[:, None] * total - 2 * centred[:, None] * (centred @ weights) + squares @ weights)
    return np.where(sums > _NOTHING * total, sums, 0.0)
