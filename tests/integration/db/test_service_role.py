import base64
import hashlib
import hmac
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import psycopg
import pytest
from psycopg.errors import InsufficientPrivilege
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.engine import connect
from app.db.migrate import MigrationError, upgrade
from app.db.schema import SchemaState, schema_state
from app.db.tenant_wall import WalledEngine, act_for
from app.db.writer import ResultWriter
from tests.databases import Databases, libpq_url
from tests.integration.jobs import call_row, claimed, execute, new_job, scalar, whole_run
from tests.service_role import PASSWORD, SERVICE, Urls, database_for_service

POLICIES = "SELECT oid FROM pg_policy WHERE polname = 'service' ORDER BY oid"


@pytest.fixture
def urls(databases: Databases, template_database: str) -> Iterator[Urls]:
    with database_for_service(databases, template_database) as made:
        assert upgrade(made.owner, service_url=made.service) is None
        yield made


@pytest.fixture
async def service(urls: Urls) -> AsyncIterator[AsyncEngine]:
    engine = connect(urls.service)
    yield engine
    await engine.dispose()


@asynccontextmanager
async def walled(url: str) -> AsyncIterator[WalledEngine]:
    wall = WalledEngine(url, pool_size=1, application_name="a test")
    try:
        yield wall
    finally:
        act_for("")
        await wall.engine.dispose()


class TestWhatItMayNot:
    @pytest.mark.parametrize(
        "statement",
        [
            "CREATE TABLE mine (id int)",
            "CREATE SCHEMA mine",
            "CREATE FUNCTION mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
            "CREATE INDEX ON jobs (name)",
            "ALTER TABLE jobs ADD COLUMN mine int",
            "ALTER TABLE jobs DISABLE ROW LEVEL SECURITY",
            "DROP POLICY tenant ON jobs",
            "DROP TABLE calls",
            "TRUNCATE calls",
            "UPDATE alembic_version SET version_num = 'mine'",
            "CREATE ROLE mine",
            f"ALTER ROLE {SERVICE} BYPASSRLS",
            "ALTER ROLE assay PASSWORD 'mine'",
            "SET ROLE assay",
            "COPY jobs TO PROGRAM 'true'",
            "SELECT pg_read_file('/etc/passwd')",
        ],
    )
    def test_it_changes_rows_and_nothing_else(self, urls: Urls, statement: str) -> None:
        with psycopg.connect(libpq_url(urls.service)) as connection, pytest.raises(InsufficientPrivilege):
            connection.execute(statement.encode())

    async def test_it_is_no_superuser_and_bypasses_nothing(self, service: AsyncEngine) -> None:
        (found,) = await execute(
            service,
            "SELECT rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, rolreplication FROM pg_roles"
            " WHERE rolname = current_user",
        )
        assert not any(found)

    async def test_behind_the_wall_it_sees_one_tenants_rows(self, urls: Urls, service: AsyncEngine) -> None:
        for tenant in ("ours", "theirs"):
            await new_job(service, tenant=tenant)
        assert {tenant for (tenant,) in await execute(service, "SELECT tenant FROM jobs")} == {
            "ours",
            "theirs",
        }
        async with walled(urls.service) as wall:
            for tenant in ("ours", ""):
                act_for(tenant)
                async with wall.engine.connect() as connection:
                    found = set((await connection.scalars(text("SELECT tenant FROM jobs"))).all())
                assert found == {tenant} - {""}
            assert wall.stands is True


class TestWhatItMay:
    async def test_it_writes_results_once_each(self, service: AsyncEngine) -> None:
        claim = await claimed(service, (await new_job(service)).id)
        writer = ResultWriter(service)
        first, second = whole_run(claim, 0), whole_run(claim, 1)
        held = (claim.shard_id, claim.token)
        for rows in (first, [*first, *second, call_row(claim)]):
            assert await writer.write({held: rows}) == set()
        tables = ("responses", "verdicts", "calls")
        assert [await scalar(service, f"SELECT count(*) FROM {table}") for table in tables] == [2, 4, 1]

    async def test_it_sees_that_the_tables_are_current(self, service: AsyncEngine) -> None:
        assert await schema_state(service) is SchemaState.CURRENT


class TestMigrating:
    def test_the_password_is_kept_as_postgres_keeps_it(self, urls: Urls) -> None:
        with psycopg.connect(libpq_url(urls.owner)) as connection:
            (kept,) = connection.execute(
                "SELECT rolpassword FROM pg_authid WHERE rolname = %s", [SERVICE]
            ).fetchone() or ("",)
        found = re.fullmatch(r"SCRAM-SHA-256\$(\d+):([^$]+)\$([^:]+):(.+)", kept)
        assert found is not None
        salted = hashlib.pbkdf2_hmac("sha256", PASSWORD.encode(), base64.b64decode(found[2]), int(found[1]))
        client = hmac.digest(salted, b"Client Key", "sha256")
        assert base64.b64decode(found[3]) == hashlib.sha256(client).digest()

    def test_once_more_changes_no_policy_and_a_new_table_gets_its_own(self, urls: Urls) -> None:
        with psycopg.connect(libpq_url(urls.owner), autocommit=True) as connection:
            before = connection.execute(POLICIES).fetchall()
            assert upgrade(urls.owner, service_url=urls.service) is None
            assert connection.execute(POLICIES).fetchall() == before
            connection.execute("DROP POLICY service ON calls")
            connection.execute(f"REVOKE ALL ON calls FROM {SERVICE}")
            assert upgrade(urls.owner, service_url=urls.service) is None
            assert len(connection.execute(POLICIES).fetchall()) == len(before)
        with psycopg.connect(libpq_url(urls.service)) as connection:
            assert connection.execute("SELECT count(*) FROM calls").fetchone() == (0,)

    def test_with_one_url_for_both_no_role_is_made_whatever_it_calls_the_user(
        self, databases: Databases, template_database: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        roles = "SELECT count(*) FROM pg_roles"
        monkeypatch.setenv("PGUSER", "postgres")
        with databases.new("alone", template=template_database) as url:
            before = databases.maintenance.execute(roles).fetchone()
            nameless = url.replace("assay@", "", 1)
            assert nameless != url
            upgrade(nameless, service_url=nameless)
        databases.maintenance.execute("DROP ROLE postgres_tenant")  # the wall's, as ever
        assert databases.maintenance.execute(roles).fetchone() == before

    def test_the_services_url_has_to_name_the_user(self, urls: Urls) -> None:
        with pytest.raises(MigrationError, match="DATABASE_URL names no user"):
            upgrade(urls.owner, service_url="postgresql+psycopg:///assay")

    async def test_an_owner_who_may_make_no_roles_is_told_who_has_to_do_what(
        self, databases: Databases, template_database: str
    ) -> None:
        with database_for_service(databases, template_database, owner="assay") as urls:
            told = upgrade(urls.owner, service_url=urls.service)
            assert told == f"""CREATE ROLE "{SERVICE}" LOGIN PASSWORD '…'"""
            databases.maintenance.execute(told.replace("…", "anything").encode())
            told = upgrade(urls.owner, service_url=urls.service)
            assert told == f"CREATE ROLE {SERVICE}_tenant NOLOGIN; GRANT {SERVICE}_tenant TO {SERVICE}"
            async with walled(urls.service) as wall:
                act_for("ours")
                async with wall.engine.connect() as connection:
                    await connection.execute(text("SELECT FROM jobs"))
                assert wall.stands is False  # its own policy lets it through
            databases.maintenance.execute(told.encode())
            assert upgrade(urls.owner, service_url=urls.service) is None
            async with walled(urls.service) as wall:
                act_for("ours")
                async with wall.engine.connect() as connection:
                    await connection.execute(text("SELECT FROM jobs"))
                assert wall.stands is True
