"""Annotations as CSV: what is imported, and in the same columns what is exported."""

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.domain.errors import FieldError
from app.domain.labels.annotation import MOST_ROWS, Answer

COLUMNS = (
    *("annotator", "response", "unit", "dimension", "score"),
    *("other_response", "other_unit", "preferred"),
)
NEEDED = ("annotator", "response")
NUMBER = re.compile(r"[+-]?\d{1,9}")


@dataclass(frozen=True, slots=True)
class AnnotationDraft:
    """An annotation as somebody sent it.

    Attributes:
        pointer: Where it stands in what was sent.
        annotator: Who says it.
        response: A response's id.
        unit: A sentence's index; ``None`` for the whole response.
        dimension: On which; may be left out where there is only one.
        score: A number, or ``not_applicable``; ``None`` for a pair.
        other_response: The response of a pair's second sentence.
        other_unit: The index of a pair's second sentence.
        preferred: Which of a pair is nearer to the upper end of the scale: ``first``, ``second`` or ``equal``.
    """

    pointer: str
    annotator: str
    response: str
    unit: int | None = None
    dimension: str | None = None
    score: int | str | None = None
    other_response: str | None = None
    other_unit: int | None = None
    preferred: Answer | None = None


@dataclass(frozen=True, slots=True)
class AnnotationsRead:
    """The annotations of a file, or everything that is wrong with it; pointers begin with ``/lines/<number>``."""

    drafts: tuple[AnnotationDraft, ...]
    errors: tuple[FieldError, ...]


def read_csv(text: str) -> AnnotationsRead:
    """Reads annotations whose header has the names of :data:`COLUMNS`, in any order, at least the needed ones.

    Args:
        text: The file's content. Untrusted.
    """
    drafts: list[AnnotationDraft] = []
    errors: list[FieldError] = []
    header: list[str] | None = None
    rows = csv.reader(text.removeprefix("\ufeff").splitlines(keepends=True), strict=True)
    pointer = "/lines/1"
    try:
        for row in rows:
            if not any(cell.strip() for cell in row):
                pass
            elif header is None:
                header = [cell.strip().casefold() for cell in row]
                if wrong := _wrong_header(header):
                    return AnnotationsRead((), (FieldError(pointer, wrong),))
            elif len(row) != len(header):
                errors.append(FieldError(pointer, f"has {len(row)} fields, the header {len(header)}"))
            else:
                values = {name: cell.strip() for name, cell in zip(header, row, strict=True) if cell.strip()}
                found = _errors(pointer, values)
                errors += found
                if not found:
                    drafts.append(_draft(pointer, values))
            pointer = f"/lines/{rows.line_num + 1}"
    except csv.Error as error:
        errors.append(FieldError(pointer, f"not CSV: {error}"))
    if not errors and not drafts:
        errors.append(FieldError("", "must contain at least one annotation"))
    if len(drafts) > MOST_ROWS:
        errors.append(FieldError("", f"{len(drafts)} annotations; at most {MOST_ROWS:,} per request"))
    return AnnotationsRead(() if errors else tuple(drafts), tuple(errors))


def _wrong_header(header: Sequence[str]) -> str | None:
    unknown = [name for name in header if name not in COLUMNS]
    missing = [name for name in NEEDED if name not in header]
    if unknown:
        return f"no such column: {unknown[0][:60]!r}; known: {', '.join(COLUMNS)}"
    if missing:
        return f"the header must have {missing[0]}"
    return "a column appears twice" if len(set(header)) < len(header) else None


def _errors(pointer: str, values: Mapping[str, str]) -> list[FieldError]:
    found = [FieldError(f"{pointer}/{name}", "is required") for name in NEEDED if name not in values]
    found += [
        FieldError(f"{pointer}/{name}", "must be a whole number")
        for name in ("unit", "other_unit")
        if name in values and NUMBER.fullmatch(values[name]) is None
    ]
    score = values.get("score")
    if score is not None and NUMBER.fullmatch(score) is None and score != Answer.NOT_APPLICABLE:
        found.append(FieldError(f"{pointer}/score", "must be a whole number or not_applicable"))
    if values.get("preferred") not in {None, Answer.FIRST, Answer.SECOND, Answer.EQUAL}:
        found.append(FieldError(f"{pointer}/preferred", "must be first, second or equal"))
    return found


def _draft(pointer: str, values: Mapping[str, str]) -> AnnotationDraft:
    numbers = {name: int(values[name]) for name in ("unit", "other_unit") if name in values}
    score = values.get("score")
    preferred = values.get("preferred")
    return AnnotationDraft(
        pointer=pointer,
        annotator=values["annotator"],
        response=values["response"],
        unit=numbers.get("unit"),
        dimension=values.get("dimension"),
        score=int(score) if score is not None and NUMBER.fullmatch(score) else score,
        other_response=values.get("other_response"),
        other_unit=numbers.get("other_unit"),
        preferred=None if preferred is None else Answer(preferred),
    )
