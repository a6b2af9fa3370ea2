"""Connections to Postgres."""

from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

_OPTIONS = " ".join(
    f"-c {setting}"
    for setting in (
        # A machine that vanishes in mid-transaction must not hold its locks for the operating system's two hours.
        "idle_in_transaction_session_timeout=60s",
        "lock_timeout=30s",
        "tcp_keepalives_idle=30",
        "tcp_keepalives_interval=10",
        "tcp_keepalives_count=3",
    )
)
_KEEPALIVES = {
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}


def connect(
    database_url: str, *, pool_size: int = 5, max_overflow: int = 5, application_name: str = "assay"
) -> AsyncEngine:
    """An engine for one event loop; build it after the fork, on the loop that uses it.

    Args:
        database_url: ``postgresql+psycopg://…``.
        pool_size: Connections kept open.
        max_overflow: Further ones for as long as they are needed.
        application_name: How ``pg_stat_activity`` shows them.
    """
    return create_async_engine(
        database_url,
        pool_size=pool_size,
        max_overflow=max_overflow,
        pool_pre_ping=True,
        pool_timeout=5,
        hide_parameters=True,  # they are persons' and models' texts, and errors end up in logs
        connect_args={"application_name": application_name, "connect_timeout": 5, "options": _OPTIONS}
        | _KEEPALIVES,
    )
