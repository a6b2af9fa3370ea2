"""RC: retest consistency of whole runs, the measure that RC_atom refines."""

import numpy as np

from app.domain.metrics.definition import Estimate, Family, MetricDefinition
from app.domain.metrics.mean import run_scores
from app.domain.metrics.metric import Metric
from app.domain.metrics.scores import CellScores


def rc(scores: CellScores) -> Metric:
    """RC = 1 − 2 · σ / (max − min), σ the population standard deviation of the runs' scores.

    Atomic paper, section 4.2 "Metrics" (Std_Score of Wang et al., 2024). A single run has nothing to be consistent
    with: its σ of 0 would read as perfect consistency, so RC does not exist.

    Returns:
        0–1; n = runs with a scored unit.
    """
    values = run_scores(scores).values
    if len(values) < 2:  # noqa: PLR2004 - a pair, plainly
        return Metric.missing(
            f"fewer_than_two_runs: {len(values)} of the runs have a scored unit; RC compares runs"
        )
    # Rounding can carry σ of two opposite extremes past half the scale by one unit in the last place.
    return Metric.of(max(0.0, 1.0 - 2.0 * float(np.std(values)) / scores.scale.width), len(values))


RC = MetricDefinition(
    name="rc",
    label="RC",
    summary="per response",
    definition="Retest consistency of whole runs: 1 − 2σ ÷ the scale’s width, where σ is the standard deviation of the runs’ scores.",
    source="Atomic paper, section 4.2; Wang et al. (2024)",
    family=Family.RESPONSE,
    estimate=Estimate.SPREAD,
    compute=rc,
    by_run=run_scores,
)
