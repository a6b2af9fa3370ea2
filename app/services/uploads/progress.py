"""What is written of an upload, and of its records, when some more of it was read."""

import json
from dataclasses import asdict
from typing import Any

from app.db.uploads.tables import UploadRow
from app.domain.uploads.contract import UploadError
from app.domain.uploads.records import ERRORS_KEPT, Read, Record

NAMES = ("persona", "task", "model", "item", "run", "instruction", "question", "conversation")
"""Columns of a record that are a response's fields."""


def progress(row: UploadRow, read: Read, *, last: bool) -> dict[str, Any]:
    """How far an upload is.

    Args:
        row: How far it was.
        read: What was read since.
        last: Whether that is its end.
    """
    errors = [*row.errors, *(error._asdict() for error in read.errors)][:ERRORS_KEPT]
    wrong = row.error_count + read.wrong
    records = 0 if wrong else row.records + len(read.records)
    if last and not records and not wrong:
        wrong, errors = 1, [UploadError(line=0, field="", message="has no records").model_dump()]
    return {
        "status": "invalid" if wrong else "ready" if last else row.status,
        "records": records,
        "errors": errors,
        "error_count": wrong,
        **asdict(read.place),
    }


def record_columns(record: Record) -> dict[str, Any]:
    """A record as its row."""
    given = record.given
    return {
        "line": record.line,
        "model": "provided",
        **{name: given[name] for name in NAMES if name in given},
        "status": record.status,
        "text": record.text,
        "thoughts": record.thoughts,
        "error": record.error,
        "unit_starts": [start for start, _ in record.units],
        "unit_ends": [end for _, end in record.units],
        "judged": record.judged,
        "notes": None if record.notes is None else json.loads(record.notes),
    }
