"""`/docs`: the API's document as a page, by Swagger UI, without anything from the internet."""

import asyncio
import mimetypes
import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from http import HTTPStatus
from importlib.resources import files

from fastapi import APIRouter, Request, Response
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import HTMLResponse

from app.api.http.answer_headers import FRAMED_BY_NOBODY
from app.services.errors import NotFoundError

router = APIRouter(include_in_schema=False)

DOCUMENT = "/openapi.json"
SCRIPT, STYLES, ICON = "swagger-ui-bundle.js", "swagger-ui.css", "favicon-32x32.png"
PARAMETERS = {
    "tryItOutEnabled": True,
    "filter": True,
    "displayRequestDuration": True,
    "persistAuthorization": False,  # a key stays out of the browser's storage
}
_INLINE_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)


@router.get(DOCUMENT)
async def document(request: Request) -> Response:
    """The OpenAPI document."""
    root = request.scope.get("root_path", "").rstrip("/")
    return Response(await asyncio.to_thread(request.app.document, root), media_type="application/json")


@router.get("/docs")
async def docs(request: Request) -> Response:
    """The page; it runs Swagger UI's script and the few lines that start it, and asks this service alone."""
    root = request.scope.get("root_path", "").rstrip("/")
    page = get_swagger_ui_html(
        openapi_url=f"{root}{DOCUMENT}",
        title=f"{request.app.title} – API",
        swagger_js_url=f"{root}/swagger/{SCRIPT}",
        swagger_css_url=f"{root}/swagger/{STYLES}",
        swagger_favicon_url=f"{root}/swagger/{ICON}",
        swagger_ui_parameters=PARAMETERS,
    )
    html = bytes(page.body).decode().replace("<html>", '<html lang="en">', 1)
    hashes = " ".join(f"'sha256-{_digest(script)}'" for script in _INLINE_SCRIPT.findall(html))
    policy = (
        f"default-src 'none'; script-src 'self' {hashes}; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
        f"connect-src 'self'; base-uri 'none'; form-action 'none'; {FRAMED_BY_NOBODY}"
    )
    return HTMLResponse(html, headers={"Content-Security-Policy": policy})


@router.get("/swagger/{name}")
async def swagger_file(name: str) -> Response:
    """A file of Swagger UI."""
    if name not in {SCRIPT, STYLES, ICON}:
        raise NotFoundError("file not found")
    return Response(_content(name), HTTPStatus.OK, media_type=mimetypes.guess_type(name)[0])


@cache
def _content(name: str) -> bytes:
    return (files("fastapi_swagger") / "resources" / name).read_bytes()


def _digest(script: str) -> str:
    return b64encode(sha256(script.encode()).digest()).decode()
