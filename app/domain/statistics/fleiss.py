"""How far annotators agree beyond chance: Fleiss' κ (1971)."""

import numpy as np

from app.domain.metrics.metric import FloatArray, Metric
from app.domain.statistics.resampling import percentile_interval

RANGE = (-1.0, 1.0)
NO_JOINT = "no_joint_item: no item has an answer from two annotators"
NO_VARIATION = "no_variation: all answers are the same one"


def fleiss_kappa(counts: FloatArray, weights: FloatArray, stands_for: FloatArray | None = None) -> Metric:
    """κ = (P̄ − P̄ₑ) / (1 − P̄ₑ); its n counts the items with two answers or more, others are left out.

    P̄ is the mean over the items of the share of their pairs of answers that are equal, P̄ₑ the sum over the answers of the
    square of their share of all. Fleiss has as many answers to each item; where that varies, as when
    somebody has not finished, an item still counts once in P̄, and each answer once in P̄ₑ.

    Args:
        counts: Shape (n, k): how many annotators gave each item each of k answers.
        weights: Shape (n, b): how often each item is drawn in each resample.
        stands_for: Shape (n,): for how many items of a population each stands, for its κ; ``None`` for that of the items.
    """
    joint = counts.sum(1) > 1
    given_weight = np.ones((len(counts), 1)) if stands_for is None else stands_for[:, None]
    counts, weights, given_weight = counts[joint], (weights * given_weight)[joint], given_weight[joint]
    if not len(counts):
        return Metric.missing(NO_JOINT)
    given = counts.sum(1)
    equal = ((counts**2).sum(1) - given) / (given * (given - 1))
    value = float(_kappa(equal, counts, given_weight)[0])
    if np.isnan(value):
        return Metric.missing(NO_VARIATION)
    draws = _kappa(equal, counts, weights)
    return Metric.of(value, len(counts)).within(
        percentile_interval(value, draws, len(counts), RANGE, "items")
    )


def _kappa(equal: FloatArray, counts: FloatArray, weights: FloatArray) -> FloatArray:
    """κ in every resample, shape (b,); NaN where all answers are the same."""
    items, answers = weights.sum(0), counts.T @ weights
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = ((answers / answers.sum(0)) ** 2).sum(0)
        kappas = (equal @ weights / items - expected) / (1 - expected)
    return np.where(expected < 1 - 10**-12, kappas, np.nan)
