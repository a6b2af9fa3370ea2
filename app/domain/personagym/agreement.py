"""How far two evaluators agree on the same responses."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import stats

from app.domain.metrics.metric import FloatArray, Metric
from app.domain.personagym.scores import Grade

NO_JOINT = "no_joint_response: no response has a grade from both evaluators"
NO_VARIATION = "no_variation: an evaluator gave all of the responses the same score"
NO_DISAGREEMENT = "no_expected_disagreement: both evaluators gave every response the same one score"


@dataclass(frozen=True, slots=True)
class Agreement:
    """The agreement of two evaluators in one task. Each metric's n is the number of responses that both graded.

    Attributes:
        task: The task's id.
        judges: The two evaluators' labels, sorted.
        quadratic_kappa: Cohen's κ with quadratic weights, −1–1; 0 is chance, 1 perfect.
        spearman: Spearman's ρ, −1–1.
        mean_absolute_difference: In points of the scale; 0 is perfect.
        jointly_scored: Responses that both graded.
    """

    task: str
    judges: tuple[str, str]
    quadratic_kappa: Metric
    spearman: Metric
    mean_absolute_difference: Metric
    jointly_scored: int


def agreements(grades: Sequence[Grade], tasks: Sequence[str]) -> tuple[Agreement, ...]:
    """The agreement of every pair of evaluators in every task, over all models and personas.

    Args:
        grades: All grades of a job, in any order.
        tasks: Ids of the job's tasks.

    Returns:
        By task, in the order of ``tasks``, then by pair.
    """
    labels = sorted({grade.judge for grade in grades})
    return tuple(
        _agreement(task, pair, [grade for grade in grades if grade.task == task])
        for task in tasks
        for pair in combinations(labels, 2)
    )


def quadratic_kappa(first: FloatArray, second: FloatArray) -> Metric:
    """Cohen's κ with quadratic weights (Cohen, 1968): 1 − observed / expected squared difference.

    The expected one is the mean of (xᵢ − yⱼ)² over all i and j: σₓ² + σᵧ² + (x̄ − ȳ)².

    Args:
        first: Shape (n,): one evaluator's scores.
        second: Shape (n,): the other's, of the same responses.
    """
    if not len(first):
        return Metric.missing(NO_JOINT)
    expected = float(first.var() + second.var() + (first.mean() - second.mean()) ** 2)
    if expected == 0.0:
        return Metric.missing(NO_DISAGREEMENT)
    return Metric(1.0 - float(((first - second) ** 2).mean()) / expected, len(first))


def spearman(first: FloatArray, second: FloatArray) -> Metric:
    """Spearman's ρ, ties having their mean rank; arguments as for :func:`quadratic_kappa`."""
    if not len(first):
        return Metric.missing(NO_JOINT)
    if not (np.ptp(first) and np.ptp(second)):
        return Metric.missing(NO_VARIATION)
    return Metric(float(stats.spearmanr(first, second).statistic), len(first))


def mean_absolute_difference(first: FloatArray, second: FloatArray) -> Metric:
    """Mean of the scores' distances; arguments as for :func:`quadratic_kappa`."""
    return Metric.average(np.abs(first - second), NO_JOINT)


def _agreement(task: str, judges: tuple[str, str], grades: Sequence[Grade]) -> Agreement:
    one, other = (_scores_by_response(grades, judge) for judge in judges)
    joint = sorted(one.keys() & other.keys())
    first = np.array([one[response] for response in joint], dtype=np.float64)
    second = np.array([other[response] for response in joint], dtype=np.float64)
    return Agreement(
        task=task,
        judges=judges,
        quadratic_kappa=quadratic_kappa(first, second),
        spearman=spearman(first, second),
        mean_absolute_difference=mean_absolute_difference(first, second),
        jointly_scored=len(joint),
    )


def _scores_by_response(grades: Sequence[Grade], judge: str) -> dict[tuple[str, str, str, int], int]:
    return {
        (grade.model, grade.persona, grade.question, grade.run): grade.verdict.score
        for grade in grades
        if grade.judge == judge and grade.verdict.score is not None
    }
