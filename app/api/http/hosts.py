"""Rejects requests for unknown host names.

A page of any site may be given the address 127.0.0.1 by its own name server (DNS rebinding); a browser then takes the service for that
site, and lets the page read what it answers. But it says in ``Host`` by which name it came. An address in numbers is nobody's to rebind.
"""

from collections.abc import Collection
from http import HTTPStatus
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.http.problems import problem_response

OWN_NAMES = frozenset({"localhost"})
PROBES = frozenset({"/healthz", "/readyz"})
"""What balancers and supervisors ask for, by whatever name they have; it says nothing that a page could use."""


class KnownHost:
    """Refuses what was asked of another name than the service's.

    Args:
        app: What is asked otherwise.
        names: Further names of the service.
    """

    def __init__(self, app: ASGIApp, names: Collection[str]) -> None:
        self._app = app
        self._names = OWN_NAMES.union(names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        app = self._app
        if scope["type"] == "http" and scope["path"] not in PROBES:
            host = Headers(scope=scope).get("host", "")
            if not self._is_ours(host):
                detail = "unknown host name; if it is this service's own, add it to ASSAY_HOSTS"
                app = problem_response(Request(scope), HTTPStatus.MISDIRECTED_REQUEST, "unknown_host", detail)
        await app(scope, receive, send)

    def _is_ours(self, host: str) -> bool:
        try:
            name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
        except ValueError:
            return False
        return name in self._names or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
