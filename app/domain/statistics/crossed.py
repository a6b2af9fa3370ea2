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
    degrees_of_both,
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

    The noise is itself an estimate. What it takes if personas' and wordings' variances have the ratio that was estimated is found in
    68 to 81 % of simulated cases; what it takes over all variances that may be behind the estimates (drawn as in fiducial inference), in
    79 to 92 %. The former is right where wordings hardly matter, the latter where they are most of the noise and few: this lies between
    them by :func:`_weight_of_wordings`.

    Args:
        parts: As from :func:`app.domain.statistics.design.of_both`.
    """
    draws = np.random.default_rng(0)
    weight = _weight_of_wordings(*parts[:2])
    estimated = np.array([part.variance for part in parts])
    degrees = [part.degrees for part in parts]
    found = 1.0
    if weight < 1:
        made, _ = _drawn(draws, parts, 1, estimated)
        of_ratio = np.quantile(needed(draws, parts) / np.sqrt(made), POWER) * math.sqrt(
            crossed(*parts).variance
        )
        found *= float(of_ratio) ** (1 - weight)
    if weight > 0:
        true = estimated * degrees / draws.chisquare(degrees, (DRAWS, 3))
        true[:, 2] = true.min(axis=1)  # personas' and wordings' have the interaction in them
        found *= float(np.quantile(needed(draws, parts, true=true), POWER)) ** weight
    return found


def _weight_of_wordings(personas: Error, wordings: Error) -> float:
    """How much, 0–1, depends on how little is known of wordings.

    Fitted so that 77 to 83 % are found, of 5 to 300 personas and three wordings and more, whatever is most of the noise.
    """
    share = wordings.variance / (personas.variance + wordings.variance)
    steep = 20 / wordings.degrees**2
    return min(1.0, max(0.0, steep * (share - 0.1 - 1.6 / personas.degrees)))


def _drawn(
    draws: np.random.Generator, parts: Sequence[Error], strata: int, true: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The variances that such comparisons would estimate, and their degrees of freedom; both of shape (DRAWS,)."""
    if len(parts) == 1:
        return _over_strata(draws, parts[0], strata)
    degrees = np.broadcast_to([float(part.degrees) for part in parts], (DRAWS, len(parts)))
    squares = true / degrees * draws.chisquare(degrees[0], (DRAWS, len(parts)))
    if strata > 1:
        squares, degrees = squares.copy(), degrees.copy()
        squares[:, 0], degrees[:, 0] = _over_strata(draws, parts[0], strata)
    return joined(squares, degrees)


def joined(squares: FloatArray, degrees: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Many variances by :func:`app.domain.statistics.design.crossed` at once, and their degrees of freedom; shape (…).

    Args:
        squares: Shape (…, 3): personas', wordings' and their interaction's.
        degrees: Theirs, of the same shape.
    """
    whole = squares @ (1, 1, -1)
    larger = squares[..., :2].max(axis=-1)
    freedom = degrees_of_both(np.moveaxis(squares, -1, 0), np.moveaxis(degrees, -1, 0))
    alone = whole <= larger
    of_larger = np.where(squares[..., 0] >= squares[..., 1], degrees[..., 0], degrees[..., 1])
    return np.where(alone, larger, whole), np.where(alone, of_larger, freedom)


def _over_strata(draws: np.random.Generator, part: Error, strata: int) -> tuple[FloatArray, FloatArray]:
    """Estimates of a variance that is the sum of equal ones, and the degrees of freedom that the design gives them."""
    own = part.degrees / strata
    squares = part.variance / strata * draws.chisquare(own, (DRAWS, strata)) / own
    total = squares.sum(axis=1)
    return total, np.clip(total**2 / (squares**2 / (own + 2)).sum(axis=1) - 2, own, part.degrees)


def needed(
    draws: np.random.Generator,
    parts: Sequence[Error],
    strata: int = 1,
    alpha: float = ALPHA,
    true: FloatArray | None = None,
) -> FloatArray:
    """Shape (DRAWS,): the true difference from which on each of such comparisons would find it.

    Args:
        draws: Of the comparisons.
        parts: As from :func:`app.domain.statistics.design.of_both`, or personas' alone.
        strata: Among which the personas are shared out evenly, where that is known.
        alpha: The chance of a false alarm.
        true: Shape (DRAWS, 3): the variances where they are not those of ``parts``.
    """
    from scipy import special  # noqa: PLC0415 - its import takes a second, and who only reads results needs none

    if true is None:
        true = np.array([part.variance for part in parts])
        whole = np.array((crossed(*parts) if len(parts) > 1 else parts[0]).variance)
    else:
        whole = true @ (1, 1, -1)
    variances, degrees = _drawn(draws, parts, strata, true)
    means = np.sqrt(whole) * draws.standard_normal(DRAWS)
    # Degrees are rounded: few different quantiles, each of which takes its time.
    rounded, place = np.unique(np.round(degrees, 1), return_inverse=True)
    return np.asarray(special.stdtrit(rounded, 1 - alpha / 2)[place] * np.sqrt(variances) - means)
