"""MEAN: the average score."""

from app.domain.metrics.definition import Estimate, Family, MetricDefinition
from app.domain.metrics.metric import Metric
from app.domain.metrics.scores import NO_SCORED_UNIT, CellScores, RunValues


def run_scores(scores: CellScores) -> RunValues:
    """Each run's score: the mean, over its responses, of the response's mean score s (Table 17's s).

    Returns:
        One score for each run with a scored unit, between the scale's minimum and maximum.
    """
    scored = scores.scored
    return scores.run_means(scores.totals[scored] / scores.counts[scored], scored)


def mean(scores: CellScores) -> Metric:
    """MEAN = mean over runs of the run's mean response score, s = (Σ sᵢ) / n over a response's n scored units.

    Atomic paper, Table 5 ("averaged characteristic scores") and section A.1 for the order of averaging.

    Returns:
        Between the scale's minimum and maximum; n = runs with a scored unit.
    """
    return Metric.average(run_scores(scores).values, NO_SCORED_UNIT)


MEAN = MetricDefinition(
    name="mean",
    label="MEAN",
    summary="per sentence",
    definition="The mean score of a response’s sentences; it should lie in the persona’s level.",
    source="Atomic paper, Table 5",
    family=Family.SCORE,
    estimate=Estimate.MEAN,
    compute=mean,
    by_run=run_scores,
    range=None,
)
