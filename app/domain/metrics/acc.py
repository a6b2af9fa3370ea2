"""ACC: accuracy of whole responses, the measure that ACC_atom refines."""

import numpy as np

from app.domain.metrics.levels import level_indices
from app.domain.metrics.metric import Metric
from app.domain.metrics.scores import NO_SCORED_UNIT, CellScores


def acc(scores: CellScores) -> Metric:
    """ACC = [s in the persona's level], s the response's mean score; averaged over responses, then runs.

    Atomic paper, section 4.2 "Metrics" (ACC_Dim of Wang et al., 2024).

    Returns:
        0–1; n = runs with a scored unit.
    """
    scored = scores.scored
    levels = level_indices(scores.scale, scores.totals[scored], scores.counts[scored])
    hits = (levels == scores.level).astype(np.float64)
    return Metric.average(scores.run_means(hits, scored), NO_SCORED_UNIT)
