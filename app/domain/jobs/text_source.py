"""An existing text that stays in the database, and where a job's texts were copied from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What is known of a text of an upload because imported judges judged it.

    Attributes:
        text: Whether the text was given, not only what was said of it.
        doubtful: The sentences that address the judge.
        doubtful_text: Whether any of it does.
    """

    text: bool = True
    doubtful: tuple[int, ...] = ()
    doubtful_text: bool = False

    def doubtful_in(self, *, whole: bool) -> tuple[int, ...]:
        """The sentences that address the judge, where all of it may count as one."""
        return ((0,) if self.doubtful_text else ()) if whole else self.doubtful


NOT_JUDGED = Elsewhere()


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
        elsewhere: What came with it of imported judges.
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
    elsewhere: Elsewhere = NOT_JUDGED


@dataclass(frozen=True, slots=True)
class TextSource:
    """Where the texts of a job were copied from, which may be gone since.

    Attributes:
        job: The job that had them.
        filter: Which of its texts, by field; all where nothing is named.
        sample: How many were drawn of these, with which seed and by what, if not all were taken.
        responses: How many were taken.
        left_out: Failed responses among those that were asked for; they have no text.
        attributes: What is known of the models that wrote them, by label.
    """

    job: str
    filter: Mapping[str, list[Any]]
    sample: Mapping[str, Any] | None
    responses: int
    left_out: int
    attributes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
