"""CSV exports, made for spreadsheets.

UTF-8 with a byte order mark, because without one Excel reads the file in the machine's old code page; programs that
mind it have JSON Lines and Parquet. RFC 4180 otherwise: commas, doubled quotes, CRLF. A missing value and an empty
text are both an empty field.

The texts come from models, and a spreadsheet runs a cell that begins like a formula. Such a text gets an apostrophe
in front; so does one that begins with an apostrophe, which makes this reversible: to get the text back, remove one
leading apostrophe from every text field that has one. Numbers are never changed.
"""

import asyncio
import csv
import io
from collections.abc import AsyncIterator, Iterable, Mapping
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
    Remembered,
    Row,
    Value,
    VerdictRow,
    cell_rows,
    chunks,
    judging_check_rows,
    persona_score_rows,
)

LINE_END = "\r\n"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
FORMULA_STARTS = "=+-@\t\r\n＝＋－＠"  # noqa: RUF001 - the full-width signs begin formulas too
_ESCAPED_STARTS = tuple("'" + FORMULA_STARTS)


async def rows(responses: AsyncIterator[JudgedResponse]) -> AsyncIterator[bytes]:
    """One line for each verdict, after a line of column names; see ``VERDICT_COLUMNS``."""
    yield _header(VERDICT_COLUMNS)
    async for chunk in chunks(responses):
        yield await asyncio.to_thread(_encode_verdicts, chunk)


def cells(results: Mapping[str, Any]) -> bytes:
    """One line for each cell, after a line of column names; see ``CELL_COLUMNS``."""
    return _header(CELL_COLUMNS) + _encode(cell_rows(results))


def persona_scores(results: Mapping[str, Any]) -> bytes:
    """One line for each task score and PersonaScore, after a line of column names; see ``PERSONA_SCORE_COLUMNS``."""
    return _header(PERSONA_SCORE_COLUMNS) + _encode(persona_score_rows(results))


def judging_check(results: Mapping[str, Any]) -> bytes:
    """One line for each judge, over all tasks and for each of them, after a line of column names; see ``JUDGING_CHECK_COLUMNS``."""
    return _header(JUDGING_CHECK_COLUMNS) + _encode(judging_check_rows(results))


def _header(columns: tuple[Column, ...]) -> bytes:
    return BYTE_ORDER_MARK + _encode([tuple(column.name for column in columns)])


def _encode(lines: Iterable[Row]) -> bytes:
    return _text(lines).encode()


def _encode_verdicts(rows: Iterable[VerdictRow]) -> bytes:
    responses, verdicts = Remembered(_part), Remembered(_part)
    return "".join(
        [
            f"{responses[response]},{_part(unit)},{verdicts[verdict]}{LINE_END}"
            for response, unit, verdict in rows
        ]
    ).encode()


def _part(values: Row) -> str:
    """Several fields of a line, without its end."""
    return _text([values]).removesuffix(LINE_END)


def _text(lines: Iterable[Row]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator=LINE_END).writerows([_field(value) for value in line] for line in lines)
    return text.getvalue()


def _field(value: Value) -> str | int | float | None:
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_ESCAPED_STARTS) else value
    if isinstance(value, bool):
        return "true" if value else "false"
    return value
