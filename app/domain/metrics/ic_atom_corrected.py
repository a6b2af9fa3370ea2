"""IC_atom without what the number of sentences does to it."""

import math

import numpy as np

from app.domain.metrics.definition import Estimate, Family, MetricDefinition
from app.domain.metrics.ic_atom import FEWER_THAN_TWO_SCORED_UNITS
from app.domain.metrics.metric import Metric
from app.domain.metrics.scores import CellScores, RunValues


def ic_atom_corrected(scores: CellScores) -> Metric:
    """1 − 2 · √(mean s²) / (max − min), s² a response's variance with the denominator n − 1.

    s² has the same mean at every number of sentences, and its mean is taken before the root, which would bring a bias back.

    Returns:
        1 − √2 to 1; n = runs that have a response with two scored units.
    """
    variances = run_variances(scores).values
    if not len(variances):
        return Metric.missing(FEWER_THAN_TWO_SCORED_UNITS)
    value = 1.0 - 2.0 * math.sqrt(variances.mean()) / scores.scale.width
    return Metric.of(max(LEAST, value), len(variances))  # rounding can carry it past that


LEAST = 1 - math.sqrt(2)
"""Of two sentences at opposite ends of the scale."""


def run_variances(scores: CellScores) -> RunValues:
    """Each run's mean variance within a response, for runs that have a response with two scored units."""
    several = scores.counts > 1
    counts = scores.counts[several]
    offsets = np.arange(scores.scale.size, dtype=np.int64)
    histograms = scores.histograms[several]
    numerators = counts * (histograms @ offsets**2) - (histograms @ offsets) ** 2
    return scores.run_means(numerators / (counts * (counts - 1)), several)


IC_ATOM_CORRECTED = MetricDefinition(
    name="ic_atom_corrected",
    label="IC_atom, corrected",
    summary="consistent within a text, whatever its length",
    definition="IC_atom from the mean variance of responses’ scores with the denominator n − 1: no bias from the number of"
    " sentences.",
    source="Not in the papers",
    family=Family.CORRECTED,
    estimate=Estimate.ROOT,
    compute=ic_atom_corrected,
    by_run=run_variances,
    range=(LEAST, 1.0),
)
