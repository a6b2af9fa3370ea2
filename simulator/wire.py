"""HTTP/1.1 with keep-alive on an asyncio protocol: the least work a request that Python can do."""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import cast

import httptools

from simulator.slots import Slots, Turn

MAX_REQUEST_BYTES = 16 * 2**20

_REASONS = {status.value: status.phrase for status in HTTPStatus}


@dataclass(slots=True)
class Request:
    """A complete HTTP request.

    Attributes:
        method: In capitals.
        path: Without the query.
        headers: Names in lower case; of a repeated header the last value.
        body: As sent, without transfer encoding.
    """

    method: bytes
    path: bytes
    headers: dict[bytes, bytes]
    body: bytes


@dataclass(slots=True)
class Answer:
    """What to send, and when.

    Attributes:
        message: A complete HTTP message, or its head if `stream` follows.
        delay: Seconds to wait before sending.
        slots: Where it waits for its turn and is computed, in place of `delay`.
        settle: Called once with True after the message was handed to the socket, or False if the client left before.
        stream: The rest of the body, in pieces that are read as fast as the client takes them.
    """

    message: bytes
    delay: float = 0.0
    slots: Slots | None = None
    settle: Callable[[bool], None] | None = None
    stream: Iterator[bytes] | None = None


Handler = Callable[[Request], Answer]

TOO_LARGE = Request(b"", b"", {}, b"")
"""Handled in place of a request that is longer than MAX_REQUEST_BYTES."""


class Departures:
    """Delays callbacks by whole milliseconds, with one timer of the loop a millisecond instead of one a callback.

    That saves a third of the CPU time of a delayed reply.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._slots: dict[int, list[Callable[[], None]]] = {}

    def after(self, delay: float, callback: Callable[[], None]) -> None:
        """Calls `callback` in `delay` seconds."""
        slot = round(self._loop.time() * 1000) + math.ceil(delay * 1000)
        callbacks = self._slots.get(slot)
        if callbacks is None:
            self._slots[slot] = [callback]
            self._loop.call_at(slot / 1000, self._depart, slot)
        else:
            callbacks.append(callback)

    def _depart(self, slot: int) -> None:
        for callback in self._slots.pop(slot):
            callback()


class HttpConnection(asyncio.Protocol):
    """One client's connection. Requests are answered one after the other, in their order.

    Args:
        handler: Answers a request.
        departures: Delays the answers.
        open_connections: Where the connection lists itself while it is open.
    """

    __slots__ = (
        "_answer", "_body", "_departures", "_handler", "_headers", "_keep_alive", "_loop", "_open", "_parser",
        "_path", "_paused", "_size", "_stream", "_transport", "_turn", "_waiting",
    )  # fmt: skip

    def __init__(
        self, handler: Handler, departures: Departures, open_connections: "set[HttpConnection]"
    ) -> None:
        self._handler = handler
        self._departures = departures
        self._open = open_connections
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._waiting: deque[tuple[Request, bool]] = deque()
        self._answer: Answer | None = None
        self._turn: Turn | None = None
        self._stream: Iterator[bytes] | None = None
        self._paused = False
        self._size = 0
        self._keep_alive = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Part of asyncio.Protocol."""
        self._transport = cast("asyncio.Transport", transport)
        self._open.add(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # asyncio's signature
        """Part of asyncio.Protocol: forgets what was not answered yet."""
        self._open.discard(self)
        self._waiting.clear()
        answer, self._answer, self._stream = self._answer, None, None
        if answer is not None and answer.slots is not None and self._turn is not None:
            answer.slots.leave(self._turn)
        if answer is not None and answer.settle is not None:
            answer.settle(False)

    def data_received(self, data: bytes) -> None:
        """Part of asyncio.Protocol."""
        self._size += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._transport.write(
                b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            )
            self._transport.close()
            return
        if self._size > MAX_REQUEST_BYTES:
            self._transport.pause_reading()
            self._accept(TOO_LARGE, keep_alive=False)

    def on_message_begin(self) -> None:
        """Part of httptools' protocol."""
        self._path = b""
        self._headers: dict[bytes, bytes] = {}
        self._body: list[bytes] = []

    def on_url(self, url: bytes) -> None:
        """Part of httptools' protocol."""
        self._path += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Part of httptools' protocol."""
        self._headers[name.lower()] = value

    def on_body(self, body: bytes) -> None:
        """Part of httptools' protocol."""
        self._body.append(body)

    def on_message_complete(self) -> None:
        """Part of httptools' protocol."""
        self._size = 0
        path, body = self._path.partition(b"?")[0], b"".join(self._body)
        request = Request(self._parser.get_method(), path, self._headers, body)
        self._accept(request, keep_alive=self._parser.should_keep_alive())

    def close(self) -> None:
        """Ends the connection; what was not answered yet stays unanswered."""
        self._transport.abort()

    def _accept(self, request: Request, *, keep_alive: bool) -> None:
        if self._answer is None and not self._waiting:
            self._begin(request, keep_alive)
        else:
            self._waiting.append((request, keep_alive))

    def _begin(self, request: Request, keep_alive: bool) -> None:
        self._keep_alive = keep_alive
        self._answer = answer = self._handler(request)
        if answer.slots is not None:
            self._turn = answer.slots.enter(self._send)
        elif answer.delay > 0:
            self._departures.after(answer.delay, self._send)
        else:
            self._send()

    def _send(self) -> None:
        answer = self._answer
        if answer is None:  # the client has left
            return
        self._turn = None
        message = answer.message
        if not self._keep_alive:
            message = message.replace(b"\r\n", b"\r\nconnection: close\r\n", 1)
        self._transport.write(message)
        if answer.settle is not None:
            answer.settle(True)
            answer.settle = None
        self._stream = answer.stream
        if self._stream is None:
            self._finish()
        else:
            self._pump()

    def pause_writing(self) -> None:
        """Part of asyncio.Protocol: the client takes a stream slower than it is read."""
        self._paused = True

    def resume_writing(self) -> None:
        """Part of asyncio.Protocol."""
        self._paused = False
        self._pump()

    def _pump(self) -> None:
        if self._stream is None or self._paused:
            return
        piece = next(self._stream, None)
        if piece is None:
            self._finish()
        else:
            self._transport.write(piece)
            self._loop.call_soon(self._pump)

    def _finish(self) -> None:
        self._answer = self._stream = None
        if not self._keep_alive:
            self._transport.close()
        elif self._waiting:
            self._loop.call_soon(self._begin_next)

    def _begin_next(self) -> None:
        if self._answer is None and self._waiting:
            self._begin(*self._waiting.popleft())


def json_message(status: int, body: str, headers: str = "") -> bytes:
    """A complete HTTP message with a JSON body of pure ASCII; each of `headers` is ended by CRLF."""
    return f"{head(status, len(body), headers)}{body}".encode("ascii")


def head(status: int, length: int, headers: str = "", content_type: str = "application/json") -> str:
    """The head of an HTTP message whose body has `length` bytes."""
    return (
        f"HTTP/1.1 {status} {_REASONS.get(status, 'Overloaded')}\r\ndate: {_date(int(time.time()))}\r\n"
        f"content-type: {content_type}\r\ncontent-length: {length}\r\n{headers}\r\n"
    )


@lru_cache(maxsize=1)
def _date(now: int) -> str:
    return formatdate(now, usegmt=True)
