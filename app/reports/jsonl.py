"""JSON Lines exports: one object a line, texts as they are."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
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
    Remembered,
    Row,
    Value,
    VerdictRow,
    cell_rows,
    chunks,
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


def _encode(columns: tuple[Column, ...], lines: Iterable[Row]) -> bytes:
    fields = _fields([column.name for column in columns])
    return _bytes("".join(f"{{{fields(line)}}}\n" for line in lines))


def _encode_verdicts(rows: Iterable[VerdictRow]) -> bytes:
    names = iter([column.name for column in VERDICT_COLUMNS])
    of_response, of_unit, of_verdict = (_fields(list(islice(names, size))) for size in PART_SIZES)
    responses, verdicts = Remembered(of_response), Remembered(of_verdict)
    return _bytes(
        "".join(
            [
                f"{{{responses[response]}, {of_unit(unit)}, {verdicts[verdict]}}}\n"
                for response, unit, verdict in rows
            ]
        )
    )


def _fields(names: Sequence[str]) -> Callable[[Row], str]:
    """Turns a value of each of these names into the inside of an object."""
    form = ", ".join(f"{encode_basestring(name)}: %s" for name in names)
    return lambda row: form % tuple([_value(value) for value in row])


def _value(value: Value) -> str:
    """What ``json.dumps`` makes of it, at a tenth of the cost for texts and counts."""
    if isinstance(value, str):
        return encode_basestring(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return json.dumps(value, allow_nan=False)


def _bytes(text: str) -> bytes:
    """The text with every character escaped that some reader takes for the end of a line."""
    for character, escaped in _LINE_BREAKS.items():
        if character in text:
            text = text.replace(character, escaped)
    return text.encode()
