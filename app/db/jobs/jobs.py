"""Jobs: finding, listing, moving from state to state, deleting.

Whatever serves a client names its tenant, at least to find or lock the job by which it then goes. What workers and the
sweeper use acts for all tenants: they go by the ids of shards and jobs, which they are told by our own rows alone.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Double, bindparam, cast, delete, func, null, select, text, update
from sqlalchemy.dialects.postgresql import aggregate_order_by
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.execution import response_cache
from app.db.row_level_security import as_question, ask
from app.db.sets.tables import JobSet
from app.db.tables import Job, JobResult, status_list
from app.db.webhooks import webhooks
from app.domain.jobs.contract import JobError
from app.domain.jobs.status import ACTIVE, ENDING, TERMINAL, JobStatus, before


@dataclass(frozen=True, slots=True)
class JobRow:
    """A row of ``jobs``; see :class:`app.db.tables.Job`."""

    id: str
    tenant: str
    name: str | None
    status: JobStatus
    status_reason: str | None
    error: dict[str, Any] | None
    request: dict[str, Any]
    simulated: bool
    metadata: dict[str, Any]
    priority: str
    planned_responses: int
    expected_verdicts: int
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    completeness: str | None
    """Of the stored results; ``None`` while there are none."""
    made_sets: Sequence[str]
    """Ids of the question set and the persona set that it made, as far as there are such."""
    tags: Sequence[str] = ()
    notes: str | None = None
    archived_at: datetime | None = None
    models: Sequence[str] | None = None
    scores: Sequence[dict[str, Any]] | None = None
    usd: float | None = None
    unpriced_calls: int | None = None
    imported_from: dict[str, Any] | None = None
    warnings: Sequence[dict[str, Any]] | None = None
    reader: str | None = None


COLUMNS = (
    Job.id,
    Job.tenant,
    Job.name,
    Job.status,
    Job.status_reason,
    Job.error,
    Job.request,
    Job.simulated,
    Job.metadata_,
    Job.priority,
    Job.planned_responses,
    Job.expected_verdicts,
    Job.created_at,
    Job.started_at,
    Job.finished_at,
    JobResult.completeness,
    select(func.coalesce(func.array_agg(aggregate_order_by(JobSet.set_id, JobSet.set_id)), text("'{}'")))
    .where(JobSet.job_id == Job.id, JobSet.made)
    .scalar_subquery(),
    Job.tags,
    Job.notes,
    Job.archived_at,
    Job.models,
    Job.scores,
    Job.usd,
    Job.unpriced_calls,
    Job.imported_from,
    Job.warnings,
    Job.reader,
)
"""Those of a :class:`JobRow`, in its order."""


_JOB = (
    select(*COLUMNS)
    .outerjoin(JobResult, JobResult.job_id == Job.id)
    .where(Job.id == bindparam("job"), Job.tenant == bindparam("owner"))
)
"""Built once: every poll asks it."""

_JOB_QUESTION = as_question(_JOB)
_STATUS_QUESTION = as_question(
    select(Job.status).where(Job.id == bindparam("job"), Job.tenant == bindparam("owner"))
)


async def get_job(connection: AsyncConnection, tenant: str, job_id: str) -> JobRow | None:
    """A tenant's job, if there is one of that id."""
    rows = await connection.execute(_JOB, {"job": job_id, "owner": tenant})
    row = rows.first()
    return None if row is None else job_row(row)


async def find_job(engine: AsyncEngine, tenant: str, job_id: str) -> JobRow | None:
    """The same, from a single question to the database."""
    rows = await ask(engine, _JOB_QUESTION, {"job": job_id, "owner": tenant})
    return job_row(rows[0]) if rows else None


async def get_spec(connection: AsyncConnection, tenant: str, job_id: str) -> dict[str, Any] | None:
    """A job's resolved specification, which can be large; polls do without it."""
    rows = await connection.execute(select(Job.spec).where(Job.id == job_id, Job.tenant == tenant))
    row = rows.first()
    return None if row is None else row.spec


async def get_spec_and_trace(
    connection: AsyncConnection, tenant: str, job_id: str
) -> tuple[dict[str, Any], str | None] | None:
    """The same with the trace that the job goes on with."""
    columns = select(Job.spec, Job.traceparent)
    rows = await connection.execute(columns.where(Job.id == job_id, Job.tenant == tenant))
    row = rows.first()
    return None if row is None else (row.spec, row.traceparent)


async def get_job_of_any_tenant(connection: AsyncConnection, job_id: str) -> JobRow | None:
    """A job, whosever it is: for workers only."""
    rows = await connection.execute(
        select(*COLUMNS).outerjoin(JobResult, JobResult.job_id == Job.id).where(Job.id == job_id)
    )
    row = rows.first()
    return None if row is None else job_row(row)


async def tenant_of_unended(connection: AsyncConnection, job_id: str) -> str | None:
    """Return the tenant of a job that has not ended."""
    statement = select(Job.tenant).where(Job.id == job_id, Job.status.not_in(TERMINAL))
    return (await connection.execute(statement)).scalar_one_or_none()


async def has_started(connection: AsyncConnection, job_id: str) -> bool:
    """Return whether a worker ever began to work on a job."""
    rows = await connection.execute(select(Job.started_at.is_not(None)).where(Job.id == job_id))
    return bool(rows.scalar_one())


def job_row(row: Any) -> JobRow:
    """A row of :data:`COLUMNS`."""
    values = tuple(row)
    return JobRow(values[0], values[1], values[2], JobStatus(values[3]), *values[4:])


async def move(
    connection: AsyncConnection,
    job_id: str,
    *,
    to: JobStatus,
    leave: Sequence[JobStatus] | None = None,
    reason: str | None = None,
    error: JobError | None = None,
    tenant: str | None = None,
    unless_resumed_since: datetime | None = None,
) -> bool:
    """Moves a job to another state if it is in one of ``leave``; whoever comes second changes nothing.

    Args:
        connection: Where.
        job_id: Which job.
        to: The state to which it is moved.
        leave: The states in which it is moved; ``None`` for all that ``to`` may follow.
        reason: Why, as a code; replaces the earlier reason, also by none.
        error: What went wrong; replaces the earlier error, also by none.
        tenant: Only this tenant's job; workers, which act for all, leave it out.
        unless_resumed_since: A job that was resumed after this moment of the database's clock stays as it is.

    Returns:
        Whether this call moved it.
    """
    values: dict[str, Any] = {"status": to.value, "updated_at": text("clock_timestamp()")}
    values |= {"status_reason": reason, "error": None if error is None else error.model_dump()}
    values["finished_at"] = text("clock_timestamp()") if to.is_terminal else None
    if to is JobStatus.QUEUED:
        values |= {"resumed_at": text("clock_timestamp()"), "resumptions": 0}
    statement = update(Job).where(
        Job.id == job_id,
        Job.status.in_([status.value for status in (before(to) if leave is None else leave)]),
    )
    if tenant is not None:
        statement = statement.where(Job.tenant == tenant)
    if unless_resumed_since is not None:
        statement = statement.where(func.coalesce(Job.resumed_at <= unless_resumed_since, True))
    moved = await connection.execute(statement.values(values).returning(Job.id))
    if moved.first() is None:
        return False
    await webhooks.note_status(connection, job_id, to)
    return True


async def lock_job(
    connection: AsyncConnection, job_id: str, *, skip_locked: bool = False, tenant: str | None = None
) -> JobStatus | None:
    """Locks a job's row until the transaction ends, so that its shards' ends follow one another.

    Args:
        connection: Where.
        job_id: Which job.
        skip_locked: Not to wait for whoever holds the lock; the job then counts as missing.
        tenant: As of :func:`move`.

    Returns:
        Where the job stands; ``None`` if it is missing.
    """
    statement = select(Job.status).where(Job.id == job_id)
    if tenant is not None:
        statement = statement.where(Job.tenant == tenant)
    rows = await connection.execute(statement.with_for_update(skip_locked=skip_locked))
    row = rows.first()
    return None if row is None else JobStatus(row.status)


async def find_status(engine: AsyncEngine, tenant: str, job_id: str) -> JobStatus | None:
    """Where a tenant's job stands; ``None`` if it has been deleted."""
    rows = await ask(engine, _STATUS_QUESTION, {"job": job_id, "owner": tenant})
    return JobStatus(rows[0][0]) if rows else None


async def open_work(connection: AsyncConnection, job_id: str) -> tuple[int, int]:
    """How many shards of a job are not done, and how many of them are leased right now."""
    rows = await connection.execute(
        text(
            "SELECT count(*), count(*) FILTER (WHERE lease_expires_at > clock_timestamp())"
            " FROM shards WHERE job_id = :job AND NOT done"
        ),
        {"job": job_id},
    )
    open_, leased = rows.one()
    return open_, leased


async def store_result(
    connection: AsyncConnection, tenant: str, job_id: str, completeness: str, results: str
) -> None:
    """Keeps a job's results; a second finalization of the same rows replaces them by the same."""
    values = {"job_id": job_id, "tenant": tenant, "completeness": completeness, "results": results}
    statement = upsert(JobResult).values(values)
    await connection.execute(statement.on_conflict_do_update(index_elements=["job_id"], set_=values))


async def stored_result(connection: AsyncConnection, tenant: str, job_id: str) -> str | None:
    """A finished job's results as JSON text."""
    rows = await connection.execute(
        select(JobResult.results).where(JobResult.job_id == job_id, JobResult.tenant == tenant)
    )
    row = rows.first()
    return None if row is None else row.results


async def forget_result(connection: AsyncConnection, job_id: str) -> None:
    """Drops the results of a job that is taken up again, and forgets how often they could not be made."""
    await connection.execute(delete(JobResult).where(JobResult.job_id == job_id))
    await connection.execute(
        update(Job)
        .where(Job.id == job_id)
        .values(finalize_failures=0, scores=null(), score=None, usd=None, warnings=null())
    )


async def change_job(
    connection: AsyncConnection,
    tenant: str,
    job_id: str,
    changes: Mapping[str, Any],
    *,
    archived: bool | None,
) -> bool:
    """Changes what people keep of a tenant's job.

    Args:
        connection: Where.
        tenant: Whose.
        job_id: Which job.
        changes: New values of its columns.
        archived: Whether it shall be archived; as it is where ``None``.

    Returns:
        Whether there is one of that id.
    """
    values = dict(changes) or {"id": Job.id}
    if archived is not None:
        values["archived_at"] = (
            func.coalesce(Job.archived_at, text("clock_timestamp()")) if archived else None
        )
    statement = update(Job).where(Job.id == job_id, Job.tenant == tenant).values(values)
    return (await connection.execute(statement.returning(Job.id))).first() is not None


async def delete_job(connection: AsyncConnection, tenant: str, job_id: str) -> None:
    """Removes a job and everything that belongs to it. The caller has checked that it is terminal."""
    # A request's statements may not run for long, but one that removes millions of rows is as long every time.
    await connection.execute(text("SET LOCAL statement_timeout = 0"))
    # Its shards first, as whoever writes rows of them does: he may hold one and wait for a reply. A late one who
    # finds them gone writes nothing, so that no reply outlives the job that asked for it.
    await connection.execute(
        text("SELECT FROM shards WHERE job_id = :job AND tenant = :tenant ORDER BY id FOR UPDATE"),
        {"job": job_id, "tenant": tenant},
    )
    await response_cache.forget_job(connection, tenant, job_id)
    of_job = "(SELECT id FROM cells WHERE job_id = :job AND tenant = :tenant)"
    for statement in (
        f"DELETE FROM verdicts WHERE cell_id IN {of_job}",
        f"DELETE FROM second_verdicts WHERE cell_id IN {of_job}",
        f"DELETE FROM grades WHERE cell_id IN {of_job}",
        (
            "DELETE FROM calls USING shards WHERE calls.shard_id = shards.id"
            " AND shards.job_id = :job AND shards.tenant = :tenant"
        ),
        "DELETE FROM jobs WHERE id = :job AND tenant = :tenant",
    ):
        await connection.execute(text(statement), {"job": job_id, "tenant": tenant})


async def unsettled_jobs(
    connection: AsyncConnection, quiet_seconds: float, among: Collection[JobStatus] = ACTIVE | ENDING
) -> list[str]:
    """Return jobs that could be finalized and that no worker reports to finalize: the message, or its worker, was lost.

    Each is returned at most once in ``quiet_seconds``.

    Args:
        connection: Where.
        quiet_seconds: Seconds since the last report.
        among: Their statuses.
    """
    rows = await connection.execute(
        text(
            "UPDATE jobs SET updated_at = clock_timestamp() WHERE id IN (SELECT id FROM jobs"
            f"  WHERE status IN ({status_list(among)})"
            "  AND updated_at < clock_timestamp() - make_interval(secs => :quiet)"
            "  AND NOT EXISTS (SELECT FROM shards WHERE job_id = jobs.id AND NOT done"
            f"   AND (jobs.status NOT IN ({status_list(ENDING)}) OR lease_expires_at > clock_timestamp()))"
            "  FOR UPDATE SKIP LOCKED) RETURNING id"
        ),
        {"quiet": quiet_seconds},
    )
    return [row.id for row in rows]


async def finalization_goes_on(connection: AsyncConnection, job_id: str) -> None:
    """Notes that somebody is finalizing a job right now, for :func:`unsettled_jobs`."""
    await connection.execute(
        text(
            "UPDATE jobs SET updated_at = clock_timestamp()"
            f" WHERE id = :job AND status IN ({status_list(ENDING)})"
        ),
        {"job": job_id},
    )


async def count_failed_finalization(connection: AsyncConnection, job_id: str) -> int:
    """How often a job's finalization has now failed; 0 if the job is gone."""
    rows = await connection.execute(
        text(
            "UPDATE jobs SET finalize_failures = finalize_failures + 1 WHERE id = :job RETURNING finalize_failures"
        ),
        {"job": job_id},
    )
    row = rows.first()
    return 0 if row is None else row.finalize_failures


async def keep_paused(
    connection: AsyncConnection, job_id: str, reason: str, new_reason: str, tenant: str
) -> None:
    """Gives a tenant's job that is paused for one reason another."""
    await connection.execute(
        update(Job)
        .where(
            Job.id == job_id,
            Job.tenant == tenant,
            Job.status == JobStatus.PAUSED.value,
            Job.status_reason == reason,
        )
        .values(status_reason=new_reason)
    )


class PausedJob(NamedTuple):
    """A paused job.

    Attributes:
        resumptions: Resumptions after an outage since a call was last answered.
        paused_seconds: Time since the pause began.
    """

    id: str
    tenant: str
    error: dict[str, Any] | None
    resumptions: int
    paused_seconds: float


async def paused_jobs(connection: AsyncConnection, reason: str, job_id: str | None = None) -> list[PausedJob]:
    """The jobs of all tenants that are paused for a reason; or the one of this id, which is locked then, if it still is."""
    paused_seconds = cast(func.extract("epoch", func.clock_timestamp() - Job.updated_at), Double)
    statement = select(Job.id, Job.tenant, Job.error, Job.resumptions, paused_seconds).where(
        Job.status == JobStatus.PAUSED.value, Job.status_reason == reason
    )
    if job_id is not None:
        statement = statement.where(Job.id == job_id).with_for_update()
    return [PausedJob(*row) for row in await connection.execute(statement)]


async def note_resumptions(connection: AsyncConnection, job_id: str, resumptions: int) -> None:
    """Store the number of a resumed job's resumptions after an outage; any other resumption leaves 0."""
    await connection.execute(update(Job).where(Job.id == job_id).values(resumptions=resumptions))


async def forget_resumptions(connection: AsyncConnection, job_id: str) -> None:
    """Reset the count of resumptions if the server that is away again has answered a call since the last one."""
    await connection.execute(
        text(
            "UPDATE jobs SET resumptions = 0 WHERE id = :job AND resumptions > 0 AND EXISTS"
            " (SELECT FROM calls JOIN shards ON shards.id = calls.shard_id WHERE shards.job_id = :job"
            " AND calls.outcome = 'ok' AND calls.started_at > jobs.resumed_at"
            " AND calls.connection = split_part(jobs.error ->> 'model', '/', 1))"
        ),
        {"job": job_id},
    )


async def any_unfinished(connection: AsyncConnection) -> bool:
    """Whether any job, or any batch of a job, is not over."""
    rows = await connection.execute(
        text(
            f"SELECT EXISTS (SELECT FROM jobs WHERE status NOT IN ({status_list(TERMINAL)}))"
            " OR EXISTS (SELECT FROM batches WHERE state <> 'ended')"
        )
    )
    return bool(rows.scalar_one())


async def any_reply(connection: AsyncConnection, job_id: str) -> bool:
    """Whether a job has got any reply: to a call of its own, or one that was used again."""
    rows = await connection.execute(
        text(
            "SELECT EXISTS (SELECT FROM calls JOIN shards ON shards.id = calls.shard_id"
            " WHERE shards.job_id = :job AND calls.outcome = 'ok')"
            " OR EXISTS (SELECT FROM reused_replies u JOIN shards ON shards.id = u.shard_id"
            " WHERE shards.job_id = :job)"
        ),
        {"job": job_id},
    )
    return bool(rows.scalar_one())
