"""What counts as a database that is away is told by what real ones answer."""

import asyncio
import time

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db import health
from app.db.engine import connect
from app.db.health import WORKER, DatabaseCheck, answers, disconnect_frozen_workers, is_away
from app.db.reasons import reason
from tests.databases import libpq_url

NOWHERE = "postgresql+psycopg://assay@/assay?host=/nonexistent"
REFUSED = [
    "SELECT 1 / 0",
    "SELECT CAST('x' AS integer)",
    "INSERT INTO cells (tenant, job_id, ordinal, model, persona, task) VALUES ('t', 'none', 0, 'm', 'p', 't')",
    "SELECT * FROM no_such_table",
    f"SELECT {', '.join(['1'] * 2000)}",  # more columns than Postgres can give
]


async def error_of(engine: AsyncEngine, statement: str) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - which one is the question
        async with engine.begin() as connection:
            await connection.execute(text(statement))
    return caught.value


class TestDatabaseCheck:
    async def test_names_a_database_that_takes_no_rows_and_writes_once_in_a_while(
        self, engine: AsyncEngine, database_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        check = DatabaseCheck(engine)
        assert await check.trouble(30) is None
        with psycopg.connect(libpq_url(database_url), autocommit=True) as connection:
            name = connection.info.dbname
            connection.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
        await engine.dispose()
        assert await check.trouble(30) is None  # it was written a moment ago
        monkeypatch.setattr(health, "WRITE_EVERY_SECONDS", 0.0)
        assert await check.trouble(30) == "can't be written: it is read-only at the moment"
        with psycopg.connect(libpq_url(database_url), autocommit=True) as connection:
            connection.execute("SET default_transaction_read_only = off")
            connection.execute(f'ALTER DATABASE "{name}" RESET default_transaction_read_only')
        await engine.dispose()
        assert await check.trouble(30) is None

    async def test_names_a_database_that_is_not_there(self) -> None:
        engine = connect(NOWHERE)
        trouble = await DatabaseCheck(engine).trouble(30)
        assert trouble is not None
        assert trouble.startswith("unreachable: ")
        await engine.dispose()


class TestIsAway:
    @pytest.mark.parametrize("statement", REFUSED)
    async def test_a_refused_statement_is_refused_again(self, engine: AsyncEngine, statement: str) -> None:
        error = await error_of(engine, statement)
        assert not is_away(error)
        assert error.__cause__ is not None
        assert not is_away(error.__cause__)

    async def test_a_server_that_is_not_there(self) -> None:
        engine = connect(NOWHERE)
        assert is_away(await error_of(engine, "SELECT 1"))
        await engine.dispose()

    async def test_a_connection_that_is_ended_in_mid_statement(self, engine: AsyncEngine) -> None:
        error = await error_of(engine, "SELECT pg_terminate_backend(pg_backend_pid())")
        assert is_away(error)

    async def test_a_lock_that_is_not_had(self, engine: AsyncEngine) -> None:
        async with engine.begin() as holder, engine.connect() as other:
            await holder.execute(text("LOCK TABLE jobs"))
            await other.execute(text("SET lock_timeout = '10ms'"))
            with pytest.raises(Exception) as caught:  # noqa: PT011
                await other.execute(text("SELECT * FROM jobs"))
            assert is_away(caught.value)

    @pytest.mark.parametrize("error", [PoolTimeoutError(), TimeoutError(), psycopg.OperationalError("lost")])
    def test_no_connection_in_time(self, error: Exception) -> None:
        assert is_away(error)

    @pytest.mark.parametrize("error", [ValueError(), UnicodeError(), psycopg.DataError("NUL")])
    def test_an_error_of_ours(self, error: Exception) -> None:
        assert not is_away(error)


class TestAnswers:
    async def test_yes(self, engine: AsyncEngine) -> None:
        assert await answers(engine, 60)

    async def test_no(self) -> None:
        engine = connect(NOWHERE)
        assert not await answers(engine, 60)
        await engine.dispose()

    async def test_what_does_not_answer_in_time_is_not_waited_for(self, engine: AsyncEngine) -> None:
        started = time.monotonic()
        async with engine.begin() as holder:
            await holder.execute(text("LOCK TABLE jobs"))
            assert not await answers(engine, 0.05)
        assert time.monotonic() - started < 20


class TestReason:
    @pytest.mark.parametrize(
        ("state", "words"),
        [
            ("53100", "its disk is full"),
            ("53300", "it has too many connections"),
            ("40P01", "deadlock with another transaction"),
            ("26000", "it does not know a prepared statement of ours"),
        ],
    )
    async def test_is_told_by_the_servers_code_and_quotes_nothing(
        self, engine: AsyncEngine, state: str, words: str
    ) -> None:
        error = await error_of(
            engine, f"DO $$BEGIN RAISE EXCEPTION 'a shy person' USING ERRCODE = '{state}'; END$$"
        )
        assert reason(error).startswith(words)
        assert is_away(error)

    async def test_of_a_server_that_is_not_there(self) -> None:
        engine = connect(NOWHERE)
        assert reason(await error_of(engine, "SELECT 1")) == "there is no such socket"
        await engine.dispose()


class TestFrozenWorker:
    async def test_in_mid_copy_is_disconnected_and_its_locks_are_free(
        self, engine: AsyncEngine, database_url: str
    ) -> None:
        url = libpq_url(database_url)
        async with await psycopg.AsyncConnection.connect(
            url, application_name=f"{WORKER}, results"
        ) as frozen:
            await frozen.execute("CREATE TEMPORARY TABLE rows (n integer)")
            await frozen.execute("LOCK TABLE jobs")
            with pytest.raises(psycopg.OperationalError):  # noqa: PT012 - it ends while the copy is open
                async with frozen.cursor().copy("COPY rows FROM STDIN") as copy:
                    await copy.write_row([1])
                    assert await self._disconnected(engine, 60) == 0
                    assert await self._disconnected(engine, 0) == 1
                    async with engine.connect() as other:
                        await other.execute(text("SET lock_timeout = '60s'"))
                        await other.execute(text("SELECT FROM jobs"))

    async def test_one_whose_transaction_is_long_but_goes_on_is_left_alone(
        self, engine: AsyncEngine, database_url: str
    ) -> None:
        url = libpq_url(database_url)
        async with await psycopg.AsyncConnection.connect(url, application_name=WORKER) as reader:
            await reader.execute("SELECT 1")
            await asyncio.sleep(3)
            await reader.execute("SELECT 1")
            assert await self._disconnected(engine, 3) == 0
            await reader.execute("SELECT 1")

    async def test_one_that_waits_for_the_server_and_one_of_another_part_are_left_alone(
        self, engine: AsyncEngine, database_url: str
    ) -> None:
        url = libpq_url(database_url)
        async with (
            await psycopg.AsyncConnection.connect(url, application_name=WORKER) as busy,
            await psycopg.AsyncConnection.connect(url, application_name="assay api") as api,
        ):
            await api.execute("SELECT 1")
            slow = asyncio.create_task(busy.execute("SELECT pg_sleep(1)"))
            await asyncio.sleep(0.3)
            assert await self._disconnected(engine, 0) == 0
            await slow
            await api.execute("SELECT 1")

    @staticmethod
    async def _disconnected(engine: AsyncEngine, seconds: float) -> int:
        async with engine.begin() as connection:
            return await disconnect_frozen_workers(connection, seconds)
