"""Question sets, persona sets and rubric sets: immutable, named by a hash of their content, and which jobs have to do with them.

A set that somebody posted stays. One that only came of jobs goes with the last of them.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, case, func, literal_column, null, select, text, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.pages import page_of
from app.db.sets import tables
from app.db.sets.tables import JobSet, PersonaSet, QuestionSet, RubricSet
from app.domain.sets.contract import KeptSet
from app.domain.sets.kinds import KINDS, PERSONA_SET, QUESTION_SET, RUBRIC_SET, SetKind

_TABLES: Mapping[SetKind[KeptSet], type[tables.KeptSet]] = {
    QUESTION_SET: QuestionSet,
    PERSONA_SET: PersonaSet,
    RUBRIC_SET: RubricSet,
}
_SIZES: Mapping[SetKind[KeptSet], tuple[str, ...]] = {
    QUESTION_SET: (
        "(SELECT count(*) FROM jsonb_object_keys(content))",
        "(SELECT coalesce(sum(jsonb_array_length(t.value)), 0) FROM jsonb_each(content) p, jsonb_each(p.value) t)",
    ),
    PERSONA_SET: ("jsonb_array_length(content)",),
    RUBRIC_SET: ("(SELECT count(*) FROM jsonb_object_keys(content->'tasks'))",),
}
"""What a list counts of a set, as its kind names it."""


@dataclass(frozen=True, slots=True)
class SetSummary:
    """What a list shows of a set.

    Attributes:
        id: The set's id.
        name: For people.
        created_at: When its content was first kept.
        sizes: How many of each thing it has.
    """

    id: str
    name: str | None
    created_at: datetime
    sizes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class StoredSet:
    """A set as it is kept; ``diversity`` only of personas that a job made up."""

    id: str
    name: str | None
    content: Any
    diversity: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class JobOfSet:
    """A job that made a set, or names it."""

    id: str
    name: str | None
    status: str
    created_at: datetime
    made: bool


async def keep_set(
    connection: AsyncConnection,
    kind: SetKind[KeptSet],
    tenant: str,
    set_id: str,
    content: Any,
    *,
    name: str | None = None,
    posted: bool,
) -> None:
    """Writes a set, or marks the one that is there; either way its row is locked against its removal.

    It has the first name under which somebody posted it. Only where nobody did, it has the first job's, which is gone
    with the set when no job has to do with it any more.
    """
    table = _TABLES[kind]
    statement = upsert(table).values(tenant=tenant, id=set_id, name=name, content=content, posted=posted)
    new = statement.excluded
    changed = {
        "posted": table.posted | new.posted,
        "name": case(
            (table.posted == new.posted, func.coalesce(table.name, new.name)),
            (new.posted, new.name),
            else_=table.name,
        ),
    }
    await connection.execute(statement.on_conflict_do_update(index_elements=["tenant", "id"], set_=changed))


async def note_made(
    connection: AsyncConnection, kind: SetKind[KeptSet], tenant: str, job_id: str, set_id: str
) -> None:
    """Notes that a job made a set, in place of an earlier one of the kind; that one goes unless it is in use.

    Args:
        connection: Where.
        kind: Of which kind the set is.
        tenant: Whose job it is.
        job_id: Which job; it is locked.
        set_id: Which set.
    """
    statement = upsert(JobSet).values(job_id=job_id, set_id=set_id, tenant=tenant, made=True)
    await connection.execute(
        statement.on_conflict_do_update(index_elements=["job_id", "set_id"], set_={"made": True})
    )
    earlier = await connection.execute(
        text(
            "UPDATE job_sets SET made = false WHERE job_id = :job AND made"
            " AND starts_with(set_id, :kind || '_') AND set_id <> :set RETURNING set_id"
        ),
        {"job": job_id, "kind": kind.prefix, "set": set_id},
    )
    replaced = [row.set_id for row in earlier]
    if replaced:
        await connection.execute(
            text(
                "DELETE FROM job_sets s USING jobs j WHERE j.id = s.job_id AND s.job_id = :job"
                " AND s.set_id = ANY(:replaced) AND position(s.set_id IN j.request::text) = 0"  # not named as well
            ),
            {"job": job_id, "replaced": replaced},
        )
        await remove_unused(connection, tenant, replaced)


async def unmeasured_personas(connection: AsyncConnection, tenant: str, job_id: str) -> list[StoredSet]:
    """The persona sets that a job made and nobody has measured yet."""
    rows = await connection.execute(
        select(PersonaSet.id, PersonaSet.name, PersonaSet.content, PersonaSet.diversity)
        .join(JobSet, (JobSet.set_id == PersonaSet.id) & (JobSet.tenant == PersonaSet.tenant))
        .where(
            PersonaSet.tenant == tenant, JobSet.job_id == job_id, JobSet.made, PersonaSet.diversity.is_(None)
        )
    )
    return [StoredSet(*row) for row in rows]


async def store_diversity(
    connection: AsyncConnection, tenant: str, set_id: str, diversity: Mapping[str, Any]
) -> None:
    """Notes how alike a set's personas are, if the set is still there."""
    await connection.execute(
        update(PersonaSet)
        .where(PersonaSet.tenant == tenant, PersonaSet.id == set_id)
        .values(diversity=dict(diversity))
    )


async def note_named(connection: AsyncConnection, tenant: str, job_id: str, set_ids: Collection[str]) -> None:
    """Notes which sets a job names; one that was removed in the meantime is left out (the job has a copy)."""
    for table, ids in _by_table(set_ids):
        await connection.execute(
            text(
                "INSERT INTO job_sets (job_id, set_id, tenant, made) SELECT :job, id, :tenant, false"
                f" FROM (SELECT id FROM {table} WHERE tenant = :tenant AND id = ANY(:ids) ORDER BY id FOR SHARE)"
                " ON CONFLICT DO NOTHING"
            ),
            {"job": job_id, "tenant": tenant, "ids": ids},
        )


async def sets_of_job(connection: AsyncConnection, tenant: str, job_id: str) -> list[str]:
    """The sets that a job has to do with."""
    rows = await connection.execute(
        select(JobSet.set_id).where(JobSet.job_id == job_id, JobSet.tenant == tenant)
    )
    return [row.set_id for row in rows]


async def jobs_of_set(connection: AsyncConnection, tenant: str, set_id: str, limit: int) -> list[JobOfSet]:
    """The newest jobs that have to do with a set."""
    rows = await connection.execute(
        text(
            "SELECT j.id, j.name, j.status, j.created_at, s.made FROM job_sets s JOIN jobs j ON j.id = s.job_id"
            " WHERE s.tenant = :tenant AND j.tenant = :tenant AND s.set_id = :set"
            " ORDER BY j.created_at DESC, j.id DESC LIMIT :limit"
        ),
        {"tenant": tenant, "set": set_id, "limit": limit},
    )
    return [JobOfSet(*row) for row in rows]


async def remove_unused(connection: AsyncConnection, tenant: str, set_ids: Collection[str]) -> None:
    """Removes those of these sets that nobody posted and no job has to do with any more.

    The rows are locked first, so that a job that keeps or names one at this moment is seen.
    """
    for table, ids in _by_table(set_ids):
        doomed = f"FROM {table} s WHERE s.tenant = :tenant AND s.id = ANY(:ids) AND NOT s.posted"
        values = {"tenant": tenant, "ids": ids}
        await connection.execute(text(f"SELECT s.id {doomed} ORDER BY s.id FOR UPDATE"), values)
        unused = "NOT EXISTS (SELECT FROM job_sets j WHERE j.tenant = s.tenant AND j.set_id = s.id)"
        await connection.execute(text(f"DELETE {doomed} AND {unused}"), values)


def _by_table(set_ids: Collection[str]) -> Iterator[tuple[str, list[str]]]:
    """The tables in which sets are, always in the same order, with their ids."""
    for kind in KINDS:
        ids = [id_ for id_ in set_ids if id_.startswith(f"{kind.prefix}_")]
        if ids:
            yield _TABLES[kind].__tablename__, ids


async def find_sets(
    connection: AsyncConnection, kind: SetKind[KeptSet], tenant: str, set_ids: Collection[str]
) -> dict[str, StoredSet]:
    """A tenant's sets of a kind by id; those that there are not are missing."""
    table = _TABLES[kind]
    diversity = table.diversity if issubclass(table, PersonaSet) else null()
    rows = await connection.execute(
        select(table.id, table.name, table.content, diversity).where(
            table.tenant == tenant, table.id.in_(set_ids)
        )
    )
    return {row.id: StoredSet(*row) for row in rows}


async def find_set(
    connection: AsyncConnection, kind: SetKind[KeptSet], tenant: str, set_id: str
) -> StoredSet | None:
    """A tenant's set, if there is one of that id."""
    return (await find_sets(connection, kind, tenant, [set_id])).get(set_id)


async def personas_asked(connection: AsyncConnection, tenant: str, set_id: str) -> list[str]:
    """The descriptions of the personas that a question set has questions for; none if there is no such set."""
    rows = await connection.execute(
        text(
            "SELECT jsonb_object_keys(content) AS who FROM question_sets WHERE tenant = :tenant AND id = :id"
        ),
        {"tenant": tenant, "id": set_id},
    )
    return [row.who for row in rows]


async def list_sets(
    connection: AsyncConnection,
    kind: SetKind[KeptSet],
    tenant: str,
    *,
    limit: int,
    after: tuple[datetime, str] | None,
) -> list[SetSummary]:
    """A tenant's sets of a kind, newest first; ``after`` is (created_at, id) of the last one of the page before."""
    table = _TABLES[kind]
    sizes: list[ColumnElement[int]] = [literal_column(size) for size in _SIZES[kind]]
    query = select(table.id, table.name, table.created_at, *sizes).where(table.tenant == tenant)
    rows = await connection.execute(page_of(query, table.created_at, table.id, limit=limit, after=after))
    return [
        SetSummary(id_, name, at, dict(zip(kind.sizes, map(int, counted), strict=True)))
        for id_, name, at, *counted in rows
    ]
