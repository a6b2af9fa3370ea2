"""Reads another tool's file in a child process, by what a person chose beside it."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, BinaryIO

from pydantic_core import to_json

from app.domain.errors import FieldError, InvalidJobError
from app.domain.instruments.persona import Persona
from app.domain.suggestion import did_you_mean
from app.domain.uploads.records import read_rows
from app.importers.bodies import Keep
from app.importers.content import UNPACKED_BYTES
from app.importers.known_personas import persona_words
from app.importers.names import COLUMNS
from app.importers.papers_questions import PaperItem, paper_items, set_questions
from app.importers.records import Options
from app.importers.registry import AT_ONCE, NAMES, FileImport
from app.importers.tool_scale import ToolScale
from app.instruments.loader import load_atomic
from app.instruments.personagym_loader import load_personagym
from app.services.uploads.upload_reader import PREVIEW, SOME, load_rules, record_columns

PERSONA_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,99}")
PIECE_BYTES = 256 * 1024
"""Least bytes of a result but the last: each costs the main process a turn."""
Questions = dict[str, dict[str, list[str]]]


@dataclass(frozen=True, slots=True)
class ImportChoices:
    """Choices beside the file; see the parameters of `POST /v1/imports`."""

    name: str | None = None
    kind: str | None = None
    persona: str | None = None
    personas: str | None = None
    trait: tuple[str, ...] = ()
    task: str | None = None
    model: str | None = None
    score: str | None = None
    scale: str | None = None
    questions: str | None = None
    column: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wanted:
    """A request to read a file.

    Attributes:
        chosen: The choices.
        people: The personas of the chosen set.
        questions: The questions of the chosen set.
    """

    chosen: ImportChoices
    people: Sequence[Persona] = ()
    questions: Questions | None = None

    def begin(self, file: BinaryIO, name: str, keep: Keep, most: int) -> FileImport:
        """Begin to read a file.

        Raises:
            InvalidJobError: If a choice is wrong, with a pointer that begins with ``/query``, or the file can't be read.
        """
        return FileImport(file, self.chosen.name or name, self.chosen.kind, _options(self), keep, most)


def read_body(file: BinaryIO, wanted: Wanted, place: str) -> Iterator[bytes]:
    """Yield responses as JSON, then the preview, in which `place` stands for their list."""
    some: list[bytes] = []
    found = wanted.begin(file, "", lambda response: some.append(to_json(response)), UNPACKED_BYTES)
    more = True
    while more:
        more = found.read(AT_ONCE)
        if some and (not more or sum(map(len, some)) >= PIECE_BYTES):
            yield SOME + b",".join(some)
            some.clear()
    yield PREVIEW + found.preview(place).encoded()


def read_records(
    file: BinaryIO, name: str, wanted: Wanted, upload_id: str, versions: Mapping[str, str], most: int
) -> Iterator[bytes]:
    """Yield responses as records of an upload, then the preview, which names the upload."""
    rules, count = load_rules(versions), 0
    some: list[dict[str, Any]] = []

    def keep(response: dict[str, Any]) -> str | None:
        nonlocal count
        read = read_rows(count + 1, [response], rules)
        if read.errors:
            first = read.errors[0]
            return f"{first.field.removeprefix('/')}: {first.message}" if first.field else first.message
        some.extend(map(record_columns, read.records))
        count += 1
        return None

    found = wanted.begin(file, name, keep, most)
    more = True
    while more:
        more = found.read(AT_ONCE)
        if some:
            yield SOME + json.dumps(some).encode()
            some.clear()
    yield PREVIEW + found.preview({"upload": upload_id}).encoded()


def _options(wanted: Wanted) -> Options:
    """Return the choices with what they name.

    Raises:
        InvalidJobError: If one is wrong.
    """
    chosen, atomic, gym = wanted.chosen, load_atomic(), load_personagym()
    if chosen.kind is not None and chosen.kind not in NAMES:
        raise wrong_choice("kind", f"unknown kind; known: {', '.join(NAMES)}")
    traits = _traits(chosen)
    built_in = {**atomic.personas, **gym.personas}
    _check_names((*atomic.tasks, *gym.tasks), (*built_in, *(each.id for each in wanted.people)), chosen)
    columns = _pairs("column", chosen.column)
    for unknown in columns.keys() - COLUMNS.keys():
        raise wrong_choice("column", f"nothing is called {unknown!r}; known: {', '.join(COLUMNS)}")
    return Options(
        persona=chosen.persona,
        traits=traits,
        task=chosen.task,
        model=chosen.model,
        score=chosen.score,
        scale=None if chosen.scale is None else _scale(chosen.scale),
        columns=columns,
        gym_tasks=gym.tasks,
        items=known_items(),
        questions=set_questions(wanted.questions or {}),
        personas=persona_words(wanted.people, atomic.instructions),
        built_in=built_in,
        atomic_tasks=atomic.tasks,
        dimensions=atomic.dimensions,
    )


@cache
def known_items() -> Mapping[str, PaperItem]:
    """Return the items of the atomic tasks by the words that ask them."""
    atomic = load_atomic()
    return paper_items(atomic.tasks.values(), atomic.dimensions.values())


def _traits(chosen: ImportChoices) -> dict[str, str]:
    """Return the chosen traits.

    Raises:
        InvalidJobError: If the service has no such dimension or level.
    """
    traits, known = _pairs("trait", chosen.trait), load_atomic().dimensions
    for n, (name, level) in enumerate(traits.items()):
        dimension = known.get(name)
        if dimension is None:
            raise wrong_choice(f"trait/{n}", f"unknown dimension {name!r}; known: {', '.join(known)}")
        if level not in dimension.scale.levels:
            raise wrong_choice(
                f"trait/{n}", f"{name} has the levels {', '.join(dimension.scale.levels)}, not {level!r}"
            )
    return traits


def _check_names(tasks: Sequence[str], personas: Sequence[str], chosen: ImportChoices) -> None:
    """Check that the service has the chosen task, and the persona if one word names it.

    Raises:
        InvalidJobError: If it does not.
    """
    if chosen.task is not None and chosen.task not in tasks:
        raise wrong_choice(
            "task",
            f"unknown task {chosen.task!r}{did_you_mean(chosen.task, tasks) or '; known: ' + ', '.join(tasks)}",
        )
    named = chosen.persona
    if named is not None and PERSONA_ID.fullmatch(named) and named not in personas:
        meant = did_you_mean(named, personas) or "; GET /v1/personas lists the ids"
        raise wrong_choice(
            "persona", f"there is no persona {named!r}{meant}. A description has more than one word"
        )


def _scale(text: str) -> ToolScale:
    try:
        return ToolScale.of(text)
    except ValueError as error:
        raise wrong_choice("scale", str(error)) from error


def _pairs(name: str, given: Sequence[str]) -> dict[str, str]:
    """Return the values of a choice, each ``key=value``, as an object."""
    pairs = [each.partition("=") for each in given]
    for n, (key, _, value) in enumerate(pairs):
        if not (key.strip() and value.strip()):
            raise wrong_choice(f"{name}/{n}", "must have the form name=value")
    found = {key.strip(): value.strip() for key, _, value in pairs}
    if len(found) < len(pairs):
        raise wrong_choice(name, "has a name twice")
    return found


def wrong_choice(choice: str, message: str) -> InvalidJobError:
    """Return the error of a parameter."""
    return InvalidJobError([FieldError(f"/query/{choice}", message)])
