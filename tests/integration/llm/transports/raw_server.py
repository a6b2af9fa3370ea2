"""A server that says exactly the bytes that it is told to, and sees how each connection ends."""

import asyncio
import ssl
from collections import deque
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
"""What one connection does; once it returns, the connection is closed."""


def reply(body: bytes, *headers: bytes, status: bytes = b"200 OK") -> bytes:
    """A reply with a length."""
    lines = [b"HTTP/1.1 " + status, b"content-length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


async def read_request(reader: asyncio.StreamReader) -> bytes:
    """A request's body."""
    head = await reader.readuntil(b"\r\n\r\n")
    return await reader.readexactly(int(head.lower().rpartition(b"content-length: ")[2].split(b"\r\n")[0]))


def says(*answers: bytes, stays: bool = True) -> Script:
    """One answer for each request; after the last one it closes, or reads on until the client does."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            await read_request(reader)
            writer.write(answer)
            await writer.drain()
        if stays:
            await reader.read()

    return script


async def echoes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers every request with its own body."""
    while True:
        writer.write(reply(await read_request(reader)))


class RawServer:
    """Follows ``scripts`` in turn, one a connection, the last one for ever."""

    def __init__(self, *scripts: Script, tls: ssl.SSLContext | None = None) -> None:
        self._scripts = deque(scripts)
        self._tls = tls
        self._tasks: set[asyncio.Task[None]] = set()
        self.connections = 0

    @property
    def port(self) -> int:
        return int(self._server.sockets[0].getsockname()[1])

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def all_ended(self) -> None:
        """Returns once every connection so far has been closed by one of its sides."""
        async with asyncio.timeout(60):
            await asyncio.gather(*self._tasks)

    def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        script = self._scripts.popleft() if len(self._scripts) > 1 else self._scripts[0]
        task = asyncio.create_task(self._follow(script, reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _follow(
        self, script: Script, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            await script(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
