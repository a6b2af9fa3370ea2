"""ACC_atom: atomic-level accuracy."""

import numpy as np

from app.domain.metrics.levels import level_indices
from app.domain.metrics.metric import Metric
from app.domain.metrics.scores import NO_SCORED_UNIT, CellScores


def acc_atom(scores: CellScores) -> Metric:
    """ACC_atom = (1/n) Σ [sᵢ in the persona's level] over a response's n scored units; then over responses, runs.

    Atomic paper, section 3.

    Returns:
        0–1; n = runs with a scored unit.
    """
    scored = scores.scored
    hits = level_indices(scores.scale, scores.grid, np.ones_like(scores.grid)) == scores.level
    shares = scores.histograms[scored][:, hits].sum(axis=1) / scores.counts[scored]
    return Metric.average(scores.run_means(shares, scored), NO_SCORED_UNIT)
