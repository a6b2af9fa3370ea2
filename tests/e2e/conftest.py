"""The stack that the tests of whole jobs share."""

from collections.abc import Iterator

import psycopg
import pytest

from embedded.postgres import EmbeddedPostgres
from embedded.valkey import EmbeddedValkey
from tests.conftest import scratch_directory
from tests.e2e.stack import Stack, running_stack


@pytest.fixture(scope="module")
def stack(
    postgres: EmbeddedPostgres,
    maintenance: psycopg.Connection,
    template_database: str,
    valkey: EmbeddedValkey,
) -> Iterator[Stack]:
    """A running service for the tests of a module, whose jobs don't see each other."""
    maintenance.execute(f"CREATE DATABASE e2e TEMPLATE {template_database} STRATEGY file_copy")
    with (
        scratch_directory() as directory,
        running_stack(directory, database_url=postgres.url("e2e"), redis_url=valkey.url()) as running,
    ):
        yield running
    maintenance.execute("DROP DATABASE e2e WITH (FORCE)")
