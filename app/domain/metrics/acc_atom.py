"""ACC_atom: atomic-level accuracy."""

import numpy as np

from app.domain.metrics.definition import Estimate, Family, MetricDefinition
from app.domain.metrics.levels import level_indices
from app.domain.metrics.metric import Metric
from app.domain.metrics.scores import NO_SCORED_UNIT, CellScores, RunValues


def acc_atom(scores: CellScores) -> Metric:
    """ACC_atom = (1/n) Σ [sᵢ in the persona's level] over a response's n scored units; then over responses, runs.

    Atomic paper, section 3.

    Returns:
        0–1; n = runs with a scored unit.
    """
    return Metric.average(run_shares(scores).values, NO_SCORED_UNIT)


def run_shares(scores: CellScores) -> RunValues:
    """Each run's mean share of units in the persona's level, 0–1."""
    scored = scores.scored
    hits = level_indices(scores.scale, scores.grid, np.ones_like(scores.grid)) == scores.level
    shares = scores.histograms[scored][:, hits].sum(axis=1) / scores.counts[scored]
    return scores.run_means(shares, scored)


ACC_ATOM = MetricDefinition(
    name="acc_atom",
    label="ACC_atom",
    summary="in character",
    definition="The share of a response’s scored sentences that lie in the persona’s level.",
    source="Atomic paper, section 3",
    family=Family.ATOMIC,
    estimate=Estimate.MEAN,
    compute=acc_atom,
    by_run=run_shares,
)
