"""Existing answers to PersonaGym's questions: each names its question by the question's own words."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from app.domain.instruments.persona import Persona
from app.domain.jobs.plan import GymCell
from app.domain.jobs.request import ResponseIn
from app.domain.jobs.specification import ProvidedResponse

MOST_QUESTIONS = 32_767
"""Questions of one task for one persona: they are numbered by two-byte integers."""

NOT_ANSWERED = "no answer to this question was given"
"""Why a response is missing."""


class AskedQuestions:
    """The questions that existing answers name, in the order in which they first appear, for all models alike.

    Args:
        responses: The job's texts.
        tasks: The ids of its PersonaGym tasks; responses of other tasks name no questions.
    """

    def __init__(self, responses: Iterable[ResponseIn], tasks: Collection[str]) -> None:
        self._numbers: dict[tuple[str, str], dict[str, int]] = {}
        for response in responses:
            if response.task in tasks and response.question is not None:
                numbers = self._numbers.setdefault((response.persona, response.task), {})
                numbers.setdefault(response.question, len(numbers))

    def number_of(self, persona: str, task: str, question: str) -> int:
        """The position of a question among those of its persona and task."""
        return self._numbers[persona, task][question]

    def of(self, persona: str, task: str) -> tuple[str, ...]:
        """The questions of a persona and task; none if no answer is to one."""
        return tuple(self._numbers.get((persona, task), ()))

    def by_persona(
        self, personas: Iterable[Persona], tasks: Sequence[str]
    ) -> dict[str, dict[str, tuple[str, ...]]]:
        """Those of each persona and task, also where there are none."""
        return {persona.id: {task: self.of(persona.id, task) for task in tasks} for persona in personas}


def missing_answers(
    cells: Iterable[GymCell], placed: Iterable[ProvidedResponse], questions: Mapping[str, Mapping[str, int]]
) -> Iterator[ProvidedResponse]:
    """A response without a text for each question that a model has no answer to, in the first of its runs.

    Args:
        cells: The cells of the job's PersonaGym tasks.
        placed: The texts that there are.
        questions: How many questions there are, by persona and task.
    """
    answered: dict[int, set[int]] = {}
    first_run: dict[int, int] = {}
    for each in placed:
        answered.setdefault(each.cell, set()).add(each.item)
        first_run[each.cell] = min(each.run, first_run.get(each.cell, each.run))
    for cell in cells:
        there = answered.get(cell.ordinal, set())
        for number in range(questions[cell.persona.id][cell.task.id]):
            if number not in there:
                yield ProvidedResponse(cell.ordinal, first_run.get(cell.ordinal, 0), number, None, None)
