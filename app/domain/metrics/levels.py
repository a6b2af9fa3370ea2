"""Which level a mean score falls in, for many means at once."""

import numpy as np

from app.domain.instruments.dimension import Scale
from app.domain.metrics.metric import IntArray


def level_indices(scale: Scale, totals: IntArray, counts: IntArray) -> IntArray:
    """Index of the level in which each mean ``totals / counts`` falls: ``Scale.level_index`` for arrays.

    Integer arithmetic: a mean of exactly 7/3 or 11/3 on the paper's scale belongs to the upper of the two levels.

    Args:
        scale: The scale.
        totals: Shape (m,): sums of scores.
        counts: Shape (m,): how many scores each sum has; all positive.

    Returns:
        Shape (m,): 0 for the lowest level up to ``len(scale.levels) - 1``.
    """
    parts = len(scale.levels)
    above = (totals - counts * scale.minimum) * parts // (counts * scale.width)
    return np.asarray(np.minimum(above, parts - 1))
