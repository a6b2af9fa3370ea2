"""Reads what users bring along: personas as JSON, JSON Lines or CSV, and published question files."""

import csv
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from app.domain.errors import FieldError
from app.domain.instruments.persona import MAX_PERSONAS, Persona, traits_of
from app.domain.judging.stepwise_json import StepwiseDecoder
from app.domain.personagym.task import GymTask, task_named

MAX_QUESTIONS = 1_000
"""Questions of one task for one persona."""


class PersonaFormat(StrEnum):
    """The forms in which personas may be brought along."""

    JSON = "json"
    """A list of descriptions or of objects, a mapping from id to either, or ``{"personas": …}``."""
    JSONL = "jsonl"
    """One description or object a line."""
    CSV = "csv"
    """A header with ``description`` and perhaps ``id`` and ``traits``; traits as JSON or as ``E=low; A=high``."""


@dataclass(frozen=True, slots=True)
class PersonasRead:
    """The personas of a file, or everything that is wrong with it.

    Attributes:
        personas: In the file's order, with different ids; empty if there are errors. Untrusted texts.
        errors: One for each thing wrong. A pointer leads to the JSON value, or begins with ``/lines/<number>``.
        pointers: Where each of the personas stands, in the same way.
    """

    personas: tuple[Persona, ...]
    errors: tuple[FieldError, ...] = ()
    pointers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QuestionsFile:
    """The questions of a published file, or everything that is wrong with it.

    Attributes:
        questions: Questions by the task's id, in the file's order; empty if there are errors. Untrusted texts.
        errors: One for each thing wrong, its pointer leading to the value within the file.
    """

    questions: Mapping[str, tuple[str, ...]]
    errors: tuple[FieldError, ...] = ()


def read_personas(text: str, form: PersonaFormat) -> PersonasRead:
    """Reads personas.

    A persona is a description, or an object with ``description`` and perhaps ``id`` and ``traits`` (level by dimension).
    One without an id gets ``persona-<n>``, n being its position from 1. Dimensions and levels are looked up later.

    Args:
        text: The file's content. Untrusted.
        form: Its form.
    """
    reader = _Reader()
    if form is PersonaFormat.JSON:
        reader.read_json(text)
    elif form is PersonaFormat.JSONL:
        reader.read_jsonl(text)
    else:
        reader.read_csv(text)
    return reader.result()


def read_persona_list(content: object, pointer: str) -> PersonasRead:
    """The personas of a list or mapping that was parsed already; see :func:`read_personas`.

    Args:
        content: The parsed JSON value. Untrusted.
        pointer: Where it stands; errors point from there.
    """
    reader = _Reader()
    reader.read_value(content, pointer)
    return reader.result()


def read_question_file(content: object, tasks: Iterable[GymTask]) -> QuestionsFile:
    """Reads a persona's questions as PersonaGym publishes them: a JSON object of lists of questions by task.

    A task may be named by its id, its title or an alias; case, spaces and punctuation do not count. So ``Toxicity`` and
    ``Toxicity Control`` are the same task, and a file may not have both.

    Args:
        content: The file's parsed content. Untrusted.
        tasks: The tasks that there are.
    """
    if not (isinstance(content, Mapping) and content):
        message = "must be an object that maps a task to its list of questions"
        return QuestionsFile({}, (FieldError("", message),))
    offered = tuple(tasks)
    errors: list[FieldError] = []
    found: dict[str, tuple[str, ...]] = {}
    for name, value in content.items():
        pointer = f"/{_escaped(name)}"
        task = task_named(offered, name)
        if task is None:
            known = ", ".join(each.id for each in offered)
            errors.append(FieldError(pointer, f"unknown PersonaGym task {name!r}; known: {known}"))
        elif task.id in found:
            errors.append(FieldError(pointer, f"task {task.id!r} is given more than once"))
        else:
            errors += _question_errors(value, pointer)
            found[task.id] = tuple(value) if isinstance(value, list | tuple) else ()
    return QuestionsFile({}, tuple(errors)) if errors else QuestionsFile(found)


def persona_of_file(name: str) -> str:
    """The persona that a question file is about: its name without directory and ending, or the description itself.

    PersonaGym publishes one file a persona, named by the persona's description: ``questions/<version>/<description>.json``.
    Only directories up to such a ``questions`` and below it are cut, none of them with a space in its name, so that a
    description may contain slashes of its own.
    """
    who = name.strip()
    if who.casefold().endswith(_FILE_ENDING):
        who = _DIRECTORY.sub("", who[: -len(_FILE_ENDING)].strip())
    return who


_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,99}")
_LONGEST_DESCRIPTION = 20_000
_LONGEST_QUESTION = 20_000
_LONGEST_NAME = 300
_SHOWN_CHARACTERS = 200
_FILE_ENDING = ".json"
_DIRECTORY = re.compile(r"\A(?:[^/\\\s]*[/\\])*questions[/\\](?:[^/\\\s]+[/\\])*")
_LINE = re.compile(r"([^\r\n]*)(?:\r\n|\n|\r|\Z)")
_SHORT_CHARACTERS = 64 * 1024
"""The longest JSON that is parsed in one step."""
_COLUMNS = ("description", "id", "traits")


class _Found(NamedTuple):
    """What stands in one place of a file.

    Attributes:
        pointer: Where it stands.
        id_pointer: Where its id stands: in itself, or where it stands if its id is a key or made up.
        persona: ``None`` if it is none.
    """

    pointer: str
    id_pointer: str
    persona: Persona | None


class _Reader:
    """One reading; collects errors so that the user mends them all at once."""

    def __init__(self) -> None:
        self._found: list[_Found] = []
        self._errors: list[FieldError] = []
        self._start = ""

    def result(self) -> PersonasRead:
        named = {each.persona.id for each in self._found if each.persona is not None and each.persona.id}
        personas: list[Persona] = []
        ids: set[str] = set()
        for position, (_, id_pointer, persona) in enumerate(self._found, 1):
            if persona is None:
                continue
            id_ = persona.id or f"persona-{position}"
            if id_ in ids or (not persona.id and id_ in named):
                self._fail(id_pointer, f"the id {id_!r} is given to two personas")
            ids.add(id_)
            personas.append(Persona(id_, persona.description, persona.traits))
        if not self._found and not self._errors:
            self._fail(self._start, "must have at least one persona")
        if self._errors:
            return PersonasRead((), tuple(self._errors))
        return PersonasRead(tuple(personas), pointers=tuple(each.pointer for each in self._found))

    def read_json(self, text: str) -> None:
        content, errors = _json(text, "")
        self._errors += errors
        if errors:
            return
        if isinstance(content, dict) and list(content) == ["personas"]:
            self.read_value(content["personas"], "/personas")
        else:
            self.read_value(content, "")

    def read_value(self, content: object, start: str) -> None:
        self._start = start
        if isinstance(content, list | dict) and len(content) > MAX_PERSONAS:
            self._fail_of_number(len(content))
        elif isinstance(content, list):
            for n, value in enumerate(content):
                self._add(f"{start}/{n}", value)
        elif isinstance(content, dict):
            for id_, value in content.items():
                self._add_named(f"{start}/{_escaped(id_)}", id_, value)
        else:
            self._fail(start, "must be a list of personas or an object that maps ids to personas")

    def read_jsonl(self, text: str) -> None:
        filled = 0
        for number, line in enumerate(_LINE.finditer(text.removeprefix("\ufeff")), 1):
            if line[1].strip() and (filled := filled + 1) <= MAX_PERSONAS:
                pointer = f"/lines/{number}"
                content, errors = _json(line[1], pointer)
                self._errors += errors
                if not errors:
                    self._add(pointer, content)
        if filled > MAX_PERSONAS:
            self._fail_of_number(filled)

    def read_csv(self, text: str) -> None:
        lines = (line[0] for line in _LINE.finditer(text.removeprefix("\ufeff")) if line[0])
        rows = csv.reader(lines, strict=True)
        header: list[str] | None = None
        filled = 0
        pointer = (
            "/lines/1"  # of the record's first line; the reader only knows the last one that it has read
        )
        try:
            for row in rows:
                if not any(cell.strip() for cell in row):
                    pass
                elif header is None:
                    header = self._header(row, pointer)
                    if header is None:
                        return
                elif (filled := filled + 1) > MAX_PERSONAS:
                    pass  # but counted
                elif len(row) != len(header):
                    self._fail(pointer, f"has {len(row)} fields, the header {len(header)}")
                else:
                    self._add_row(pointer, dict(zip(header, row, strict=True)))
                pointer = f"/lines/{rows.line_num + 1}"
        except csv.Error as error:
            self._fail(pointer, f"not CSV: {error}")
        if filled > MAX_PERSONAS:
            self._fail_of_number(filled)

    def _header(self, row: Sequence[str], pointer: str) -> list[str] | None:
        header = [cell.strip().casefold() for cell in row]
        if "description" in header and set(header) <= set(_COLUMNS) and len(set(header)) == len(header):
            return header
        shown = ",".join(row)[:_SHOWN_CHARACTERS]
        self._fail(
            pointer,
            f"the header must have description, and besides only id and traits, not {shown!r}",
        )
        return None

    def _add_row(self, pointer: str, row: Mapping[str, str]) -> None:
        value: dict[str, object] = {"description": row["description"]}
        if row.get("id", "").strip():
            value["id"] = row["id"].strip()
        traits = row.get("traits", "").strip()
        if traits:
            value["traits"], errors = _traits(traits, f"{pointer}/traits")
            self._errors += errors
            if errors:
                return
        self._add(pointer, value)

    def _add_named(self, pointer: str, id_: str, value: object) -> None:
        if isinstance(value, dict) and "id" not in value:
            self._add(pointer, {"id": id_, **value}, id_pointer=pointer)
        elif isinstance(value, str):
            self._add(pointer, {"id": id_, "description": value}, id_pointer=pointer)
        else:
            self._fail(pointer, "must be a description, or an object without an id of its own")

    def _add(self, pointer: str, value: object, id_pointer: str | None = None) -> None:
        if isinstance(value, str):
            value = {"description": value}
        if not isinstance(value, dict):
            self._fail(pointer, "must be a description or an object with a description")
            self._found.append(_Found(pointer, pointer, None))
            return
        if id_pointer is None:
            id_pointer = f"{pointer}/id" if "id" in value else pointer
        errors = list(_persona_errors(value, pointer, id_pointer))
        self._errors += errors
        persona = (
            None
            if errors
            else Persona(
                value.get("id", ""), value["description"].strip(), traits_of(value.get("traits", {}))
            )
        )
        self._found.append(_Found(pointer, id_pointer, persona))

    def _fail_of_number(self, count: int) -> None:
        """There are too many; those beyond the most are not looked at, of which a file may have millions."""
        self._fail(self._start, f"{count:,} personas; at most {MAX_PERSONAS:,}")

    def _fail(self, pointer: str, message: str) -> None:
        self._errors.append(FieldError(pointer, message))


def _persona_errors(value: Mapping[str, object], pointer: str, id_pointer: str) -> Iterable[FieldError]:
    for name in value.keys() - set(_COLUMNS):
        yield FieldError(f"{pointer}/{_escaped(name)}", "unknown field; known: description, id, traits")
    fault = _text_fault(value.get("description"), _LONGEST_DESCRIPTION)
    if fault:
        yield FieldError(f"{pointer}/description", fault)
    id_ = value.get("id", "x")
    if not isinstance(id_, str) or not _ID.fullmatch(id_):
        yield FieldError(
            id_pointer, "must have 1 to 100 letters, digits and . _ : -, the first a letter or digit"
        )
    traits = value.get("traits", {})
    if not isinstance(traits, dict) or any(
        _text_fault(word, _LONGEST_NAME) for pair in traits.items() for word in pair
    ):
        yield FieldError(f"{pointer}/traits", "must map dimensions to levels")


def _question_errors(value: object, pointer: str) -> list[FieldError]:
    if not isinstance(value, list | tuple) or not 1 <= len(value) <= MAX_QUESTIONS:
        return [FieldError(pointer, f"must be a list of at least one question and at most {MAX_QUESTIONS:,}")]
    faults = [_text_fault(question, _LONGEST_QUESTION) for question in value]
    return [FieldError(f"{pointer}/{n}", fault) for n, fault in enumerate(faults) if fault]


def _text_fault(value: object, longest: int) -> str | None:
    """What keeps a value from being a text that a prompt can hold and the database store."""
    if not isinstance(value, str) or not value.strip():
        return "must be a text that is not empty"
    if len(value) > longest:
        return f"must have at most {longest} characters, not {len(value)}"
    if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        return "must contain neither the character U+0000 nor lone surrogates"
    return None


def _traits(text: str, pointer: str) -> tuple[object, list[FieldError]]:
    """The traits in a CSV cell: a JSON object, or ``dimension=level`` separated by semicolons."""
    if text.startswith("{"):
        return _json(text, pointer)
    parts = [part.partition("=") for part in text.split(";") if part.strip()]
    pairs = [(dimension.strip(), level.strip()) for dimension, _, level in parts]
    if not all(dimension and level for dimension, level in pairs):
        return None, [FieldError(pointer, "must have the form E=low; A=high, or be a JSON object")]
    if len(dict(pairs)) != len(pairs):
        return None, [FieldError(pointer, "must not contain a dimension twice")]
    return dict(pairs), []


class _RepeatedKeyError(ValueError):
    """A JSON object has a name twice; the usual reader would silently keep the last."""


def _members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        counts = Counter(name for name, _ in pairs)
        repeated = next(name for name, count in counts.items() if count > 1)
        raise _RepeatedKeyError(f"an object has the name {repeated!r} twice")
    return members


def _json(text: str, pointer: str) -> tuple[object, list[FieldError]]:
    decoder = json.JSONDecoder if len(text) <= _SHORT_CHARACTERS else StepwiseDecoder
    try:
        return decoder(object_pairs_hook=_members).decode(text.removeprefix("\ufeff")), []
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        return None, [FieldError(pointer, f"not JSON: {error.msg} ({place})")]
    except _RepeatedKeyError as error:
        return None, [FieldError(pointer, str(error))]
    except (ValueError, RecursionError):
        return None, [FieldError(pointer, "not valid JSON: nested too deeply, or a number too long")]


def _escaped(name: str) -> str:
    """A name as a JSON pointer's token (RFC 6901), without lone surrogates."""
    return name.encode(errors="replace").decode().replace("~", "~0").replace("/", "~1")
