"""PersonaScore: from evaluators' grades to questions, tasks, personas and models (PersonaGym paper, sections 3 and 4)."""

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from app.domain.judging.verdict import Verdict, VerdictStatus
from app.domain.metrics.cell import UnitCounts
from app.domain.metrics.metric import FloatArray, Metric, values_of
from app.domain.statistics.groups import Influence, Member, PersonaSample, stratified_interval
from app.domain.statistics.resampling import cluster_weights, percentile_interval, ratio_draws

_T = TypeVar("_T")
_KeyT = TypeVar("_KeyT", bound=Hashable)

SCORES = (1.0, 5.0)
"""The rubrics' least and greatest score."""

NO_GRADE = "no_grade: no evaluator gave any of the task's responses a grade"
NO_PERSONA = "no_persona: no persona has this score"


@dataclass(frozen=True, slots=True)
class Grade:
    """One evaluator's grade of one response.

    Attributes:
        model: The model's label.
        persona: The persona's id.
        task: The task's id.
        question: What tells the question from others of the persona's task.
        run: Repetition, from 0.
        judge: The evaluator's label.
        verdict: The grade, 1–5, or why there is none; ``FAILED`` also where there was no response to be graded.
    """

    model: str
    persona: str
    task: str
    question: str
    run: int
    judge: str
    verdict: Verdict

    @property
    def key(self) -> tuple[str, str, str, str, int, str]:
        """What identifies the grade among a job's."""
        return self.model, self.persona, self.task, self.question, self.run, self.judge


@dataclass(frozen=True, slots=True)
class TaskScore:
    """How well a model plays one persona in one task.

    Attributes:
        score: 1–5; n = questions with a grade.
        questions: Questions asked.
        grades: What became of the grades; two evaluators' grades of a response count twice.
        by_judge: The score by each evaluator alone, by label.
    """

    score: Metric
    questions: int
    grades: UnitCounts
    by_judge: Mapping[str, Metric]


@dataclass(frozen=True, slots=True)
class PersonaResult:
    """How well a model plays one persona.

    Attributes:
        model: The model's label.
        persona: The persona's id.
        tasks: The score of each of the job's tasks by id; a task of which the persona has no grades is there too.
        persona_score: PersonaScore, 1–5; n = tasks. The paper's has five, and one with fewer is not comparable to it.
    """

    model: str
    persona: str
    tasks: Mapping[str, TaskScore]
    persona_score: Metric


@dataclass(frozen=True, slots=True)
class Spread:
    """A score's mean and standard deviation over personas, as in the cells of Table 1.

    Attributes:
        mean: n = personas that have the score.
        sd: Sample standard deviation (denominator n − 1); ``None`` for fewer than two personas.
        left_out: Personas that do not have the score.
    """

    mean: Metric
    sd: float | None
    left_out: int


@dataclass(frozen=True, slots=True)
class ModelTotal:
    """One row of Table 1.

    Attributes:
        model: The model's label.
        tasks: Mean and standard deviation of each task's score, by the task's id.
        persona_score: Those of PersonaScore.
        grades: What became of the model's grades.
    """

    model: str
    tasks: Mapping[str, Spread]
    persona_score: Spread
    grades: UnitCounts


def persona_results(
    grades: Sequence[Grade], tasks: Sequence[str], seed: int | None = None
) -> tuple[PersonaResult, ...]:
    """The scores of every persona and model.

    Args:
        grades: All grades of a job, in any order, those without a score included: a question is known by them.
        tasks: Ids of the job's tasks.
        seed: Of the resampling behind the intervals; ``None`` for scores without intervals.

    Returns:
        Sorted by model and persona; each with all ``tasks``, in their order.

    Raises:
        ValueError: If a grade belongs to none of the tasks, or an evaluator graded a response twice.
    """
    _check(grades, tasks)
    # Sums of fractions depend on their order in the last digits; the grades come in any.
    ordered = sorted(grades, key=lambda grade: grade.key)
    groups = _grouped(ordered, lambda grade: (grade.model, grade.persona))
    return tuple(_persona_result(*key, groups[key], tasks, seed) for key in sorted(groups))


def persona_score(task_scores: Mapping[str, Metric]) -> Metric:
    """PersonaScore: the mean over tasks, each counting the same (section 4, Table 1).

    Args:
        task_scores: The score of each of the job's tasks, by id.

    Returns:
        1–5 with n = number of tasks. It is missing as soon as one of them is: a mean over the others would depend on which
        task was lost, and the tasks differ in difficulty.
    """
    lacking = [task for task, score in task_scores.items() if score.value is None]
    if lacking:
        return Metric.missing(f"task_without_score: no score for {', '.join(lacking)}")
    return Metric.average(values_of(list(task_scores.values())), "no_task: there are no tasks")


def model_totals(
    results: Sequence[PersonaResult], sample: PersonaSample | None = None
) -> tuple[ModelTotal, ...]:
    """Means and standard deviations over personas, by model (Table 1), sorted by model.

    Args:
        results: Every persona and model's.
        sample: The job's personas, for intervals; ``None`` for totals without them.
    """
    groups = _grouped(results, lambda result: result.model)
    return tuple(_model_total(model, groups[model], sample) for model in sorted(groups))


def _check(grades: Sequence[Grade], tasks: Sequence[str]) -> None:
    strangers = sorted({grade.task for grade in grades} - set(tasks))
    if strangers:
        raise ValueError(f"grades must belong to the job's tasks, not to {', '.join(strangers)}")
    seen = {grade.key for grade in grades}
    if len(seen) != len(grades):
        raise ValueError("grades must have one entry for each response and judge")


def _persona_result(
    model: str, persona: str, grades: Sequence[Grade], tasks: Sequence[str], seed: int | None
) -> PersonaResult:
    by_task = _grouped(grades, lambda grade: grade.task)
    scores = {task: _task_score(by_task.get(task, []), (persona, task), seed) for task in tasks}
    total = persona_score({task: score.score for task, score in scores.items()})
    if total.value is not None and seed is not None:
        members = [
            Member((model, persona, task), persona, score.score.value or 0.0, _influence(by_task[task]))
            for task, score in scores.items()
        ]
        total = total.within(stratified_interval(total.value, members, SCORES, "questions"))
    return PersonaResult(model, persona, scores, total)


def _task_score(grades: Sequence[Grade], key: tuple[str, str], seed: int | None) -> TaskScore:
    by_judge = _grouped(grades, lambda grade: grade.judge)
    asked = sorted({grade.question for grade in grades})
    weights = None if seed is None else cluster_weights(seed, ("questions", *key), len(asked))
    return TaskScore(
        score=_mean_of_questions(grades, asked, weights),
        questions=len(asked),
        grades=_counts(grades),
        by_judge={judge: _mean_of_questions(by_judge[judge], asked, weights) for judge in sorted(by_judge)},
    )


def _mean_of_questions(grades: Sequence[Grade], asked: Sequence[str], weights: FloatArray | None) -> Metric:
    """A task's score.

    Args:
        grades: Of the task.
        asked: Its questions, sorted.
        weights: Shape (questions, b): how often each is drawn in each resample; ``None`` for no interval.
    """
    scores = question_scores(grades)
    values = np.array(list(scores.values()), dtype=np.float64)
    metric = Metric.average(values, NO_GRADE)
    if metric.value is None or weights is None:
        return metric
    used = weights[np.searchsorted(asked, list(scores))]
    draws = ratio_draws(values, np.ones(len(values)), used)
    return metric.within(percentile_interval(metric.value, draws, len(values), SCORES, "questions"))


def question_scores(grades: Iterable[Grade]) -> dict[str, float]:
    """Evaluators → response → question (over its runs), so that no question weighs more for being run more often."""
    found = {}
    for question, of_question in _grouped(_scored(grades), lambda grade: grade.question).items():
        responses = _grouped(of_question, lambda grade: grade.run).values()
        found[question] = float(np.mean([np.mean(_scores(response)) for response in responses]))
    return found


def _influence(grades: Sequence[Grade]) -> Influence | None:
    """What each question does to the task's score."""
    values = np.array(list(question_scores(grades).values()), dtype=np.float64)
    n = len(values)
    return None if n < 2 else ((values - values.mean()) / math.sqrt(n * (n - 1)), n)  # noqa: PLR2004 - a spread


def _scored(grades: Iterable[Grade]) -> list[Grade]:
    return [grade for grade in grades if grade.verdict.score is not None]


def _scores(grades: Iterable[Grade]) -> FloatArray:
    return np.array([grade.verdict.score for grade in grades], dtype=np.float64)


def _counts(grades: Iterable[Grade]) -> UnitCounts:
    statuses = [grade.verdict.status for grade in grades]
    return UnitCounts.of(**{status.value: statuses.count(status) for status in VerdictStatus})


def _model_total(model: str, results: Sequence[PersonaResult], sample: PersonaSample | None) -> ModelTotal:
    tasks = list(dict.fromkeys(task for result in results for task in result.tasks))
    return ModelTotal(
        model=model,
        tasks={
            task: _spread({r.persona: r.tasks[task].score for r in results if task in r.tasks}, sample)
            for task in tasks
        },
        persona_score=_spread({result.persona: result.persona_score for result in results}, sample),
        grades=UnitCounts.sum([score.grades for result in results for score in result.tasks.values()]),
    )


def _spread(scores: Mapping[str, Metric], sample: PersonaSample | None) -> Spread:
    """Over personas.

    Args:
        scores: By persona.
        sample: As for :func:`model_totals`.
    """
    values = values_of(list(scores.values()))
    mean = Metric.average(values, NO_PERSONA)
    if mean.value is not None and sample is not None:
        known = [persona for persona, score in scores.items() if score.value is not None]
        counts = [1.0] * len(known)
        mean = mean.within(sample.interval(mean.value, known, values.tolist(), counts, SCORES))
    sd = float(values.std(ddof=1)) if len(values) > 1 else None
    return Spread(mean, sd, len(scores) - len(values))


def _grouped(members: Iterable[_T], key: Callable[[_T], _KeyT]) -> dict[_KeyT, list[_T]]:
    groups: dict[_KeyT, list[_T]] = {}
    for member in members:
        groups.setdefault(key(member), []).append(member)
    return groups
