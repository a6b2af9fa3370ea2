import asyncio

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db import engine as engine_module
from app.db.engine import connect, single_statements
from app.db.health import is_away
from app.db.reasons import reason
from app.db.row_level_security import TenantEngine


async def backend(engine: AsyncEngine) -> int:
    async with single_statements(engine) as connection:
        return int(await connection.scalar(text("SELECT pg_backend_pid()")) or 0)


async def end(engine: AsyncEngine, pid: int) -> None:
    async with single_statements(engine) as connection:
        assert await connection.scalar(text("SELECT pg_terminate_backend(:pid, 5000)"), {"pid": pid})


class TestConnect:
    async def test_a_connection_that_broke_while_it_rested_is_replaced(
        self, engine: AsyncEngine, database_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(engine_module, "RESTED_SECONDS", 0.1)
        other = connect(database_url, pool_size=1, max_overflow=0)
        try:
            former = await backend(other)
            await end(engine, former)
            await asyncio.sleep(0.15)
            assert await backend(other) != former
        finally:
            await other.dispose()

    async def test_one_that_broke_just_now_is_an_error_that_says_so_once(
        self, engine: AsyncEngine, database_url: str
    ) -> None:
        other = connect(database_url, pool_size=1, max_overflow=0)
        try:
            await end(engine, await backend(other))
            with pytest.raises(OperationalError) as raised:
                await backend(other)
            assert is_away(raised.value)
            assert await backend(other)
        finally:
            await other.dispose()

    async def test_the_connection_that_was_given_back_last_is_used_first(self, database_url: str) -> None:
        engine = connect(database_url, pool_size=2)
        pid = text("SELECT pg_backend_pid()")
        try:
            async with engine.connect() as last:
                async with engine.connect() as first:
                    assert await first.scalar(pid) != await last.scalar(pid)
                used = await last.scalar(pid)
            assert [await backend(engine) for _ in range(3)] == [used] * 3
        finally:
            await engine.dispose()

    async def test_a_statement_that_runs_too_long_is_ended_by_the_server_and_the_same_may_be_asked_again(
        self, database_url: str
    ) -> None:
        engine = connect(database_url, pool_size=1, max_overflow=0, statement_seconds=1)
        try:
            with pytest.raises(OperationalError) as raised:
                async with engine.connect() as connection:
                    await connection.execute(text("SELECT pg_sleep(60)"))
            assert is_away(raised.value)
            assert reason(raised.value) == "the statement was cancelled"
            assert await backend(engine)
        finally:
            await engine.dispose()

    async def test_requests_have_such_a_limit_and_workers_none(self, database_url: str) -> None:
        wall = TenantEngine(database_url, pool_size=1, application_name="assay api")
        unlimited = connect(database_url)
        try:
            asked = text("SELECT current_setting('statement_timeout')")
            async with wall.engine.connect() as connection:
                assert await connection.scalar(asked) == "5min"
            async with unlimited.connect() as connection:
                assert await connection.scalar(asked) == "0"
        finally:
            await wall.engine.dispose()
            await unlimited.dispose()


class TestSingleStatements:
    async def test_each_is_committed_by_itself_and_the_connection_is_the_usual_one_afterwards(
        self, database_url: str
    ) -> None:
        engine = connect(database_url, pool_size=1, max_overflow=0)
        try:
            async with single_statements(engine) as connection:
                await connection.execute(text("CREATE TABLE kept (n int)"))
                await connection.execute(text("INSERT INTO kept VALUES (1)"))
                with pytest.raises(Exception, match="division"):
                    await connection.execute(text("INSERT INTO kept SELECT 1 / (n - 1) FROM kept"))
            async with engine.connect() as connection:
                await connection.execute(text("INSERT INTO kept VALUES (2)"))
                await connection.rollback()
                assert (await connection.scalars(text("SELECT n FROM kept"))).all() == [1]
        finally:
            await engine.dispose()
