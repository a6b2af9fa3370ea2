"""PersonaScore: from evaluators' grades to questions, tasks, personas and models (PersonaGym paper, sections 3 and 4)."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from app.domain.metrics.cell import UnitCounts
from app.domain.metrics.metric import FloatArray, Metric, values_of
from app.domain.verdict import Verdict, VerdictStatus

_T = TypeVar("_T")
_KeyT = TypeVar("_KeyT", bound=Hashable)

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


def persona_results(grades: Sequence[Grade], tasks: Sequence[str]) -> tuple[PersonaResult, ...]:
    """The scores of every persona and model.

    Args:
        grades: All grades of a job, in any order, those without a score included: a question is known by them.
        tasks: Ids of the job's tasks.

    Returns:
        Sorted by model and persona; each with all ``tasks``, in their order.

    Raises:
        ValueError: If a grade belongs to none of the tasks, or an evaluator graded a response twice.
    """
    _check(grades, tasks)
    groups = _grouped(grades, lambda grade: (grade.model, grade.persona))
    return tuple(_persona_result(*key, groups[key], tasks) for key in sorted(groups))


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


def model_totals(results: Sequence[PersonaResult]) -> tuple[ModelTotal, ...]:
    """Means and standard deviations over personas, by model (Table 1), sorted by model."""
    groups = _grouped(results, lambda result: result.model)
    return tuple(_model_total(model, groups[model]) for model in sorted(groups))


def _check(grades: Sequence[Grade], tasks: Sequence[str]) -> None:
    strangers = sorted({grade.task for grade in grades} - set(tasks))
    if strangers:
        raise ValueError(f"grades must belong to the job's tasks, not to {', '.join(strangers)}")
    seen = {(g.model, g.persona, g.task, g.question, g.run, g.judge) for g in grades}
    if len(seen) != len(grades):
        raise ValueError("grades must have one entry for each response and judge")


def _persona_result(model: str, persona: str, grades: Sequence[Grade], tasks: Sequence[str]) -> PersonaResult:
    by_task = _grouped(grades, lambda grade: grade.task)
    scores = {task: _task_score(by_task.get(task, [])) for task in tasks}
    total = persona_score({task: score.score for task, score in scores.items()})
    return PersonaResult(model, persona, scores, total)


def _task_score(grades: Sequence[Grade]) -> TaskScore:
    by_judge = _grouped(grades, lambda grade: grade.judge)
    return TaskScore(
        score=_mean_of_questions(grades),
        questions=len({grade.question for grade in grades}),
        grades=_counts(grades),
        by_judge={judge: _mean_of_questions(by_judge[judge]) for judge in sorted(by_judge)},
    )


def _mean_of_questions(grades: Sequence[Grade]) -> Metric:
    """Evaluators → response → question (over its runs) → task, so that no question weighs more for being run more often."""
    questions = []
    for of_question in _grouped(_scored(grades), lambda grade: grade.question).values():
        responses = _grouped(of_question, lambda grade: grade.run).values()
        questions.append(np.mean([np.mean(_scores(response)) for response in responses]))
    return Metric.average(np.array(questions, dtype=np.float64), NO_GRADE)


def _scored(grades: Iterable[Grade]) -> list[Grade]:
    return [grade for grade in grades if grade.verdict.score is not None]


def _scores(grades: Iterable[Grade]) -> FloatArray:
    return np.array([grade.verdict.score for grade in grades], dtype=np.float64)


def _counts(grades: Iterable[Grade]) -> UnitCounts:
    statuses = [grade.verdict.status for grade in grades]
    return UnitCounts(**{status.value: statuses.count(status) for status in VerdictStatus})


def _model_total(model: str, results: Sequence[PersonaResult]) -> ModelTotal:
    tasks = list(dict.fromkeys(task for result in results for task in result.tasks))
    return ModelTotal(
        model=model,
        tasks={task: _spread([r.tasks[task].score for r in results if task in r.tasks]) for task in tasks},
        persona_score=_spread([result.persona_score for result in results]),
        grades=UnitCounts.sum([score.grades for result in results for score in result.tasks.values()]),
    )


def _spread(scores: Sequence[Metric]) -> Spread:
    values = values_of(scores)
    sd = float(values.std(ddof=1)) if len(values) > 1 else None
    return Spread(Metric.average(values, NO_PERSONA), sd, len(scores) - len(values))


def _grouped(members: Iterable[_T], key: Callable[[_T], _KeyT]) -> dict[_KeyT, list[_T]]:
    groups: dict[_KeyT, list[_T]] = {}
    for member in members:
        groups.setdefault(key(member), []).append(member)
    return groups
