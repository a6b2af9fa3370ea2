"""Idempotency keys: which job, webhook or schedule a client's key made, for a day."""

from sqlalchemy import func, select, text
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.tables import IdempotencyKey


async def claim_key(
    connection: AsyncConnection,
    tenant: str,
    key: str,
    body_hash: str,
    *,
    job_id: str | None = None,
    webhook_id: str | None = None,
    schedule_id: str | None = None,
) -> tuple[str, str] | None:
    """Takes an ``Idempotency-Key`` for the one thing that this transaction has just inserted.

    A second transaction with the same key waits here until the first has ended. Keys older than a day are free.

    Returns:
        ``None`` if the key is now that one's; else the (id, body hash) that hold it.
    """
    await connection.execute(
        text(
            "DELETE FROM idempotency_keys WHERE tenant = :tenant AND key = :key"
            " AND created_at < now() - interval '24 hours'"
        ),
        {"tenant": tenant, "key": key},
    )
    taken = await connection.execute(
        upsert(IdempotencyKey)
        .values(
            tenant=tenant,
            key=key,
            body_hash=body_hash,
            job_id=job_id,
            webhook_id=webhook_id,
            schedule_id=schedule_id,
        )
        .on_conflict_do_nothing()
        .returning(IdempotencyKey.key)
    )
    if taken.first() is not None:
        return None
    return await find_key(connection, tenant, key)


async def find_key(connection: AsyncConnection, tenant: str, key: str) -> tuple[str, str] | None:
    """The (id of a job, webhook or schedule, body hash) that hold a key since less than a day, if any."""
    ids = (IdempotencyKey.job_id, IdempotencyKey.webhook_id, IdempotencyKey.schedule_id)
    made = func.coalesce(*ids).label("made")
    held = await connection.execute(
        select(made, IdempotencyKey.body_hash)
        .where(IdempotencyKey.tenant == tenant, IdempotencyKey.key == key)
        .where(IdempotencyKey.created_at >= text("now() - interval '24 hours'"))
    )
    row = held.first()
    return None if row is None else (row.made, row.body_hash)


async def forget_keys(connection: AsyncConnection) -> None:
    """Removes the keys whose day has passed."""
    await connection.execute(
        text("DELETE FROM idempotency_keys WHERE created_at < now() - interval '24 hours'")
    )
