"""A job's PersonaScores as people would give them, from the judges' grades of all answers and people's of a drawn sample."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations
from statistics import fmean
from typing import NamedTuple

import numpy as np

from app.domain.labels.calibration import PERSONA_SCORE, CalibratedFigure
from app.domain.personagym.scores import SCORES, Grade
from app.domain.statistics.labelled_personas import JudgedTask, calibrated_score
from app.domain.statistics.prediction_powered import FEWEST_OF_STRATUM

NO_LABEL = "no_label: of some task none of these answers was drawn and graded by people"


class Answer(NamedTuple):
    """A model's answer.

    Attributes:
        model: The model's label.
        persona: The persona's id.
        task: The task's id.
        question: What tells the question from others of the persona's task; the same for all models.
        run: Repetition, from 0.
    """

    model: str
    persona: str
    task: str
    question: str
    run: int


class _Cell:
    """A model's graded answers to one task as one persona."""

    def __init__(self) -> None:
        self.judged: dict[tuple[str, int], float] = {}
        self.people: dict[tuple[str, int], float] = {}

    def weights(self) -> dict[tuple[str, int], float]:
        """What each answer counts for: a question's runs as much as another question's."""
        runs: dict[str, int] = defaultdict(int)
        for question, _ in self.judged:
            runs[question] += 1
        return {answer: 1 / len(runs) / runs[answer[0]] for answer in self.judged}

    @property
    def mean(self) -> float:
        """The judges'."""
        return sum(weight * self.judged[answer] for answer, weight in self.weights().items())


class GradeCalibration:
    """What judges say of a job's answers, and people of some of them."""

    def __init__(
        self, grades: Iterable[Grade], tasks: Sequence[str], people: Mapping[Answer, Sequence[int]]
    ) -> None:
        """Keeps what is told.

        Args:
            grades: The judges', in any order.
            tasks: Ids of the job's tasks.
            people: What annotators gave each answer that a round drew.
        """
        self.tasks = tuple(tasks)
        given: dict[Answer, list[int]] = defaultdict(list)
        for grade in grades:
            if grade.verdict.score is not None:
                given[Answer(grade.model, grade.persona, grade.task, grade.question, grade.run)].append(
                    grade.verdict.score
                )
        self._cells: dict[tuple[str, str, str], _Cell] = defaultdict(_Cell)
        for answer, scores in sorted(given.items()):
            cell = self._cells[answer[:3]]
            cell.judged[answer[3:]] = fmean(scores)
            if answer in people:
                cell.people[answer[3:]] = fmean(people[answer])

    def totals(self) -> list[CalibratedFigure]:
        """Each model's PersonaScore and its score in each task."""
        return [
            _figure({"model": model, **keys}, [(self, model)], personas, tasks)
            for model in self._models()
            for keys, tasks in self._groups()
            if (personas := self.personas_with(model, tasks))
        ]

    def differences(self) -> list[CalibratedFigure]:
        """Of each two models the first one's scores less the other's, over the personas that both have."""
        pairs = combinations(self._models(), 2)
        return [each for one, other in pairs for each in self.difference(one, self, other)]

    def difference(
        self, model: str, other: "GradeCalibration", other_model: str, without: Collection[str] = ()
    ) -> list[CalibratedFigure]:
        """A model's scores less another's, over the personas that both have; none if there are no such or other tasks.

        Args:
            model: The model.
            other: The other model's grades: these, or another job's.
            other_model: The other model.
            without: Personas that are left out.
        """
        if set(self.tasks) != set(other.tasks):
            return []
        return [
            _figure(
                {"a": model, "b": other_model, **keys}, [(self, model), (other, other_model)], both, tasks
            )
            for keys, tasks in self._groups()
            if (
                both := (self.personas_with(model, tasks) & other.personas_with(other_model, tasks))
                - {*without}
            )
        ]

    def _models(self) -> list[str]:
        return sorted({model for model, _, _ in self._cells})

    def _groups(self) -> list[tuple[dict[str, str], Sequence[str]]]:
        return [({}, self.tasks), *(({"task": task}, (task,)) for task in self.tasks)]

    def personas_with(self, model: str, tasks: Sequence[str]) -> set[str]:
        """Those who have a score in all of these tasks, as PersonaScore is over them."""
        of_task = [{persona for m, persona, t in self._cells if (m, t) == (model, task)} for task in tasks]
        return set.intersection(*of_task)

    def judged(
        self, model: str, task: str, personas: Sequence[str], drawn: dict[tuple[str, ...], int]
    ) -> JudgedTask:
        """One task's answers as these personas.

        Args:
            model: The model.
            task: The task.
            personas: The personas.
            drawn: The numbers of the questions that were drawn, to which it adds.
        """
        cells = [self._cells[model, persona, task] for persona in personas]
        rows = [
            (
                n,
                drawn.setdefault((persona, task, question, str(run)), len(drawn)),
                weights[question, run],
                cell.judged[question, run],
                people,
            )
            for n, (persona, cell) in enumerate(zip(personas, cells, strict=True))
            if cell.people and (weights := cell.weights())
            for (question, run), people in cell.people.items()
        ]
        numbers, draws, *columns = np.array(rows, dtype=np.float64).reshape(-1, 5).T
        return JudgedTask(
            fmean(cell.mean for cell in cells),
            sum(len(cell.judged) for cell in cells),
            numbers.astype(np.int64),
            draws.astype(np.int64),
            *columns,
        )


def _figure(
    keys: Mapping[str, str],
    sides: Sequence[tuple["GradeCalibration", str]],
    personas: Collection[str],
    tasks: Sequence[str],
) -> CalibratedFigure:
    drawn: dict[tuple[str, ...], int] = {}
    rows = [
        {task: made.judged(model, task, sorted(personas), drawn) for task in tasks} for made, model in sides
    ]
    low, high = SCORES
    bounds = (low, high) if len(sides) == 1 else (low - high, high - low)
    lacking = _lacking_labels(rows)
    found = None if lacking else calibrated_score(len(personas), rows)
    return CalibratedFigure(keys, PERSONA_SCORE, found, bounds, len(personas), lacking or NO_LABEL)


def _lacking_labels(sides: Sequence[Mapping[str, JudgedTask]]) -> str:
    """Say which tasks lack graded answers for a figure; empty if none does, or if a task has none at all."""
    graded = [(task, len(each.said), each.answers) for side in sides for task, each in side.items()]
    short = [
        f"{min(FEWEST_OF_STRATUM, answers) - labels} in {task}"
        for task, labels, answers in graded
        if labels < min(FEWEST_OF_STRATUM, answers)
    ]
    if not short or not all(labels for _, labels, _ in graded):
        return ""
    return (
        f"too_few_scored_labels: more answers graded by people are needed: {', '.join(dict.fromkeys(short))}; each task"
        f" needs {FEWEST_OF_STRATUM} of each model"
    )
