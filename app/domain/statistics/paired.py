"""The difference of two models on the same personas: how large, how sure, and how small a one would have been seen."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from app.domain.metrics.interval import Interval
from app.domain.metrics.metric import FloatArray
from app.domain.statistics.groups import PersonaSample
from app.domain.statistics.resampling import student

EXACT_CLUSTERS = 12
"""Up to so many clusters all 2ⁿ sign patterns are tried; with more, ``PERMUTATIONS`` of them."""
PERMUTATIONS = 9_999
SIGNS_AT_A_TIME = 2_000_000
"""So many need some 20 MB; a comparison by items has tens of thousands of clusters."""
ALPHA, POWER = 0.05, 0.8
FEWEST_TESTED = 6
"""Clusters with which the test can reach :data:`ALPHA`: the smallest of 2ⁿ sign patterns' p-values is 2¹⁻ⁿ."""
_EQUAL = 10**-12
_DRAWS = 20_000
_EXACT_ERRORS = {6: 5.22, 7: 4.10, 8: 3.82, 9: 3.64, 10: 3.49, 11: 3.39, 12: 3.34}
"""By clusters: how many standard errors, as one comparison estimates them, the sign flips of another find in 80 % of cases. From
20,000 simulated pairs of comparisons of normal differences each."""


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """The mean of paired differences, a − b.

    Attributes:
        value: The mean difference, each pair counting the same.
        pairs: Pairs.
        clusters: The personas, or items, that they come from.
        interval: Over these.
        p_value: Of a sign-flip permutation test over clusters, two-sided; ``None`` for fewer than two.
        smallest_p_value: The smallest that the test could give with so many clusters.
        detectable: The smallest true difference that such a comparison would find (this test, 5 %) in 80 % of cases; ``None``
            where there is none.
        detectable_reason: Why there is none, ``"code: words"``.
    """

    value: float
    pairs: int
    clusters: int
    interval: Interval
    p_value: float | None
    smallest_p_value: float | None
    detectable: float | None
    detectable_reason: str | None


def paired_difference(
    differences: Sequence[tuple[str, float]],
    width: float,
    sample: PersonaSample,
    seed: int,
    of: str = "personas",
) -> PairedDifference:
    """The mean of differences that come in clusters.

    Args:
        differences: Cluster and difference of each pair; at least one.
        width: The greatest difference that there can be.
        sample: The clusters' resamples.
        seed: Of the permutations.
        of: What the clusters are, for the reason why there is no interval.
    """
    names = sorted({cluster for cluster, _ in differences})
    ordered = sorted(differences)
    places = np.searchsorted(names, [cluster for cluster, _ in ordered])
    values = [value for _, value in ordered]
    sums = np.bincount(places, weights=values, minlength=len(names)).astype(np.float64)
    counts = np.bincount(places, minlength=len(names)).astype(np.float64)
    value = float(sums.sum() / counts.sum())
    interval = sample.interval(value, names, sums.tolist(), counts.tolist(), (-width, width), of)
    several = len(names) > 1
    detectable = _detectable(sums, counts, width, of)
    return PairedDifference(
        value=value,
        pairs=len(differences),
        clusters=len(names),
        interval=interval,
        p_value=sign_flip_p_value(sums, seed) if several else None,
        smallest_p_value=smallest_p_value(len(names)) if several else None,
        detectable=None if isinstance(detectable, str) else detectable,
        detectable_reason=detectable if isinstance(detectable, str) else None,
    )


def sign_flip_p_value(sums: FloatArray, seed: int) -> float:
    """The share of sign patterns under which the sum is at least as far from 0 (Fisher's randomization test).

    Under no difference a cluster's sum is as likely to be positive as negative, whatever its distribution: the test keeps
    its level at any number of clusters. With sampled patterns the observed one is counted in (Phipson and Smyth, 2010).

    Args:
        sums: Shape (n,), n at least 2: each cluster's sum of differences.
        seed: Of the sampled patterns.
    """
    observed = abs(float(sums.sum())) - _EQUAL
    if len(sums) <= EXACT_CLUSTERS:
        bits = np.arange(2 ** len(sums))[:, None] >> np.arange(len(sums)) & 1
        return float((np.abs((1 - 2 * bits) @ sums) >= observed).mean())
    draws = np.random.default_rng([seed, len(sums)])
    at_a_time = max(1, SIGNS_AT_A_TIME // len(sums))
    reached = 0
    for first in range(0, PERMUTATIONS, at_a_time):
        patterns = min(at_a_time, PERMUTATIONS - first)
        signs = 2.0 * draws.integers(2, size=(patterns, len(sums)), dtype=np.int8) - 1
        reached += int((np.abs(signs @ sums) >= observed).sum())
    return (1 + reached) / (PERMUTATIONS + 1)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's (1979) correction: p-values that keep the chance of any false alarm among them at the level of each."""
    ranked = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    found: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, place) in enumerate(ranked):
        largest = max(largest, min(1.0, p * (len(ranked) - rank)))
        found[place] = largest
    return found


def smallest_p_value(clusters: int) -> float:
    """The smallest that the permutation of so many clusters' signs can give."""
    return 2.0 ** (1 - clusters) if clusters <= EXACT_CLUSTERS else 1 / (PERMUTATIONS + 1)


def _detectable(sums: FloatArray, counts: FloatArray, width: float, of: str) -> float | str:
    """So many standard errors, from the clusters' residuals, as the test needs; or why there is no such difference."""
    n = len(sums)
    if n < FEWEST_TESTED:
        return (
            f"too_few_{of}: the test finds no difference, however great, with fewer than {FEWEST_TESTED} {of}"
        )
    residuals = sums - counts * sums.sum() / counts.sum()
    error = math.sqrt(n / (n - 1) * float((residuals**2).sum())) / float(counts.sum())
    if error < _EQUAL:
        return f"no_spread: the difference is the same in all {of}"
    found = _needed_errors(n) * error
    return (
        found
        if found <= width
        else f"beyond_scale: no difference that the scale allows is sure to be found with so few {of}"
    )


@cache
def _needed_errors(clusters: int) -> float:
    """How many of its own standard errors a comparison can promise to be found in 80 % of others of its size.

    With few clusters, sign flips find less than Student's t, and the standard error is itself uncertain: both are allowed for. Beyond
    :data:`EXACT_CLUSTERS` the test is that of Student's t, whose two samples are drawn by their mean and variance.
    """
    if clusters in _EXACT_ERRORS:
        return _EXACT_ERRORS[clusters]
    draws, degrees = np.random.default_rng(clusters), clusters - 1
    made, other = np.sqrt(draws.chisquare(degrees, (2, _DRAWS)) / degrees)
    return float(np.quantile((student(degrees) * other - draws.standard_normal(_DRAWS)) / made, POWER))
