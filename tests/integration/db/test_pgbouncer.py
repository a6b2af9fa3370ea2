"""The service behind a real PgBouncer: in transaction mode it works, or says in plain words why it does not start.

That of the machine is tried, and those that ``PGBOUNCERS`` names: paths, separated by colons.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.engine import Pooler, connect
from app.db.migration.migrate import upgrade
from app.db.reasons import reason
from embedded.postgres import EmbeddedPostgres
from embedded.process import launch_command
from embedded.supervisor import free_port
from tests.api.service import serving
from tests.databases import libpq_url
from tests.e2e.stack import running_stack
from tests.integration.processes import started_alone
from tests.observe import eventually

OF_THE_MACHINE = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
PGBOUNCERS = [path for path in (OF_THE_MACHINE, *os.environ.get("PGBOUNCERS", "").split(":")) if path]
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not PGBOUNCERS, reason="needs pgbouncer")]

JOB = {
    "personas": ["E-low"],
    "tasks": ["essay"],
    "models": ["simulated/sim-faithful"],
    "judges": ["simulated/sim-judge"],
    "iterations": 4,
}


@pytest.fixture(params=PGBOUNCERS)
def program(request: pytest.FixtureRequest) -> str:
    """A PgBouncer."""
    path: str = request.param
    return path


def version_of(program: str) -> tuple[int, ...]:
    shown = subprocess.run([program, "-V"], capture_output=True, text=True, check=True).stdout
    return tuple(map(int, shown.split()[1].split(".")))


@contextmanager
def pgbouncer(
    program: str, server: EmbeddedPostgres, directory: Path, database_url: str, *settings: str
) -> Iterator[str]:
    """The URL of a database behind a PgBouncer that pools by transaction; four server connections serve everybody."""
    url = make_url(database_url)
    port = free_port("127.0.0.1", 0)
    lines = (
        "[databases]",
        f"* = host={url.query['host']} port={url.query['port']} user={url.username}",
        "[pgbouncer]",
        "listen_addr = 127.0.0.1",
        f"listen_port = {port}",
        "unix_socket_dir =",
        "auth_type = any",
        "pool_mode = transaction",
        "default_pool_size = 4",
        "max_client_conn = 200",
        "server_login_retry = 1",
        *settings,
    )
    file = directory / "pgbouncer.ini"
    file.write_text("\n".join(lines) + "\n")
    with (directory / "pgbouncer.log").open("wb") as log:
        command = launch_command([program, str(file)], run_as=server._account, directory=directory)
        process = subprocess.Popen(command, stdout=log, stderr=log)
    behind = url.set(host="127.0.0.1", port=port, query={})
    try:
        shown = behind.render_as_string(hide_password=False)
        assert eventually(lambda: answers(shown), 20), (directory / "pgbouncer.log").read_text()
        yield shown
    finally:
        process.terminate()
        process.wait(10)


def answers(url: str) -> bool:
    try:
        with psycopg.connect(libpq_url(url), connect_timeout=3):
            return True
    except psycopg.OperationalError:
        return False


class TestTransactionMode:
    def test_a_whole_job_is_done_and_exact(
        self, program: str, postgres: EmbeddedPostgres, scratch: Path, database_url: str, redis_url: str
    ) -> None:
        environment = {"ASSAY_DATABASE_POOLER": "transaction"}
        with (
            pgbouncer(program, postgres, scratch, database_url) as url,
            running_stack(
                scratch / "stack", database_url=url, redis_url=redis_url, workers=2, environment=environment
            ) as stack,
        ):
            assert stack.api.get("/readyz").json()["parts"]["row_level_security"] == "ok"
            jobs = [stack.submit(JOB | {"seed": seed}) for seed in (1, 2, 3)]
            for job in jobs:
                ended = stack.ended(job)
                assert (ended["status"], ended["completeness"]) == ("completed", "full")
                assert len(list(stack.responses(job))) == 24
            logs = "".join(file.read_text() for file in (scratch / "stack" / "logs").glob("[aws]*.log"))
        events = [json.loads(line) for line in logs.splitlines() if line.startswith("{")]
        assert [event for event in events if event["level"] in {"error", "critical"}] == []
        remedies = {event["remedy"] for event in events if "remedy" in event}
        assert [remedy.partition(";")[0] for remedy in remedies] == [
            "ALTER ROLE assay SET lock_timeout = '30s'"
        ]

    def test_migrations_run_through_it(
        self, program: str, postgres: EmbeddedPostgres, scratch: Path, database_url: str
    ) -> None:
        with pgbouncer(program, postgres, scratch, database_url) as url:
            for _ in range(3):
                assert upgrade(url) is None

    @pytest.mark.parametrize("pooler", ["none", "session"])
    async def test_prepared_statements_that_it_loses_are_explained(
        self, program: str, postgres: EmbeddedPostgres, scratch: Path, database_url: str, pooler: Pooler
    ) -> None:
        # From 1.22 on it keeps them, unless it is told not to.
        keeps = version_of(program) >= (1, 22)
        settings = ["ignore_startup_parameters = options", *["max_prepared_statements = 0"] * keeps]
        with pgbouncer(program, postgres, scratch, database_url, *settings) as url:
            unprepared = connect(url, pool_size=8, pooler="transaction")
            await _use_another_server(unprepared)
            await unprepared.dispose()
            engine = connect(url, pool_size=8, pooler=pooler)
            with pytest.raises(DBAPIError) as caught:
                await _use_another_server(engine)
            await engine.dispose()
        assert "see ASSAY_DATABASE_POOLER" in reason(caught.value)


async def _use_another_server(engine: AsyncEngine) -> None:
    """Repeats a statement until it is prepared, and once more while somebody else holds the server that knows it."""
    async with engine.connect() as one, engine.connect() as other:
        for n in range(12):
            await one.execute(text("SELECT 1 + :n"), {"n": n})
            await one.commit()
        await other.execute(text("SELECT 1"))
        await one.execute(text("SELECT 1 + :n"), {"n": 12})


class TestWithoutTheSetting:
    @pytest.mark.parametrize("part", ["worker1", "sweeper"])
    def test_a_process_does_not_start_and_names_the_setting(
        self, program: str, postgres: EmbeddedPostgres, scratch: Path, database_url: str, part: str
    ) -> None:
        with pgbouncer(program, postgres, scratch, database_url) as url:
            done = started_alone(part, scratch, url, "redis://127.0.0.1:9/0")
        assert done.returncode == 1
        assert "it is behind a connection pooler; see ASSAY_DATABASE_POOLER" in done.stderr
        assert "Traceback" not in done.stderr

    def test_where_it_ignores_the_parameters_the_api_warns(
        self, program: str, postgres: EmbeddedPostgres, scratch: Path, database_url: str, redis_url: str
    ) -> None:
        with (
            pgbouncer(program, postgres, scratch, database_url, "ignore_startup_parameters = options") as url,
            serving(scratch, url, redis_url) as service,
        ):
            assert service.log is not None
            log = service.log.read_text()
        assert '"event": "connection pooler"' in log
        assert "see ASSAY_DATABASE_POOLER" in log
