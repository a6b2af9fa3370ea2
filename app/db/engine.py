"""Connections to Postgres."""

from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine


def connect(database_url: str, *, pool_size: int = 5, application_name: str = "assay") -> AsyncEngine:
    """An engine for one event loop; build it after the fork, on the loop that uses it.

    Args:
        database_url: ``postgresql+psycopg://…``.
        pool_size: Connections kept open.
        application_name: How ``pg_stat_activity`` shows them.
    """
    return create_async_engine(
        database_url,
        pool_size=pool_size,
        max_overflow=pool_size,
        pool_pre_ping=True,
        pool_timeout=5,
        connect_args={"application_name": application_name, "connect_timeout": 5},
    )
