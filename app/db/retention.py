"""Which jobs the operator does not keep any longer."""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection


async def lock_expired(connection: AsyncConnection, keep_days: int) -> tuple[str, str] | None:
    """Locks the job that ended first, if that is more than so many days ago; those that somebody holds are passed over.

    Returns:
        Its tenant and id.
    """
    rows = await connection.execute(
        text(
            "SELECT tenant, id FROM jobs WHERE status IN ('completed', 'failed', 'cancelled')"
            " AND finished_at < clock_timestamp() - make_interval(days => :days)"
            " ORDER BY finished_at LIMIT 1 FOR UPDATE SKIP LOCKED"
        ),
        {"days": keep_days},
    )
    row = rows.first()
    return None if row is None else (row.tenant, row.id)
