"""Batches that are formed: leasing, sending on their way, collecting and ending."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.batches import files as batch_files
from app.db.tables import status_list
from app.domain.jobs.status import ACTIVE, STOPPED, JobStatus

ANNOUNCED_SECONDS = 10.0
"""How long a batch that was announced may wait to be looked after before it is announced again."""

MOST_FAILURES = 30
"""Consecutive failures to read a batch's answers after which they are lost."""

GIVE_UP_SECONDS = 3600.0
"""How long an ending job waits for a batch; providers take minutes to cancel one."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to look after a batch, until it runs out or somebody else takes it.

    Attributes:
        id: Which batch, and ``token`` the fencing token under which it was leased.
        tenant: Whose job it is.
        job_id: Whose calls they are.
        status: Where the job stood then.
        connection: Where it goes, and ``model`` to which model.
        calls: How many there are in it.
        state: As in ``batches``, likewise the next three.
        provider_id: Its id at the provider, if that is known.
        submissions: How often it was begun to be submitted.
        failures: How often in a row the provider did not take it or was away.
        errors: How often in a row an internal error got in the way.
        submitted_at: When it was last begun to be submitted.
        overdue: Whether the job, if it ends, no longer waits for it.
        leased_at: When this lease began, by the database's clock.
    """

    id: int
    token: int
    tenant: str
    job_id: str
    status: JobStatus
    connection: str
    model: str
    calls: int
    state: str
    provider_id: str | None
    submissions: int
    failures: int
    errors: int
    submitted_at: datetime | None
    overdue: bool
    leased_at: datetime


@dataclass(frozen=True, slots=True)
class Counts:
    """Batches of a job.

    Attributes:
        open: Those that have not ended.
        calls: Calls in them.
        waiting: Calls that are in none yet.
        ended: Those that have ended.
        cut: Those that a budget had to be cut for.
        failures: Largest number of times in a row that the provider could not be asked about an open one.
        submitted_at: When the oldest open one was submitted; ``None`` if none was.
        give_up_at: When the last open one is given up.
    """

    open: int
    calls: int
    waiting: int
    ended: int
    cut: int
    failures: int
    submitted_at: datetime | None
    give_up_at: datetime | None


# -- taking back and splitting ------------------------------------------------------------------------------------------


async def dissolve(connection: AsyncConnection, lease: Lease) -> None:
    """Takes back a batch that is not at the provider; its calls wait for another one."""
    await _unreserve(connection, lease.id)
    await connection.execute(
        text("DELETE FROM batches WHERE id = :id AND lease_token = :token"),
        {"id": lease.id, "token": lease.token},
    )


async def _unreserve(connection: AsyncConnection, batch_id: int) -> None:
    await connection.execute(
        text(
            "DELETE FROM reservations USING batch_calls c WHERE c.id = reservations.call_id AND c.batch_id = :batch"
        ),
        {"batch": batch_id},
    )


async def halve(connection: AsyncConnection, lease: Lease) -> int | None:
    """Splits a batch that is too large for the provider in two.

    Returns:
        The id of the second one; ``None`` if there is but one call.
    """
    second = lease.calls // 2
    if not second:
        return None
    rows = await connection.execute(
        text(
            "WITH other AS (INSERT INTO batches (tenant, job_id, connection, model, calls)"
            "  SELECT tenant, job_id, connection, model, :second FROM batches WHERE id = :id RETURNING id),"
            " moved AS (SELECT id FROM batch_calls WHERE batch_id = :id ORDER BY id DESC LIMIT :second)"
            " UPDATE batch_calls SET batch_id = other.id FROM other, moved WHERE batch_calls.id = moved.id"
            " RETURNING other.id"
        ),
        {"id": lease.id, "second": second},
    )
    other = rows.first()
    await connection.execute(
        text("UPDATE batches SET calls = calls - :second WHERE id = :id"), {"id": lease.id, "second": second}
    )
    return None if other is None else int(other.id)


# -- looking after ----------------------------------------------------------------------------------------------------


async def due(connection: AsyncConnection) -> list[int]:
    """Batches that somebody should look after now, each at most once in :data:`ANNOUNCED_SECONDS`."""
    rows = await connection.execute(
        text(
            "UPDATE batches SET due_at = clock_timestamp() + make_interval(secs => :seconds) WHERE id IN ("
            " SELECT id FROM batches WHERE state <> 'ended' AND due_at <= clock_timestamp()"
            " AND (lease_expires_at IS NULL OR lease_expires_at < clock_timestamp()) FOR UPDATE SKIP LOCKED)"
            " RETURNING id"
        ),
        {"seconds": ANNOUNCED_SECONDS},
    )
    return sorted(row.id for row in rows)


async def tenant_of_unended(connection: AsyncConnection, batch_id: int) -> str | None:
    """Return the tenant of a batch that has not ended."""
    rows = await connection.execute(
        text("SELECT tenant FROM batches WHERE id = :id AND state <> 'ended'"), {"id": batch_id}
    )
    return rows.scalar_one_or_none()


async def hasten(connection: AsyncConnection, job_id: str) -> None:
    """Has a job's batches looked after at once: something about the job has changed."""
    await connection.execute(
        text(
            "UPDATE batches SET due_at = clock_timestamp()"
            " WHERE job_id = :job AND state <> 'ended' AND due_at > clock_timestamp()"
        ),
        {"job": job_id},
    )


async def give_up(connection: AsyncConnection, job_id: str, seconds: float) -> None:
    """Have a job that ends wait for its batches no longer than so many seconds."""
    await connection.execute(
        text(
            "UPDATE batches SET give_up_at = least(give_up_at, clock_timestamp() + make_interval(secs => :seconds))"
            " WHERE job_id = :job AND state <> 'ended'"
        ),
        {"job": job_id, "seconds": seconds},
    )


async def any_submitted(connection: AsyncConnection, job_id: str) -> bool:
    """Return whether a batch of the job is at its provider."""
    rows = await connection.execute(
        text("SELECT EXISTS (SELECT FROM batches WHERE job_id = :job AND state = 'submitted')"),
        {"job": job_id},
    )
    return bool(rows.scalar_one())


async def lease(connection: AsyncConnection, batch_id: int, lease_seconds: float) -> Lease | None:
    """Leases a batch that has not ended and is due, by the database's clock, if nobody else has it.

    What was announced counts as due; the second message about it finds it put off by who had the first.
    """
    rows = await connection.execute(
        text(
            "UPDATE batches SET lease_token = lease_token + 1,"
            " lease_expires_at = clock_timestamp() + make_interval(secs => :seconds)"
            " FROM jobs WHERE batches.id = :id AND jobs.id = job_id AND state <> 'ended'"
            " AND due_at <= clock_timestamp() + make_interval(secs => :announced)"
            " AND (lease_expires_at IS NULL OR lease_expires_at < clock_timestamp())"
            " RETURNING batches.id, lease_token, jobs.tenant, job_id, jobs.status, connection, model, calls, state, provider_id,"
            " submissions, batches.failures, errors, submitted_at,"
            " coalesce(give_up_at <= clock_timestamp(), false), clock_timestamp()"
        ),
        {"id": batch_id, "seconds": lease_seconds, "announced": ANNOUNCED_SECONDS},
    )
    row = rows.first()
    if row is None:
        return None
    id_, token, tenant, job_id, status, *rest = tuple(row)
    return Lease(id_, token, tenant, job_id, JobStatus(status), *rest)


async def keep(connection: AsyncConnection, held: Lease, lease_seconds: float) -> bool:
    """Renews a lease, and locks its batch until the transaction ends; whether it was still valid."""
    rows = await connection.execute(
        text(
            "UPDATE batches SET lease_expires_at = clock_timestamp() + make_interval(secs => :seconds)"
            " WHERE id = :id AND lease_token = :token RETURNING id"
        ),
        {"id": held.id, "token": held.token, "seconds": lease_seconds},
    )
    return rows.first() is not None


async def release(
    connection: AsyncConnection, held: Lease, seconds: float, *, failed: bool = False, erred: bool = False
) -> None:
    """Gives a batch back, to be looked after again in some seconds.

    Args:
        connection: Where.
        held: The batch.
        seconds: In how many.
        failed: Whether the provider did not serve it.
        erred: Whether an internal error got in the way.
    """
    await connection.execute(
        text(
            "UPDATE batches SET lease_expires_at = NULL,"
            " due_at = least(clock_timestamp() + make_interval(secs => :seconds),"
            "  CASE WHEN give_up_at IS NOT NULL THEN greatest(give_up_at, clock_timestamp() + interval '1 second') END),"
            " failures = CASE WHEN :failed THEN least(failures + 1, 30000)"
            "  WHEN state = 'formed' OR :erred THEN failures ELSE 0 END,"
            " errors = CASE WHEN :erred THEN least(errors + 1, 30000) ELSE 0 END"
            " WHERE id = :id AND lease_token = :token AND state <> 'ended'"
        ),
        {"id": held.id, "token": held.token, "seconds": seconds, "failed": failed, "erred": erred},
    )


async def requests(
    connection: AsyncConnection, batch_id: int, after: UUID | None, most: int
) -> list[tuple[UUID, str, str]]:
    """Some calls of a batch, in the order of their ids: id, custom id, and the request."""
    rows = await connection.execute(
        text(
            "SELECT id, custom_id, request FROM batch_calls WHERE batch_id = :batch"
            " AND (CAST(:after AS uuid) IS NULL OR id > :after) ORDER BY id LIMIT :most"
        ),
        {"batch": batch_id, "after": after, "most": most},
    )
    return [(row.id, row.custom_id, row.request) for row in rows]


async def begin_submission(connection: AsyncConnection, held: Lease) -> int | None:
    """Notes, before it is asked to, that the provider may have the batch from now on.

    The job's row is share-locked: after a pause or a cancellation nothing is submitted. Only one batch a connection is
    at this point at a time, so that a crash leaves no doubt which one the provider may have.

    Returns:
        Its number among the batch's submissions; ``None`` if it can't be submitted now.
    """
    begin = text(
        "WITH job AS (SELECT id FROM jobs WHERE id = :job"
        f"  AND status IN ({status_list(ACTIVE)}) FOR SHARE)"
        " UPDATE batches SET state = 'submitting', submissions = submissions + 1,"
        " submitted_at = clock_timestamp() FROM job WHERE batches.id = :id AND job_id = job.id"
        " AND lease_token = :token AND state = 'formed' RETURNING submissions"
    )
    try:
        async with connection.begin_nested():
            rows = await connection.execute(begin, {"job": held.job_id, "id": held.id, "token": held.token})
    except IntegrityError:  # another one is just being submitted there
        return None
    row = rows.first()
    return None if row is None else int(row.submissions)


async def submitted(connection: AsyncConnection, held: Lease, provider_id: str) -> bool:
    """Keeps the id that a submitted batch has at the provider; whether nobody else has it."""
    rows = await connection.execute(
        text(
            "UPDATE batches SET state = 'submitted', provider_id = :provider WHERE id = :id AND lease_token = :token"
            " AND NOT EXISTS (SELECT FROM batches o WHERE o.connection = batches.connection"
            "  AND o.provider_id = :provider) RETURNING id"
        ),
        {"id": held.id, "token": held.token, "provider": provider_id},
    )
    return rows.first() is not None


async def not_submitted(connection: AsyncConnection, held: Lease) -> None:
    """Notes that the provider has not got the batch, or has refused it as a whole. The next submission has a file of its own."""
    rows = await connection.execute(
        text(
            "UPDATE batches SET state = 'formed', provider_id = NULL WHERE id = :id AND lease_token = :token"
            " RETURNING id"
        ),
        {"id": held.id, "token": held.token},
    )
    if rows.first() is not None:
        await batch_files.release(connection, held.id)


async def known_ids(connection: AsyncConnection, connection_id: str) -> set[str]:
    """The provider's ids of all batches that were submitted there, however long that took, as far as we know them."""
    rows = await connection.execute(
        text("SELECT provider_id FROM batches WHERE connection = :connection AND provider_id IS NOT NULL"),
        {"connection": connection_id},
    )
    return {row.provider_id for row in rows}


async def any_other_submitted(connection: AsyncConnection, held: Lease) -> bool:
    """Whether another batch for the same model is at the provider."""
    rows = await connection.execute(
        text(
            "SELECT EXISTS (SELECT FROM batches WHERE connection = :connection AND model = :model"
            " AND state = 'submitted' AND id <> :id)"
        ),
        {"connection": held.connection, "model": held.model, "id": held.id},
    )
    return bool(rows.scalar_one())


async def is_behind(connection: AsyncConnection, held: Lease) -> bool:
    """Whether an older batch for the same model, of a job that is active, was turned down and waits to be tried again."""
    rows = await connection.execute(
        text(
            "SELECT EXISTS (SELECT FROM batches b JOIN jobs ON jobs.id = job_id"
            f"  AND status IN ({status_list(ACTIVE)})"
            " WHERE connection = :connection AND model = :model AND state = 'formed' AND submissions > 0 AND b.id < :id)"
        ),
        {"connection": held.connection, "model": held.model, "id": held.id},
    )
    return bool(rows.scalar_one())


async def hasten_next(connection: AsyncConnection, held: Lease) -> None:
    """Has the oldest batch for the same model that was turned down tried at once: there is room."""
    await connection.execute(
        text(
            "UPDATE batches SET due_at = clock_timestamp() WHERE id = (SELECT id FROM batches"
            " WHERE connection = :connection AND model = :model AND state = 'formed' AND submissions > 0"
            " ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)"
        ),
        {"connection": held.connection, "model": held.model},
    )


# -- collecting -------------------------------------------------------------------------------------------------------


async def store_answers(connection: AsyncConnection, held: Lease, answers: Sequence[tuple[str, str]]) -> int:
    """Keeps answers, by custom id; the caller has renewed the lease in the same transaction.

    Returns:
        How many of them belong to the batch.
    """
    columns: dict[str, Any] = {
        "ids": [name for name, _ in answers],
        "answers": [words for _, words in answers],
    }
    rows = await connection.execute(
        text(
            "UPDATE batch_calls SET answer = given.answer"
            " FROM unnest(CAST(:ids AS text[]), CAST(:answers AS text[])) AS given (custom_id, answer)"
            " WHERE batch_id = :batch AND batch_calls.custom_id = given.custom_id"
        ),
        columns | {"batch": held.id},
    )
    return rows.rowcount


async def end(connection: AsyncConnection, held: Lease, unanswered: str) -> bool:
    """Ends a batch: its shards can read their answers.

    The caller holds the lock on the job's row.

    Args:
        connection: Where.
        held: The batch.
        unanswered: What stands for an answer where none came.

    Returns:
        Whether it ended now.
    """
    rows = await connection.execute(
        text(
            "UPDATE batches SET state = 'ended', ended_at = clock_timestamp(), lease_expires_at = NULL"
            " WHERE id = :id AND lease_token = :token AND state <> 'ended' RETURNING id"
        ),
        {"id": held.id, "token": held.token},
    )
    if rows.first() is None:
        return False
    await batch_files.release(connection, held.id)
    await connection.execute(
        text("UPDATE batch_calls SET answer = :words WHERE batch_id = :batch AND answer IS NULL"),
        {"batch": held.id, "words": unanswered},
    )
    await connection.execute(
        text(
            "UPDATE shards SET answered = true WHERE id IN ("
            " SELECT id FROM shards WHERE id IN (SELECT shard_id FROM batch_calls WHERE batch_id = :batch)"
            " ORDER BY id FOR UPDATE)"
        ),
        {"batch": held.id},
    )
    return True


# -- their job --------------------------------------------------------------------------------------------------------


async def any_left(connection: AsyncConnection, job_id: str, most_failures: int) -> bool:
    """Whether a job's batches are still on their way, or answers of them are still to be read.

    Shards that could not be read so many times are not waited for.
    """
    rows = await connection.execute(
        text(
            "SELECT EXISTS (SELECT FROM batches WHERE job_id = :job AND state <> 'ended')"
            " OR EXISTS (SELECT FROM shards WHERE job_id = :job AND answered AND NOT done AND failures < :most)"
        ),
        {"job": job_id, "most": most_failures},
    )
    return bool(rows.scalar_one())


async def jobs_to_read(connection: AsyncConnection, most_failures: int) -> list[str]:
    """Jobs that stand still or end, with answers that no shard has read, or has tried to so many times."""
    rows = await connection.execute(
        text(
            f"SELECT id FROM jobs WHERE status IN ({status_list(STOPPED)})"
            " AND EXISTS (SELECT FROM shards WHERE job_id = jobs.id AND answered AND NOT done AND failures < :most)"
            " ORDER BY created_at"
        ),
        {"most": most_failures},
    )
    return [row.id for row in rows]


async def forget_waiting(connection: AsyncConnection, job_id: str) -> None:
    """Drops the calls of a job that were never sent, when it is over."""
    await connection.execute(
        text("DELETE FROM batch_calls WHERE job_id = :job AND batch_id IS NULL"), {"job": job_id}
    )


async def counts(connection: AsyncConnection, tenant: str, job_id: str) -> Counts:
    """A job's batches, and the calls in them."""
    rows = await connection.execute(
        text(
            "SELECT count(*) FILTER (WHERE state <> 'ended'),"
            " coalesce(sum(calls) FILTER (WHERE state <> 'ended'), 0),"
            " (SELECT count(*) FROM batch_calls WHERE job_id = :job AND tenant = :tenant AND batch_id IS NULL),"
            " count(*) FILTER (WHERE state = 'ended'), count(*) FILTER (WHERE cut),"
            " coalesce(max(failures) FILTER (WHERE state <> 'ended'), 0),"
            " min(submitted_at) FILTER (WHERE state = 'submitted'), max(give_up_at) FILTER (WHERE state <> 'ended')"
            " FROM batches WHERE job_id = :job AND tenant = :tenant"
        ),
        {"job": job_id, "tenant": tenant},
    )
    open_, calls, *others = rows.one()
    return Counts(open_, int(calls), *others)


async def submitted_batches(connection: AsyncConnection, tenant: str, job_id: str) -> list[Mapping[str, Any]]:
    """Model, number of calls and the provider's id of every batch of a job that was submitted, in their order."""
    rows = await connection.execute(
        text(
            "SELECT connection || '/' || model AS model, calls, provider_id AS id FROM batches"
            " WHERE job_id = :job AND tenant = :tenant AND provider_id IS NOT NULL ORDER BY batches.id"
        ),
        {"job": job_id, "tenant": tenant},
    )
    return [dict(row._mapping) for row in rows]  # noqa: SLF001 - SQLAlchemy's public name for it
