"""A clock that jumps, and a server that a test may kill."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from embedded.valkey import EmbeddedValkey
from tests.virtual_time import VirtualTimeLoop, redis_in_virtual_time


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"virtual time": VirtualTimeLoop}


@pytest.fixture(autouse=True)
def virtual_time() -> Iterator[None]:
    with redis_in_virtual_time():
        yield


@pytest.fixture
def own_valkey(tmp_path: Path) -> Iterator[EmbeddedValkey]:
    """A server that a test may kill."""
    with EmbeddedValkey(tmp_path / "valkey") as server:
        yield server
