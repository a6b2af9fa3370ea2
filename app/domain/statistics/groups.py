"""Intervals of means over personas, or over tasks of several questions."""

import math
from collections.abc import Sequence

import numpy as np

from app.domain.metrics.interval import Interval
from app.domain.metrics.metric import FloatArray
from app.domain.statistics.resampling import (
    cluster_weights,
    percentile_interval,
    ratio_draws,
    student,
)

Influence = tuple[FloatArray, int]
"""Each question's influence on a figure, so scaled that the squares add up to its sampling variance; and how
many there are."""


class PersonaSample:
    """A job's personas and their resamples, the same for every total, so that models are resampled alike."""

    def __init__(self, personas: Sequence[str], seed: int) -> None:
        self._places = {persona: place for place, persona in enumerate(sorted(set(personas)))}
        self._weights = cluster_weights(seed, ("personas",), len(self._places))

    def interval(
        self,
        value: float,
        personas: Sequence[str],
        sums: Sequence[float],
        counts: Sequence[float],
        bounds: tuple[float, float],
        of: str = "personas",
    ) -> Interval:
        """The interval of Σ sums / Σ counts over other personas like these.

        Args:
            value: That ratio.
            personas: Whose sum and count stand at each place; may name one several times.
            sums: Sums of values.
            counts: Of how many values.
            bounds: The value's range.
            of: What they are, if not personas, for the reason why there is no interval.
        """
        places = sorted({self._places[persona] for persona in personas})
        index = np.searchsorted(places, [self._places[persona] for persona in personas])
        added = np.bincount(index, weights=sums, minlength=len(places)).astype(np.float64)
        counted = np.bincount(index, weights=counts, minlength=len(places)).astype(np.float64)
        draws = ratio_draws(added, counted, self._weights[places])
        return percentile_interval(value, draws, len(places), bounds, of)

    def weights_of(self, personas: Sequence[str]) -> FloatArray:
        """Shape (n, b): how often each of these is drawn in each resample; a persona may stand there several times."""
        return np.asarray(self._weights[[self._places[persona] for persona in personas]])


def stratified_interval(
    value: float, influences: Sequence[Influence | None], bounds: tuple[float, float], of: str
) -> Interval:
    """The interval of a mean over these very tasks, if only what is inside them were drawn anew.

    From the influences (the infinitesimal jackknife; Efron, 1982): the tasks' sampling variances add up. Student's t has Welch and
    Satterthwaite's degrees of freedom.

    Args:
        value: The mean of the tasks' figures.
        influences: At least one; ``None`` for a task that has fewer than two.
        bounds: The value's range.
        of: What is drawn anew, such as ``"questions"``, for the reason.
    """
    known = [each for each in influences if each is not None]
    if len(known) < len(influences):
        return Interval.missing(f"single_{of}: what has fewer than two {of} does not tell their spread")
    variances = np.array([float((rows**2).sum()) for rows, _ in known])
    degrees = np.array([count - 1 for _, count in known])
    total = float(variances.sum())
    if total < 10**-18:  # rounding apart
        return Interval.missing(f"no_spread: wherever there are several {of}, all have the same value")
    freedom = max(1, math.floor(total**2 / float((variances**2 / degrees).sum())))
    half = student(freedom) * math.sqrt(total) / len(known)
    return Interval.around(value, value - half, value + half, bounds)
