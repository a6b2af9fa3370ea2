"""Databases whose tables are not those of this release: told in words, by every process."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.errors import DeadlockDetected, LockNotAvailable, SerializationFailure
from sqlalchemy import make_url
from sqlalchemy.exc import OperationalError

from app.db.engine import connect
from app.db.health import is_away
from app.db.migration import migrate
from app.db.migration.migrate import MigrationError, alembic_config, current_revision, migrate_to, upgrade
from app.db.revision import SchemaState, revisions, schema_state, state_of
from tests.api.service import job_body, serving
from tests.databases import OWNER, Databases, libpq_url
from tests.integration.processes import started_alone
from tests.next_release import NEXT, THIS

NOWHERE_REDIS = "redis://127.0.0.1:9/0"


@pytest.fixture
def empty_database(databases: Databases) -> Iterator[str]:
    with databases.new("empty") as url:
        yield url


async def state(url: str) -> SchemaState:
    engine = connect(url)
    try:
        return await schema_state(engine)
    finally:
        await engine.dispose()


class TestState:
    async def test_tells_what_a_database_is(self, empty_database: str, next_release: None) -> None:
        assert await state(empty_database) is SchemaState.EMPTY
        migrate_to(empty_database, THIS)
        assert await state(empty_database) is SchemaState.BEHIND
        upgrade(empty_database)
        assert await state(empty_database) is SchemaState.CURRENT
        with psycopg.connect(libpq_url(empty_database)) as connection:
            connection.execute("UPDATE alembic_version SET version_num = '0003'")
        assert await state(empty_database) is SchemaState.NEWER
        assert SchemaState.NEWER.usable  # a migration only adds

    @pytest.mark.parametrize("revision", ["b1ac01b2d8ec", "0000", "made_by_hand"])
    async def test_an_unknown_one_is_refused_in_words(self, empty_database: str, revision: str) -> None:
        upgrade(empty_database)
        with psycopg.connect(libpq_url(empty_database)) as connection:
            connection.execute("UPDATE alembic_version SET version_num = %s", (revision,))
        assert await state(empty_database) is SchemaState.FOREIGN
        assert not SchemaState.FOREIGN.usable
        with pytest.raises(MigrationError, match=f"this release cannot migrate the database.*{revision}"):
            upgrade(empty_database)

    def test_the_revisions_are_alembics(self) -> None:
        from alembic.script import ScriptDirectory

        script = ScriptDirectory.from_config(alembic_config("postgresql+psycopg://nobody@nowhere/none"))
        assert revisions() == tuple(reversed([each.revision for each in script.walk_revisions()]))
        assert state_of(revisions()[-1]) is SchemaState.CURRENT


@pytest.mark.slow
class TestProcesses:
    @pytest.mark.parametrize(
        ("revision", "words"),
        [
            (None, "the database is without tables: run `assay migrate`"),
            (THIS, "the database is behind this release: run `assay migrate`"),
        ],
    )
    @pytest.mark.parametrize("part", ["worker1", "sweeper"])
    def test_a_worker_and_the_sweeper_do_not_start(
        self, empty_database: str, next_release: None, part: str, revision: str | None, words: str
    ) -> None:
        if revision is not None:
            migrate_to(empty_database, revision)
        done = started_alone(part, Path(), empty_database, NOWHERE_REDIS)
        assert done.returncode == 1
        assert words in done.stderr
        assert "Traceback" not in done.stderr

    def test_the_api_says_so_to_probes_and_to_clients_and_works_once_it_is_migrated(
        self, empty_database: str, next_release: None, redis_url: str, scratch: Path
    ) -> None:
        with serving(scratch, empty_database, redis_url) as service:
            ready = service.get("/readyz")
            assert ready.status_code == 503
            assert ready.json()["parts"]["schema"] == SchemaState.EMPTY.value
            for answer in (service.get("/v1/jobs"), service.post("/v1/jobs", job_body())):
                assert (answer.status_code, answer.json()["code"]) == (503, "schema_outdated")
                assert "assay migrate" in answer.json()["detail"]
            migrate_to(empty_database, THIS)
            assert service.get("/readyz").json()["parts"]["schema"] == SchemaState.BEHIND.value
            upgrade(empty_database)
            assert service.get("/readyz").json()["parts"]["schema"] == "ok"
            assert service.post("/v1/jobs", job_body()).status_code == 202
            assert service.log is not None
            assert "Traceback" not in service.log.read_text()


class TestMigrating:
    def test_goes_back_and_forth_between_any_two_revisions(
        self, empty_database: str, next_release: None
    ) -> None:
        for revision in (NEXT, THIS, NEXT):
            migrate_to(empty_database, revision)
            assert current_revision(empty_database) == revision
        upgrade(empty_database)

    def test_an_unknown_revision_is_refused(self, empty_database: str) -> None:
        with pytest.raises(MigrationError, match="no revision 2099; its revisions: 0001"):
            migrate_to(empty_database, "2099")

    @pytest.mark.parametrize(
        ("left", "words"),
        [("USAGE", "permission denied for schema public"), ("", "no schema has been selected to create in")],
    )
    def test_without_the_right_to_make_tables_it_says_who_gives_it(
        self, empty_database: str, left: str, words: str
    ) -> None:
        name = str(make_url(empty_database).database)
        with psycopg.connect(libpq_url(empty_database), user="postgres", autocommit=True) as superuser:
            superuser.execute("ALTER SCHEMA public OWNER TO postgres")
            superuser.execute("REVOKE ALL ON SCHEMA public FROM PUBLIC")
            superuser.execute(f"ALTER DATABASE {name} OWNER TO postgres".encode())
            if left:
                superuser.execute(f"GRANT {left} ON SCHEMA public TO {OWNER}".encode())
        with pytest.raises(MigrationError) as caught:
            upgrade(empty_database)
        assert words in str(caught.value)
        assert "GRANT CREATE, USAGE ON SCHEMA public TO" in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_one_that_meets_a_lock_tries_again_and_says_so(
        self, empty_database: str, next_release: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(migrate, "LOCK_SECONDS", 1)
        migrate_to(empty_database, THIS)
        told: list[str] = []
        with psycopg.connect(libpq_url(empty_database)) as busy:
            busy.execute("LOCK TABLE calls")
            moving = threading.Thread(target=upgrade, args=(empty_database,), kwargs={"tell": told.append})
            moving.start()
            deadline = time.monotonic() + 60
            while not told and time.monotonic() < deadline:
                time.sleep(0.05)
            busy.rollback()
        moving.join(60)
        assert told
        assert "another transaction held a lock for too long; nothing has changed, trying again" in told[0]
        assert current_revision(empty_database) == NEXT

    def test_one_that_deadlocks_with_a_worker_ends_and_the_worker_may_try_again(
        self, empty_database: str, next_release: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The worker holds what the migration wants second and asks for what it holds; its own patience is the longer one."""
        migrate_to(empty_database, THIS)
        told: list[str] = []
        monkeypatch.setattr(migrate, "FIRST_PAUSE_SECONDS", 0.1)
        with psycopg.connect(libpq_url(empty_database), user="postgres") as worker:
            worker.execute("SET deadlock_timeout = '1h'")
            worker.execute("LOCK TABLE verdicts IN ROW EXCLUSIVE MODE")  # as an UPDATE does
            moving = threading.Thread(target=upgrade, args=(empty_database,), kwargs={"tell": told.append})
            moving.start()
            _wait_for_lock(empty_database, "verdicts")
            worker.execute("LOCK TABLE calls IN ROW EXCLUSIVE MODE")
            worker.commit()
        moving.join(60)
        assert current_revision(empty_database) == NEXT
        assert any("deadlock with another transaction; nothing has changed" in line for line in told)


@pytest.mark.parametrize("error", [DeadlockDetected, LockNotAvailable, SerializationFailure])
def test_a_worker_takes_a_lock_that_it_does_not_get_for_no_error_of_ours(error: type[Exception]) -> None:
    assert is_away(OperationalError("UPDATE", None, error()))


def _wait_for_lock(url: str, table: str) -> None:
    """Until somebody waits for a table's lock."""
    deadline = time.monotonic() + 30
    with psycopg.connect(libpq_url(url), autocommit=True) as looking:
        while time.monotonic() < deadline:
            waiting = looking.execute(
                "SELECT count(*) FROM pg_locks WHERE relation = to_regclass(%s) AND NOT granted", (table,)
            ).fetchone()
            if waiting and waiting[0]:
                return
            time.sleep(0.05)
    raise AssertionError(f"nobody waits for {table}")
