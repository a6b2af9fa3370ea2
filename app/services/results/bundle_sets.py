"""The sets of a bundle: those that its job made or named."""

from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.jobs import jobs
from app.db.sets import sets
from app.domain.jobs.bundle import BundleSet
from app.domain.sets.kinds import KINDS, kind_of


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
    connection: AsyncConnection, tenant: str, job_id: str, found: dict[str, Any]
) -> list[str]:
    """Keep a set that :func:`read_set` returned, and note that the job made it; return its id if the job only named it."""
    id_ = found["id"]
    kind = next(each for each in KINDS if each.prefix == id_.partition("_")[0])
    await sets.keep_set(
        connection, kind, tenant, id_, found["content"], name=found["name"], posted=not kind.is_made
    )
    if not found["made"]:
        return [id_]
    await sets.note_made(connection, kind, tenant, job_id, id_)
    if found["diversity"] is not None:
        await sets.store_diversity(connection, tenant, id_, found["diversity"])
    return []
