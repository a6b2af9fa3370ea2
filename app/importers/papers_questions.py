"""Recognises what texts answer: the atomic paper's questions and prompts, and the questions of a question set."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from app.domain.instruments.dimension import Dimension
from app.domain.instruments.prompts import user_prompt
from app.domain.instruments.task import AtomicTask, ItemSource, items_for


@dataclass(frozen=True, slots=True)
class PaperItem:
    """An item of an atomic task.

    Attributes:
        task: The task's id.
        item: The item's id.
        dimension: The dimension on which it is judged; ``None`` of one that is judged on all.
    """

    task: str
    item: str
    dimension: str | None


@dataclass(frozen=True, slots=True)
class SetQuestion:
    """A question of a question set.

    Attributes:
        persona: The description of whom it asks.
        task: The id of PersonaGym's task.
        question: Its own words.
    """

    persona: str
    task: str
    question: str


@lru_cache(256)  # many texts have the same long persona or question
def squeezed(text: str) -> str:
    """A text with each white space as one space, by which prompts are compared."""
    return " ".join(text.split())


def paper_items(tasks: Iterable[AtomicTask], dimensions: Iterable[Dimension]) -> dict[str, PaperItem]:
    """The items of all tasks by their words alone, and by the prompt that asks them."""
    found: dict[str, PaperItem] = {}
    all_dimensions = tuple(dimensions)
    for task in tasks:
        for item in items_for(task, all_dimensions):
            common = task.item_source is ItemSource.COMMON
            known = PaperItem(task.id, item.id, None if common else item.dimensions[0])
            found[squeezed(user_prompt(task, item))] = known
            if item.text:
                found[squeezed(item.text)] = known
    return found


def set_questions(
    content: Mapping[str, Mapping[str, Sequence[str]]],
) -> dict[str, tuple[SetQuestion, ...]]:
    """The questions of a set by their words; several personas may be asked the same."""
    found: dict[str, tuple[SetQuestion, ...]] = {}
    for persona, tasks in content.items():
        for task, questions in tasks.items():
            for question in questions:
                key = squeezed(question)
                found[key] = (*found.get(key, ()), SetQuestion(persona, task, question))
    return found
