"""What question sets and persona sets share: content-based ids, lists and usage."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.sets import exemplars, sets
from app.db.sets.sets import JobOfSet, SetSummary, Table
from app.domain.instruments.persona import Persona, traits_of
from app.domain.jobs.catalog import KeptSets
from app.domain.jobs.request import JobIn
from app.domain.jobs.rubrics import RubricContent
from app.services.idempotency import hash_of

QUESTION_SET, PERSONA_SET, RUBRIC_SET = "qset", "pset", "rset"
_PERSONA_SET_ID = re.compile(rf"{PERSONA_SET}_[0-9a-f]{{32}}")


def is_persona_set_id(name: str) -> bool:
    """Whether a name has the form of a kept persona set's id."""
    return _PERSONA_SET_ID.fullmatch(name) is not None


def set_id(prefix: str, content: object) -> str:
    """The id of a set: a hash of its content."""
    return f"{prefix}_{hash_of(content)[:32]}"


def made_set_id(made: Sequence[str], prefix: str) -> str | None:
    """The one of the sets that a job made that is of a kind; ``None`` where there is none."""
    return next((id_ for id_ in made if id_.startswith(f"{prefix}_")), None)


async def list_sets(
    engine: AsyncEngine, table: Table, tenant: str, *, limit: int, after: tuple[datetime, str] | None
) -> list[SetSummary]:
    """A tenant's sets, newest first; see :func:`app.db.sets.sets.list_sets`."""
    async with engine.connect() as connection:
        return await sets.list_sets(connection, table, tenant, limit=limit, after=after)


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
        people = await sets.persona_sets(connection, tenant, named)
        asked = wanted.questions if isinstance(wanted.questions, str) else None
        found = None if asked is None else await sets.question_set(connection, tenant, asked)
        examples = await exemplars.keys_of_set(connection, tenant, asked or "")
        words = None if wanted.rubrics is None else await sets.rubric_set(connection, tenant, wanted.rubrics)
    return KeptSets(
        {id_: tuple(map(persona_of, each.content)) for id_, each in people.items()},
        {} if asked is None or found is None else {asked: found[1]},
        {} if wanted.rubrics is None or words is None else {wanted.rubrics: RubricContent(**words[1])},
        exemplars=examples,
    )


def persona_of(kept: Mapping[str, Any]) -> Persona:
    """A persona as sets keep it."""
    return Persona(kept["id"], kept["description"], traits_of(kept["traits"]))
