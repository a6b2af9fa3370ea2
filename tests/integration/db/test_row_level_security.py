import asyncio
import importlib
import inspect
import pkgutil
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, cast

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import ARRAY, Table, make_url, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.exc import DataError, DBAPIError, OperationalError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

import app.db
from app.db import row_level_security
from app.db.engine import single_statements
from app.db.health import is_away
from app.db.migration.migrate import upgrade
from app.db.row_level_security import TenantEngine, act_for, ask, install_rls
from app.db.tables import Base
from tests.databases import Databases, libpq_url
from tests.integration.jobs import new_job

MODULES = [importlib.import_module(found.name) for found in pkgutil.walk_packages(app.db.__path__, "app.db.")]
TABLES = Base.metadata.sorted_tables
OF_NO_TENANT: dict[str, str] = {}
"""Tables without a tenant, and why: clients' requests cannot use them."""

OURS, THEIRS = "ours", "theirs"
UNKNOWN_JOB = "job_00000000000000000000000000"


@asynccontextmanager
async def walled(database_url: str, **options: Any) -> AsyncIterator[TenantEngine]:
    wall = TenantEngine(database_url, application_name="a test", **({"pool_size": 1} | options))
    try:
        yield wall
    finally:
        act_for("")
        await wall.engine.dispose()


@pytest.fixture
async def wall(database_url: str) -> AsyncIterator[TenantEngine]:
    """An engine of a single connection, so that whatever is left on it is found by the next one who uses it."""
    async with walled(database_url) as made:
        yield made


async def tenants_seen(engine: AsyncEngine, table: str = "jobs") -> set[str]:
    async with engine.connect() as connection:
        return set((await connection.scalars(text(f"SELECT tenant FROM {table}"))).all())


class TestTables:
    def test_every_one_names_a_tenant(self) -> None:
        without = {table.name for table in TABLES if "tenant" not in table.columns}
        assert without == OF_NO_TENANT.keys()
        assert not [table.name for table in TABLES if table.name not in without and table.c.tenant.nullable]

    def test_every_one_is_kept_apart(self, database_url: str) -> None:
        with psycopg.connect(libpq_url(database_url)) as connection:
            rows = connection.execute(
                "SELECT relname, pg_get_expr(polqual, polrelid) FROM pg_policy"
                " JOIN pg_class ON pg_class.oid = polrelid WHERE relrowsecurity AND polwithcheck IS NULL"
                " AND polcmd = '*' AND polpermissive AND polroles = '{0}'"
            ).fetchall()
        policy = "(tenant = ( SELECT current_setting('assay.tenant'::text, true) AS current_setting))"
        # A migration that adds a table says so: `enable_rls` in migrations/rls.py.
        assert dict(rows) == {table.name: policy for table in TABLES if table.name not in OF_NO_TENANT}


@pytest.fixture
def rows_of_two(database_url: str) -> str:
    """The URL of a database in which two tenants have a row in every table; what rows mean to each other is no matter here."""
    with psycopg.connect(libpq_url(database_url)) as connection:
        checks = connection.execute(
            "SELECT conrelid::regclass::text, conname FROM pg_constraint WHERE contype IN ('c', 'f')"
            " AND connamespace = 'public'::regnamespace ORDER BY contype DESC"
        ).fetchall()
        for table, constraint in checks:
            drop = sql.SQL("ALTER TABLE {} DROP CONSTRAINT {}")
            connection.execute(drop.format(sql.SQL(table), sql.Identifier(constraint)))
        for table in kept_apart():
            for number, tenant in enumerate((OURS, THEIRS)):
                insert_row(connection, table, number, tenant)
    return database_url


def kept_apart() -> list[Table]:
    return [table for table in TABLES if table.name not in OF_NO_TENANT]


def insert_row(connection: psycopg.Connection, table: Table, number: int, tenant: str) -> None:
    """A row of values that are as good as any, different for each number."""
    values = {
        column.name: tenant if column.name == "tenant" else some_value(column.type, number)
        for column in table.columns
        if not column.nullable and column.server_default is None and column.identity is None
    }
    names = sql.SQL(", ").join(map(sql.Identifier, values | {"tenant": tenant}))
    statement = sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
        sql.Identifier(table.name),
        names,
        sql.SQL(", ").join(map(sql.Literal, (values | {"tenant": tenant}).values())),
    )
    connection.execute(statement)


def some_value(kind: Any, number: int) -> object:
    if isinstance(kind, ARRAY):
        return []
    if isinstance(kind, JSONB):
        return "{}"
    python: type[object] = kind.python_type
    return {
        "str": f"{number}",
        "int": number,
        "bool": False,
        "float": 0.5,
        "bytes": bytes([number]),
        "UUID": f"00000000-0000-0000-0000-00000000000{number}",
        "datetime": "2026-11-22T00:00:00Z",
    }[python.__name__]


class TestStatementsWithoutAFilter:
    async def test_see_and_change_only_what_is_the_tenants(self, rows_of_two: str) -> None:
        act_for(OURS)
        async with walled(rows_of_two) as wall:
            for table in kept_apart():
                assert await tenants_seen(wall.engine, table.name) == {OURS}, table.name
                async with wall.engine.connect() as connection:
                    updated = await connection.execute(text(f"UPDATE {table.name} SET tenant = tenant"))
                    deleted = await connection.execute(text(f"DELETE FROM {table.name}"))
                    assert (updated.rowcount, deleted.rowcount) == (1, 1), table.name

    async def test_can_give_nobody_else_a_row(self, rows_of_two: str) -> None:
        act_for(OURS)
        async with walled(rows_of_two) as wall:
            for table in kept_apart():
                theirs = f"to_jsonb(old) || jsonb_build_object('tenant', '{THEIRS}')"
                copied = f"SELECT (jsonb_populate_record(old, {theirs})).* FROM {table.name} old"
                for statement in (
                    f"UPDATE {table.name} SET tenant = '{THEIRS}'",
                    f"INSERT INTO {table.name} OVERRIDING USER VALUE {copied}",
                ):
                    async with wall.engine.connect() as connection:
                        with pytest.raises(DBAPIError, match="row-level security"):
                            await connection.execute(text(statement))

    async def test_see_nothing_where_no_tenant_is_named(self, rows_of_two: str) -> None:
        async with walled(rows_of_two) as wall:
            for table in kept_apart():
                assert await tenants_seen(wall.engine, table.name) == set(), table.name

    async def test_see_everything_outside_of_the_wall(self, engine: AsyncEngine, rows_of_two: str) -> None:
        for table in kept_apart():
            assert await tenants_seen(engine, table.name) == {OURS, THEIRS}, table.name


def readers() -> Iterator[Callable[..., Any]]:
    """Everything in ``app.db`` that takes a connection, a tenant and a job's id, and nothing else."""
    for module in MODULES:
        for _, function in inspect.getmembers(module, inspect.isfunction):
            if function.__module__ == module.__name__ and [*inspect.signature(function).parameters] == [
                "connection",
                "tenant",
                "job_id",
            ]:
                yield function


class TestStatementsForAnotherTenant:
    async def test_find_as_little_as_of_a_job_that_there_is_not(
        self, engine: AsyncEngine, wall: TenantEngine
    ) -> None:
        job = await new_job(engine, tenant=THEIRS)
        told = 0
        for read in readers():
            async with engine.connect() as connection:
                theirs = await outcome(read, connection, job.id)
            act_for(OURS)
            async with wall.engine.connect() as connection:
                assert await outcome(read, connection, job.id) == await outcome(read, connection, UNKNOWN_JOB)
            act_for(THEIRS)
            async with wall.engine.connect() as connection:
                seen = await outcome(read, connection, job.id)
                assert seen == theirs, read.__name__
                told += seen != await outcome(read, connection, UNKNOWN_JOB)
        assert told > 2


async def outcome(read: Callable[..., Any], connection: AsyncConnection, job_id: str) -> object:
    found = read(connection, THEIRS, job_id)
    if inspect.isasyncgen(found):
        return [row async for row in found]
    assert isinstance(found, Awaitable)
    return await found


async def leavings(wall: TenantEngine) -> tuple[object, ...]:
    """What the pool's only connection is left with, as the driver sees it: no transaction of ours is begun."""
    async with wall.engine.connect() as connection:
        borrowed = await connection.get_raw_connection()
        driver = cast("psycopg.AsyncConnection[tuple[object, ...]]", borrowed.driver_connection)
        cursor = await driver.execute(
            "SELECT current_user = session_user, coalesce(current_setting('assay.tenant', true), '')"
        )
        return await cursor.fetchone() or ()


class TestNothingIsLeft:
    @pytest.fixture(autouse=True)
    async def _jobs_of_two(self, engine: AsyncEngine) -> None:
        for tenant in (OURS, THEIRS):
            await new_job(engine, tenant=tenant)

    async def test_after_any_end_of_a_transaction(self, wall: TenantEngine) -> None:
        act_for(OURS)
        async with wall.engine.begin() as connection:
            await connection.execute(text("UPDATE jobs SET name = 'committed'"))
        assert await leavings(wall) == (True, "")

        with pytest.raises(DBAPIError):
            async with wall.engine.begin() as connection:
                await connection.execute(text("SELECT 1 / 0"))
        assert await leavings(wall) == (True, "")

        async def gives_up() -> None:
            async with wall.engine.begin() as connection:
                await connection.execute(text("UPDATE jobs SET name = 'lost'"))
                raise KeyError

        with pytest.raises(KeyError):
            await gives_up()
        assert await leavings(wall) == (True, "")

        act_for("")
        assert await tenants_seen(wall.engine) == set()

    async def test_after_a_request_that_was_cancelled_while_it_waited(self, wall: TenantEngine) -> None:
        begun = asyncio.Event()

        async def wait_long() -> None:
            act_for(OURS)
            async with wall.engine.connect() as connection:
                await connection.execute(text("SELECT FROM jobs"))
                begun.set()
                await connection.execute(text("SELECT pg_sleep(30)"))

        request = asyncio.create_task(wait_long())
        await begun.wait()
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        assert await tenants_seen(wall.engine) == set()
        assert await leavings(wall) == (True, "")

    async def test_and_each_transaction_on_a_connection_is_the_tenants_again(
        self, wall: TenantEngine
    ) -> None:
        act_for(OURS)
        async with wall.engine.connect() as connection:
            for end in (connection.commit, connection.rollback):
                assert (await connection.scalars(text("SELECT tenant FROM jobs"))).all() == [OURS]
                await end()
            assert (await connection.scalars(text("SELECT tenant FROM jobs"))).all() == [OURS]

    async def test_and_requests_that_go_on_side_by_side_see_their_own(self, database_url: str) -> None:
        async def stream(engine: AsyncEngine, tenant: str, turn: asyncio.Barrier) -> set[str]:
            act_for(tenant)
            seen = set()
            async with engine.connect() as connection:
                rows = await connection.stream(text("SELECT tenant FROM jobs, generate_series(1, 3)"))
                async for row in rows:
                    await turn.wait()
                    seen.add(row.tenant)
            return seen | await tenants_seen(engine)

        turn = asyncio.Barrier(2)
        async with walled(database_url, pool_size=2) as wall:
            streams = [stream(wall.engine, tenant, turn) for tenant in (OURS, THEIRS)]
            ours, theirs = await asyncio.gather(*streams)
            assert (ours, theirs) == ({OURS}, {THEIRS})

    async def test_single_statements_are_the_tenants_and_are_kept(self, wall: TenantEngine) -> None:
        act_for(OURS)
        async with single_statements(wall.engine) as connection:
            await connection.execute(text("UPDATE jobs SET name = 'kept'"))
        act_for(THEIRS)
        async with single_statements(wall.engine) as connection:
            assert (await connection.scalars(text("SELECT name FROM jobs"))).all() == ["a job"]
        act_for(OURS)
        async with single_statements(wall.engine) as connection:
            assert (await connection.scalars(text("SELECT name FROM jobs"))).all() == ["kept"]

    async def test_a_snapshot_is_the_tenants_too(self, wall: TenantEngine) -> None:
        act_for(THEIRS)
        async with wall.engine.connect() as connection:
            await connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            found = await connection.execute(
                text("SELECT tenant, current_setting('transaction_isolation') FROM jobs")
            )
            assert found.all() == [(THEIRS, "repeatable read")]

    async def test_a_tenants_name_is_never_read_as_sql(self, wall: TenantEngine) -> None:
        for name in ("'; RESET ROLE; --", "100%", "back\\slash", '"quoted"', "Ünïcode"):
            act_for(name)
            async with wall.engine.connect() as connection:
                found = await connection.execute(
                    text("SELECT current_setting('assay.tenant'), count(*) FROM jobs")
                )
                assert found.all() == [(name, 0)]


@contextmanager
def database_of(databases: Databases, owner: str) -> Iterator[str]:
    """An empty database whose owner is a user of the test's own."""
    try:
        databases.maintenance.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(owner)))
        with databases.new("owned") as url:
            name = sql.Identifier(str(make_url(url).database))
            databases.maintenance.execute(
                sql.SQL("ALTER DATABASE {} OWNER TO {}").format(name, sql.Identifier(owner))
            )
            yield url.replace("assay@", f"{owner}@")
    finally:
        for role in (f"{owner}_tenant", owner):
            databases.maintenance.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(role)))


class TestRaiseWall:
    async def test_an_owner_who_may_make_no_roles_is_told_who_has_to_do_what(
        self, databases: Databases
    ) -> None:
        with database_of(databases, "lab") as url:
            left_to_do = upgrade(url)
            assert left_to_do == "CREATE ROLE lab_tenant NOLOGIN; GRANT lab_tenant TO lab"
            async with walled(url) as wall:
                assert await tenants_seen(wall.engine) == set()
                assert wall.stands is False

            databases.maintenance.execute(left_to_do.encode())
            async with walled(url) as wall:  # nothing has been granted to the role yet
                assert await tenants_seen(wall.engine) == set()
                assert wall.stands is False

            assert install_rls(url) is None
            async with walled(url) as wall:
                assert await tenants_seen(wall.engine) == set()
                assert wall.stands is True

    async def test_a_connection_that_is_older_stands_behind_it_soon(
        self, databases: Databases, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The API starts before the migrations, and is asked whether it is ready."""
        monkeypatch.setattr(row_level_security, "_LOOK_AGAIN_SECONDS", 0.2)
        with database_of(databases, "early") as url:
            databases.maintenance.execute("ALTER ROLE early CREATEROLE")
            async with walled(url) as wall:
                async with wall.engine.connect() as connection:
                    await connection.execute(text("SELECT 1"))
                assert wall.stands is False
                assert upgrade(url) is None
                await asyncio.sleep(0.3)
                async with wall.engine.connect() as connection:
                    assert await connection.scalar(text("SELECT current_user")) == "early_tenant"
                assert wall.stands is True

    async def test_one_who_may_has_it_made(self, databases: Databases) -> None:
        with database_of(databases, "manager") as url:
            databases.maintenance.execute("ALTER ROLE manager CREATEROLE")
            assert upgrade(url) is None
            assert install_rls(url) is None
            async with walled(url) as wall:
                assert await tenants_seen(wall.engine) == set()
                assert wall.stands is True


class TestAsk:
    """A statement that is sent with all of its transaction in one message."""

    @pytest.fixture(autouse=True)
    async def _jobs_of_two(self, engine: AsyncEngine) -> None:
        for tenant in (OURS, THEIRS):
            await new_job(engine, tenant=tenant)

    @pytest.mark.parametrize("tenant", [OURS, THEIRS, "'; RESET ROLE; --", ""])
    async def test_sees_the_tenants_rows_alone_and_leaves_nothing(
        self, wall: TenantEngine, tenant: str
    ) -> None:
        act_for(tenant)
        for _ in range(7):  # from the sixth time on the driver has it prepared
            found = await ask(
                wall.engine, "SELECT tenant FROM jobs WHERE priority = %(it)s", {"it": "normal"}
            )
            assert list(found) == [(tenant,)] * (tenant in {OURS, THEIRS})
            assert await leavings(wall) == (True, "")

    async def test_sees_what_a_plain_engine_shows(self, engine: AsyncEngine) -> None:
        found = await ask(engine, "SELECT tenant FROM jobs ORDER BY 1", {})
        assert [tenant for (tenant,) in found] == [OURS, THEIRS]

    async def test_has_its_own_error_and_leaves_the_connection_as_it_was(self, wall: TenantEngine) -> None:
        act_for(OURS)
        with pytest.raises(DataError, match="division by zero") as raised:
            await ask(wall.engine, "SELECT 1 / %(it)s::int", {"it": 0})
        assert not is_away(raised.value)
        assert await leavings(wall) == (True, "")
        assert await tenants_seen(wall.engine) == {OURS}

    async def test_is_refused_as_away_where_the_connection_broke_just_now_and_once(
        self, engine: AsyncEngine, wall: TenantEngine
    ) -> None:
        [(pid,)] = await ask(wall.engine, "SELECT pg_backend_pid()", {})
        await ask(engine, "SELECT pg_terminate_backend(%(pid)s, 5000)", {"pid": pid})
        with pytest.raises(OperationalError) as raised:
            await ask(wall.engine, "SELECT 1", {})
        assert is_away(raised.value)
        assert await ask(wall.engine, "SELECT 1", {}) == [(1,)]

    async def test_leaves_nothing_where_it_is_cancelled(self, wall: TenantEngine) -> None:
        act_for(OURS)
        await ask(wall.engine, "SELECT 1", {})
        request = asyncio.create_task(ask(wall.engine, "SELECT pg_sleep(30)", {}))
        await asyncio.sleep(0.1)
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        assert await leavings(wall) == (True, "")
        assert await tenants_seen(wall.engine) == {OURS}

    async def test_shows_nobody_anothers_rows_however_many_are_cancelled_in_their_midst(
        self, database_url: str
    ) -> None:
        chance = random.Random(9)
        async with walled(database_url, pool_size=2) as wall:

            async def look(tenant: str) -> None:
                act_for(tenant)
                if chance.random() < 0.1:
                    with pytest.raises(DataError):
                        await ask(wall.engine, "SELECT 1 / %(it)s::int", {"it": 0})
                elif chance.random() < 0.7:
                    assert await ask(wall.engine, "SELECT tenant FROM jobs", {}) == [(tenant,)]
                else:
                    assert await tenants_seen(wall.engine) == {tenant}

            async def look_often(tenant: str) -> None:
                for _ in range(30):
                    looking = asyncio.create_task(look(tenant))
                    if chance.random() < 0.5:
                        await asyncio.sleep(chance.random() * 0.004)
                        looking.cancel()
                    with suppress(asyncio.CancelledError):
                        await looking

            await asyncio.gather(*map(look_often, [OURS, THEIRS] * 2))
