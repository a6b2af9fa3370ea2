"""JSON Lines exports: one object a line, texts as they are."""

import json
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from json.encoder import encode_basestring
from typing import Any

from pydantic_core import to_json

from app.domain.judging.judged_response import JudgedResponse
from app.reports.exports.columns import (
    CELL_COLUMNS,
    JUDGING_CHECK_COLUMNS,
    PERSONA_SCORE_COLUMNS,
    VERDICT_COLUMNS,
    Column,
)
from app.reports.exports.rows import (
    PART_SIZES,
    Chunk,
    Row,
    Value,
    cell_rows,
    chunks,
    encoded,
    judging_check_rows,
    persona_score_rows,
    written,
)

_LINE_BREAKS = {character.encode(): b"\\u%04x" % ord(character) for character in "\x85\u2028\u2029"}
"""JSON may hold these as they are, but many readers end a line at them."""


def rows(pages: AsyncIterator[Sequence[JudgedResponse]]) -> AsyncIterator[bytes]:
    """One line for each verdict, its keys those of ``VERDICT_COLUMNS``; missing values are null."""
    return written(pages, _encode_page)


def cells(results: Mapping[str, Any]) -> bytes:
    """One line for each cell, its keys those of ``CELL_COLUMNS``; missing values are null."""
    return _encode(CELL_COLUMNS, cell_rows(results))


def persona_scores(results: Mapping[str, Any]) -> bytes:
    """One line for each task score and PersonaScore, its keys those of ``PERSONA_SCORE_COLUMNS``."""
    return _encode(PERSONA_SCORE_COLUMNS, persona_score_rows(results))


def judging_check(results: Mapping[str, Any]) -> bytes:
    """One line for each judge, over all tasks and for each of them, its keys those of ``JUDGING_CHECK_COLUMNS``."""
    return _encode(JUDGING_CHECK_COLUMNS, judging_check_rows(results))


def _encode(columns: tuple[Column, ...], rows: Iterable[Row]) -> bytes:
    form = f"{{{_fields(columns)}}}\n"
    return b"".join([_one_line((form % tuple(map(_value, row))).encode()) for row in rows])


def _encode_page(page: Sequence[JudgedResponse]) -> Iterator[bytes]:
    return map(_encode_verdicts, chunks(page))


def _encode_verdicts(chunk: Chunk) -> bytes:
    columns = iter(VERDICT_COLUMNS)
    around = ("{%s, ", "%s, ", "%s, ", "%s}\n")
    forms = [form % _fields(islice(columns, size)) for form, size in zip(around, PART_SIZES, strict=True)]
    return encoded(chunk, [partial(_encode_part, form.encode()) for form in forms])


def _fields(columns: Iterable[Column]) -> str:
    """What stands inside of an object, for a value of each of these columns."""
    return ", ".join(f"{encode_basestring(column.name)}: %s" for column in columns)


def _encode_part(form: bytes, rows: Sequence[Row]) -> list[bytes]:
    """The rows in this form. None of their values is a fraction, of which the quicker encoder makes other digits."""
    columns = [_encode_column(values) for values in zip(*rows, strict=True)]
    return [form % values for values in zip(*columns, strict=True)]


def _encode_column(values: Sequence[Value]) -> list[bytes]:
    """Each value as JSON: all at once, with the line breaks between them that no value has inside."""
    return _one_line(to_json(values, indent=0))[len("[\n") : -len("\n]")].split(b",\n")


def _value(value: Value) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _one_line(text: bytes) -> bytes:
    """The text with every character escaped that some reader takes for the end of a line."""
    if not text.isascii():
        for character, escaped in _LINE_BREAKS.items():
            if character in text:
                text = text.replace(character, escaped)
    return text
