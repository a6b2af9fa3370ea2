"""Counts what was read of an upload."""

from dataclasses import asdict
from typing import Any

from app.db.uploads.tables import UploadRow
from app.domain.uploads.contract import UploadError
from app.domain.uploads.records import ERRORS_KEPT, Place
from app.services.uploads.upload_reader import Part


def progress(row: UploadRow, part: Part, *, last: bool) -> dict[str, Any]:
    """Return an upload's columns after a part was read.

    Args:
        row: The upload before.
        part: The part.
        last: The upload ends with it.
    """
    errors = [*row.errors, *(error._asdict() for error in part.errors)][:ERRORS_KEPT]
    wrong = row.error_count + part.wrong
    records = 0 if wrong else row.records + len(part.records)
    if last and not records and not wrong:
        wrong, errors = 1, [UploadError(line=0, field="", message="has no records").model_dump()]
    return {
        "status": "invalid" if wrong else "ready" if last else row.status,
        "records": records,
        "errors": errors,
        "error_count": wrong,
        **asdict(part.place),
    }


def place_of(row: UploadRow) -> Place:
    """Return where reading an upload stands."""
    return Place(row.lines, row.tail, row.skipping)
