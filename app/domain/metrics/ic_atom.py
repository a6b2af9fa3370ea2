"""IC_atom: atomic-level internal consistency."""

import numpy as np

from app.domain.metrics.definition import Estimate, Family, MetricDefinition
from app.domain.metrics.metric import Metric
from app.domain.metrics.scores import CellScores, RunValues

FEWER_THAN_TWO_SCORED_UNITS = (
    "fewer_than_two_scored_units: no response of the cell has two units with a score"
)


def ic_atom(scores: CellScores) -> Metric:
    """IC_atom = 1 − 2 · σ / (max − min), σ the population standard deviation of a response's scores.

    Atomic paper, section 3; then averaged over responses and runs. A response with one scored unit has no IC_atom.

    Returns:
        0–1; n = runs that have a response with two scored units.
    """
    return Metric.average(run_consistencies(scores).values, FEWER_THAN_TWO_SCORED_UNITS)


def run_consistencies(scores: CellScores) -> RunValues:
    """Each run's mean internal consistency, 0–1, for runs that have a response with two scored units."""
    several = scores.counts > 1
    counts = scores.counts[several]
    # Σ(x − x̄)² / n = (n Σx² − (Σx)²) / n², whose numerator is an integer: equal scores give exactly 0.
    offsets = np.arange(scores.scale.size, dtype=np.int64)
    histograms = scores.histograms[several]
    numerators = counts * (histograms @ offsets**2) - (histograms @ offsets) ** 2
    values = 1.0 - 2.0 * np.sqrt(numerators / counts**2) / scores.scale.width
    return scores.run_means(values, several)


IC_ATOM = MetricDefinition(
    name="ic_atom",
    label="IC_atom",
    summary="consistent within a text",
    definition="Internal consistency: 1 − 2σ ÷ the scale’s width, where σ is the standard deviation of one response’s scores."
    " Needs at least two scored sentences.",
    source="Atomic paper, section 3",
    family=Family.ATOMIC,
    estimate=Estimate.MEAN,
    compute=ic_atom,
    by_run=run_consistencies,
)
