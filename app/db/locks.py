"""Locks by a name, where there is no row yet that could be locked."""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection


async def lock(connection: AsyncConnection, name: str) -> None:
    """Waits until nobody else holds the lock of that name, and holds it until the transaction ends."""
    await connection.execute(text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))"), {"name": name})


async def lock_shared(connection: AsyncConnection, name: str) -> None:
    """The same, with others who share it."""
    await connection.execute(
        text("SELECT pg_advisory_xact_lock_shared(hashtextextended(:name, 0))"), {"name": name}
    )
