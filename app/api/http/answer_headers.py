"""What every answer says to a browser: do not guess what it is, do not frame it, do not keep it."""

from collections.abc import MutableMapping
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Receive, Scope, Send

FRAMED_BY_NOBODY = "frame-ancestors 'none'"
DEFAULTS = {
    "Content-Security-Policy": f"default-src 'none'; base-uri 'none'; form-action 'none'; {FRAMED_BY_NOBODY}",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""For an answer that says nothing else: what is no page of ours loads and runs nothing."""


class AnswerHeaders:
    """Adds :data:`DEFAULTS` to every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""

        async def with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=list(message.get("headers", ())))
                for name, value in DEFAULTS.items():
                    headers.setdefault(name, value)
                message["headers"] = headers.raw
            await send(message)

        await self._app(scope, receive, with_headers if scope["type"] == "http" else send)
