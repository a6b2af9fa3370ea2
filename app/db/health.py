"""Whether the database answers, and which errors say that it does not."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import psycopg
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app import clock
from app.db.reasons import reason
from app.db.revision import lacks_tables

_LIMIT_EXCEEDED = "54"
"""Class of SQLSTATEs that psycopg counts among the operational errors, but that are about the statement's own size."""

_AGAIN = frozenset({"25P03", "25P04", "25006", "26000", "42P05"})
"""SQLSTATEs that psycopg counts among internal errors, but that are about the moment: a transaction that stood still or took
too long, a server that only reads for now, and statements that were prepared on another server connection of a pooler."""

WORKER = "assay worker"
"""What the names of all workers' connections begin with."""

WRITE_EVERY_SECONDS = 10.0
"""Least time between two writes that test the database."""

Found = TypeVar("Found")

_abandoned: set[asyncio.Task[Any]] = set()


def is_away(error: BaseException) -> bool:
    """Whether an error says nothing against what was asked: the database can't be reached, or does not answer.

    The same may be asked again. A row that the database refuses is another matter: it is refused every time.
    """
    if isinstance(error, DBAPIError):
        return error.connection_invalidated or (error.orig is not None and is_away(error.orig))
    if isinstance(error, psycopg.Error) and error.sqlstate in _AGAIN:
        return True
    if isinstance(error, psycopg.OperationalError):
        return not exceeds_limit(error)
    return isinstance(error, (PoolTimeoutError, TimeoutError, ConnectionError))


def exceeds_limit(error: BaseException | None) -> bool:
    """Return whether a driver's error says that a value or statement is too large for the database."""
    return isinstance(error, psycopg.Error) and (error.sqlstate or "").startswith(_LIMIT_EXCEEDED)


async def answers(engine: AsyncEngine, seconds: float) -> bool:
    """Whether the database answers within so many seconds."""
    return await why_unreachable(engine, seconds) is None


async def why_unreachable(engine: AsyncEngine, seconds: float) -> str | None:
    """Why the database does not answer within so many seconds, in the words of :func:`app.db.reasons.reason`; ``None`` if it does."""
    try:
        await within(_ask(engine), seconds)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer
        empty = isinstance(error, DBAPIError) and lacks_tables(
            error
        )  # it answers; app.db.revision says what it lacks
        return None if empty else reason(error)
    return None


async def why_unwritable(engine: AsyncEngine, seconds: float) -> str | None:
    """Return why the database takes no rows, in the words of :func:`app.db.reasons.reason`; ``None`` if it does.

    New pages are written, since on a full disk small changes still find room in those that exist.
    """
    try:
        await within(_write(engine), seconds)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer
        if isinstance(error, DBAPIError) and isinstance(error.orig, psycopg.errors.InsufficientPrivilege):
            return None  # a role without temporary tables can't be told more
        return reason(error)
    return None


class DatabaseCheck:
    """Finds out what is wrong with the database; tests once in a while whether it takes rows.

    Args:
        engine: The database.
    """

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._asked_at = float("-inf")
        self._found: str | None = None
        self._asking = asyncio.Lock()

    async def trouble(self, seconds: float) -> str | None:
        """Return why the database can't be used, as found within so many seconds each; ``None`` if it can."""
        unreachable = await why_unreachable(self._engine, seconds)
        if unreachable is not None:
            return f"unreachable: {unreachable}"
        async with self._asking:
            if clock.monotonic() - self._asked_at >= WRITE_EVERY_SECONDS:
                self._found = await why_unwritable(self._engine, seconds)
                self._asked_at = clock.monotonic()
        return None if self._found is None else f"can't be written: {self._found}"


async def within(asking: Coroutine[Any, Any, Found], seconds: float) -> Found:
    """What the database answers to a question.

    A query on a frozen server takes ten seconds to cancel, so it is left behind and not waited for.

    Raises:
        TimeoutError: It does not answer within so many seconds.
        Exception: As the question.
    """
    task = asyncio.create_task(asking)
    _abandoned.add(task)
    task.add_done_callback(_forget)
    done, _ = await asyncio.wait({task}, timeout=seconds)
    if not done:
        task.cancel()
        raise TimeoutError("no answer in time")
    return task.result()


async def disconnect_frozen_workers(connection: AsyncConnection, seconds: float) -> int:
    """Ends workers' transactions in which the server has waited for the worker for so long, and so frees their locks.

    One that is long but goes on is left alone: each of its statements counts anew, fetches of a long result included.
    No timeout of the server's own ends a COPY whose sender stands still, and a frozen machine's kernel keeps its connections alive.

    Returns:
        How many were ended.
    """
    rows = await connection.execute(
        text(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()"
            f" AND application_name LIKE '{WORKER}%' AND wait_event = 'ClientRead'"
            " AND xact_start IS NOT NULL"
            " AND state_change < clock_timestamp() - make_interval(secs => :seconds)"
        ),
        {"seconds": seconds},
    )
    return int(rows.scalar_one())


async def _ask(engine: AsyncEngine) -> None:
    async with engine.connect() as connection:
        await connection.execute(text("SELECT FROM jobs LIMIT 0"))


async def _write(engine: AsyncEngine) -> None:
    async with engine.begin() as connection:
        await connection.execute(
            text("CREATE TEMPORARY TABLE write_probe ON COMMIT DROP AS SELECT generate_series(1, 5000) AS n")
        )


def _forget(task: asyncio.Task[Any]) -> None:
    _abandoned.discard(task)
    if not task.cancelled():
        task.exception()  # seen: it is not reported once more as never retrieved
