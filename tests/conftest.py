"""Real databases for every test, from the launcher that `assay up` uses too."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import psycopg
import pytest
import redis

from embedded.postgres import EmbeddedPostgres
from embedded.valkey import EmbeddedValkey

TEMPLATE = "template_assay"
MEMORY = Path("/dev/shm")
MEMORY_BYTES = 1 << 30  # a session's databases take less; a container's /dev/shm often has 64 MB
_numbers = count(1)


@contextmanager
def scratch_directory() -> Iterator[Path]:
    """A directory in memory where there is room (a database is 12 ms there, up to 300 on a disk), else in the temporary one.

    Every account can pass through it, unlike pytest's own, which belong to one account.
    """
    in_memory = os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > MEMORY_BYTES
    with tempfile.TemporaryDirectory(prefix="assay-tests-", dir=MEMORY if in_memory else None) as name:
        directory = Path(name)
        directory.chmod(0o711)
        yield directory


@pytest.fixture
def scratch() -> Iterator[Path]:
    """An empty directory for a test's own servers."""
    with scratch_directory() as directory:
        yield directory


@pytest.fixture(scope="session")
def postgres() -> Iterator[EmbeddedPostgres]:
    """A Postgres server for the session (with pytest-xdist: for each worker; it starts in under a second)."""
    with scratch_directory() as directory, EmbeddedPostgres(directory / "postgres", durable=False) as server:
        yield server


@pytest.fixture(scope="session")
def maintenance(postgres: EmbeddedPostgres) -> Iterator[psycopg.Connection]:
    """A connection that makes and drops databases."""
    with psycopg.connect(libpq_url(postgres.url("postgres")), autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="session")
def template_database(postgres: EmbeddedPostgres, maintenance: psycopg.Connection) -> str:
    """The name of a database with the current schema and no rows."""
    from app.db.migrate import upgrade

    maintenance.execute(f"CREATE DATABASE {TEMPLATE}")
    upgrade(postgres.url(TEMPLATE))
    return TEMPLATE


@pytest.fixture
def database_url(
    postgres: EmbeddedPostgres, maintenance: psycopg.Connection, template_database: str
) -> Iterator[str]:
    """The SQLAlchemy URL of a database of the test's own, with the current schema and no rows."""
    name = f"test_{next(_numbers)}"
    maintenance.execute(f"CREATE DATABASE {name} TEMPLATE {template_database} STRATEGY file_copy")
    yield postgres.url(name)
    maintenance.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def valkey() -> Iterator[EmbeddedValkey]:
    """A Valkey server for the session (with pytest-xdist: for each worker)."""
    with scratch_directory() as directory, EmbeddedValkey(directory / "valkey") as server:
        yield server


@pytest.fixture
def redis_url(valkey: EmbeddedValkey) -> Iterator[str]:
    """The redis-py URL of an empty server; all its numbered databases are the test's own."""
    yield valkey.url()
    with redis.Redis.from_url(valkey.url()) as client:
        client.flushall()


def libpq_url(url: str) -> str:
    """A SQLAlchemy URL in the form that psycopg itself takes."""
    return url.replace("postgresql+psycopg://", "postgresql://", 1)
