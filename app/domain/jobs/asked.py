"""What models were asked, made again from a job's specification by the code that made it for the calls."""

from collections.abc import Iterable
from typing import NamedTuple

from app.domain.instruments.prompts import system_prompt, user_prompt
from app.domain.instruments.task import Item
from app.domain.jobs.plan import AtomicCell, Cell, GymCell
from app.domain.jobs.specification import JobSpec
from app.domain.judging.judged_response import JudgedResponse


class AskedPrompt(NamedTuple):
    """What a response answers.

    Attributes:
        system: What the model was told; of texts from elsewhere only the persona's description.
        user: What it was asked.
        known: Whether the model got exactly this; nobody knows that of texts from elsewhere.
    """

    system: str
    user: str
    known: bool


class AskedPrompts:
    """The prompts of a job's responses."""

    def __init__(self, spec: JobSpec, cells: Iterable[Cell]) -> None:
        self._spec = spec
        self._cells = {(cell.persona.id, cell.task.id): cell for cell in cells}

    def of(self, response: JudgedResponse) -> AskedPrompt:
        """That of one of its personas' responses."""
        cell = self._cells[response.persona, response.task]
        known = not self._spec.provided
        if isinstance(cell, GymCell) and self._spec.gym is not None:
            told = system_prompt(self._spec.gym.template, cell.persona)
            return AskedPrompt(told, response.item.text, known)
        asked = response.item.text
        if isinstance(cell, AtomicCell):
            asked = user_prompt(cell.task, _item(cell, response))
        instructions, number = self._spec.instructions, response.instruction
        if number is None or number >= len(instructions):
            return AskedPrompt(cell.persona.description, asked, known=False)
        return AskedPrompt(system_prompt(instructions[number], cell.persona), asked, known)


def _item(cell: AtomicCell, response: JudgedResponse) -> Item:
    return next(item for item in cell.items if item.id == response.item.id)
