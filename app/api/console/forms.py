"""What a browser sends from one of the console's forms."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus

from fastapi import Request

from app.api.console.job_form import MOST_FIELDS, Typed
from app.api.http.problems import ProblemError
from app.api.http.strict_json import StrictRequest
from app.domain.errors import FieldError, InvalidJobError

FORM_TYPE = "application/x-www-form-urlencoded"
PARTS_TYPE = "multipart/form-data"
_BOUNDARY = re.compile(r'boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))')
_NAMES = re.compile(r'\b(name|filename)="([^"]*)"')


async def typed_by(request: Request) -> Typed:
    """What a browser sent.

    Raises:
        ProblemError: If it is no form.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM_TYPE:
        detail = f"send the form as {FORM_TYPE}"
        raise ProblemError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", detail)
    try:
        return Typed.parse(await StrictRequest(request.scope, request.receive).body())
    except ValueError as error:
        raise ProblemError(
            HTTPStatus.BAD_REQUEST, "malformed_form", "the body is not a valid form"
        ) from error


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file that a browser sent with a form.

    Attributes:
        name: Its name, without directories; empty if none was chosen.
        data: Its bytes. Untrusted.
    """

    name: str = ""
    data: bytes = b""


async def typed_with_file(request: Request) -> tuple[Typed, SentFile]:
    """What a browser sent, and its file.

    Raises:
        ProblemError: If it is no form with parts.
        InvalidJobError: If it has several files.
    """
    kind, _, rest = request.headers.get("content-type", "").partition(";")
    boundary = _BOUNDARY.search(rest)
    if kind.strip().lower() != PARTS_TYPE or boundary is None:
        detail = f"send the form as {PARTS_TYPE}"
        raise ProblemError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", detail)
    body = await StrictRequest(request.scope, request.receive).body()
    values: dict[str, list[str]] = {}
    files: list[SentFile] = []
    try:
        for name, filename, content in _parts(body, (boundary[1] or boundary[2]).encode()):
            if filename is not None:
                files.append(SentFile(filename.replace("\\", "/").rpartition("/")[2], content))
            else:
                values.setdefault(name, []).append(content.decode())
    except ValueError as error:
        raise ProblemError(
            HTTPStatus.BAD_REQUEST, "malformed_form", "the body is not a valid form"
        ) from error
    if len(files) > 1:
        raise InvalidJobError([FieldError("/file", "choose one; `assay import FILE FILE` takes several")])
    return Typed(values), files[0] if files else SentFile()


def _parts(body: bytes, boundary: bytes) -> Iterator[tuple[str, str | None, bytes]]:
    """The fields of a form with parts (RFC 7578): name, the file's name if it is one, and content.

    Raises:
        ValueError: If it is none.
    """
    _, *parts = (b"\r\n" + body).split(b"\r\n--" + boundary, MOST_FIELDS)
    if not parts or not parts[-1].startswith(b"--"):
        raise ValueError("has no end")
    for part in parts[:-1]:
        head, blank, content = part.partition(b"\r\n\r\n")
        names = dict(_NAMES.findall(head.decode()))
        if not blank or "name" not in names:
            raise ValueError("a part has no name")
        yield names["name"], names.get("filename"), content
