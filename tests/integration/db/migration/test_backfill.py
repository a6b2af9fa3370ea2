"""What a migration leaves to be done afterwards: on a real database, beside transactions that write."""

import threading
import time
from collections.abc import Iterator

import psycopg
import pytest
from alembic import command
from sqlalchemy.exc import DBAPIError

from app.db.migration.backfill import finish
from app.db.migration.migrate import alembic_config, migrate_to, upgrade
from tests.databases import Databases, libpq_url
from tests.next_release import NEXT, THIS

WRITTEN = ("responses", "verdicts", "second_verdicts", "grades", "calls", "budgets")

LEFT = ("ix_calls_failed", "ix_budgets_under_tenant")
"""Indexes of tables that have rows by then."""


@pytest.fixture
def behind(databases: Databases, next_release: None) -> Iterator[str]:
    """A database of this release, for the next one."""
    with databases.new("behind") as url:
        migrate_to(url, THIS)
        yield url


def unchecked(url: str) -> set[str]:
    with psycopg.connect(libpq_url(url)) as looking:
        rows = looking.execute("SELECT conname FROM pg_constraint WHERE NOT convalidated AND contype = 'c'")
        return {name for (name,) in rows}


def built(url: str, index: str = "ix_calls_failed") -> bool | None:
    """Whether an index is there and whole; ``None`` where it is not there."""
    with psycopg.connect(libpq_url(url)) as looking:
        row = looking.execute(
            "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", [index]
        ).fetchone()
    return None if row is None else bool(row[0])


def until_it_waits(url: str) -> None:
    """Until the index is being built, and waits for transactions that began before."""
    deadline = time.monotonic() + 60
    with psycopg.connect(libpq_url(url), autocommit=True) as looking:
        while time.monotonic() < deadline:
            waiting = looking.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'CREATE INDEX CONCURRENTLY%'"
                " AND wait_event_type = 'Lock' AND datname = current_database()"
            ).fetchone()
            if waiting and waiting[0]:
                return
            time.sleep(0.02)
    raise AssertionError("nobody builds an index")


class Finishing(threading.Thread):
    """Finishes a database beside the test."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self._url = url
        self.error: DBAPIError | None = None

    def run(self) -> None:
        try:
            finish(self._url)
        except DBAPIError as error:
            self.error = error


class TestFinish:
    def test_checks_and_builds_what_the_migrations_left(self, behind: str) -> None:
        command.upgrade(alembic_config(behind), "head")
        assert unchecked(behind) >= {f"ck_{table}_status" for table in WRITTEN[:4]}, "their rows were read"
        assert [built(behind, index) for index in LEFT] == [None, None]
        upgrade(behind)
        assert unchecked(behind) == set()
        assert [built(behind, index) for index in LEFT] == [True, True]

    def test_comes_with_moving_to_the_last_revision_and_with_no_other(self, behind: str) -> None:
        migrate_to(behind, NEXT)
        assert (unchecked(behind), built(behind)) == (set(), True)
        migrate_to(behind, THIS)
        assert built(behind) is None

    def test_holds_up_neither_who_writes_nor_who_reads(self, behind: str) -> None:
        command.upgrade(alembic_config(behind), "head")
        with (
            psycopg.connect(libpq_url(behind)) as older,
            psycopg.connect(libpq_url(behind)) as newer,
        ):
            for table in WRITTEN:
                older.execute(f"LOCK TABLE {table} IN ROW EXCLUSIVE MODE")  # as an INSERT does
            finishing = Finishing(behind)
            finishing.start()
            until_it_waits(behind)
            assert unchecked(behind) == set(), "no check waits for a writer"
            newer.execute("SET LOCAL lock_timeout = '30s'")
            for table in WRITTEN:  # would queue behind the lock of a plain CREATE INDEX
                newer.execute(f"LOCK TABLE {table} IN ROW EXCLUSIVE MODE")
                newer.execute(f"SELECT count(*) FROM {table}")
            newer.commit()
            assert finishing.is_alive()
            older.commit()
        finishing.join(60)
        assert (finishing.error, built(behind)) == (None, True)

    def test_takes_up_an_index_that_was_interrupted(self, behind: str) -> None:
        command.upgrade(alembic_config(behind), "head")
        with psycopg.connect(libpq_url(behind)) as older:
            older.execute("LOCK TABLE calls IN ROW EXCLUSIVE MODE")
            finishing = Finishing(behind)
            finishing.start()
            until_it_waits(behind)
            with psycopg.connect(libpq_url(behind), user="postgres", autocommit=True) as superuser:
                superuser.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE query LIKE 'CREATE INDEX CONCURRENTLY%' AND datname = current_database()"
                    " AND pid <> pg_backend_pid()"
                )
            finishing.join(60)
            assert finishing.error is not None
        assert built(behind) is False
        upgrade(behind)
        assert built(behind) is True

    def test_happens_once_where_several_machines_migrate(self, behind: str) -> None:
        command.upgrade(alembic_config(behind), "head")
        with psycopg.connect(libpq_url(behind)) as older:
            older.execute("LOCK TABLE calls IN ROW EXCLUSIVE MODE")
            machines = [Finishing(behind) for _ in range(3)]
            machines[0].start()
            until_it_waits(behind)
            for machine in machines[1:]:
                machine.start()
        for machine in machines:
            machine.join(60)
        assert [machine.error for machine in machines] == [None] * 3
        assert (unchecked(behind), built(behind)) == (set(), True)

    def test_of_a_finished_database_waits_for_nobody(self, behind: str) -> None:
        upgrade(behind)
        with psycopg.connect(libpq_url(behind)) as older:
            older.execute("LOCK TABLE calls IN ACCESS EXCLUSIVE MODE")
            finish(behind)
