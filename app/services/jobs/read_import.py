"""Reads another tool's file by what a person chose beside it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import BinaryIO

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.sets import sets
from app.domain.errors import FieldError, InvalidJobError
from app.domain.instruments.persona import Persona, traits_of
from app.domain.jobs.catalog import Catalog
from app.domain.jobs.import_preview import ImportPreview
from app.domain.sets.kinds import QUESTION_SET
from app.domain.suggestion import did_you_mean
from app.importers.bodies import Keep
from app.importers.known_personas import persona_words
from app.importers.names import COLUMNS
from app.importers.papers_questions import paper_items, set_questions
from app.importers.records import Options
from app.importers.registry import NAMES, FileImport, read_import
from app.importers.tool_scale import ToolScale
from app.services.errors import NotFoundError
from app.services.long_texts import on_a_thread
from app.services.sets.persona_sets import find_persona_set
from app.services.uploads.tool_files import make_records
from app.services.uploads.uploads import TOOL_FILE_BYTES, UploadDependencies

WAIT_SECONDS = 10.0
"""So long a request waits for a file that was uploaded."""
PERSONA_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,99}")
Questions = dict[str, dict[str, list[str]]]


@dataclass(frozen=True, slots=True)
class ImportChoices:
    """What a person says beside the file; see the parameters of `POST /v1/imports`."""

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


async def read_file(
    engine: AsyncEngine, catalog: Catalog, tenant: str, data: bytes, chosen: ImportChoices
) -> ImportPreview:
    """What a file has and how it maps.

    Raises:
        InvalidJobError: If it can't be read, or a choice is none; the pointers of choices begin with ``/query``.
    """
    options = await _options(engine, catalog, tenant, chosen)
    return await on_a_thread(tenant, partial(read_import, data, chosen.name or "", chosen.kind, options))


async def read_upload(
    deps: UploadDependencies, catalog: Catalog, tenant: str, upload_id: str, chosen: ImportChoices
) -> ImportPreview | None:
    """The same of a file that was uploaded: its texts become the upload's records, which the job's body names.

    Returns:
        ``None`` if that takes long. It goes on; whoever asks for the same again waits for it.

    Raises:
        InvalidJobError: As above, or if there is no such upload.
    """
    options = await _options(deps.engine, catalog, tenant, chosen)

    def begin(file: BinaryIO, name: str, keep: Keep) -> FileImport:
        return FileImport(file, chosen.name or name, chosen.kind, options, keep, TOOL_FILE_BYTES)

    work = partial(make_records, deps, tenant, upload_id, begin)
    reading = await deps.tool_files.read(tenant, upload_id, chosen, work, WAIT_SECONDS)
    return None if reading is None else reading.result()


async def _options(engine: AsyncEngine, catalog: Catalog, tenant: str, chosen: ImportChoices) -> Options:
    """What a person chose, with what it names.

    Raises:
        InvalidJobError: If a choice is none.
    """
    if chosen.kind is not None and chosen.kind not in NAMES:
        raise _wrong("kind", f"unknown kind; known: {', '.join(NAMES)}")
    content: Questions = (
        {} if chosen.questions is None else await _questions(engine, tenant, chosen.questions)
    )
    people = () if chosen.personas is None else await _people(engine, catalog, tenant, chosen.personas)
    traits = _traits(catalog, chosen)
    _check_names(catalog, people, chosen)
    columns = _pairs("column", chosen.column)
    for unknown in columns.keys() - COLUMNS.keys():
        raise _wrong("column", f"nothing is called {unknown!r}; known: {', '.join(COLUMNS)}")
    return Options(
        persona=chosen.persona,
        traits=traits,
        task=chosen.task,
        model=chosen.model,
        score=chosen.score,
        scale=None if chosen.scale is None else _scale(chosen.scale),
        columns=columns,
        gym_tasks=catalog.gym.tasks,
        items=paper_items(catalog.tasks.values(), catalog.dimensions.values()),
        questions=set_questions(content),
        personas=persona_words(people, catalog.instructions),
        built_in=catalog.personas,
        atomic_tasks=catalog.tasks,
        dimensions=catalog.dimensions,
    )


def _traits(catalog: Catalog, chosen: ImportChoices) -> dict[str, str]:
    """The chosen traits.

    Raises:
        InvalidJobError: If the service has no such dimension or level.
    """
    traits = _pairs("trait", chosen.trait)
    for n, (name, level) in enumerate(traits.items()):
        dimension = catalog.dimensions.get(name)
        if dimension is None:
            raise _wrong(f"trait/{n}", f"unknown dimension {name!r}; known: {', '.join(catalog.dimensions)}")
        if level not in dimension.scale.levels:
            raise _wrong(
                f"trait/{n}", f"{name} has the levels {', '.join(dimension.scale.levels)}, not {level!r}"
            )
    return traits


def _check_names(catalog: Catalog, people: Sequence[Persona], chosen: ImportChoices) -> None:
    """Check that the service has the chosen task, and the persona if one word names it.

    Raises:
        InvalidJobError: If it does not.
    """
    tasks = (*catalog.tasks, *catalog.gym.tasks)
    if chosen.task is not None and chosen.task not in tasks:
        raise _wrong(
            "task",
            f"unknown task {chosen.task!r}{did_you_mean(chosen.task, tasks) or '; known: ' + ', '.join(tasks)}",
        )
    ids = (*catalog.personas, *(each.id for each in people))
    named = chosen.persona
    if named is not None and PERSONA_ID.fullmatch(named) and named not in ids:
        meant = did_you_mean(named, ids) or "; GET /v1/personas lists the ids"
        raise _wrong("persona", f"there is no persona {named!r}{meant}. A description has more than one word")


async def _people(engine: AsyncEngine, catalog: Catalog, tenant: str, id_: str) -> Sequence[Persona]:
    try:
        found = await find_persona_set(engine, catalog, tenant, id_)
    except NotFoundError as error:
        raise _wrong("personas", f"there is no persona set {id_!r}") from error
    return [Persona(each.id, each.description, traits_of(each.traits)) for each in found.personas]


async def _questions(engine: AsyncEngine, tenant: str, id_: str) -> Questions:
    async with engine.connect() as connection:
        found = await sets.find_set(connection, QUESTION_SET, tenant, id_)
    if found is None:
        raise _wrong("questions", f"there is no question set {id_!r}")
    content: Questions = found.content
    return content


def _scale(text: str) -> ToolScale:
    try:
        return ToolScale.of(text)
    except ValueError as error:
        raise _wrong("scale", str(error)) from error


def _pairs(name: str, given: Sequence[str]) -> dict[str, str]:
    """The values of a choice, each ``key=value``, as an object."""
    pairs = [each.partition("=") for each in given]
    for n, (key, _, value) in enumerate(pairs):
        if not (key.strip() and value.strip()):
            raise _wrong(f"{name}/{n}", "must have the form name=value")
    found = {key.strip(): value.strip() for key, _, value in pairs}
    if len(found) < len(pairs):
        raise _wrong(name, "has a name twice")
    return found


def _wrong(choice: str, message: str) -> InvalidJobError:
    return InvalidJobError([FieldError(f"/query/{choice}", message)])
