"""Connections to Postgres."""

import contextlib
from collections.abc import AsyncIterator
from typing import Literal

from sqlalchemy import event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import InvalidatePoolError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from app import clock

RESTED_SECONDS = 1.0
"""A connection that nobody has used for so long is tried before somebody relies on it: Postgres may have been restarted."""

_GIVEN_BACK = "given back at"

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
STATEMENT_SECONDS = 300
"""How long a statement of a request may run: its client has gone by then."""

UNPREPARED: dict[str, None] = {"prepare_threshold": None}
"""Arguments of a connection that prepares no statement."""

Pooler = Literal["none", "session", "transaction"]
"""What stands between us and Postgres; see :func:`connect`."""

_KEEPALIVES: dict[str, object] = {
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}


def connect(
    database_url: str,
    *,
    pool_size: int = 5,
    max_overflow: int = 5,
    application_name: str = "assay",
    begins_itself: bool = False,
    pooler: Pooler = "none",
    statement_seconds: int = 0,
) -> AsyncEngine:
    """An engine for one event loop; build it after the fork, on the loop that uses it.

    It acts for all tenants, and so is what workers and the sweeper use; what serves a client's requests uses
    :class:`app.db.row_level_security.TenantEngine`.

    Args:
        database_url: ``postgresql+psycopg://…``.
        pool_size: Connections kept open.
        max_overflow: Further ones for as long as they are needed.
        application_name: How ``pg_stat_activity`` shows them.
        begins_itself: Whether a listener begins the transactions, and the driver does not.
        pooler: What pools connections before Postgres. Such a one refuses time limits given to a connection, and in transaction mode
            another server connection does not know what was prepared on this one.
        statement_seconds: When the server ends a statement; 0 for never. Behind a pooler, set ``statement_timeout`` for the role.
    """
    engine = create_async_engine(
        database_url,
        pool_size=pool_size,
        max_overflow=max_overflow,
        pool_timeout=5,
        pool_use_lifo=True,  # few that are busy, not many that each prepare a statement when it has come five times
        isolation_level="AUTOCOMMIT" if begins_itself else None,
        hide_parameters=True,  # they are persons' and models' texts, and errors end up in logs
        connect_args={
            "application_name": application_name,
            "client_encoding": "utf8",  # that of what is copied, whatever the environment or the database has
            "connect_timeout": 5,
        }
        | _KEEPALIVES
        | ({"options": f"{_OPTIONS} -c statement_timeout={statement_seconds}s"} if pooler == "none" else {})
        | (UNPREPARED if pooler == "transaction" else {}),
    )
    _try_after_a_rest(engine)
    return engine


@contextlib.asynccontextmanager
async def single_statements(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    """A connection whose every statement is a transaction of its own: nothing is sent to begin or to end one.

    Behind the wall between tenants there has to be one; then it is one for all of them.
    """
    async with engine.connect() as connection:
        yield await connection.execution_options(isolation_level="AUTOCOMMIT")
        await connection.commit()


def _try_after_a_rest(engine: AsyncEngine) -> None:
    """Has connections tried that have rested; the pool's own trying before each use would be a round trip each time."""

    @event.listens_for(engine.sync_engine, "checkin")
    def note(_connection: DBAPIConnection | None, entry: ConnectionPoolEntry) -> None:
        entry.info[_GIVEN_BACK] = clock.monotonic()

    @event.listens_for(engine.sync_engine, "checkout")
    def try_it(connection: DBAPIConnection, entry: ConnectionPoolEntry, _proxy: object) -> None:
        if clock.monotonic() - entry.info.get(_GIVEN_BACK, float("inf")) < RESTED_SECONDS:
            return
        try:
            engine.dialect.do_ping(connection)
        except engine.dialect.loaded_dbapi.Error as error:
            raise InvalidatePoolError(type(error).__name__) from error
