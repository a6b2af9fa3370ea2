"""Existing texts in the places of a job: cell, run and item."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from app.domain.jobs.brought_answers import MOST_QUESTIONS, AskedQuestions, missing_answers
from app.domain.jobs.plan import AtomicCell, Cell, gym
from app.domain.jobs.request import ResponseIn
from app.domain.jobs.resolve_verdicts import VerdictsPlacer
from app.domain.jobs.specification import JobSpec, ProvidedResponse
from app.domain.jobs.text_source import UploadedText

Fail = Callable[[str, str], None]

MAX_RUN = 32_767
"""Runs and items are stored as two-byte integers."""


class ResponsesPlacer:
    """Places the texts that a request brings.

    Args:
        asked: The questions that the texts name.
        verdicts: Places what came with them.
        fail: Is told what is wrong, and where.
    """

    def __init__(self, asked: AskedQuestions, verdicts: VerdictsPlacer, fail: Fail) -> None:
        self._asked, self._verdicts, self._fail = asked, verdicts, fail

    def place(
        self, texts: Iterable[tuple[str, ResponseIn | UploadedText]], spec: JobSpec, cells: Sequence[Cell]
    ) -> tuple[ProvidedResponse, ...]:
        """Where each text belongs, given with where it stands in the request; what fits nowhere is told."""
        by_name = {(spec.models[c.model].label, c.persona.id, c.task.id): c for c in cells}
        personas = {persona.id for persona in spec.personas}
        tasks = {cell.task.id for cell in cells}
        placed: list[ProvidedResponse] = []
        taken: set[tuple[int, int, int]] = set()
        next_run: Counter[tuple[int, int]] = Counter()
        instructions: dict[tuple[int, int], int | None] = {}
        for pointer, text in texts:
            if text.persona not in personas:
                self._fail(f"{pointer}/persona", f"the job has no persona {text.persona!r}")
                continue
            if text.task not in tasks:
                self._fail(f"{pointer}/task", f"the job has no task {text.task!r}")
                continue
            cell = by_name.get((text.model, text.persona, text.task))
            if cell is None:
                self._fail(f"{pointer}/persona", f"persona {text.persona!r} has no traits for {text.task!r}")
                continue
            item = self._item_index(text, cell, pointer)
            if item is None:
                continue
            run = text.run if text.run is not None else next_run[cell.ordinal, item]
            next_run[cell.ordinal, item] = max(next_run[cell.ordinal, item], run + 1)
            if run >= MAX_RUN:
                self._fail(f"{pointer}/run", f"run {run}: runs are numbered from 0 to {MAX_RUN - 1}")
                continue
            if (cell.ordinal, run, item) in taken:
                self._fail(
                    f"{pointer}/run",
                    f"run {run} of {_asked_in(cell, item)} for this model, persona and task is a duplicate",
                )
            taken.add((cell.ordinal, run, item))
            if instructions.setdefault((cell.ordinal, run), text.instruction) != text.instruction:
                self._fail(f"{pointer}/instruction", f"run {run} has responses under another instruction")
            given = self._verdicts.place(text, cell, item, pointer)
            units = tuple(unit.strip() for unit in text.units)
            grades = self._verdicts.grades(text, cell, pointer)
            placed.append(
                ProvidedResponse(
                    *(cell.ordinal, run, item, text.instruction, text.text, units, given, grades),
                    conversation=text.conversation if isinstance(text, ResponseIn) else None,
                )
            )
        return tuple(placed)

    def _item_index(self, response: ResponseIn | UploadedText, cell: Cell, pointer: str) -> int | None:
        if not isinstance(cell, AtomicCell):
            return self._question_index(response, cell, pointer)
        if response.question is not None:
            self._fail(f"{pointer}/question", "is only for PersonaGym's tasks; name the item in item")
            return None
        item = response.item
        if item is None:
            if len(cell.items) == 1:
                return 0
            ids = ", ".join(i.id for i in cell.items)
            self._fail(
                f"{pointer}/item", f"is required: the item of {cell.task.id!r} that it answers, one of: {ids}"
            )
            return None
        for candidate in cell.items:
            if item == candidate.id:
                return candidate.index
        ids = ", ".join(i.id for i in cell.items)
        self._fail(
            f"{pointer}/item",
            f"{cell.task.id!r} for persona {cell.persona.id!r} has no item {item!r}; it has: {ids}",
        )
        return None

    def _question_index(self, response: ResponseIn | UploadedText, cell: Cell, pointer: str) -> int | None:
        if response.item is not None:
            self._fail(f"{pointer}/item", f"is only for atomic tasks, and {cell.task.id!r} is not one")
        if response.question is None:
            self._fail(
                f"{pointer}/question", f"is required: the question of {cell.task.id!r} that it answers"
            )
            return None
        number = self._asked.number_of(cell.persona.id, cell.task.id, response.question)
        if number < MOST_QUESTIONS:
            return number
        message = f"more than {MOST_QUESTIONS:,} different questions of this task and persona"
        self._fail(f"{pointer}/question", message)
        return None


def unanswered(
    spec: JobSpec, cells: tuple[Cell, ...], placed: tuple[ProvidedResponse, ...]
) -> tuple[ProvidedResponse, ...]:
    """The responses to PersonaGym's questions that the existing texts lack."""
    if spec.gym is None or not spec.provided:
        return ()
    return tuple(missing_answers(gym(cells), placed, spec.gym.questions))


def _asked_in(cell: Cell, item: int) -> str:
    """How a client named what a response is to."""
    return f"item {cell.items[item].id!r}" if isinstance(cell, AtomicCell) else "this question"
