"""Bodies in several formats, chosen by their media type."""

import json
import re
from enum import StrEnum
from http import HTTPStatus
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError

from app.api.http.problems import ProblemError
from app.api.http.strict_json import JSON_TYPE, StrictRequest

JSONL_TYPES = ("application/jsonl", "application/x-ndjson")
CSV_TYPE = "text/csv"
_CHARSET = re.compile(r';\s*charset\s*=\s*"?([\w-]+)', re.IGNORECASE)


class BodyForm(StrEnum):
    """The forms that a body may have."""

    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"


TYPES = {BodyForm.JSONL: JSONL_TYPES, BodyForm.CSV: (CSV_TYPE,)}


def form_of(request: Request, *others: BodyForm) -> BodyForm:
    """The form of a body.

    Args:
        request: Whose.
        others: What it may be besides JSON.

    Raises:
        ProblemError: 415, if it is none of them.
    """
    content_type = request.headers.get("content-type", "")
    essence = content_type.partition(";")[0].strip().lower()
    charset = _CHARSET.search(content_type)
    if charset is None or charset[1].lower() in {"utf-8", "utf8", "us-ascii"}:
        for form in others:
            if essence in TYPES[form]:
                return form
        if re.fullmatch(JSON_TYPE, essence):
            return BodyForm.JSON
    *most, last = ("application/json", *(name for form in others for name in TYPES[form]))
    raise ProblemError(
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        "unsupported_media_type",
        f"send the body as {', '.join(most)} or {last}, in UTF-8",
    )


def text_of(body: bytes) -> str:
    """A body as text that can be stored.

    Raises:
        ProblemError: 400, if it is none.
    """
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise ProblemError(HTTPStatus.BAD_REQUEST, "malformed_text", "the body is not UTF-8") from error


async def json_of(request: StrictRequest) -> Any:
    """The body as JSON; an error looks as it does where the framework reads the body."""
    try:
        return await request.sent()
    except json.JSONDecodeError as error:
        found = {"type": "json_invalid", "loc": ("body", error.pos), "msg": "", "ctx": {"error": error.msg}}
        raise RequestValidationError([found]) from error
