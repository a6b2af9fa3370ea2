"""JSON Lines exports: one object a line, texts as they are."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from itertools import islice
from json.encoder import encode_basestring
from typing import Any

from app.domain.judged import JudgedResponse
from app.reports.columns import (
    CELL_COLUMNS,
    JUDGING_CHECK_COLUMNS,
    PERSONA_SCORE_COLUMNS,
    VERDICT_COLUMNS,
    Column,
)
from app.reports.rows import (
    PART_SIZES,
    Encoder,
    Row,
    Value,
    VerdictRow,
    cell_rows,
    chunks,
    encoded,
    judging_check_rows,
    persona_score_rows,
)

_LINE_BREAKS = {character: f"\\u{ord(character):04x}" for character in "\x85\u2028\u2029"}
"""JSON may hold these as they are, but many readers end a line at them."""


async def rows(responses: AsyncIterator[JudgedResponse]) -> AsyncIterator[bytes]:
    """One line for each verdict, its keys those of ``VERDICT_COLUMNS``; missing values are null."""
    async for chunk in chunks(responses):
        yield await asyncio.to_thread(_encode_verdicts, chunk)


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
    line = _fields([column.name for column in columns], "{%s}\n")
    return b"".join([line(row) for row in rows])


def _encode_verdicts(rows: Sequence[VerdictRow]) -> bytes:
    names = iter([column.name for column in VERDICT_COLUMNS])
    of_response, of_unit, of_verdict = (
        _fields(list(islice(names, size)), around)
        for size, around in zip(PART_SIZES, ("{%s, ", "%s, ", "%s}\n"), strict=True)
    )
    return encoded(rows, (of_response, _sentence(of_unit), of_verdict))


def _sentence(of_unit: Encoder) -> Encoder:
    """The encoder of a sentence's part of a row: three counts and a text, or nothing. No other part is as often new."""
    names = [column.name for column in VERDICT_COLUMNS[PART_SIZES[0] :][: PART_SIZES[1]]]
    form = ", ".join(f"{encode_basestring(name)}: %s" for name in names) + ", "

    def encode(row: Row) -> bytes:
        index, start, end, text = row
        if not isinstance(text, str):
            return of_unit(row)
        return _bytes(form % (index, start, end, encode_basestring(text)))

    return encode


def _fields(names: Sequence[str], around: str) -> Encoder:
    """Turns a value of each of these names into what stands inside of an object, put into ``around``."""
    form = around % ", ".join(f"{encode_basestring(name)}: %s" for name in names)
    # Counts are left to the form, which makes text of them in a third of the time.
    return lambda row: _bytes(form % tuple([v if type(v) is int else _value(v) for v in row]))


def _value(value: Value) -> str:
    """What ``json.dumps`` makes of it, at a tenth of the cost for texts."""
    if value is None:
        return "null"
    return encode_basestring(value) if isinstance(value, str) else json.dumps(value, allow_nan=False)


def _bytes(text: str) -> bytes:
    """The text with every character escaped that some reader takes for the end of a line."""
    if not text.isascii():
        for character, escaped in _LINE_BREAKS.items():
            if character in text:
                text = text.replace(character, escaped)
    return text.encode()
