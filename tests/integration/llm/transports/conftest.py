"""A pool against raw sockets, on both kinds of loop: workers run on uvloop, everything else on asyncio's own."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack

import pytest
import uvloop

from app.llm.transports import pool as pool_module
from app.llm.transports.pool import Pool, Server
from tests.integration.llm.transports.raw_server import RawServer

OpenPool = Callable[[RawServer], Pool]


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture
def rests_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections are used again at once."""
    monkeypatch.setattr(pool_module, "REST_SECONDS", 0.0)


@pytest.fixture
async def open_pool() -> AsyncIterator[OpenPool]:
    async with AsyncExitStack() as stack:

        def open_to(server: RawServer) -> Pool:
            pool = Pool(Server("127.0.0.1", server.port))
            stack.push_async_callback(pool.close)
            return pool

        yield open_to


def request(body: bytes) -> bytes:
    """A whole request."""
    return b"POST /v1 HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)


def soon() -> float:
    """A deadline that nothing here comes near."""
    return asyncio.get_running_loop().time() + 30.0
