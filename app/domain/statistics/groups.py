"""Intervals of means over cells or personas, of which a total consists."""

import math
from collections.abc import Sequence
from typing import NamedTuple

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
"""Each run's (or question's) influence on a figure, so scaled that the squares add up to its sampling variance; and how
many there are."""


class Member(NamedTuple):
    """A cell's, or a task's, contribution to a mean.

    Attributes:
        text: What tells its texts from others: model, persona and task; traits may share them.
        persona: The persona's id.
        value: Its figure.
        influence: What its runs, or questions, do to it; ``None`` where fewer than two have it.
    """

    text: tuple[str, str, str]
    persona: str
    value: float
    influence: Influence | None


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

    def over_cells(self, value: float, members: Sequence[Member], bounds: tuple[float, float]) -> Interval:
        """The interval of a mean over cells: a persona is drawn with all of its cells."""
        return self.interval(
            value,
            [member.persona for member in members],
            [member.value for member in members],
            [1.0] * len(members),
            bounds,
        )


def stratified_interval(
    value: float, members: Sequence[Member], bounds: tuple[float, float], of: str
) -> Interval:
    """The interval of a mean over these very members, if only what is inside them were drawn anew.

    From the influences (the infinitesimal jackknife; Efron, 1982): the members' sampling variances add up, those of traits
    that share a text together with their covariance. Student's t has Welch and Satterthwaite's degrees of freedom.

    Args:
        value: The mean of the members' values.
        members: At least one.
        bounds: The value's range.
        of: What is drawn anew, such as ``"runs"``, for the reason.
    """
    by_text: dict[tuple[str, str, str], list[Influence]] = {}
    for member in members:
        if member.influence is None:
            return Interval.missing(f"single_{of}: what has fewer than two {of} does not tell their spread")
        by_text.setdefault(member.text, []).append(member.influence)
    variances = np.array([_variance([rows for rows, _ in found]) for found in by_text.values()])
    degrees = np.array([min(runs for _, runs in found) - 1 for found in by_text.values()])
    total = float(variances.sum())
    if total < 10**-18:  # rounding apart
        return Interval.missing(f"no_spread: wherever there are several {of}, all have the same value")
    freedom = max(1, math.floor(total**2 / float((variances**2 / degrees).sum())))
    half = student(freedom) * math.sqrt(total) / len(members)
    return Interval.around(value, value - half, value + half, bounds)


def _variance(rows: Sequence[FloatArray]) -> float:
    """The sampling variance of the sum of one text's metrics."""
    if len({len(row) for row in rows}) > 1:  # traits with different runs: without a common order, as if apart
        return sum(float((row**2).sum()) for row in rows)
    return float((np.sum(rows, axis=0) ** 2).sum())
