"""The sets of a bundle: those that its job made or named."""

import asyncio
from typing import Any

from pydantic import ValidationError
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.jobs import jobs
from app.db.sets import sets
from app.domain.jobs.bundle import SETS, BundleSet
from app.domain.personagym.diversity import diversity
from app.domain.sets.contract import KeptSet
from app.domain.sets.kinds import PERSONA_SET, SetKind, kind_of
from app.services.results.bundle_file import told, wrong
from app.services.sets.sets import set_id


async def sets_of(connection: AsyncConnection, tenant: str, job_id: str) -> list[BundleSet]:
    """The sets that a job made or named."""
    job = await jobs.get_job(connection, tenant, job_id)
    made = set(() if job is None else job.made_sets)
    ids = sorted(await sets.sets_of_job(connection, tenant, job_id))
    found = []
    for id_ in ids:
        kind = kind_of(id_)
        kept = None if kind is None else await sets.find_set(connection, kind, tenant, id_)
        if kept is not None:
            found.append(BundleSet(id=id_, name=kept.name, content=kept.content, made=id_ in made))
    return found


async def write_set(
    connection: AsyncConnection, tenant: str, job_id: str, number: int, line: dict[str, Any]
) -> list[str]:
    """Keep a set of a bundle unless it is here, and note that the job made it; return its id if the job only named it."""
    kept, kind = await asyncio.to_thread(_read, line, number)
    await sets.keep_set(
        connection, kind, tenant, kept.id, kept.content, name=kept.name, posted=not kind.is_made
    )
    if not kept.made:
        return [kept.id]
    await sets.note_made(connection, kind, tenant, job_id, kept.id)
    await _measure(connection, kind, tenant, kept)
    return []


def _read(line: dict[str, Any], number: int) -> tuple[BundleSet, SetKind[KeptSet]]:
    """A set whose id is that of its content, and whose content can be shown."""
    try:
        kept = BundleSet.model_validate(line)
        kind = kind_of(kept.id)
        if kind is None:
            raise wrong(SETS, f"id: no set's begins with {kept.id.partition('_')[0][:20]!r}", number)
        kind.model.of(kept.id, kept.name, kept.content)
    except ValidationError as error:
        raise told(f"{SETS}/{number}", error) from error
    except TypeError as error:
        raise wrong(SETS, "content: must be an object", number) from error
    if kept.id != (expected := set_id(kind, kept.content)):
        raise wrong(SETS, f"id: the content's is {expected}, not {kept.id}", number)
    return kept, kind


async def _measure(connection: AsyncConnection, kind: SetKind[KeptSet], tenant: str, made: BundleSet) -> None:
    """Notes how alike personas are that a job made up."""
    if kind is not PERSONA_SET:
        return
    descriptions = [persona["description"] for persona in made.content]
    measured = await asyncio.to_thread(diversity, descriptions)
    if measured is not None:
        await sets.store_diversity(connection, tenant, made.id, measured.model_dump())
