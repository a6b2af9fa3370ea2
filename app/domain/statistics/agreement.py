"""How far two series of scores of the same things agree, beyond what chance would give."""

from collections.abc import Callable

import numpy as np

from app.domain.metrics.metric import FloatArray, Metric

NO_JOINT = "no_joint_response: no response has a grade from both evaluators"
NO_DISAGREEMENT = "no_expected_disagreement: both evaluators gave every response the same one score"

_NOTHING = 10**-9
"""Expected differences below it are 0, rounding apart."""

Means = Callable[[FloatArray], FloatArray]
"""The mean, in every resample, of values that belong to the things scored; NaN in empty resamples."""


def quadratic_kappa(first: FloatArray, second: FloatArray) -> Metric:
    """Cohen's κ with quadratic weights (Cohen, 1968): 1 − observed / expected squared difference.

    The expected one is the mean of (xᵢ − yⱼ)² over all i and j: σₓ² + σᵧ² + (x̄ − ȳ)².

    Args:
        first: Shape (n,): one evaluator's scores.
        second: Shape (n,): the other's, of the same responses.
    """
    if not len(first):
        return Metric.missing(NO_JOINT)
    expected = float(first.var() + second.var() + (first.mean() - second.mean()) ** 2)
    if expected == 0.0:
        return Metric.missing(NO_DISAGREEMENT)
    return Metric.of(1.0 - float(((first - second) ** 2).mean()) / expected, len(first))


def kappa_draws(first: FloatArray, second: FloatArray, means: Means) -> FloatArray:
    """:func:`quadratic_kappa` in every resample; NaN where it does not exist."""
    one, other = means(first), means(second)
    spread = means(first**2) - one**2 + means(second**2) - other**2
    expected = spread + (one - other) ** 2
    return _quotient(expected - means((first - second) ** 2), expected)


def correlation_draws(first: FloatArray, second: FloatArray, means: Means) -> FloatArray:
    """Pearson's r of two series in every resample; NaN where one of them does not vary."""
    one, other = means(first), means(second)
    spreads = np.clip(means(first**2) - one**2, 0, None) * np.clip(means(second**2) - other**2, 0, None)
    return np.clip(_quotient(means(first * second) - one * other, np.sqrt(spreads)), -1.0, 1.0)


def _quotient(above: FloatArray, below: FloatArray) -> FloatArray:
    """Above / below; NaN where below is 0, rounding apart."""
    missing = np.full(len(below), np.nan)
    return np.asarray(np.divide(above, below, out=missing, where=below > _NOTHING))
