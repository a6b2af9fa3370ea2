"""Question sets, persona sets and rubric sets: immutable, named by a hash of their content, and which jobs have to do with them.

A set that somebody posted stays. One that only came of jobs goes with the last of them.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import case, func, select, text, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.sets.tables import JobSet, PersonaSet, QuestionSet, RubricSet

Table = Literal["question_sets", "persona_sets", "rubric_sets"]
TABLES: tuple[Table, ...] = ("question_sets", "persona_sets", "rubric_sets")


@dataclass(frozen=True, slots=True)
class SetSummary:
    """What a list shows of a set.

    Attributes:
        id: The set's id.
        name: For people.
        created_at: When its content was first kept.
        personas: How many personas it has, or has questions for.
        questions: How many questions; 0 for a persona set.
        tasks: How many tasks a rubric set has words for; else 0.
    """

    id: str
    name: str | None
    created_at: datetime
    personas: int
    questions: int
    tasks: int


@dataclass(frozen=True, slots=True)
class StoredPersonaSet:
    """A row of ``persona_sets``."""

    id: str
    name: str | None
    content: list[dict[str, Any]]
    diversity: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class JobOfSet:
    """A job that made a set, or names it."""

    id: str
    name: str | None
    status: str
    created_at: datetime
    made: bool


async def keep_question_set(
    connection: AsyncConnection,
    tenant: str,
    set_id: str,
    content: Mapping[str, Any],
    *,
    name: str | None = None,
    posted: bool,
) -> None:
    """Keeps a question set; the same content is kept once, see :func:`_keep` for its name."""
    await _keep(
        connection,
        QuestionSet,
        {"tenant": tenant, "id": set_id, "name": name, "content": content, "posted": posted},
    )


async def keep_persona_set(
    connection: AsyncConnection,
    tenant: str,
    set_id: str,
    content: Sequence[Mapping[str, Any]],
    *,
    name: str | None = None,
    posted: bool,
) -> None:
    """Keeps a persona set; the same content is kept once, see :func:`_keep` for its name."""
    values = {"tenant": tenant, "id": set_id, "name": name, "content": list(content), "posted": posted}
    await _keep(connection, PersonaSet, values)


async def keep_rubric_set(
    connection: AsyncConnection, tenant: str, set_id: str, content: Mapping[str, Any], *, name: str | None
) -> None:
    """Keeps a rubric set; the same content is kept once, see :func:`_keep` for its name."""
    values = {"tenant": tenant, "id": set_id, "name": name, "content": dict(content), "posted": True}
    await _keep(connection, RubricSet, values)


async def _keep(
    connection: AsyncConnection, table: type[QuestionSet | PersonaSet | RubricSet], values: Mapping[str, Any]
) -> None:
    """Writes a set, or marks the one that is there; either way its row is locked against its removal.

    It has the first name under which somebody posted it. Only where nobody did, it has the first job's, which is gone
    with the set when no job has to do with it any more.
    """
    statement = upsert(table).values(dict(values))
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


async def note_made(connection: AsyncConnection, tenant: str, job_id: str, set_id: str, kind: str) -> None:
    """Notes that a job made a set, in place of an earlier one of the kind; that one goes unless it is in use.

    Args:
        connection: Where.
        tenant: Whose job it is.
        job_id: Which job; it is locked.
        set_id: Which set.
        kind: What the ids of such sets begin with.
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
        {"job": job_id, "kind": kind, "set": set_id},
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


async def unmeasured_personas(
    connection: AsyncConnection, tenant: str, job_id: str
) -> list[StoredPersonaSet]:
    """The persona sets that a job made and nobody has measured yet."""
    rows = await connection.execute(
        select(PersonaSet.id, PersonaSet.name, PersonaSet.content, PersonaSet.diversity)
        .join(JobSet, (JobSet.set_id == PersonaSet.id) & (JobSet.tenant == PersonaSet.tenant))
        .where(
            PersonaSet.tenant == tenant, JobSet.job_id == job_id, JobSet.made, PersonaSet.diversity.is_(None)
        )
    )
    return [StoredPersonaSet(*row) for row in rows]


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
    for table in TABLES if set_ids else ():
        await connection.execute(
            text(
                "INSERT INTO job_sets (job_id, set_id, tenant, made) SELECT :job, id, :tenant, false"
                f" FROM (SELECT id FROM {table} WHERE tenant = :tenant AND id = ANY(:ids) ORDER BY id FOR SHARE)"
                " ON CONFLICT DO NOTHING"
            ),
            {"job": job_id, "tenant": tenant, "ids": list(set_ids)},
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
    for table in ("question_sets", "persona_sets") if set_ids else ():
        doomed = f"FROM {table} s WHERE s.tenant = :tenant AND s.id = ANY(:ids) AND NOT s.posted"
        values = {"tenant": tenant, "ids": list(set_ids)}
        await connection.execute(text(f"SELECT s.id {doomed} ORDER BY s.id FOR UPDATE"), values)
        unused = "NOT EXISTS (SELECT FROM job_sets j WHERE j.tenant = s.tenant AND j.set_id = s.id)"
        await connection.execute(text(f"DELETE {doomed} AND {unused}"), values)


async def question_set(
    connection: AsyncConnection, tenant: str, set_id: str
) -> tuple[str | None, dict[str, Any]] | None:
    """Name and content of a tenant's question set: questions by task by persona description."""
    rows = await connection.execute(
        select(QuestionSet.name, QuestionSet.content).where(
            QuestionSet.tenant == tenant, QuestionSet.id == set_id
        )
    )
    row = rows.first()
    return None if row is None else (row.name, row.content)


async def rubric_set(
    connection: AsyncConnection, tenant: str, set_id: str
) -> tuple[str | None, dict[str, Any]] | None:
    """Name and content of a tenant's rubric set."""
    rows = await connection.execute(
        select(RubricSet.name, RubricSet.content).where(RubricSet.tenant == tenant, RubricSet.id == set_id)
    )
    row = rows.first()
    return None if row is None else (row.name, row.content)


async def persona_sets(
    connection: AsyncConnection, tenant: str, set_ids: Collection[str]
) -> dict[str, StoredPersonaSet]:
    """A tenant's persona sets by id; those that there are not are missing."""
    rows = await connection.execute(
        select(PersonaSet.id, PersonaSet.name, PersonaSet.content, PersonaSet.diversity).where(
            PersonaSet.tenant == tenant, PersonaSet.id.in_(set_ids)
        )
    )
    return {row.id: StoredPersonaSet(*row) for row in rows}


async def personas_asked(connection: AsyncConnection, tenant: str, set_id: str) -> list[str]:
    """The descriptions of the personas that a question set has questions for; none if there is no such set."""
    rows = await connection.execute(
        text(
            "SELECT jsonb_object_keys(content) AS who FROM question_sets WHERE tenant = :tenant AND id = :id"
        ),
        {"tenant": tenant, "id": set_id},
    )
    return [row.who for row in rows]


_SIZES = {
    "question_sets": (
        "(SELECT count(*) FROM jsonb_object_keys(content)), (SELECT coalesce(sum(jsonb_array_length(t.value)), 0)"
        " FROM jsonb_each(content) p, jsonb_each(p.value) t), 0"
    ),
    "persona_sets": "jsonb_array_length(content), 0, 0",
    "rubric_sets": "0, 0, (SELECT count(*) FROM jsonb_object_keys(content->'tasks'))",
}


async def list_sets(
    connection: AsyncConnection, table: Table, tenant: str, *, limit: int, after: tuple[datetime, str] | None
) -> list[SetSummary]:
    """A tenant's sets, newest first.

    Args:
        connection: Where to look.
        table: Of which kind.
        tenant: Whose.
        limit: At most so many.
        after: (created_at, id) of the last set of the page before.
    """
    values: dict[str, object] = {"tenant": tenant, "limit": limit}
    where = "tenant = :tenant"
    if after is not None:
        where += " AND (created_at, id) < (:moment, :id)"
        values |= {"moment": after[0], "id": after[1]}
    rows = await connection.execute(
        text(
            f"SELECT id, name, created_at, {_SIZES[table]} FROM {table} WHERE {where}"
            " ORDER BY created_at DESC, id DESC LIMIT :limit"
        ),
        values,
    )
    return [SetSummary(id_, name, at, *map(int, sizes)) for id_, name, at, *sizes in rows]
