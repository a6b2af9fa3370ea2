"""RC without what the number of runs does to it."""

import math

from app.domain.metrics.definition import Estimate, Family, MetricDefinition
from app.domain.metrics.mean import run_scores
from app.domain.metrics.metric import Metric
from app.domain.metrics.rc import rc
from app.domain.metrics.scores import CellScores


def rc_corrected(scores: CellScores) -> Metric:
    """1 − 2s / (max − min), s the standard deviation of the runs' scores with the denominator n − 1.

    Returns:
        1 − √2 to 1; n = runs with a scored unit.
    """
    found = rc(scores)
    return found if found.value is None else Metric.of(of_runs_like_these(found.value, found.n), found.n)


def of_runs_like_these(value: float, runs: int) -> float:
    """The corrected RC from the RC of two runs or more."""
    return 1.0 - (1.0 - value) * math.sqrt(runs / (runs - 1))


RC_CORRECTED = MetricDefinition(
    name="rc_corrected",
    label="RC, corrected",
    summary="per response, whatever the number of runs",
    definition="RC with the denominator n − 1 in the standard deviation of n runs.",
    source="Not in the papers",
    family=Family.CORRECTED,
    estimate=Estimate.SAMPLE_SPREAD,
    compute=rc_corrected,
    by_run=run_scores,
    range=(1 - math.sqrt(2), 1.0),  # two runs at opposite ends of the scale
)
