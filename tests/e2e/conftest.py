"""The stack that the tests of whole jobs share."""

from collections.abc import Iterator

import pytest

from embedded.valkey import EmbeddedValkey
from tests.conftest import scratch_directory
from tests.databases import Databases
from tests.e2e.stack import Stack, running_stack


@pytest.fixture(scope="module")
def stack(
    databases: Databases,
    template_database: str,
    valkey: EmbeddedValkey,
) -> Iterator[Stack]:
    """A running service for the tests of a module, whose jobs don't see each other."""
    with (
        databases.new("e2e", template=template_database) as url,
        scratch_directory() as directory,
        running_stack(directory, database_url=url, redis_url=valkey.url()) as running,
    ):
        yield running
