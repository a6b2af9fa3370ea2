"""Draws without replacement: how likely they are, and how far from their mean."""

from functools import lru_cache

import numpy as np

from app.domain.metrics.metric import FloatArray, IntArray


def mean_deviation(units: IntArray, marked: IntArray, drawn: IntArray) -> FloatArray:
    """The mean absolute deviation of a hypergeometric variable from its mean.

    2m (N − K − n + m) / N · P(X = m), m the first whole number above the mean nK/N.
    """
    above = marked * drawn // units + 1
    rest = units - marked - drawn + above
    return np.asarray(2 * above * rest / units * probability(units, marked, drawn, above))


def probability(units: int | IntArray, marked: IntArray, drawn: IntArray, found: IntArray) -> FloatArray:
    """How likely ``drawn`` of ``units`` hold ``found`` of the ``marked`` ones (hypergeometric)."""
    rest = units - marked - drawn + found
    possible = (found <= marked) & (found <= drawn) & (rest >= 0)
    logs = _log_factorials(int(np.max(units)).bit_length())
    log = (
        logs[marked]
        + logs[units - marked]
        + logs[drawn]
        + logs[units - drawn]
        - logs[units]
        - logs[found]
        - logs[np.where(possible, marked - found, 0)]
        - logs[np.where(possible, drawn - found, 0)]
        - logs[np.where(possible, rest, 0)]
    )
    return np.asarray(np.exp(np.where(possible, log, -np.inf)))


@lru_cache(maxsize=4)
def _log_factorials(bits: int) -> FloatArray:
    """Of 0 up to 2^bits."""
    return np.concatenate([[0.0], np.log(np.arange(1, 2**bits + 1)).cumsum()])
