"""Limits of requests: size of headers and body, and time for the body to arrive."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, MutableMapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.http.problems import RETRY_SECONDS, BrokenOffError, ProblemError, problem_response

MOST_HEADERS = 100
HEADER_BYTES = 32 * 1024
"""Of all headers together."""
URL_BYTES = 16 * 1024
"""Of path and query, as they were sent."""
BODIES_HELD = 16
"""So many of the longest bodies may be held at a time: those that arrive, and those that are worked on."""
TENANT_BODIES, KEY_BODIES = 8, 4
"""How many of them may be one tenant's, and one key's. A tenant's first one is taken even where others hold all."""
PUBLIC_BYTES = 8 * 1024
"""Longest body of a request without a key: a sign-in. Such bodies take no part of what is held for tenants."""
STALLED_SECONDS = 60.0
"""How long an answer's next part may wait for a reader who takes nothing."""


@dataclass(frozen=True, slots=True)
class Sender:
    """Who sends a body.

    Attributes:
        tenant: The key's tenant.
        key: The key's id; empty while the service has no keys.
    """

    tenant: str
    key: str


class Limits:
    """Refuses heads that are too long, and gives every request an :class:`Upload` to read its body by.

    Args:
        app: What handles the others.
        most_bytes: The longest body.
        seconds: How soon a body has to be there.
    """

    def __init__(self, app: ASGIApp, most_bytes: int, seconds: float) -> None:
        self._app = app
        self.most_bytes = most_bytes
        self.seconds = seconds
        self._held: Counter[str | Sender] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = _refusal(scope)
        if refusal is not None:
            status, code, detail = refusal
            await problem_response(Request(scope), status, code, detail)(scope, receive, send)
            return
        upload = Upload(self)
        scope.setdefault("state", {})["upload"] = upload
        try:
            await self._app(scope, receive, _to_readers(send))
        finally:
            upload.end()

    def hold(self, sender: Sender, size: int) -> None:
        """Counts bytes that a sender's request holds from now on, or no more.

        Raises:
            ProblemError: If they are too much beside the others that are held; they are counted all the same.
        """
        for share in (_ALL, sender.tenant, sender):
            self._held[share] += size
        self._held += Counter()  # forgets who holds nothing
        if size < 0:
            return
        for share, bodies, whose in (
            (sender, KEY_BODIES, "this key"),
            (sender.tenant, TENANT_BODIES, "this tenant"),
        ):
            if self._held[share] > bodies * self.most_bytes:
                raise _too_much(
                    HTTPStatus.TOO_MANY_REQUESTS,
                    f"{whose} has {self._held[share]:,} bytes of requests in flight",
                )
        if self._held[_ALL] > BODIES_HELD * self.most_bytes and self._held[sender.tenant] > self.most_bytes:
            raise _too_much(HTTPStatus.SERVICE_UNAVAILABLE, "too many bytes of requests are in flight")


_ALL = ""
"""What all senders hold together; no tenant is called so."""


def _too_much(status: HTTPStatus, why: str) -> ProblemError:
    headers = {"Retry-After": RETRY_SECONDS}
    return ProblemError(status, "too_many_uploads", f"{why}; try again", headers=headers)


class Upload:
    """A request's body as it arrives.

    Attributes:
        received: How much of it is there, in bytes.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._sender: Sender | None = None
        self.received = 0

    async def read(self, request: Request, sender: Sender | None) -> bytes:
        """The body.

        Args:
            request: Whose body it is.
            sender: Who sends it; ``None`` for a request that needs no key.

        Raises:
            ProblemError: If it is too long, too slow, or too much beside those of others.
        """
        limits = self._limits
        self._sender = sender
        announced = request.headers.get("content-length", "0")
        if announced.isdecimal() and int(announced) > self.most_bytes:
            raise self._too_long()
        try:
            async with asyncio.timeout(limits.seconds):
                return b"".join([chunk async for chunk in self._chunks(request)])
        except TimeoutError as error:
            detail = f"the body must arrive within {limits.seconds:g} s"
            headers = {"Connection": "close"}
            raise ProblemError(
                HTTPStatus.REQUEST_TIMEOUT, "body_too_slow", detail, headers=headers
            ) from error

    async def _chunks(self, request: Request) -> AsyncIterator[bytes]:
        async for chunk in request.stream():
            self.received += len(chunk)
            if self._sender is not None:
                self._limits.hold(self._sender, len(chunk))
            if self.received > self.most_bytes:
                raise self._too_long()
            yield chunk

    async def pieces(self, request: Request, sender: Sender, size: int) -> AsyncGenerator[bytes, None]:
        """The body in pieces of a size, the last one shorter, also where the sender breaks off; it may be of any length.

        Of what is held for the sender, a piece is part until the next one is asked for.

        Args:
            request: Whose body it is.
            sender: Who sends it.
            size: Of a piece.

        Raises:
            ProblemError: If nothing comes for long, or it is too much beside other bodies.
        """
        piece = bytearray()
        self._sender = sender
        try:
            async for chunk in _in_time(request.stream(), self._limits.seconds):
                self.received += len(chunk)
                self._limits.hold(sender, len(chunk))
                piece += chunk
                while len(piece) >= size:
                    yield bytes(piece[:size])
                    del piece[:size]
                    self._limits.hold(sender, -size)
                    self.received -= size
        except ClientDisconnect:
            if piece:
                yield bytes(piece)
            raise
        if piece:
            yield bytes(piece)

    def end(self) -> None:
        """Gives back what the body took of the bytes that may be held."""
        if self._sender is not None and self.received:
            self._limits.hold(self._sender, -self.received)

    @property
    def most_bytes(self) -> int:
        """How long the body may be."""
        most = self._limits.most_bytes
        return most if self._sender is not None else min(most, PUBLIC_BYTES)

    def _too_long(self) -> ProblemError:
        detail = f"the body may have at most {self.most_bytes:,} bytes"
        return ProblemError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body_too_large", detail)


async def _in_time(chunks: AsyncIterator[bytes], seconds: float) -> AsyncIterator[bytes]:
    """Chunks, each of which has to come within so many seconds."""
    while True:
        try:
            async with asyncio.timeout(seconds):
                chunk = await anext(chunks, None)
        except TimeoutError as error:
            detail = f"the next bytes must arrive within {seconds:g} s"
            headers = {"Connection": "close"}
            raise ProblemError(
                HTTPStatus.REQUEST_TIMEOUT, "body_too_slow", detail, headers=headers
            ) from error
        if chunk is None:
            return
        yield chunk


def _refusal(scope: Scope) -> tuple[HTTPStatus, str, str] | None:
    """What is said to a head that is too long."""
    headers = scope["headers"]
    if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > URL_BYTES:
        return HTTPStatus.REQUEST_URI_TOO_LONG, "url_too_long", f"a URL has at most {URL_BYTES:,} bytes"
    if len(headers) > MOST_HEADERS or sum(len(name) + len(value) for name, value in headers) > HEADER_BYTES:
        detail = f"a request may have at most {MOST_HEADERS} headers with {HEADER_BYTES:,} bytes in all"
        return HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "headers_too_large", detail
    return None


def _to_readers(send: Send) -> Send:
    """What to send by: a reader who takes nothing for long counts as one who has gone."""

    async def to_reader(message: MutableMapping[str, Any]) -> None:
        try:
            async with asyncio.timeout(STALLED_SECONDS):
                await send(message)
        except TimeoutError as error:
            raise BrokenOffError("the reader takes nothing") from error

    return to_reader
