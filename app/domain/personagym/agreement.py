"""How far two evaluators agree on the same responses."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from pydantic import BaseModel, Field

from app.domain.metrics.metric import FloatArray, Metric
from app.domain.personagym.scores import SCORES, Grade
from app.domain.statistics.agreement import NO_JOINT, correlation_draws, kappa_draws, quadratic_kappa
from app.domain.statistics.groups import PersonaSample
from app.domain.statistics.resampling import percentile_interval, ratio_draws

NO_VARIATION = "no_variation: an evaluator gave all of the responses the same score"


class GradeAgreement(BaseModel):
    """The agreement of two judges' grades in one task; n is the number of responses that both graded."""

    task: str
    judges: tuple[str, str] = Field(description="Sorted.")
    n: int = Field(description="Responses that both graded.")
    quadratic_kappa: Metric = Field(description="Cohen's κ with quadratic weights: 0 is chance, 1 perfect.")
    spearman: Metric = Field(description="Spearman's ρ.")
    mean_absolute_difference: Metric = Field(description="In points of the scale; 0 is perfect.")


def agreements(
    grades: Sequence[Grade], tasks: Sequence[str], sample: PersonaSample | None = None
) -> tuple[GradeAgreement, ...]:
    """The agreement of every pair of evaluators in every task, over all models and personas.

    Args:
        grades: All grades of a job, in any order.
        tasks: Ids of the job's tasks.
        sample: The job's personas, for intervals; ``None`` for figures without them.

    Returns:
        By task, in the order of ``tasks``, then by pair.
    """
    labels = sorted({grade.judge for grade in grades})
    return tuple(
        _agreement(task, pair, [grade for grade in grades if grade.task == task], sample)
        for task in tasks
        for pair in combinations(labels, 2)
    )


def spearman(first: FloatArray, second: FloatArray) -> Metric:
    """Spearman's ρ, ties having their mean rank; arguments as for :func:`quadratic_kappa`."""
    if not len(first):
        return Metric.missing(NO_JOINT)
    if not (np.ptp(first) and np.ptp(second)):
        return Metric.missing(NO_VARIATION)
    return Metric.of(float(np.corrcoef(_ranks(first), _ranks(second))[0, 1]), len(first))


def mean_absolute_difference(first: FloatArray, second: FloatArray) -> Metric:
    """Mean of the scores' distances; arguments as for :func:`quadratic_kappa`."""
    return Metric.average(np.abs(first - second), NO_JOINT)


def _agreement(
    task: str, judges: tuple[str, str], grades: Sequence[Grade], sample: PersonaSample | None
) -> GradeAgreement:
    one, other = (_scores_by_response(grades, judge) for judge in judges)
    joint = sorted(one.keys() & other.keys())
    first = np.array([one[response] for response in joint], dtype=np.float64)
    second = np.array([other[response] for response in joint], dtype=np.float64)
    found = GradeAgreement(
        task=task,
        judges=judges,
        n=len(joint),
        quadratic_kappa=quadratic_kappa(first, second),
        spearman=spearman(first, second),
        mean_absolute_difference=mean_absolute_difference(first, second),
    )
    if sample is None or not joint:
        return found
    return _with_intervals(found, [response[1] for response in joint], first, second, sample)


def _with_intervals(
    found: GradeAgreement,
    personas: Sequence[str],
    first: FloatArray,
    second: FloatArray,
    sample: PersonaSample,
) -> GradeAgreement:
    """The figures with their intervals over personas; ranks are those of all responses, not of each resample."""
    weights = sample.weights_of(personas)
    clusters = len(set(personas))

    def means(values: FloatArray) -> FloatArray:
        return ratio_draws(values, np.ones(len(values)), weights)

    def within(metric: Metric, draws: FloatArray, bounds: tuple[float, float]) -> Metric:
        if metric.value is None:
            return metric
        return metric.within(percentile_interval(metric.value, draws, clusters, bounds, "personas"))

    ranks = _ranks(first), _ranks(second)
    away = np.abs(first - second)
    return found.model_copy(
        update={
            "quadratic_kappa": within(found.quadratic_kappa, kappa_draws(first, second, means), (-1.0, 1.0)),
            "spearman": within(found.spearman, correlation_draws(*ranks, means), (-1.0, 1.0)),
            "mean_absolute_difference": within(
                found.mean_absolute_difference, means(away), (0.0, SCORES[1] - SCORES[0])
            ),
        }
    )


def _ranks(scores: FloatArray) -> FloatArray:
    """Ranks from 1, ties having their mean rank."""
    _, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    return np.asarray((counts.cumsum() - (counts - 1) / 2)[places])


def _scores_by_response(grades: Sequence[Grade], judge: str) -> dict[tuple[str, str, str, int], int]:
    return {
        (grade.model, grade.persona, grade.question, grade.run): grade.verdict.score
        for grade in grades
        if grade.judge == judge and grade.verdict.score is not None
    }
