"""What an imported file has: one record for each text, character or question, or the reason why there is none."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from app.domain.contract import check_storable
from app.domain.errors import FieldError, InvalidJobError
from app.domain.instruments.dimension import Dimension
from app.domain.instruments.persona import Persona
from app.domain.instruments.task import AtomicTask
from app.domain.judging.imported import Score
from app.domain.personagym.task import GymTask
from app.importers.papers_questions import PaperItem, SetQuestion
from app.importers.tool_scale import ToolScale

TEXT_CHARACTERS, PERSONA_CHARACTERS, QUESTION_CHARACTERS = 200_000, 20_000, 20_000
SEVERAL_ITEMS = "questionnaire"
"""The task of files by the atomic paper's code that have several responses a run."""


class Given(NamedTuple):
    """What a judge said of a text, sentence by sentence.

    Attributes:
        judge: The judge.
        dimension: On what.
        scores: One a sentence.
    """

    judge: str
    dimension: str
    scores: Sequence[Score]


@dataclass(frozen=True, slots=True)
class Said:
    """A text that a model wrote. All of it is untrusted.

    Attributes:
        place: Where it stands: a JSON pointer, or one that begins with ``/lines/<number>`` or ``/files/<name>``.
        text: The text.
        persona: The persona's description, such as a system message.
        prompt: What was asked.
        model: Who wrote it.
        task: The task's id, where the file has ours.
        item: The item's id, likewise.
        run: The repetition, likewise.
        instruction: The instruction's number, likewise.
        traits: Level by dimension of the persona, likewise.
        scores: What the tool's own scorers gave it, by their names.
        units: Its sentences, where only they are there and not the whole text.
        verdicts: What judges said of them.
        conversation: Key of its conversation, if others of the model's texts belong to it, too.
    """

    place: str
    text: str
    persona: str | None = None
    prompt: str | None = None
    model: str | None = None
    task: str | None = None
    item: str | None = None
    run: int | None = None
    instruction: int | None = None
    traits: Mapping[str, str] = field(default_factory=dict)
    scores: Mapping[str, float] = field(default_factory=dict)
    units: Sequence[str] = ()
    verdicts: Sequence[Given] = ()
    conversation: str | None = None


@dataclass(frozen=True, slots=True)
class Character:
    """A persona without texts.

    Attributes:
        place: Where it stands.
        description: Its description.
        name: Its name, if it has one; its id is made of it.
        unused: Fields of the file that say nothing of who it is.
    """

    place: str
    description: str
    name: str | None = None
    unused: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """A question to a persona, without an answer.

    Attributes:
        place: Where it stands.
        question: The question.
        persona: The persona's description.
        task: The id of PersonaGym's task, where the file names one.
        models: Who is to be asked, where the file says so.
    """

    place: str
    question: str
    persona: str | None = None
    task: str | None = None
    models: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """A record that cannot be imported.

    Attributes:
        place: Where it stands.
        reason: Why not; the same words for the same reason.
    """

    place: str
    reason: str


@dataclass(frozen=True, slots=True)
class Scored:
    """A judge's scores of a response whose text is not there.

    Attributes:
        place: Where they stand.
        scores: One a sentence.
        run: The repetition, from 0.
        item: Number of the item, from 0, where a run has several.
    """

    place: str
    scores: Sequence[Score]
    run: int
    item: int | None


Record: TypeAlias = Said | Scored | Character | Asked | Refused


def wrong_file(message: str, place: str = "") -> InvalidJobError:
    """The error that a file as a whole can't be read."""
    return InvalidJobError([FieldError(place, message)])


class WrongRecordError(Exception):
    """A record has not the form that its tool writes.

    Attributes:
        field: A JSON pointer within the record.
        reason: What is wrong with it.
    """

    def __init__(self, field_: str, reason: str) -> None:
        super().__init__(reason)
        self.field = field_
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Options:
    """What the user says beside the file.

    Attributes:
        persona: The persona of all texts: an id, or a description; of the file's own if ``None``.
        traits: Level by dimension, of all personas.
        task: The task of all texts.
        model: The model of all texts.
        score: Which of the tool's scores is a judge's verdict on the whole text; none if ``None``.
        scale: The scale of that score; from 1 to 5, as judges', if ``None``.
        columns: Which column of a table holds what, by our names.
        gym_tasks: PersonaGym's tasks of the service by id: their texts answer questions of their own.
        items: Items of atomic tasks by the words that ask them.
        questions: Questions of a question set by their words.
        personas: Personas of a persona set by id and by the words that describe or instruct them.
        built_in: The service's personas by id.
        atomic_tasks: The service's atomic tasks by id.
        dimensions: The service's dimensions by id.
    """

    persona: str | None = None
    traits: Mapping[str, str] = field(default_factory=dict)
    task: str | None = None
    model: str | None = None
    score: str | None = None
    scale: ToolScale | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    gym_tasks: Mapping[str, GymTask] = field(default_factory=dict)
    items: Mapping[str, PaperItem] = field(default_factory=dict)
    questions: Mapping[str, Sequence[SetQuestion]] = field(default_factory=dict)
    personas: Mapping[str, Persona] = field(default_factory=dict)
    built_in: Mapping[str, Persona] = field(default_factory=dict)
    atomic_tasks: Mapping[str, AtomicTask] = field(default_factory=dict)
    dimensions: Mapping[str, Dimension] = field(default_factory=dict)


def member(value: Any, name: str, kind: type | tuple[type, ...]) -> Any:
    """A member of an object that has to be there.

    Raises:
        WrongRecordError: It is not, or of another type.
    """
    found = value.get(name) if isinstance(value, dict) else None
    if not isinstance(found, kind):
        reason = "is missing" if found is None else f"must not be of the type {type(found).__name__}"
        raise WrongRecordError(f"/{name}", reason)
    return found


def optional(value: Any, *names: str) -> Any:
    """What stands at the end of a path of members; ``None`` if one is missing."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def text_or_none(value: Any) -> str | None:
    """A text that says something; ``None`` for anything else."""
    return value if isinstance(value, str) and value.strip() else None


def id_or_none(value: Any) -> str | None:
    """An id as text; files write ids as texts or whole numbers."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else text_or_none(value)


def number_or_none(value: Any) -> float | None:
    """A finite number; a yes or no stays what it is, which counts as 1 or 0 but is on no judge's scale."""
    if isinstance(value, bool | int | float) and abs(value) < 1e15 and math.isfinite(value):  # noqa: PLR2004 - no score is larger
        return value if isinstance(value, bool) else float(value)
    return None


def substituted(pattern: re.Pattern[str], value: Callable[[re.Match[str]], str], text: str, most: int) -> str:
    """Replace the matches of a pattern. The length is checked before each step: short files can ask for very long texts.

    Raises:
        WrongRecordError: If the result would have more than `most` characters.
    """
    parts: list[str] = []
    at = length = 0
    for found in pattern.finditer(text):
        parts += (text[at : found.start()], value(found))
        length += len(parts[-2]) + len(parts[-1])
        at = found.end()
        if length > most:
            break
    if length + len(text) - at > most:
        raise WrongRecordError("", f"has more than {most:,} characters with its placeholders filled in")
    return "".join((*parts, text[at:]))


_NAMES: Mapping[type, Sequence[str]] = {
    Said: ("persona", "prompt", "model", "task", "item", "conversation"),
    Asked: ("persona", "task"),
    Scored: (),
}
"""The short texts of each kind of records."""


def unstorable(record: Said | Scored | Asked) -> str | None:
    """Name the first short text of a record that can't be stored or sent, with the reason."""
    texts = [(name, getattr(record, name)) for name in _NAMES[type(record)]]
    if isinstance(record, Said) and record.traits:
        texts += [("traits", each) for trait in record.traits.items() for each in trait]
    elif isinstance(record, Asked):
        texts += [("models", each) for each in record.models]
    if _unstorable("".join(text for _, text in texts if text)) is None:
        return None
    faults = ((name, _unstorable(text)) for name, text in texts if text)
    return next(f"{name}: the text {fault}" for name, fault in faults if fault)


def _unstorable(text: str) -> str | None:
    try:
        check_storable(text)
    except ValueError as error:
        return str(error)
    return None


def fault_of(text: str, most: int) -> str | None:
    """Why a text can't be stored or sent; ``None`` if it can."""
    if not text.strip():
        return "the text is empty"
    if len(text) > most:
        return f"the text has more than {most:,} characters"
    fault = _unstorable(text)
    return None if fault is None else f"the text {fault}"
