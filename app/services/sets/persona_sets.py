"""Persona sets: immutable, named by their content; brought along by users, or made up by a job of their own."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.jobs import preparations
from app.db.jobs.preparations import StoredStep
from app.db.sets import sets
from app.domain.errors import FieldError, InvalidJobError
from app.domain.instruments.persona import Persona
from app.domain.jobs.catalog import Catalog
from app.domain.jobs.imports import PersonaFormat, PersonasRead, read_persona_list, read_personas
from app.domain.sets.contract import PersonaSet
from app.services.errors import NotFoundError
from app.services.long_texts import on_a_thread
from app.services.sets.sets import PERSONA_SET, is_persona_set_id, set_id

People = list[dict[str, Any]]
"""Personas with id, description and traits."""


def made_up(descriptions: Sequence[str]) -> People:
    """Generated personas as a set's content; the same description has the same id in every set."""
    return [
        {
            "id": f"persona-{hashlib.sha256(text.encode()).hexdigest()[:12]}",
            "description": text,
            "traits": {},
        }
        for text in descriptions
    ]


async def made_by(connection: AsyncConnection, tenant: str, job_id: str) -> StoredStep | None:
    """The step in which a job makes up personas, as far as it is; ``None`` before the first ask."""
    steps = await preparations.steps_of_persona(connection, tenant, job_id, 0, "")
    return next((step for step in steps if step.kind == "personas"), None)


async def keep_file(
    engine: AsyncEngine, catalog: Catalog, tenant: str, name: str | None, text: str, form: PersonaFormat
) -> PersonaSet:
    """Keeps a file's personas as a set and returns it.

    Raises:
        InvalidJobError: With one entry for each thing wrong.
    """
    read = partial(_read, lambda: read_personas(text, form), catalog)
    return await _keep(engine, catalog, tenant, name, await on_a_thread(tenant, read))


async def keep_personas(
    engine: AsyncEngine, catalog: Catalog, tenant: str, name: str | None, personas: object, pointer: str
) -> PersonaSet:
    """Keeps personas as a set and returns it.

    Args:
        engine: Where to.
        catalog: Knows the built-in personas, which can be named by their ids.
        tenant: Whose.
        name: For people.
        personas: The parsed list or mapping.
        pointer: Where it stands in the body.

    Raises:
        InvalidJobError: With one entry for each thing wrong.
    """

    def listed() -> PersonasRead:
        known = [_built_in(value, catalog) for value in personas] if isinstance(personas, list) else personas
        return read_persona_list(known, pointer)

    read = partial(_read, listed, catalog)
    return await _keep(engine, catalog, tenant, name, await on_a_thread(tenant, read))


def _built_in(value: object, catalog: Catalog) -> object:
    """A built-in persona in place of its id; anything else as it is."""
    persona = catalog.personas.get(value) if isinstance(value, str) else None
    return value if persona is None else _content(persona)


def _read(read: Callable[[], PersonasRead], catalog: Catalog) -> tuple[str, People]:
    """A set's id and content; CPU only."""
    found = read()
    errors = [*found.errors, *_conflicts(found, catalog)]
    if errors:
        raise InvalidJobError(errors)
    content: People = [_content(persona) for persona in found.personas]
    return set_id(PERSONA_SET, content), content


async def _keep(
    engine: AsyncEngine, catalog: Catalog, tenant: str, name: str | None, read: tuple[str, People]
) -> PersonaSet:
    id_, content = read
    async with engine.begin() as connection:
        await sets.keep_persona_set(connection, tenant, id_, content, name=name, posted=True)
    return await find_persona_set(engine, catalog, tenant, id_)


def _conflicts(read: PersonasRead, catalog: Catalog) -> list[FieldError]:
    """Personas that no job could take because their ids mean others, and sets in the place of personas."""
    found = []
    for persona, pointer in zip(read.personas, read.pointers, strict=True):
        known = catalog.personas.get(persona.id)
        other = known is not None and _content(known) != _content(persona)
        if other or persona.id in catalog.persona_sets:
            message = f"the id {persona.id!r} is that of a built-in persona or set; choose another"
            found.append(FieldError(f"{pointer}/id", message))
        if persona.description in catalog.persona_sets or is_persona_set_id(persona.description):
            found.append(
                FieldError(
                    pointer, f"{persona.description!r} is a persona set; a set may only contain personas"
                )
            )
    return found


async def find_persona_set(engine: AsyncEngine, catalog: Catalog, tenant: str, id_: str) -> PersonaSet:
    """A persona set, kept or built in.

    Raises:
        NotFoundError: If the tenant has none of that id.
    """
    if id_ in catalog.persona_sets:
        people = [_content(catalog.personas[persona]) for persona in catalog.persona_sets[id_]]
        return _shown(id_, None, people, None, built_in=True)
    async with engine.connect() as connection:
        found = await sets.persona_sets(connection, tenant, [id_])
    if id_ not in found:
        raise NotFoundError(f"persona set {id_} not found")
    kept = found[id_]
    return _shown(id_, kept.name, kept.content, kept.diversity, built_in=False)


def _content(persona: Persona) -> dict[str, Any]:
    return {
        "id": persona.id,
        "description": persona.description,
        "traits": {trait.dimension: trait.level for trait in persona.traits},
    }


def _shown(
    id_: str, name: str | None, people: People, measured: Mapping[str, Any] | None, *, built_in: bool
) -> PersonaSet:
    return PersonaSet.model_validate(
        {"id": id_, "name": name, "built_in": built_in, "diversity": measured, "personas": people}
    )


def generation_json(
    step: StoredStep | None, wanted: int, kept: str | None, measured: object
) -> dict[str, Any]:
    """What came of a job that makes up personas, for its results.

    Args:
        step: The step in which it makes them up; ``None`` before the first ask.
        wanted: How many it shall make up.
        kept: The id of the set, once there is one.
        measured: The set's diversity.
    """
    return {
        "id": kept,
        "wanted": wanted,
        "found": 0 if step is None else len(step.content),
        "asks": 0 if step is None else step.ask,
        "dropped": {} if step is None else dict(step.dropped_by),
        "error": None if step is None else step.error,
        "diversity": measured,
    }
