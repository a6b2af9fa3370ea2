"""Rejects requests from other sites' pages (CSRF protection).

Without keys the service asks nobody for anything, and with them a browser sends its session by itself; so a page of any site, open in that browser,
could have it submit and cancel jobs. Browsers say where a request comes from; programs that are no browser say nothing, and are let through.
"""

from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.http.problems import problem_response

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
OWN_SITES = frozenset({"same-origin", "none"})
"""What ``Sec-Fetch-Site`` says of our own pages, and of what a person typed."""


class SameOrigin:
    """Refuses what would change something and comes from a page of another origin."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles one request."""
        app = self._app
        if scope["type"] == "http" and scope["method"] not in SAFE and is_foreign(Headers(scope=scope)):
            detail = "pages of other sites may not send this request"
            app = problem_response(Request(scope), HTTPStatus.FORBIDDEN, "foreign_origin", detail)
        await app(scope, receive, send)


def is_foreign(headers: Headers) -> bool:
    """Whether a request was made by a page of another origin."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site not in OWN_SITES
    # Without encryption, and not on this machine, browsers don't say the site, but do name the origin.
    origin = headers.get("origin")
    return origin is not None and urlsplit(origin).netloc != headers.get("host")
