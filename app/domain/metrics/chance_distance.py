"""How far apart runs are by chance: their mean distance if the same units had been dealt to them at random."""

import numpy as np

from app.domain.metrics.hypergeometric import mean_deviation, probability
from app.domain.metrics.metric import FloatArray, IntArray

MOST_SIZES = 32
"""Of more different sizes, neighbours are taken as one: the cost grows with the square of their number."""
LARGE = 500
"""Two runs of more units each are as far apart as the normal distribution says."""
MOST_UNITS = 2**20
"""A larger pool is like one of this size with the same shares."""
_AT_ONCE = 2**16


def chance_distance(histograms: IntArray) -> float:
    """The mean Wasserstein-1 distance over all pairs of runs, averaged over all ways to deal the pooled units to the runs.

    At each step of the distribution function, two runs of a and b units have X and Y of the K units below it. Given T = X + Y,
    X is hypergeometric, and X/a − Y/b is (1/a + 1/b) times its deviation from its mean, whose absolute value has a
    mean in closed form (Diaconis and Zabell, 1991); T is hypergeometric too. So nothing is drawn.

    Args:
        histograms: Shape (k, s), k at least 2: how many units of each run got each score, lowest score first; no run empty.
    """
    pooled = histograms.sum(axis=0)
    sizes, pairs = _pairs_of_sizes(histograms.sum(axis=1))
    below = pooled.cumsum()[:-1]
    units = int(pooled.sum())
    if units > MOST_UNITS:
        below, units = np.rint(below * (MOST_UNITS / units)).astype(np.int64), MOST_UNITS
    large = (sizes > LARGE).all(axis=1)
    far = _normal(sizes[large], below, units) @ pairs[large]
    cost = (sizes.sum(axis=1) + 1)[~large].cumsum()
    for part in np.split(np.flatnonzero(~large), np.flatnonzero(np.diff(cost // _AT_ONCE)) + 1):
        if len(part):
            far += _exact(sizes[part], pairs[part], below, units)
    return float(far / pairs.sum())


def _pairs_of_sizes(counts: IntArray) -> tuple[IntArray, IntArray]:
    """Every two sizes that runs have, shape (p, 2), and how many pairs of runs have them."""
    sizes, runs = np.unique(counts, return_counts=True)
    if len(sizes) > MOST_SIZES:
        groups = np.array_split(np.sort(counts), MOST_SIZES)
        merged = [max(1, round(len(group) / float((1 / group).sum()))) for group in groups]
        sizes, place = np.unique(merged, return_inverse=True)
        runs = np.bincount(place, weights=[len(group) for group in groups]).astype(np.int64)
    first, second = np.triu_indices(len(sizes))
    pairs = np.where(first == second, runs[first] * (runs[first] - 1) // 2, runs[first] * runs[second])
    there = pairs > 0
    return np.column_stack([sizes[first], sizes[second]])[there], pairs[there]


def _normal(sizes: IntArray, below: IntArray, units: int) -> FloatArray:
    share = below / units
    variance = (share * (1 - share)).astype(np.float64)[:, None] * units / max(1, units - 1)
    return np.asarray(np.sqrt(2 / np.pi * variance * (1 / sizes).sum(axis=1)).sum(axis=0))


def _exact(sizes: IntArray, pairs: IntArray, below: IntArray, units: int) -> float:
    """The distances of runs of these sizes, added up over the pairs."""
    both = sizes.sum(axis=1)
    lengths = both + 1
    pair = np.repeat(np.arange(len(sizes)), lengths)
    together = np.arange(len(pair)) - np.repeat(lengths.cumsum() - lengths, lengths)  # T, from 0 to a + b
    given = pairs[pair] * mean_deviation(both[pair], together, sizes[pair, 0]) * (1 / sizes).sum(axis=1)[pair]
    # How likely T is depends on a and b by their sum alone.
    sums, place = np.unique(both, return_inverse=True)
    starts = (sums + 1).cumsum() - (sums + 1)
    added = np.bincount(starts[place][pair] + together, weights=given, minlength=int((sums + 1).sum()))
    of_sum = np.repeat(sums, sums + 1)
    found = np.arange(len(of_sum)) - np.repeat(starts, sums + 1)
    return float((probability(units, below[:, None], of_sum, found) @ added).sum())
