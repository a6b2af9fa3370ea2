"""Pages as answers: templates of the console, its static files, and the headers that confine a page to them."""

import mimetypes
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import timedelta
from functools import cache
from hashlib import sha256
from http import HTTPStatus
from typing import Any, NamedTuple

from fastapi import Request, Response
from fastapi.responses import HTMLResponse
from jinja2 import Environment

from app.web.templates import make_environment, page_script, source, style_sheet

FOLDER = "console"
STYLES = "console.css"

API = "/v1/"
"""Where programs ask; all else may be asked by people, who are answered in pages."""

SIGNED_IN: ContextVar[bool] = ContextVar("signed_in", default=False)
"""Whether the request at hand came with a session, which its page then offers to end."""

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""A page runs only the console's own scripts, is framed by nobody, and is not kept: what it shows moves on."""


class StaticFile(NamedTuple):
    """A file that pages load.

    Attributes:
        content: Its bytes.
        media_type: What they are.
        version: A hash of them, which is part of the address, so that a browser may keep the file for ever.
    """

    content: bytes
    media_type: str
    version: str


def page(template: str, status: int = HTTPStatus.OK, **values: Any) -> HTMLResponse:
    """A page made of a template of the console."""
    return HTMLResponse(render(template, **values), status, HEADERS)


def render(template: str, **values: Any) -> str:
    """A template of the console, filled in."""
    return _environment().get_template(template).render(values)


def wants_page(request: Request) -> bool:
    """Whether a person asks, with a browser, for what is no part of the API."""
    return not request.url.path.startswith(API) and "text/html" in request.headers.get("accept", "")


def problem_page(problem: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Response:
    """A problem, in the API's form, as a page."""
    response = page("problem.html.j2", problem["status"], problem=problem)
    response.headers.update(headers or {})
    return response


@cache
def static_files() -> Mapping[str, StaticFile]:
    """The console's files by name."""
    contents = {
        STYLES: style_sheet(FOLDER, STYLES),
        "console.js": page_script(FOLDER, "console.js"),
        "label.js": source(FOLDER, "label.js"),
    }
    return {name: _static_file(name, content.encode()) for name, content in contents.items()}


def _static_file(name: str, content: bytes) -> StaticFile:
    media_type, _ = mimetypes.guess_type(name)
    return StaticFile(content, f"{media_type}; charset=utf-8", sha256(content).hexdigest()[:16])


def _address(name: str) -> str:
    """Where a static file is."""
    return f"/static/{static_files()[name].version}/{name}"


def _price(usd: float) -> str:
    """Dollars and cents, and of less than a dollar as much as makes a difference."""
    return f"${usd:,.2f}" if usd >= 1 or usd == 0 else f"${usd:.4f}"


def field_name(pointer: str) -> str:
    """A JSON pointer for people, such as "Personas 3, traits, E" for ``/personas/2/traits/E``."""
    name = ""
    for token in pointer.strip("/").split("/"):
        if token.isdecimal():
            name += f" {int(token) + 1}"
        else:
            name += (", " if name else "") + token.replace("_", " ").replace("~1", "/").replace("~0", "~")
    return f"{name[:1].upper()}{name[1:]}" or "Request"


def _duration(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))


@cache
def _environment() -> Environment:
    environment = make_environment(FOLDER)
    environment.globals |= {"address": _address, "signed_in": SIGNED_IN.get}
    environment.filters |= {"price": _price, "duration": _duration, "field_name": field_name}
    return environment
