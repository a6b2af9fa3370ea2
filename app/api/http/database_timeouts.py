"""Time-outs of requests on a database that does not answer."""

import asyncio
from collections.abc import MutableMapping
from typing import Any

import structlog
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.http.problems import database_unavailable
from app.db.health import answers

log = structlog.get_logger(__name__)

CHECK_SECONDS = 3.0
"""After so long without the first byte of an answer, and again and again, it is asked whether the database answers."""

PROBE_SECONDS = 1.5
"""How soon it has to say so."""

NAME = "assay api, probe"
PROBES = 2
"""Connections of their own for asking: a pool that busy requests have used up is no frozen database."""


class _GuardedSend:
    """What a handler sends through, until it is shut."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.used = self.shut = False

    async def send(self, message: MutableMapping[str, Any]) -> None:
        if not self.shut:
            self.used = True
            await self._send(message)


class DatabaseTimeoutMiddleware:
    """Answers 503 in place of a handler that waits for a frozen database; one that is only slow has all the time.

    Timeouts of the server don't help against a server that stands still, and a query that hangs can't be awaited.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._left: set[asyncio.Task[None]] = set()
        self._asked: asyncio.Task[bool] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        guarded = _GuardedSend(send)
        handler = asyncio.create_task(self._run(scope, receive, guarded.send))
        try:
            while not (await asyncio.wait({handler}, timeout=CHECK_SECONDS))[0] and not guarded.used:
                if await self._hangs(scope, handler) and not guarded.used:
                    guarded.shut = True
                    log.error("database does not answer", path=scope["path"])
                    await database_unavailable(Request(scope))(scope, receive, send)
                    return
            await handler
        finally:
            self._leave(handler)

    async def _run(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    async def _hangs(self, scope: Scope, handler: asyncio.Task[None]) -> bool:
        """Whether the database does not answer; whoever wonders meanwhile waits for the same word.

        A thousand that each asked for themselves would wait for each other, and take that for a frozen database.
        """
        if self._asked is None or self._asked.done():
            self._asked = asyncio.create_task(answers(scope["app"].state.services.probe, PROBE_SECONDS))
        return not await asyncio.shield(self._asked) and not handler.done()

    def _leave(self, handler: asyncio.Task[None]) -> None:
        """Ends a handler without waiting for it; what it still raises concerns nobody."""
        if not handler.done():
            self._left.add(handler)
            handler.add_done_callback(self._forget)
            handler.cancel()

    def _forget(self, handler: asyncio.Task[None]) -> None:
        self._left.discard(handler)
        if not handler.cancelled():
            handler.exception()  # seen: it is not reported as never retrieved
