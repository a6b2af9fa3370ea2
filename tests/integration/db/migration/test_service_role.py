import base64
import hashlib
import hmac
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import psycopg
import pytest
from psycopg.errors import InsufficientPrivilege
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.engine import connect
from app.db.execution.response_cache import ReusedRow
from app.db.execution.result_rows import (
    TABLES,
    GradeRow,
    PreparationRow,
    ResultWriter,
    Row,
    SecondVerdictRow,
    UnreadReplyRow,
)
from app.db.execution.shards import Claim
from app.db.migration.migrate import MigrationError, upgrade
from app.db.revision import SchemaState, schema_state
from app.db.row_level_security import TenantEngine, act_for
from tests.databases import Databases, libpq_url
from tests.integration.jobs import (
    call_row,
    claimed,
    execute,
    expire,
    new_job,
    response_row,
    scalar,
    take,
    verdict_row,
    whole_run,
)
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
async def walled(url: str) -> AsyncIterator[TenantEngine]:
    wall = TenantEngine(url, pool_size=1, application_name="a test")
    try:
        yield wall
    finally:
        act_for("")
        await wall.engine.dispose()


def rows_of_all_kinds(claim: Claim) -> list[Row]:
    odd = "Tabs\t, lines\r\n, back\\slashes \\u0041, \\N, {braces}, \"quotes', ünï𝄞 %s\x7f"
    cell, tenant = claim.cell_id, claim.tenant
    return [
        response_row(claim, content=odd)._replace(unit_starts=[], unit_ends=[], verdicts_due=0),
        verdict_row(claim)._replace(raw=odd, thoughts=""),
        SecondVerdictRow(cell, 0, 0, 0, 0, 0, True, tenant, "scored", 2, odd),
        GradeRow(cell, 0, 0, 0, tenant, "scored", 5, odd, None),
        UnreadReplyRow(cell, 0, "judging/0/0/0", tenant, odd, "stop", None, None),
        PreparationRow(
            claim.job_id,
            0,
            "personas",
            "",
            0,
            1,
            tenant,
            "ready",
            json.dumps([odd, None, 1.5]),
            1,
            None,
            '{"a": 1}',
        ),
        call_row(claim)._replace(usd=5.45e-07, detail=odd),
        ReusedRow(
            tenant,
            claim.shard_id,
            "judging",
            "c",
            odd,
            cell,
            0,
            0,
            None,
            None,
            None,
            "same_job",
            3,
            None,
            1e22,
            None,
            None,
            datetime(2026, 11, 29, tzinfo=UTC),
        ),
    ]


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

    async def test_rows_of_all_kinds_are_kept_as_the_owner_keeps_them(
        self, urls: Urls, service: AsyncEngine
    ) -> None:
        claim = await claimed(service, (await new_job(service)).id)
        batch = {(claim.shard_id, claim.token): rows_of_all_kinds(claim)}
        tables = [TABLES[type(row)] for row in rows_of_all_kinds(claim)]
        assert sorted(tables) == sorted(TABLES.values())
        owner, kept = connect(urls.owner), []
        try:
            for engine in (owner, service):
                assert await ResultWriter(engine).write(batch) == set()
                kept.append([await scalar(service, f"SELECT to_jsonb({t}) FROM {t}") for t in tables])
                for table in tables:
                    await execute(service, f"DELETE FROM {table}")
        finally:
            await owner.dispose()
        copied, written = kept
        for row in (copied[-1], written[-1]):
            assert row.pop("id")  # of a reused reply: Postgres numbers them
        assert written == copied

    async def test_it_makes_no_table_for_it_not_even_for_a_moment(
        self, urls: Urls, service: AsyncEngine
    ) -> None:
        owner = connect(urls.owner)
        try:
            await execute(
                owner,
                "DO $$BEGIN EXECUTE format('REVOKE TEMPORARY ON DATABASE %I FROM PUBLIC', current_database()); END$$",
            )
        finally:
            await owner.dispose()
        claim = await claimed(service, (await new_job(service)).id)
        batch = {(claim.shard_id, claim.token): [*whole_run(claim, 0), call_row(claim)]}
        assert await ResultWriter(service).write(batch) == set()

    @pytest.mark.parametrize(
        ("text", "error"), [("NUL \0", psycopg.DataError), ("lone surrogate \ud800", UnicodeEncodeError)]
    )
    async def test_a_row_that_cannot_be_kept_is_the_same_error_and_the_next_is_kept(
        self, service: AsyncEngine, text: str, error: type[Exception]
    ) -> None:
        claim = await claimed(service, (await new_job(service)).id)
        held, writer = (claim.shard_id, claim.token), ResultWriter(service)
        for _ in range(2):  # the first of a writer is refused a COPY before
            with pytest.raises(error):
                await writer.write({held: [response_row(claim, content=text), call_row(claim)]})
            assert await writer.write({held: [verdict_row(claim)]}) == set()
        assert [await scalar(service, f"SELECT count(*) FROM {t}") for t in ("responses", "calls")] == [0, 0]

    async def test_under_an_old_token_it_keeps_calls_alone(self, service: AsyncEngine) -> None:
        old = await claimed(service, (await new_job(service)).id)
        await expire(service, old)
        assert await take(service, old.shard_id) is not None
        held = (old.shard_id, old.token)
        assert await ResultWriter(service).write({held: [*whole_run(old, 0), call_row(old)]}) == {held}
        tables = ("responses", "verdicts", "calls")
        assert [await scalar(service, f"SELECT count(*) FROM {table}") for table in tables] == [0, 0, 1]

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
