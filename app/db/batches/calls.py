"""Calls that are wanted, sent or answered in batches, as a shard sees them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.execution.shards import Claim
from app.db.tables import status_list
from app.domain.jobs.status import ACTIVE


@dataclass(frozen=True, slots=True)
class KnownCall:
    """A call that a shard has asked for.

    Attributes:
        id: Under which it will be recorded.
        path: What it is for.
        attempt: Which attempt it is.
        waits: How many of those before it met a rate limit.
        answer: What the provider said; ``None`` as long as its batch has not ended.
        batch_id: Its batch, if it is in one.
        submitted_at: When the batch was submitted.
        seconds: How long the batch took.
    """

    id: UUID
    path: str
    attempt: int
    waits: int
    answer: str | None
    batch_id: int | None
    submitted_at: datetime | None
    seconds: float | None


@dataclass(frozen=True, slots=True)
class WantedCall:
    """A row of ``batch_calls`` to be; see there."""

    id: UUID
    connection: str
    model: str
    path: str
    custom_id: str
    attempt: int
    waits: int
    request: str
    tokens: int
    nanos: int


async def known_calls(connection: AsyncConnection, held: Claim) -> list[KnownCall]:
    """What a shard has asked for, with the answers of the batches that have ended."""
    rows = await connection.execute(
        text(
            "SELECT c.id, path, attempt, waits, CASE WHEN state = 'ended' THEN answer END, batch_id, submitted_at,"
            " EXTRACT(epoch FROM ended_at - submitted_at)::float8"
            " FROM batch_calls c LEFT JOIN batches ON batches.id = batch_id WHERE shard_id = :shard"
        ),
        {"shard": held.shard_id},
    )
    return [KnownCall(*row) for row in rows]


async def replace(
    connection: AsyncConnection, held: Claim, read: Sequence[UUID], wanted: Sequence[WantedCall]
) -> bool:
    """Forgets calls whose answers have become rows, and asks for further ones; both or, if the claim is stale, neither.

    The caller holds the lock on the job's row, as does whoever ends a batch.

    Returns:
        Whether the claim was still valid.
    """
    ours = await connection.execute(
        text("SELECT FROM shards WHERE id = :shard AND lease_token = :token AND NOT done FOR UPDATE"),
        {"shard": held.shard_id, "token": held.token},
    )
    if ours.first() is None:
        return False
    await connection.execute(text("DELETE FROM batch_calls WHERE id = ANY(:ids)"), {"ids": list(read)})
    await _insert(connection, held, wanted)
    await connection.execute(
        text(
            "UPDATE shards SET answered = EXISTS (SELECT FROM batch_calls c JOIN batches ON batches.id = c.batch_id"
            "  WHERE c.shard_id = :shard AND state = 'ended') WHERE id = :shard"
        ),
        {"shard": held.shard_id},
    )
    return True


async def _insert(connection: AsyncConnection, held: Claim, wanted: Sequence[WantedCall]) -> None:
    columns: dict[str, Any] = {
        name: [getattr(call, name) for call in wanted] for name in WantedCall.__dataclass_fields__
    }
    await connection.execute(
        text(
            "INSERT INTO batch_calls (tenant, job_id, shard_id, id, connection, model, path, custom_id, attempt, waits, request,"
            "  tokens, nanos)"
            " SELECT :tenant, :job, :shard, * FROM unnest(CAST(:id AS uuid[]), CAST(:connection AS text[]),"
            "  CAST(:model AS text[]), CAST(:path AS text[]), CAST(:custom_id AS text[]),"
            "  CAST(:attempt AS smallint[]), CAST(:waits AS smallint[]), CAST(:request AS text[]), CAST(:tokens AS bigint[]),"
            "  CAST(:nanos AS bigint[])) ON CONFLICT (shard_id, path) DO NOTHING"
        ),
        columns | {"tenant": held.tenant, "job": held.job_id, "shard": held.shard_id},
    )


async def jobs_that_wait(connection: AsyncConnection) -> set[str]:
    """The active jobs of which calls wait for a batch."""
    rows = await connection.execute(
        text(
            f"SELECT id FROM jobs WHERE status IN ({status_list(ACTIVE)})"
            " AND EXISTS (SELECT FROM batch_calls WHERE job_id = jobs.id AND batch_id IS NULL)"
        )
    )
    return {row.id for row in rows}
