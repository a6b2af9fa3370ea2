"""Connections on which no head comes, or whose reader takes nothing."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import uvicorn
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from app import serve
from app.api.http import limits, problems
from app.serve import BoundedHttp
from embedded.supervisor import free_port
from tests.observe import eventually

WHOLE = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"


async def slow_application(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers when twice the time has passed that a head may take."""
    await asyncio.sleep(2 * serve.HEAD_SECONDS)
    response: Response = PlainTextResponse(Request(scope).url.path)
    await response(scope, receive, send)


@pytest.fixture
async def port(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[int]:
    monkeypatch.setattr(serve, "HEAD_SECONDS", 0.3)
    monkeypatch.setattr(serve, "REST_SECONDS", 0.6)
    async with serving(slow_application) as free:
        yield free


@asynccontextmanager
async def serving(application: ASGIApp) -> AsyncIterator[int]:
    """The port at which an application is served."""
    free = free_port("127.0.0.1", 0)
    config = uvicorn.Config(
        application, port=free, http=BoundedHttp, lifespan="off", log_config=None, timeout_keep_alive=60
    )
    server = uvicorn.Server(config)
    running = asyncio.create_task(server.serve())
    await asyncio.to_thread(eventually, lambda: server.started)
    try:
        yield free
    finally:
        server.should_exit = True
        await running


async def told(port: int, *pieces: bytes) -> bytes:
    """All that comes back, until the connection is closed, when this is sent."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0.05)
    async with asyncio.timeout(30):
        found = await reader.read()
    writer.close()
    return found


class TestBoundedHttp:
    async def test_a_connection_on_which_nothing_comes_is_closed(self, port: int) -> None:
        assert await told(port) == b""

    async def test_half_a_head_is_a_408(self, port: int) -> None:
        assert (await told(port, WHOLE[:10])).startswith(b"HTTP/1.1 408 ")

    async def test_a_head_that_comes_in_time_is_answered_however_late(self, port: int) -> None:
        assert (await told(port, WHOLE[:10], WHOLE[10:])).startswith(b"HTTP/1.1 200 ")

    async def test_after_an_answer_the_next_head_is_waited_for_as_long(self, port: int) -> None:
        found = await told(port, WHOLE, WHOLE[:10])
        assert found.startswith(b"HTTP/1.1 200 ")
        assert b"HTTP/1.1 408 " in found

    async def test_the_rest_of_a_body_that_nobody_reads_is_not_waited_for_longer(self, port: int) -> None:
        unread = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\nx"
        assert (await told(port, unread)).startswith(b"HTTP/1.1 200 ")

    async def test_the_rest_of_a_body_is_read_before_a_connection_closes(self) -> None:
        """Closed with bytes unread it would be reset, and the answer lost to who sends all before reading."""
        head = b"POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 20000000\r\n\r\n"
        async with serving(PlainTextResponse("no")) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(head)
            async with asyncio.timeout(30):
                assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
                for _ in range(20):
                    writer.write(b"x" * 1_000_000)
                    await writer.drain()
                assert (await reader.read()).endswith(b"no")
            writer.close()

    async def test_after_the_rest_of_a_body_the_next_request_is_answered(self, port: int) -> None:
        unread = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n"
        assert (await told(port, unread, b"x" * 1000 + WHOLE)).count(b"HTTP/1.1 200 ") == 2

    async def test_no_more_of_a_body_is_read_than_a_bound(
        self, port: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(serve, "REST_BYTES", 1000)
        monkeypatch.setattr(serve, "REST_SECONDS", 60)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5000\r\n\r\n")
        async with asyncio.timeout(30):
            await reader.readuntil(b"\r\n\r\n/")
            writer.write(b"x" * 1001)
            with contextlib.suppress(ConnectionResetError):
                assert await reader.read() == b""
        writer.close()

    async def test_a_head_without_an_end_is_a_431(self, port: int) -> None:
        endless = b"GET / HTTP/1.1\r\nx: " + b"y" * serve.HEAD_BYTES
        assert (await told(port, endless, b"y")).startswith(b"HTTP/1.1 431 ")

    async def test_requests_that_come_together_are_each_answered(self, port: int) -> None:
        assert (await told(port, WHOLE * 3)).count(b"HTTP/1.1 200 ") == 3


class TestStalledReaders:
    async def test_one_is_left_without_an_error_of_ours(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setattr(limits, "STALLED_SECONDS", 0.2)
        ended = asyncio.Event()

        async def endless() -> AsyncIterator[bytes]:
            while True:
                yield b"x" * 65536

        async def watched(scope: Scope, receive: Receive, send: Send) -> None:
            try:
                await application(scope, receive, send)
            finally:
                ended.set()

        application = FastAPI()
        application.add_middleware(limits.Limits, most_bytes=1000, seconds=60)
        problems.install(application)
        application.get("/")(lambda: StreamingResponse(endless()))
        async with serving(watched) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
            writer.write(WHOLE)
            async with asyncio.timeout(30):
                await ended.wait()
                whole = await reader.read()
            writer.close()
        assert not whole.endswith(b"0\r\n\r\n")  # it does not look whole
        assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
