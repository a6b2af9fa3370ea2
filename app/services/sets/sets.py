"""What all kinds of sets share: content-based ids, lists and usage."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.sets import exemplars, sets
from app.db.sets.sets import JobOfSet, SetSummary
from app.domain.instruments.persona import Persona, traits_of
from app.domain.jobs.catalog import KeptSets
from app.domain.jobs.request import JobIn
from app.domain.jobs.rubrics import RubricContent
from app.domain.sets.contract import KeptSet
from app.domain.sets.kinds import PERSONA_SET, QUESTION_SET, RUBRIC_SET, SetKind
from app.services.errors import NotFoundError

Shown = TypeVar("Shown", bound=KeptSet)


def is_persona_set_id(name: str) -> bool:
    """Whether a name has the form of a kept persona set's id."""
    return re.fullmatch(PERSONA_SET.id_form, name) is not None


def made_set_id(made: Sequence[str], kind: SetKind[KeptSet]) -> str | None:
    """The one of the sets that a job made that is of a kind; ``None`` where there is none."""
    return next((id_ for id_ in made if id_.startswith(f"{kind.prefix}_")), None)


async def find_set(engine: AsyncEngine, kind: SetKind[Shown], tenant: str, id_: str) -> Shown:
    """A kept set.

    Raises:
        NotFoundError: If the tenant has none of that id.
    """
    async with engine.connect() as connection:
        found = await sets.find_set(connection, kind, tenant, id_)
    if found is None:
        raise NotFoundError(f"{kind.noun} {id_} not found")
    return kind.model.of(id_, found.name, found.content)


async def list_sets(
    engine: AsyncEngine,
    kind: SetKind[KeptSet],
    tenant: str,
    *,
    limit: int,
    after: tuple[datetime, str] | None,
) -> list[SetSummary]:
    """A tenant's sets of a kind, newest first; see :func:`app.db.sets.sets.list_sets`."""
    async with engine.connect() as connection:
        return await sets.list_sets(connection, kind, tenant, limit=limit, after=after)


async def jobs_of_set(engine: AsyncEngine, tenant: str, set_id: str, limit: int) -> list[JobOfSet]:
    """The newest jobs that made a set or name it."""
    async with engine.connect() as connection:
        return await sets.jobs_of_set(connection, tenant, set_id, limit)


def sets_named(wanted: JobIn) -> list[str]:
    """The ids of the kept sets that a job names, whether there are such sets or not."""
    named = [name for name in wanted.personas if isinstance(name, str) and is_persona_set_id(name)]
    named += [wanted.questions] if isinstance(wanted.questions, str) else []
    return named if wanted.rubrics is None else [*named, wanted.rubrics]


async def kept_sets(engine: AsyncEngine, tenant: str, wanted: JobIn) -> KeptSets:
    """The question set, the persona sets and the rubric set that a job names, as far as there are any."""
    named = sets_named(wanted)
    if not named:
        return KeptSets()
    async with engine.connect() as connection:
        people = await sets.find_sets(connection, PERSONA_SET, tenant, named)
        asked = wanted.questions if isinstance(wanted.questions, str) else ""
        found = await sets.find_set(connection, QUESTION_SET, tenant, asked)
        examples = await exemplars.keys_of_set(connection, tenant, asked)
        words = await sets.find_set(connection, RUBRIC_SET, tenant, wanted.rubrics or "")
    return KeptSets(
        {id_: tuple(map(persona_of, each.content)) for id_, each in people.items()},
        {} if found is None else {asked: found.content},
        {} if words is None else {words.id: RubricContent(**words.content)},
        exemplars=examples,
    )


def persona_of(kept: Mapping[str, Any]) -> Persona:
    """A persona as sets keep it."""
    return Persona(kept["id"], kept["description"], traits_of(kept["traits"]))
