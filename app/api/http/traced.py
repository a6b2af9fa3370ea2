"""Puts a span around each request while traces are on; see :mod:`app.telemetry.tracing`."""

from collections.abc import MutableMapping
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from app.telemetry.tracing import request_span

UNTRACED = frozenset({"/healthz", "/readyz", "/metrics"})
"""What machines ask every few seconds."""


class Traced:
    """Goes on with the trace that a request names; the job that it submits goes on with it in turn."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if scope["type"] != "http" or scope["path"] in UNTRACED:
            await self._app(scope, receive, send)
            return
        status = 500

        async def noted(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        with request_span(scope["method"], Headers(scope=scope).get("traceparent")) as span:
            try:
                await self._app(scope, receive, noted)
            finally:
                if span is not None:
                    route = getattr(scope.get("route"), "path", None)
                    span.answered(route, status, scope["state"]["request_id"])
