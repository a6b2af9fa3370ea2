"""Real databases for every test, from the launcher that `assay up` uses too."""

import asyncio
import gc
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import hypothesis
import pytest
import redis
import structlog
from sqlalchemy import make_url

from embedded.postgres import EmbeddedPostgres
from embedded.valkey import EmbeddedValkey
from tests.databases import Databases, databases_on

if TYPE_CHECKING:
    from tests.e2e.stack import Stack
    from tests.virtual_time import VirtualTimeLoop
    from tests.world import World

# On a busy machine what takes long is no error.
hypothesis.settings.register_profile("fixed", deadline=None, derandomize=True)
hypothesis.settings.register_profile("random", deadline=None)
hypothesis.settings.load_profile("fixed")

_configure = structlog.configure


def _configure_uncached(**options: Any) -> None:
    _configure(**options | {"cache_logger_on_first_use": False})


# Keeps every logger capturable: a cached one never sees a later configuration. Here and not in a hook, as the other
# conftest.py files, which are imported next and before any hook is called, build the application, which configures logging.
mock.patch.object(structlog, "configure", _configure_uncached).start()

TEMPLATE = "template_assay"
MEMORY = Path("/dev/shm")
MEMORY_BYTES = 1 << 30  # a session's databases take less; a container's /dev/shm often has 64 MB


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds what `make pins` runs with."""
    parser.addoption(
        "--renew-pins",
        action="store_true",
        help="write tests/golden/pinned_results.json instead of comparing",
    )


def pytest_collection_finish() -> None:
    """Has the garbage collector leave alone what the tests themselves are made of: it takes half a second to look through."""
    gc.collect()
    gc.freeze()


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


@pytest.fixture(scope="session", autouse=True)
def _garbage() -> None:
    """Python's own thresholds: what a test measures of memory is what is held, and not what is looked for rarely."""
    gc.set_threshold(700, 10, 10)


@pytest.fixture(scope="module", autouse=True)
def _what_is_left_open() -> Iterator[None]:
    """Collects what a module's tests left open, whose warning else fails whatever test runs when it is collected.

    What is still in use then is not looked through again: it grows with every module.
    """
    yield
    gc.collect()
    gc.freeze()


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
def databases(postgres: EmbeddedPostgres) -> Iterator[Databases]:
    """Makes databases on the session's server."""
    with databases_on(postgres) as made:
        yield made


@pytest.fixture(scope="session")
def template_database(databases: Databases) -> Iterator[str]:
    """The name of a database with the current schema and no rows."""
    from app.db.migration.migrate import upgrade

    with databases.new(TEMPLATE) as url:
        upgrade(url)
        yield str(make_url(url).database)


@pytest.fixture
def database_url(databases: Databases, template_database: str) -> Iterator[str]:
    """The SQLAlchemy URL of a database of the test's own, with the current schema and no rows."""
    with databases.new("test", template=template_database) as url:
        yield url


@pytest.fixture(scope="session")
def world_clock() -> Iterator[Path]:
    """A file with the time of the worlds' databases."""
    with scratch_directory() as directory:
        yield directory / "clock"


@pytest.fixture(scope="session")
def world_template(databases: Databases, world_clock: Path) -> Iterator[str]:
    """The name of a database like :func:`template_database` that reads its time from a file."""
    from app.db.migration.migrate import upgrade
    from tests.virtual_time import own_clock

    with databases.new(TEMPLATE) as url:
        name = str(make_url(url).database)
        with databases.superuser(name) as connection:
            own_clock(connection, name, world_clock)
        upgrade(url)
        yield name


@pytest.fixture
async def world(
    databases: Databases, world_template: str, redis_url: str, world_clock: Path, tmp_path: Path
) -> AsyncIterator["World"]:
    """The service and a scripted provider on a clock that the test moves; see :mod:`tests.world`."""
    from tests.virtual_time import use_own_clock
    from tests.world import new_world

    with databases.new("world", template=world_template) as url:
        use_own_clock(databases.maintenance, str(make_url(url).database))
        async with new_world(tmp_path, url, redis_url, world_clock) as made:
            yield made


@pytest.fixture
async def virtual_time() -> AsyncIterator["VirtualTimeLoop"]:
    """The test's event loop, whose time jumps, for the service's code and for what it asks of Redis."""
    from tests.virtual_time import VirtualTimeLoop, python_in_virtual_time, redis_in_virtual_time

    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    with python_in_virtual_time(loop), redis_in_virtual_time():
        yield loop


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Runs tests of a world, and those that ask for its time alone, on a loop whose time they move."""
    if {"world_template", "virtual_time"} & set(getattr(item, "fixturenames", ())):
        from tests.virtual_time import VirtualTimeLoop

        return {"virtual time": VirtualTimeLoop}
    return {"real time": asyncio.new_event_loop}


@pytest.fixture
def next_release(tmp_path: Path) -> Iterator[None]:
    """The release after this one, whose last migration this one lacks."""
    from tests.next_release import next_release

    with next_release(tmp_path / "next_release"):
        yield


@pytest.fixture(scope="session")
def valkey() -> Iterator[EmbeddedValkey]:
    """A Valkey server for the session (with pytest-xdist: for each worker)."""
    with scratch_directory() as directory, EmbeddedValkey(directory / "valkey") as server:
        yield server


@pytest.fixture
def redis_url(valkey: EmbeddedValkey) -> Iterator[str]:
    """The redis-py URL of an empty server; all its numbered databases are the test's own."""
    with redis.Redis.from_url(valkey.url()) as client:
        client.flushall()  # of what a test's own processes wrote while they ended
        yield valkey.url()
        client.flushall()


@pytest.fixture(scope="session")
def common_database(databases: Databases, template_database: str) -> Iterator[str]:
    """The SQLAlchemy URL of the common stack's database."""
    with databases.new("common", template=template_database) as url:
        yield url


@pytest.fixture(scope="session")
def common_stack(common_database: str) -> Iterator["Stack"]:
    """A running service for a session's modules that need nothing special of it; jobs don't see each other.

    Its Valkey is its own: the session's is emptied by other tests.
    """
    from tests.e2e.stack import running_stack

    with (
        scratch_directory() as directory,
        EmbeddedValkey(directory / "valkey") as queue,
        running_stack(directory / "stack", database_url=common_database, redis_url=queue.url()) as running,
    ):
        yield running
