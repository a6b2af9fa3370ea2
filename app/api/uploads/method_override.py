"""Accepts `PATCH` requests of tus clients whose proxies only allow `POST`."""

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.uploads.routes import router


class MethodOverride:
    """Treats a `POST` to an upload with `X-HTTP-Method-Override: PATCH` as `PATCH`; the tus core protocol requires it.

    Access control comes later and sees the new method. Other methods are not overridden.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        if (
            scope["type"] == "http"
            and scope["method"] == "POST"
            and scope["path"].startswith(f"{router.prefix}/")
            and Headers(scope=scope).get("x-http-method-override", "").strip().upper() == "PATCH"
        ):
            scope["method"] = "PATCH"
        await self._app(scope, receive, send)
