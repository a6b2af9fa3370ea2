"""Calls that wait for a batch, and the batches that they are put into."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.domain.jobs.budget import Amount


@dataclass(frozen=True, slots=True)
class Group:
    """Calls of a job to one model that wait for a batch."""

    connection: str
    model: str
    calls: int

    @property
    def name(self) -> str:
        """``connection/model``."""
        return f"{self.connection}/{self.model}"


@dataclass(frozen=True, slots=True)
class Waiting:
    """A call that waits for a batch: what it takes at worst, and how often in a row it met a rate limit."""

    id: UUID
    most: Amount
    waits: int


async def waiting(connection: AsyncConnection, job_id: str) -> list[Group]:
    """The calls of a job that wait for a batch, by model."""
    rows = await connection.execute(
        text(
            "SELECT connection, model, count(*) FROM batch_calls WHERE job_id = :job AND batch_id IS NULL"
            " GROUP BY connection, model ORDER BY connection, model"
        ),
        {"job": job_id},
    )
    return [Group(*row) for row in rows]


async def all_parked(connection: AsyncConnection, job_id: str) -> bool:
    """Whether no shard of a job will ask for further calls before a batch has ended."""
    rows = await connection.execute(
        text(
            "SELECT NOT EXISTS (SELECT FROM shards WHERE job_id = :job AND NOT done AND (answered OR NOT parked))"
        ),
        {"job": job_id},
    )
    return bool(rows.scalar_one())


async def first_waiting(connection: AsyncConnection, job_id: str, group: Group, most: int) -> list[Waiting]:
    """The calls that have waited longest."""
    rows = await connection.execute(
        text(
            "SELECT id, tokens, nanos, waits FROM batch_calls WHERE job_id = :job AND connection = :connection"
            " AND model = :model AND batch_id IS NULL ORDER BY id LIMIT :most"
        ),
        {"job": job_id, "connection": group.connection, "model": group.model, "most": most},
    )
    return [Waiting(row.id, Amount(1, row.tokens, row.nanos), row.waits) for row in rows]


async def form(
    connection: AsyncConnection,
    job_id: str,
    group: Group,
    calls: Sequence[UUID],
    *,
    seconds: float = 0.0,
    cut: bool = False,
    largest: Amount | None = None,
) -> int:
    """Puts waiting calls into a batch, and reserves what they take at worst if the job has a budget.

    The caller holds the lock on the job's row, and has seen that they fit the budget.

    Args:
        connection: Where.
        job_id: Whose calls they are.
        group: The model that they go to.
        calls: Their ids.
        seconds: In how many it is to be submitted.
        cut: Whether the budget had no room for more of them.
        largest: Largest bill of a model that takes one call at a time, which is reserved at least.

    Returns:
        The batch's id.
    """
    rows = await connection.execute(
        text(
            "INSERT INTO batches (tenant, job_id, connection, model, calls, cut, due_at)"
            " SELECT tenant, id, :connection, :model, :calls, :cut,"
            "  clock_timestamp() + make_interval(secs => :seconds) FROM jobs WHERE id = :job RETURNING id"
        ),
        {
            "job": job_id,
            "connection": group.connection,
            "model": group.model,
            "calls": len(calls),
            "cut": cut,
            "seconds": seconds,
        },
    )
    batch_id = int(rows.scalar_one())
    await connection.execute(
        text("UPDATE batch_calls SET batch_id = :batch WHERE id = ANY(:ids)"),
        {"batch": batch_id, "ids": list(calls)},
    )
    await connection.execute(
        text(
            "INSERT INTO reservations (call_id, tenant, job_id, shard_id, lease_token, tokens, nanos, model, alone)"
            " SELECT c.id, c.tenant, c.job_id, shard_id, 0, greatest(c.tokens, :tokens), greatest(c.nanos, :nanos),"
            "  :model, :alone FROM batch_calls c JOIN budgets ON budgets.job_id = c.job_id"
            "  WHERE batch_id = :batch ON CONFLICT DO NOTHING"
        ),
        {
            "batch": batch_id,
            "tokens": 0 if largest is None else largest.tokens,
            "nanos": 0 if largest is None else largest.nanos,
            "model": group.name,
            "alone": largest is not None,
        },
    )
    return batch_id
