"""Existing answers to PersonaGym's questions: each names its question by the question's own words."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from app.domain.errors import escape_pointer
from app.domain.instruments.persona import Persona
from app.domain.jobs.plan import GymCell
from app.domain.jobs.qa_request import MOST_ANSWERS, QaIn
from app.domain.jobs.request import ResponseIn
from app.domain.jobs.specification import ProvidedResponse
from app.domain.jobs.text_source import StoredText, UploadedText
from app.domain.personagym.task import GymTask, task_named

MOST_QUESTIONS = 32_767
"""Questions of one task for one persona: they are numbered by two-byte integers."""

NOT_ANSWERED = "no answer to this question was given"
"""Why a response is missing."""

_FILE_ENDING = "_qa.json"
_DIRECTORY = re.compile(r"\A(?:[^/\\]*[/\\])*?results[/\\][^/\\]+[/\\]")

Fail = Callable[[str, str], None]
"""Notes what is wrong: JSON pointer and message."""


def persona_of_qa_file(name: str) -> str:
    """The persona that a file is about: its name without directory and ending, or the description itself."""
    who = name.strip()
    return _DIRECTORY.sub("", who[: -len(_FILE_ENDING)]) if who.endswith(_FILE_ENDING) else who


def qa_responses(
    sent: QaIn, personas: Iterable[Persona], tasks: Collection[GymTask], fail: Fail
) -> list[tuple[str, ResponseIn]]:
    """The answers of files as PersonaGym's code saves them, each with where it stands in the job's body.

    Args:
        sent: The files.
        personas: The job's.
        tasks: The job's PersonaGym tasks.
        fail: Notes what is wrong.
    """
    by_name: dict[str, str] = {}
    for persona in personas:
        by_name |= {persona.description.strip(): persona.id, persona.id: persona.id}
    found: list[tuple[str, ResponseIn]] = []
    for model, files in sent.qa.items():
        of_persona: set[str] = set()
        for name, file in files.items():
            pointer = f"/responses/qa/{escape_pointer(model)}/{escape_pointer(name)}"
            id_ = by_name.get(name.strip()) or by_name.get(persona_of_qa_file(name))
            if id_ is None:
                fail(pointer, f"the job has no persona of that id or description: {name!r}")
            elif id_ in of_persona:
                fail(pointer, f"duplicate persona {id_!r}")
            else:
                of_persona.add(id_)
                found += _of_file(file, model, id_, pointer, tasks, fail)
    if len(found) > MOST_ANSWERS:
        fail("/responses/qa", f"{len(found):,} answers; at most {MOST_ANSWERS:,}")
    return found


def _of_file(
    file: Mapping[str, Sequence[tuple[str, str]]],
    model: str,
    persona: str,
    pointer: str,
    tasks: Collection[GymTask],
    fail: Fail,
) -> Iterator[tuple[str, ResponseIn]]:
    there: set[str] = set()
    for name, pairs in file.items():
        of_task = f"{pointer}/{escape_pointer(name)}"
        task = task_named(tasks, name)
        if task is None:
            known = ", ".join(each.id for each in tasks)
            fail(of_task, f"the job has no PersonaGym task {name!r}; it has: {known or 'none'}")
            continue
        if task.id in there:
            fail(of_task, f"task {task.id!r} is given more than once")
        there.add(task.id)
        for n, (question, answer) in enumerate(pairs):
            yield (
                f"{of_task}/{n}",
                ResponseIn.made(persona=persona, task=task.id, question=question, text=answer, model=model),
            )


class AskedQuestions:
    """The questions that existing answers name, in the order in which they first appear, for all models alike.

    Args:
        responses: The job's texts.
        tasks: The ids of its PersonaGym tasks; responses of other tasks name no questions.
    """

    def __init__(
        self, responses: Iterable[ResponseIn | StoredText | UploadedText], tasks: Collection[str]
    ) -> None:
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
