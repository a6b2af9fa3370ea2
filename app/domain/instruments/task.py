"""Generation tasks of the atomic framework (atomic paper, section 4.1 and Tables 9–11)."""

from dataclasses import dataclass
from enum import StrEnum

from app.domain.instruments.dimension import Dimension


class ItemSource(StrEnum):
    """Where a task's items come from."""

    QUESTIONS = "questions"
    """One item for each interview question of the trait's dimension."""
    ESSAY_CONTEXT = "essay_context"
    """One item: the scenario of the trait's dimension."""
    COMMON = "common"
    """One item that is the same for every dimension, so one text serves all of a persona's traits."""


@dataclass(frozen=True, slots=True)
class Item:
    """One question or one context of a task, answered once in each run.

    Attributes:
        index: Position among the items of its cell, from 0.
        id: Stable name, for example ``"E-3"`` (third question of E), ``"E"`` (essay) or ``"post"``.
        text: The question or context; empty where the task has none of its own.
        dimensions: Ids of the dimensions on which the answer is judged.
    """

    index: int
    id: str
    text: str
    dimensions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AtomicTask:
    """A generation task whose responses are judged sentence by sentence.

    Attributes:
        id: ``"questionnaire"``, ``"essay"`` or ``"social_media_post"``.
        title: Its name for people.
        prompt: User prompt; ``{question}`` or ``{context}`` stands for the item's text.
        scoring_prompt: The judge's prompt (Table 13); ``{dimension}``, ``{question}``, ``{atomic unit}`` and
            ``{options}`` are filled in.
        item_source: Where the items come from.
        expected_units: Sentences in an average response, for plans (mean of the twelve models in Table 15).
        expected_output_tokens: Tokens in an average response, for plans.
    """

    id: str
    title: str
    prompt: str
    scoring_prompt: str
    item_source: ItemSource
    expected_units: float
    expected_output_tokens: int


COMMON_ITEM_ID = "post"


def item_count(task: AtomicTask, dimensions: tuple[Dimension, ...]) -> int:
    """The length of :func:`items_for`, without making the items."""
    if task.item_source is ItemSource.COMMON:
        return 1
    if task.item_source is ItemSource.QUESTIONS:
        return sum(len(dimension.questions) for dimension in dimensions)
    return sum(dimension.essay_context is not None for dimension in dimensions)


def judged_count(task: AtomicTask, dimensions: tuple[Dimension, ...]) -> int:
    """On how many dimensions the responses of a run are judged, taken together."""
    return len(dimensions) if task.item_source is ItemSource.COMMON else item_count(task, dimensions)


def lacking(task: AtomicTask, dimension: Dimension) -> str | None:
    """The field of a dimension that the task needs and that it has not; ``None`` if it has all."""
    if item_count(task, (dimension,)):
        return None
    return "questions" if task.item_source is ItemSource.QUESTIONS else "essay_context"


def asks_a_question(task: AtomicTask) -> bool:
    """Whether its items are questions, which a reader of a response needs to see."""
    return task.item_source is ItemSource.QUESTIONS


def items_for(task: AtomicTask, dimensions: tuple[Dimension, ...]) -> tuple[Item, ...]:
    """The items of a task for a persona whose traits lie on ``dimensions``.

    Args:
        task: The task.
        dimensions: The dimensions of the persona's traits, in the traits' order.

    Returns:
        The items, numbered from 0. Dimensions that lack what the task needs (questions, a context) give none.
    """
    if task.item_source is ItemSource.COMMON:
        return (Item(0, COMMON_ITEM_ID, "", tuple(d.id for d in dimensions)),)
    found: list[tuple[str, str, str]] = []
    for dimension in dimensions:
        if task.item_source is ItemSource.QUESTIONS:
            found += [
                (f"{dimension.id}-{n}", text, dimension.id) for n, text in enumerate(dimension.questions, 1)
            ]
        elif dimension.essay_context is not None:
            found.append((dimension.id, dimension.essay_context, dimension.id))
    return tuple(Item(index, id_, text, (dimension,)) for index, (id_, text, dimension) in enumerate(found))
