"""An existing text that stays in the database, and where a job's texts were copied from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.domain.jobs.verdicts_request import VerdictsIn
from app.domain.suggestion import some_of

MOST_NAMED = 5
"""Names that a message lists."""


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
        notes: What is odd about it, as JSON text, if it is split anew; else ``None``.
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
    notes: str | None = None
    question: str | None = None
    upload: str | None = None
    elsewhere: Elsewhere = NOT_JUDGED


@dataclass(frozen=True, slots=True)
class UploadedText:
    """A response of an upload as a job takes it, as it would take one of its body: there are so many that each of them is small.

    Attributes:
        line: Its line in the file, or its row.
        text: Where its text is, with its names.
        run: Its run, if it has one.
        verdicts: What imported judges said of its sentences, and ``grades`` of an answer to PersonaGym's question.
        units: Whether its sentences were given: then not empty, but what they are is stored with the text.
    """

    line: int
    text: StoredText
    run: int | None
    verdicts: Sequence[VerdictsIn] = ()
    grades: Mapping[str, int | None] = field(default_factory=dict)
    units: Sequence[str] = ()

    @property
    def persona(self) -> str:
        """Its persona's id."""
        return self.text.persona

    @property
    def task(self) -> str:
        """Its task's id."""
        return self.text.task

    @property
    def model(self) -> str:
        """Its writer's label."""
        return self.text.model

    @property
    def item(self) -> str | None:
        """Its item's id, if it has one."""
        return self.text.item

    @property
    def instruction(self) -> int | None:
        """Number of its persona instruction, if known."""
        return self.text.instruction

    @property
    def question(self) -> str | None:
        """What it answers, of a PersonaGym task."""
        return self.text.question


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
        refusals: Who told their refusals from answers, as that job's :attr:`app.domain.jobs.specification.JobSpec.refusals_told_by`.
        other_personas: Ids of personas for which that job has other words or traits: the texts were written for other ones than they are judged on.
    """

    job: str
    filter: Mapping[str, list[Any]]
    sample: Mapping[str, Any] | None
    responses: int
    left_out: int
    attributes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    refusals: str | None = None
    other_personas: Sequence[str] = ()

    @property
    def deviations(self) -> list[str]:
        """What the manifest says of a job on these texts, beyond which job they are of."""
        if not self.other_personas:
            return []
        return [f"that job has other words or traits for {some_of(self.other_personas, MOST_NAMED)}."]
