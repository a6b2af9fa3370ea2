"""Pearson's correlation of two series that come in clusters."""

from collections.abc import Sequence

import numpy as np

from app.domain.metrics.metric import FloatArray, Metric
from app.domain.statistics.agreement import correlation_draws
from app.domain.statistics.groups import PersonaSample
from app.domain.statistics.resampling import percentile_interval, ratio_draws

FEWEST_PAIRS = 3
"""Two points always lie on a line."""
RANGE = (-1.0, 1.0)


def pearson(
    first: FloatArray, second: FloatArray, personas: Sequence[str], sample: PersonaSample | None
) -> Metric:
    """Pearson's r; its n counts the pairs of figures.

    Args:
        first: Shape (n,).
        second: Shape (n,).
        personas: Whose figures stand at each place.
        sample: The personas' resamples, each drawn with all its pairs; ``None`` for no interval.
    """
    if len(first) < FEWEST_PAIRS:
        return Metric.missing(f"too_few_pairs: {len(first)} pairs of figures; a correlation needs 3")
    if not (np.ptp(first) and np.ptp(second)):
        return Metric.missing("no_variation: one of the two figures is the same everywhere")
    value = float(np.clip(np.corrcoef(first, second)[0, 1], *RANGE))
    metric = Metric.of(value, len(first))
    if sample is None:
        return metric
    names = sorted(set(personas))
    places = np.searchsorted(names, personas)
    weights = sample.weights_of(names)
    counts = np.bincount(places).astype(np.float64)

    def means(values: FloatArray) -> FloatArray:
        return ratio_draws(np.bincount(places, weights=values).astype(np.float64), counts, weights)

    draws = correlation_draws(first, second, means)
    return metric.within(percentile_interval(value, draws, len(names), RANGE, "personas"))
