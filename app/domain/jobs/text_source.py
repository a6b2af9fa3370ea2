"""An existing text that stays in the database, and where a job's texts were copied from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class StoredText:
    """A text of a source, named as the source's job names it.

    Attributes:
        model: Its writer's label.
        persona: Its persona's id.
        task: Its task's id.
        item: Its item's id; ``None`` where nobody can say.
        run: The repetition, from 0.
        instruction: Number of its persona instruction, from 0, if known.
        status: That of its response.
        sentences: How many it has.
        key: Where its words are, for whoever copies them.
        spans: Where its sentences are, as Postgres writes the two arrays of offsets; ``None`` for the source's own.
        question: What it answers, in words, of a PersonaGym task.
        upload: The upload that has its words, by the first number of ``key``; ``None`` where a job has.
    """

    model: str
    persona: str
    task: str
    item: str | None
    run: int
    instruction: int | None
    status: str
    sentences: int
    key: tuple[int, int, int]
    spans: tuple[str, str] | None = None
    question: str | None = None
    upload: str | None = None


@dataclass(frozen=True, slots=True)
class TextSource:
    """Where the texts of a job were copied from, which may be gone since.

    Attributes:
        job: The job that had them.
        filter: Which of its texts, by field; all where nothing is named.
        sample: How many were drawn of these and with which seed, if not all were taken.
        responses: How many were taken.
        left_out: Failed responses among those that were asked for; they have no text.
        attributes: What is known of the models that wrote them, by label.
    """

    job: str
    filter: Mapping[str, list[Any]]
    sample: Mapping[str, int] | None
    responses: int
    left_out: int
    attributes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
