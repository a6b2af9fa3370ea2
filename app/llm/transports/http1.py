"""One HTTP/1.1 connection on an asyncio protocol; the parsing is llhttp's, strict, through httptools."""

import asyncio
import re
import select
import socket
from collections.abc import Callable
from typing import cast

import httptools

from app.llm.replies.transport_reply import LostConnectionError, Reply, ReplyTooLongError, words_of

MAX_HEAD_BYTES = 64 * 1024
"""Longest status line and headers, those of interim replies (1xx) included; looked at after each read."""
MAX_BODY_BYTES = 10 * 1024 * 1024
"""Longest body, as sent and decoded."""

QUIET_SECONDS = 0.05
"""How long a connection must bring nothing further before its reply counts as the answer to its request."""
_LOOKS = 3
MOST_REPLIES = 100
"""Replies of one connection. Bytes that no request waits for make all of them suspect."""

_UNASKED = re.compile(rb"[\r\n]*(HTTP/1\.[01] 408 .*)?", re.DOTALL)
"""Says nothing about earlier replies: empty lines, and the notice that a server is tired of waiting (RFC 9110 section 15.5.9)."""
_START = b"HTTP/1."
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_SWITCHING_PROTOCOLS = 101
_INTERIM_STATUSES = range(100, 200)
_FINAL_STATUSES = range(200, 600)
_VERSIONS = frozenset({"1.0", "1.1"})


class ConnectionDelivery:
    """Tells whether a connection brought bytes that no request was waiting for, at once or later.

    Attributes:
        is_suspect: It did, so the reply may be another request's.
    """

    __slots__ = ("_connection", "_tell", "_until", "is_suspect")

    def __init__(self, connection: "HttpConnection", until: float, *, is_suspect: bool) -> None:
        self._connection = connection
        self._until = until
        self._tell: Callable[[], None] | None = None
        self.is_suspect = is_suspect

    @property
    def is_doubtful(self) -> bool:
        """Whether the reply must not be used before it is settled: it is suspect, or another of the server's was lately."""
        connection = self._connection
        return self.is_suspect or not connection.trusts(connection.loop.time())

    async def settled(self) -> bool:
        """Wait until the connection has stayed quiet; return false if it did not."""
        seconds = self._until - asyncio.get_running_loop().time()
        if seconds > 0 and not self.is_suspect and self._connection.is_open:
            await asyncio.sleep(seconds)
            looks = _LOOKS
            while looks and not self._connection.quiet:
                looks -= 1
                await asyncio.sleep(0)  # the loop reads what has come
        return not self.is_suspect

    def watch(self, tell: Callable[[], None]) -> None:
        """Call a function once if the reply becomes suspect, or is so already."""
        if self.is_suspect:
            tell()
        elif self._connection.is_open:
            self._tell = tell

    def become_suspect(self) -> None:
        """Take note of bytes that no request was waiting for."""
        self.is_suspect = True
        if self._tell is not None:
            self._tell()


class HttpConnection(asyncio.Protocol):
    """Exchanges one request at a time for one reply.

    Bytes that come while no reply is awaited, or after its end, close the connection and make its replies suspect: one
    of them may be the answer to another request. Whatever ends an exchange before its reply is whole closes it, too.

    Args:
        sock: The connected socket under the transport, looked at before a request is sent.
        on_surplus: Called once with the number of suspect replies.
        trusts: Tells whether no connection to the server has brought surplus bytes lately, by a moment of the loop's clock.

    Attributes:
        loop: Its loop.
    """

    __slots__ = (
        "_body", "_closed", "_delivered", "_doubt", "_framed", "_head", "_headers", "_headers_done", "_is_suspect", "_keep_alive",
        "_length", "_next_begun", "_on_surplus", "_parser", "_poll", "_received", "_status", "_transport", "_waiter", "loop", "released_at",
        "trusts",
    )  # fmt: skip

    _transport: asyncio.Transport

    def __init__(
        self, sock: socket.socket, on_surplus: Callable[[int], None], trusts: Callable[[float], bool]
    ) -> None:
        self._on_surplus = on_surplus
        self.trusts = trusts
        self._delivered: list[ConnectionDelivery] = []
        self._is_suspect = False
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)  # errors and hang-ups are told of in any case
        self.loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self._waiter: asyncio.Future[Reply] | None = None
        self._closed = False
        self._begin()
        self.released_at = 0.0

    async def exchange(self, message: bytes) -> Reply:
        """Return the reply to a whole request.

        Raises:
            LostConnectionError: If the connection broke, or its peer does not keep to HTTP.
            ReplyTooLongError: If the reply is longer than an answer can be.
        """
        waiter: asyncio.Future[Reply] = self.loop.create_future()
        self._waiter = waiter
        self._begin()
        self._transport.write(message)
        try:
            return await waiter
        except BaseException:
            self.abort()  # the rest of the reply may still come
            raise

    @property
    def is_open(self) -> bool:
        """Whether bytes may still come."""
        return not self._closed

    @property
    def reusable(self) -> bool:
        """Whether the last exchange has left nothing behind: all was sent, all was read, and both sides stay."""
        return (
            not self._closed
            and self._keep_alive
            and len(self._delivered) < MOST_REPLIES
            and self._waiter is None
            and not self._transport.is_closing()
            and self._transport.get_write_buffer_size() == 0
        )

    @property
    def quiet(self) -> bool:
        """Whether neither bytes nor the peer's closing wait in the socket, where the loop has not seen them yet."""
        return not self._poll.poll(0)

    def give_up(self) -> None:
        """Ends an exchange that has taken too long."""
        self._fail(TimeoutError())

    def abort(self) -> None:
        """Closes the connection at once."""
        self._closed = True
        self._transport.abort()

    def _begin(self) -> None:
        self._status = 0
        self._received = self._length = 0
        self._headers: list[tuple[bytes, bytes]] = []
        self._head = bytearray()
        self._doubt: Exception | None = None
        self._headers_done = self._framed = self._next_begun = False
        self._keep_alive = True
        self._body: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Part of asyncio.Protocol."""
        self._transport = cast("asyncio.Transport", transport)

    def eof_received(self) -> None:
        """Part of asyncio.Protocol. The transport closes itself; no request may be written meanwhile."""
        self._closed = True

    def connection_lost(self, exc: Exception | None) -> None:
        """Part of asyncio.Protocol."""
        self._closed = True
        self._delivered.clear()
        if self._waiter is None:
            return
        if exc is None and self._headers_done and not self._framed:
            self._complete()  # a body without a length ends where the connection does
        else:
            why = words_of(exc) if exc else "the server closed the connection before its reply was complete"
            self._fail(LostConnectionError(why))

    def data_received(self, data: bytes) -> None:
        """Part of asyncio.Protocol."""
        if self._waiter is None:
            self._end_with(data)
            return
        self._received += len(data)
        if not self._headers_done:
            self._head += data
        if self._doubt is None:
            try:
                self._parser.feed_data(data)
            except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
                self._doubt = error
        if self._doubt is not None:
            self._read_leniently(self._doubt)
        if self._next_begun and not self._is_suspect:
            self._end_with(data[-1:])
        if not self._headers_done and self._received > MAX_HEAD_BYTES:
            self._fail(LostConnectionError("no HTTP reply: its headers are too long"))

    def _read_leniently(self, error: Exception) -> None:
        """Read a head again that llhttp refuses for what leaves no doubt; the connection is not used again."""
        head = bytes(self._head)
        if not self._headers_done and head.startswith(_START) and _HEAD_END.search(head) is None:
            return  # the rest of the head is still to come
        plain = None if self._headers_done else plain_head(head)
        if plain is None:
            self._fail(LostConnectionError(f"no HTTP reply: {error}"))
            return
        received = self._received
        self._begin()
        self._received = received
        self._parser = httptools.HttpResponseParser(self)
        self._parser.set_dangerous_leniencies(lenient_optional_cr_before_lf=True)  # in the lines of chunks
        self._closed = True
        try:
            self._parser.feed_data(plain)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._fail(LostConnectionError(f"no HTTP reply: {error}"))

    def on_message_begin(self) -> None:
        """Part of httptools' protocol."""
        self._next_begun = self._waiter is None  # empty lines begin a message, too

    def on_status(self, _: bytes) -> None:
        """Part of httptools' protocol."""
        if self._waiter is None:
            self._suspect()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Part of httptools' protocol."""
        if not self._headers_done:  # after the body come trailers, which nobody reads
            self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Part of httptools' protocol."""
        if self._waiter is None:
            return
        self._status = status = self._parser.get_status_code()
        if status in _FINAL_STATUSES:
            self._headers_done = True
            self._check_framing()
        elif status in _INTERIM_STATUSES and status != _SWITCHING_PROTOCOLS:
            self._headers.clear()  # an interim reply: the final one follows
        else:
            self._fail(LostConnectionError(f"no reply to a request has status {status}"))

    def on_body(self, body: bytes) -> None:
        """Part of httptools' protocol."""
        self._length += len(body)
        if self._length > MAX_BODY_BYTES:
            self._fail(ReplyTooLongError(f"the reply is longer than {MAX_BODY_BYTES} bytes"))
        elif self._waiter is not None:
            self._body.append(body)

    def on_message_complete(self) -> None:
        """Part of httptools' protocol."""
        if self._headers_done and self._waiter is not None:
            self._keep_alive = self._parser.should_keep_alive()
            self._complete()

    def _check_framing(self) -> None:
        """Refuses what parsers disagree about, in addition to what llhttp refuses (two lengths, both framings)."""
        codings, lengths = [], []
        for name, value in self._headers:
            if name == b"content-length":
                lengths.append(value)
            elif name == b"transfer-encoding":
                codings.append(value.lower())
        self._framed = bool(codings or lengths)
        if codings not in ([], [b"chunked"]) or len(lengths) + len(codings) > 1:
            self._fail(LostConnectionError("no HTTP reply: its framing is ambiguous"))
        elif self._parser.get_http_version() not in _VERSIONS:
            self._fail(LostConnectionError("no HTTP/1.1 reply"))
        elif lengths and int(lengths[0]) > MAX_BODY_BYTES:
            self._fail(ReplyTooLongError(f"the reply is longer than {MAX_BODY_BYTES} bytes"))

    def _complete(self) -> None:
        headers: dict[str, str] = {}
        for raw_name, raw_value in self._headers:
            name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            until = self.loop.time() + QUIET_SECONDS
            delivery = ConnectionDelivery(self, until, is_suspect=self._is_suspect)
            self._delivered.append(delivery)
            waiter.set_result(Reply(self._status, headers, b"".join(self._body), delivery))

    def _end_with(self, data: bytes) -> None:
        """Close the connection because of bytes that no request is waiting for."""
        if _UNASKED.fullmatch(data) is None:
            self._suspect()
        self.abort()

    def _suspect(self) -> None:
        """Make all replies of the connection suspect, once, and close it."""
        if self._closed or self._is_suspect:
            return
        self._is_suspect = True
        self.abort()
        for delivery in self._delivered:
            delivery.become_suspect()
        self._on_surplus(len(self._delivered) or 1)

    def _fail(self, error: Exception) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is None:
            self._suspect()
        self._keep_alive = False
        if waiter is not None and not waiter.done():
            waiter.set_exception(error)
        self.abort()


def plain_head(received: bytes) -> bytes | None:
    """Rewrite a whole head that ends its lines with bare line feeds, repeats one length, or names the coding ``identity``.

    RFC 9112 sections 2.2 and 6.3 let a client read the first two. Lengths that differ, and a length beside a coding, stay as they are.

    Returns:
        The reply with that head; ``None`` if there is nothing to rewrite, or the head is not whole.
    """
    head, *rest = _HEAD_END.split(received, maxsplit=1)
    if not rest or b"\r" in head.replace(b"\r\n", b"\n"):
        return None
    kept: list[bytes] = []
    lengths: set[bytes] = set()
    for line in head.replace(b"\r\n", b"\n").split(b"\n"):
        name, _, value = line.partition(b":")
        match name.lower():
            case b"content-length":
                lengths |= {one.strip() for one in value.split(b",")}
            case b"transfer-encoding" if value.strip().lower() == b"identity":
                pass
            case _:
                kept.append(line)
    if len(lengths) > 1:
        return None
    kept += [b"content-length: " + length for length in lengths]
    plain = b"\r\n".join(kept) + b"\r\n\r\n" + rest[0]
    return None if plain == received else plain
