"""ACC: accuracy of whole responses, the measure that ACC_atom refines."""

import numpy as np

from app.domain.metrics.definition import Estimate, Family, MetricDefinition
from app.domain.metrics.levels import level_indices
from app.domain.metrics.metric import Metric
from app.domain.metrics.scores import NO_SCORED_UNIT, CellScores, RunValues


def acc(scores: CellScores) -> Metric:
    """ACC = [s in the persona's level], s the response's mean score; averaged over responses, then runs.

    Atomic paper, section 4.2 "Metrics" (ACC_Dim of Wang et al., 2024).

    Returns:
        0–1; n = runs with a scored unit.
    """
    return Metric.average(run_hits(scores).values, NO_SCORED_UNIT)


def run_hits(scores: CellScores) -> RunValues:
    """Each run's share of responses whose mean score lies in the persona's level, 0–1."""
    scored = scores.scored
    levels = level_indices(scores.scale, scores.totals[scored], scores.counts[scored])
    hits = (levels == scores.level).astype(np.float64)
    return scores.run_means(hits, scored)


ACC = MetricDefinition(
    name="acc",
    label="ACC",
    summary="per response",
    definition="The share of responses whose mean score lies in the persona’s level.",
    source="Atomic paper, section 4.2; Wang et al. (2024)",
    family=Family.RESPONSE,
    estimate=Estimate.MEAN,
    compute=acc,
    by_run=run_hits,
)
