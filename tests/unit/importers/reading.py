"""Reads a file in this process."""

from io import BytesIO
from typing import Any

from app.domain.jobs.import_preview import ImportPreview
from app.importers.records import Options
from app.importers.registry import AT_ONCE, FileImport


def read_import(data: bytes, name: str, kind: str | None, options: Options) -> ImportPreview:
    """The preview of a file, with its responses in full."""
    responses: list[dict[str, Any]] = []
    found = FileImport(BytesIO(data), name, kind, options, responses.append)
    while found.read(AT_ONCE):
        pass
    return found.preview(responses)
