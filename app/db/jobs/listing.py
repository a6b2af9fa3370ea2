"""Lists of jobs: which, in which order, and the columns by which they are listed."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

from sqlalchemy import ARRAY, ColumnElement, Select, Text, cast, func, literal_column, select, text
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.orm import InstrumentedAttribute

from app.db.jobs.jobs import COLUMNS, JobRow, job_row
from app.db.pages import page_of
from app.db.tables import Job, JobResult
from app.domain.jobs.listing import Archived, JobFilter, JobSort

Key: TypeAlias = datetime | str | float
"""What a list is ordered by, before the id."""

# Of the indexes, which would not be used with parameters in their place.
_UNKNOWN: ColumnElement[float] = literal_column("-1")
_NAME_LENGTH: ColumnElement[int] = literal_column("100")
_KEYS: Mapping[str, ColumnElement[Any] | InstrumentedAttribute[datetime]] = {
    "created": Job.created_at,
    "name": func.lower(func.left(func.coalesce(Job.name, Job.id), _NAME_LENGTH)),
    "cost": func.coalesce(Job.usd, _UNKNOWN),
    "score": func.coalesce(Job.score, _UNKNOWN),
}
_SEARCHED = func.concat_ws(
    "\n",
    Job.name,
    Job.id,
    Job.notes,
    func.array_to_string(Job.tags, "\n"),
    func.array_to_string(Job.models, "\n"),
)


class Listed(NamedTuple):
    """A job of a list, and what it is ordered by there."""

    job: JobRow
    key: Key


class Taken(NamedTuple):
    """What jobs' calls took, in US dollars, and how many of them have no known price."""

    usd: float | None
    unpriced_calls: int


async def list_jobs(
    connection: AsyncConnection,
    tenant: str,
    wanted: JobFilter,
    *,
    limit: int,
    sort: JobSort = "-created",
    after: tuple[Key, str] | None = None,
) -> list[Listed]:
    """A tenant's jobs.

    Args:
        connection: Where to look.
        tenant: Whose.
        wanted: Which.
        limit: At most so many.
        sort: In which order; what is not known comes before all that is.
        after: Key and id of the last job of the page before.
    """
    descending = sort.startswith("-")
    key = _KEYS[sort.removeprefix("-")]
    query = (
        select(*COLUMNS, key.label("key"))
        .outerjoin(JobResult, JobResult.job_id == Job.id)
        .where(Job.tenant == tenant)
    )
    query = page_of(query, key, Job.id, limit=limit, after=after, descending=descending)
    rows = await connection.execute(_only(query, wanted))
    return [Listed(job_row(row[:-1]), row.key) for row in rows]


def _only(query: Select[Any], wanted: JobFilter) -> Select[Any]:
    """The query with the conditions of a filter."""
    if wanted.archived is not Archived.ANY:
        archived = Job.archived_at.is_not(None)
        query = query.where(archived if wanted.archived is Archived.TRUE else ~archived)
    if wanted.status is not None:
        query = query.where(Job.status == wanted.status.value)
    if wanted.metadata:
        query = query.where(Job.metadata_.contains(dict(wanted.metadata)))
    if wanted.name is not None:
        query = query.where(Job.name.icontains(wanted.name, autoescape=True))
    if wanted.text is not None:
        query = query.where(_SEARCHED.icontains(wanted.text, autoescape=True))
    if wanted.tags:
        query = query.where(Job.tags.bool_op("@>")(cast(list(wanted.tags), ARRAY(Text))))
    if wanted.model is not None:
        query = query.where(Job.models.bool_op("@>")(cast([wanted.model], ARRAY(Text))))
    if wanted.tasks is not None:
        query = query.where(Job.tasks.bool_op("&&")(cast(list(wanted.tasks), ARRAY(Text))))
    return query


async def tags_of(connection: AsyncConnection, tenant: str) -> list[str]:
    """The tags that a tenant's jobs have, each once."""
    rows = await connection.execute(
        select(func.unnest(Job.tags).label("tag"))
        .where(Job.tenant == tenant, Job.tags != text("'{}'"))
        .distinct()
    )
    return sorted(row.tag for row in rows)


async def taken(connection: AsyncConnection, tenant: str, job_ids: Sequence[str]) -> dict[str, Taken]:
    """What jobs' calls took so far; nothing of those without any."""
    rows = await connection.execute(
        text(
            "SELECT job_id, sum(usd), sum(unpriced)::bigint FROM ("
            " SELECT s.job_id, u.usd, u.unpriced_calls AS unpriced FROM shard_usage u JOIN shards s ON s.id = u.shard_id"
            "  WHERE s.job_id = ANY(:jobs) AND s.tenant = :tenant AND (s.done OR s.parked)"
            " UNION ALL SELECT s.job_id, c.usd, (c.usd IS NULL AND c.maybe_paid)::int FROM calls c"
            "  JOIN shards s ON s.id = c.shard_id WHERE s.job_id = ANY(:jobs) AND s.tenant = :tenant"
            "  AND NOT s.done AND NOT s.parked AND s.lease_token > 0) parts GROUP BY job_id"
        ),
        {"jobs": list(job_ids), "tenant": tenant},
    )
    return {job_id: Taken(usd, unpriced) for job_id, usd, unpriced in rows}


async def note_figures(
    connection: AsyncConnection,
    tenant: str,
    job_id: str,
    scores: Sequence[Mapping[str, Any]],
    warnings: Sequence[Mapping[str, Any]],
) -> None:
    """Store the figures by which a job that ends is listed, and its warnings."""
    took = (await taken(connection, tenant, [job_id])).get(job_id, Taken(0, 0))
    values = [score["value"] for score in scores if score["value"] is not None]
    await connection.execute(
        text(
            "UPDATE jobs SET scores = CAST(:scores AS jsonb), score = :score, usd = :usd,"
            " warnings = CAST(:warnings AS jsonb), unpriced_calls = :unpriced WHERE id = :job AND tenant = :tenant"
        ),
        {"scores": json.dumps(list(scores)), "score": max(values, default=None)}
        | {"warnings": json.dumps(list(warnings))}
        | {"usd": took.usd, "unpriced": took.unpriced_calls, "job": job_id, "tenant": tenant},
    )


async def note_parts(connection: AsyncConnection, tenant: str, job_id: str) -> None:
    """Keeps the models and tasks of a job, as its cells have them."""
    await connection.execute(
        text(
            "UPDATE jobs SET models = ARRAY(SELECT model FROM cells WHERE job_id = :job AND tenant = :tenant"
            "  GROUP BY model ORDER BY min(ordinal)),"
            " tasks = ARRAY(SELECT task FROM cells WHERE job_id = :job AND tenant = :tenant"
            "  GROUP BY task ORDER BY min(ordinal)) WHERE id = :job AND tenant = :tenant"
        ),
        {"job": job_id, "tenant": tenant},
    )
