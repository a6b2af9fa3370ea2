"""The sets of a bundle: those that its job made or named."""

from typing import Any

from pydantic import ValidationError
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.jobs import jobs
from app.db.sets import sets
from app.domain.jobs.bundle import SETS, BundleSet
from app.domain.personagym.diversity import diversity
from app.domain.sets.kinds import KINDS, PERSONA_SET, kind_of
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


def read_set(line: dict[str, Any], number: int) -> dict[str, Any]:
    """Return a set and, of personas that a job made, how alike they are.

    Raises:
        InvalidJobError: If its id is not that of its content, or its content can't be shown.
    """
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
    alike = kept.made and kind is PERSONA_SET
    measured = diversity([persona["description"] for persona in kept.content]) if alike else None
    return kept.model_dump() | {"diversity": None if measured is None else measured.model_dump()}
