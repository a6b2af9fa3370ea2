"""RC without what the number of runs does to it."""

import math
from functools import cache

from app.domain.metrics.definition import Estimate, Family, MetricDefinition
from app.domain.metrics.mean import run_scores
from app.domain.metrics.metric import Metric
from app.domain.metrics.rc import rc
from app.domain.metrics.scores import CellScores


def rc_corrected(scores: CellScores) -> Metric:
    """1 − 2s / (max − min), s the unbiased standard deviation of normal runs' scores.

    Returns:
        1 − √π to 1; n = runs with a scored unit.
    """
    found = rc(scores)
    return found if found.value is None else Metric.of(of_runs_like_these(found.value, found.n), found.n)


def of_runs_like_these(value: float, runs: int) -> float:
    """The corrected RC from the RC of two runs or more."""
    return 1.0 - (1.0 - value) * math.sqrt(runs / unbiased_divisor(runs))


@cache
def unbiased_divisor(runs: int) -> float:
    """What to divide the squares of n normal values about their mean by, so that the root is unbiased: (n − 1) · c₄(n)².

    c₄ is what the root of the unbiased variance of n values falls short by (Holtzman, 1950): .80 of two, .94 of five.
    """
    return 2 * math.exp(2 * (math.lgamma(runs / 2) - math.lgamma((runs - 1) / 2)))


RC_CORRECTED = MetricDefinition(
    name="rc_corrected",
    label="RC, corrected",
    summary="per response, whatever the number of runs",
    definition="RC with the standard deviation that few runs would not make too small: the denominator n − 1, and the factor 1 ÷ c₄(n).",
    source="Not in the papers",
    family=Family.CORRECTED,
    estimate=Estimate.SAMPLE_SPREAD,
    compute=rc_corrected,
    by_run=run_scores,
    range=(1 - math.sqrt(math.pi), 1.0),  # two runs at opposite ends of the scale
)
