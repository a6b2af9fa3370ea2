"""What the console's pages load."""

from http import HTTPStatus

from fastapi import APIRouter, Response

from app.api.http.pages import static_files
from app.services.errors import NotFoundError

router = APIRouter(include_in_schema=False)

FOR_EVER = "public, max-age=31536000, immutable"


@router.get("/static/{version}/{name}")
async def static(version: str, name: str) -> Response:
    """A style sheet or script; its address changes with its content."""
    found = static_files().get(name)
    if found is None:
        raise NotFoundError("file not found")
    # A page that was loaded before an upgrade asks for what is no more: it gets what there is, for now.
    keep = FOR_EVER if version == found.version else "no-store"
    headers = {"Cache-Control": keep, "X-Content-Type-Options": "nosniff"}
    return Response(found.content, HTTPStatus.OK, headers, found.media_type)
