"""The difference of two models over personas and wordings: how large, how sure, and how small a one would have been found.

By the rule that comparisons use, the t of :mod:`app.domain.statistics.design`. In a balanced design with normal effects the mean and
the three mean squares are independent (Searle, Casella and McCulloch, 1992, chapter 4), so that they are drawn as such.
"""

import math
from collections.abc import Sequence

import numpy as np

from app.domain.metrics.metric import FloatArray
from app.domain.statistics.design import (
    DesignCell,
    Error,
    components,
    crossed,
    interval,
    of_both,
    p_value,
)
from app.domain.statistics.paired import ALPHA, POWER, PairedDifference

BEYOND_SCALE = (
    "beyond_scale: no difference that the scale allows is sure to be found with so few personas and wordings"
)
DRAWS = 4_000
"""The power then repeats to 0.6 points under another seed."""


def crossed_difference(cells: Sequence[DesignCell], width: float) -> PairedDifference | None:
    """The mean of paired differences, personas and wordings both being what is drawn anew; ``None`` where they do not tell.

    Args:
        cells: The differences, at their places in the design.
        width: The greatest difference that there can be.
    """
    parts = of_both(components(cells)) if cells else "nothing"
    if isinstance(parts, str) or crossed(*parts).none:
        return None
    value, found, smallest = (
        float(np.mean([cell.figure.value for cell in cells])),
        crossed(*parts),
        detectable(parts),
    )
    return PairedDifference(
        value=value,
        pairs=len(cells),
        clusters=len({cell.persona for cell in cells}),
        interval=interval(value, found, (-width, width)),
        p_value=p_value(value, found),
        smallest_p_value=None,
        detectable=smallest if smallest <= width else None,
        detectable_reason=None if smallest <= width else BEYOND_SCALE,
    )


def detectable(parts: Sequence[Error]) -> float:
    """The true difference that another comparison of this design would find in 80 % of cases.

    The noise is itself an estimate; it is allowed for by drawing this comparison's as well as the other's.

    Args:
        parts: As from :func:`app.domain.statistics.design.of_both`.
    """
    draws = np.random.default_rng(0)
    whole = math.sqrt(crossed(*parts).variance)
    made, _ = _drawn(draws, parts)
    return float(np.quantile(_needed(draws, parts) / np.sqrt(made), POWER)) * whole


def _drawn(draws: np.random.Generator, parts: Sequence[Error]) -> tuple[FloatArray, FloatArray]:
    """The variances that such comparisons would estimate, and their degrees of freedom; both of shape (DRAWS,)."""
    degrees = np.array([part.degrees for part in parts])
    scale = np.array([part.variance for part in parts]) / degrees
    squares = scale * draws.chisquare(degrees, (DRAWS, len(parts)))
    whole = squares @ (1, 1, -1)
    larger = squares[:, :2].max(axis=1)
    freedom = np.maximum(1.0, whole**2 / (squares**2 / degrees).sum(axis=1))
    alone = whole <= larger
    of_larger = degrees[squares[:, :2].argmax(axis=1)]
    return np.where(alone, larger, whole), np.where(alone, of_larger, freedom)


def _needed(draws: np.random.Generator, parts: Sequence[Error]) -> FloatArray:
    """Shape (DRAWS,): the true difference from which on each of these comparisons would find it."""
    from scipy import special  # noqa: PLC0415 - its import takes a second, and who only reads results needs none

    variances, degrees = _drawn(draws, parts)
    means = math.sqrt(crossed(*parts).variance) * draws.standard_normal(DRAWS)
    # Degrees are rounded: few different quantiles, each of which takes its time.
    rounded, place = np.unique(np.round(degrees, 1), return_inverse=True)
    return np.asarray(special.stdtrit(rounded, 1 - ALPHA / 2)[place] * np.sqrt(variances) - means)
