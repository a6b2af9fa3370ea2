"""PersonaScore: from evaluators' grades to questions, tasks, personas and models (PersonaGym paper, sections 3 and 4)."""

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self, TypeVar

import numpy as np
from pydantic import BaseModel, Field

from app.domain.judging.verdict import Verdict, VerdictStatus
from app.domain.metrics.cell import UnitCounts
from app.domain.metrics.metric import FloatArray, Metric, values_of
from app.domain.statistics.groups import Influence, PersonaSample, stratified_interval
from app.domain.statistics.resampling import cluster_weights, percentile_interval, ratio_draws

_T = TypeVar("_T")
_KeyT = TypeVar("_KeyT", bound=Hashable)

SCORES = (1.0, 5.0)
"""The rubrics' least and greatest score."""
PAPER_TASKS = 5
"""Tasks that the paper's PersonaScore is over."""

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
        unrepaired: Whether the reply could not be read and the follow-up request failed.
    """

    model: str
    persona: str
    task: str
    question: str
    run: int
    judge: str
    verdict: Verdict
    unrepaired: bool = False

    @property
    def key(self) -> tuple[str, str, str, str, int, str]:
        """What identifies the grade among a job's."""
        return self.model, self.persona, self.task, self.question, self.run, self.judge


class GymResponses(BaseModel):
    """Responses to PersonaGym questions by status."""

    planned: int
    answered: int
    refused: int = Field(description="By the model.")
    failed: int
    filtered: int = Field(0, description="Refused or stopped by the provider's content filter.")
    no_answer: int = Field(
        0,
        description="Only thoughts, ended early for an unknown reason, or missing among existing answers; not graded.",
    )

    @classmethod
    def of(cls, **counts: int) -> Self:
        """The counts, 0 where none is given."""
        return cls(**dict.fromkeys(cls.model_fields, 0) | counts)

    @property
    def due(self) -> int:
        """Responses that are planned, or there without having been, as existing texts are."""
        return max(self.planned, self.answered + self.refused + self.failed + self.filtered + self.no_answer)

    @classmethod
    def sum(cls, parts: Iterable["GymResponses"]) -> Self:
        """Counts added up, status by status."""
        found = list(parts)
        return cls(**{name: sum(getattr(part, name) for part in found) for name in cls.model_fields})


@dataclass(frozen=True, slots=True)
class GymTally:
    """The responses of one model × persona × task.

    Attributes:
        model: The model's label.
        persona: The persona's id.
        task: The task's id.
        responses: What became of them.
    """

    model: str
    persona: str
    task: str
    responses: GymResponses


class TaskScore(Metric):
    """A model's score on one persona in one task, 1–5; n counts questions with a grade."""

    questions: int = Field(description="Questions asked.")
    grades: UnitCounts = Field(description="Number of grades; a response graded by two judges counts twice.")
    by_judge: dict[str, Metric] = Field(description="The score by each judge alone.")
    responses: GymResponses


class PersonaResult(BaseModel):
    """A model's scores on one persona."""

    model: str
    persona: str
    persona_score: Metric = Field(
        description="PersonaScore, 1–5: the mean over tasks, missing if any task's score is; n counts "
        "questions."
    )
    tasks_in_job: int
    tasks_in_paper: int = Field(
        description="A PersonaScore over fewer tasks is not comparable to the paper's."
    )
    tasks: dict[str, TaskScore] = Field(description="Each of the job's tasks, even without grades.")
    responses: GymResponses


class Spread(Metric):
    """A mean and standard deviation over personas."""

    sd: float | None = Field(description="Denominator n − 1; `null` for fewer than two personas.")


def persona_results(
    grades: Sequence[Grade],
    tasks: Sequence[str],
    seed: int | None = None,
    tallies: Sequence[GymTally] = (),
) -> tuple[PersonaResult, ...]:
    """The scores of every persona and model.

    Args:
        grades: All grades of a job, in any order, those without a score included: a question is known by them.
        tasks: Ids of the job's tasks.
        seed: Of the resampling behind the intervals; ``None`` for scores without intervals.
        tallies: The job's responses.

    Returns:
        Sorted by model and persona; each with all ``tasks``, in their order.

    Raises:
        ValueError: If a grade belongs to none of the tasks, or an evaluator graded a response twice.
    """
    _check(grades, tasks)
    # Sums of fractions depend on their order in the last digits; the grades come in any.
    ordered = sorted(grades, key=lambda grade: grade.key)
    groups = _grouped(ordered, lambda grade: (grade.model, grade.persona))
    responses = _grouped(tallies, lambda tally: (tally.model, tally.persona))
    return tuple(
        _persona_result(*key, groups[key], tasks, seed, responses.get(key, [])) for key in sorted(groups)
    )


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


def spread(scores: Mapping[str, Metric], sample: PersonaSample | None) -> Spread:
    """A score's mean and standard deviation over personas, as in the cells of Table 1.

    Args:
        scores: By persona.
        sample: The job's personas, for an interval; ``None`` for none.
    """
    known = {persona: score.value for persona, score in scores.items() if score.value is not None}
    mean = mean_over_personas(known, NO_PERSONA, sample)
    sd = float(np.std(list(known.values()), ddof=1)) if len(known) > 1 else None
    return Spread(**mean.to_json(), left_out=len(scores) - len(known), sd=sd)


def mean_over_personas(scores: Mapping[str, float], reason: str, sample: PersonaSample | None) -> Metric:
    """The mean of the scores that personas have, missing for ``reason`` where none has one; ``sample`` as for :func:`spread`."""
    values = list(scores.values())
    mean = Metric.average(np.array(values, dtype=np.float64), reason)
    if mean.value is None or sample is None:
        return mean
    return mean.within(sample.interval(mean.value, list(scores), values, [1.0] * len(values), SCORES))


def _check(grades: Sequence[Grade], tasks: Sequence[str]) -> None:
    strangers = sorted({grade.task for grade in grades} - set(tasks))
    if strangers:
        raise ValueError(f"grades must belong to the job's tasks, not to {', '.join(strangers)}")
    seen = {grade.key for grade in grades}
    if len(seen) != len(grades):
        raise ValueError("grades must have one entry for each response and judge")


def _persona_result(
    model: str,
    persona: str,
    grades: Sequence[Grade],
    tasks: Sequence[str],
    seed: int | None,
    tallies: Sequence[GymTally],
) -> PersonaResult:
    by_task = _grouped(grades, lambda grade: grade.task)
    scores = {
        task: _task_score(
            by_task.get(task, []),
            (persona, task),
            seed,
            GymResponses.sum(tally.responses for tally in tallies if tally.task == task),
        )
        for task in tasks
    }
    total = persona_score(scores)
    if total.value is not None:
        if seed is not None:
            influences = [_influence(by_task[task]) for task in scores]
            total = total.within(stratified_interval(total.value, influences, SCORES, "questions"))
        # The mean is over tasks, but what it rests on are questions.
        total = total.model_copy(update={"n": sum(score.n for score in scores.values())})
    return PersonaResult(
        model=model,
        persona=persona,
        persona_score=total,
        tasks_in_job=len(scores),
        tasks_in_paper=PAPER_TASKS,
        tasks=scores,
        responses=GymResponses.sum(tally.responses for tally in tallies),
    )


def _task_score(
    grades: Sequence[Grade], key: tuple[str, str], seed: int | None, responses: GymResponses
) -> TaskScore:
    by_judge = _grouped(grades, lambda grade: grade.judge)
    asked = sorted({grade.question for grade in grades})
    weights = None if seed is None else cluster_weights(seed, ("questions", *key), len(asked))
    return TaskScore(
        **_mean_of_questions(grades, asked, weights).to_json(),
        questions=len(asked),
        grades=_counts(grades),
        by_judge={judge: _mean_of_questions(by_judge[judge], asked, weights) for judge in sorted(by_judge)},
        responses=responses,
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


def _grouped(members: Iterable[_T], key: Callable[[_T], _KeyT]) -> dict[_KeyT, list[_T]]:
    groups: dict[_KeyT, list[_T]] = {}
    for member in members:
        groups.setdefault(key(member), []).append(member)
    return groups
