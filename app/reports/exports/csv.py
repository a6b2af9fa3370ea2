"""CSV exports, made for spreadsheets.

UTF-8 with a byte order mark, because without one Excel reads the file in the machine's old code page; programs that
mind it have JSON Lines and Parquet. RFC 4180 otherwise: commas, doubled quotes, CRLF. A missing value and an empty
text are both an empty field.

The texts come from models, and a spreadsheet runs a cell that begins like a formula. Such a text gets an apostrophe
in front. Where the machine's list separator is a semicolon or a tab, a spreadsheet begins cells at those and at line breaks inside
a text, too, whatever is quoted: there such a beginning gets an apostrophe as well. So does a beginning with an apostrophe, which makes
this reversible: remove one apostrophe from the beginning of every text, and after each semicolon, tab and line break. Numbers are never
changed.
"""

import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

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

LINE_END = "\r\n"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
FORMULA_STARTS = "=+-@\t\r\n＝＋－＠"  # noqa: RUF001 - the full-width signs begin formulas too
_ESCAPED_STARTS = frozenset("'" + FORMULA_STARTS)
_BEFORE_SIGN = frozenset(' "')
_LATE_START = re.compile(r"""[ "]+['=+\-@＝＋－＠]""")  # noqa: RUF001 - as above
_INNER_START = re.compile(r"""([;\t\r\n])(?=[ "]*['=+\-@＝＋－＠])""")  # noqa: RUF001 - as above
"""Where a cell begins like a formula for a spreadsheet whose separator is no comma; quotes and spaces before that do not count."""


async def rows(pages: AsyncIterator[Sequence[JudgedResponse]]) -> AsyncIterator[bytes]:
    """One line for each verdict, after a line of column names; see ``VERDICT_COLUMNS``."""
    yield _header(VERDICT_COLUMNS)
    async for part in written(pages, _encode_page):
        yield part


def cells(results: Mapping[str, Any]) -> bytes:
    """One line for each cell, after a line of column names; see ``CELL_COLUMNS``."""
    return _header(CELL_COLUMNS) + _encode(CELL_COLUMNS, cell_rows(results))


def persona_scores(results: Mapping[str, Any]) -> bytes:
    """One line for each task score and PersonaScore, after a line of column names; see ``PERSONA_SCORE_COLUMNS``."""
    return _header(PERSONA_SCORE_COLUMNS) + _encode(PERSONA_SCORE_COLUMNS, persona_score_rows(results))


def judging_check(results: Mapping[str, Any]) -> bytes:
    """One line for each judge, over all tasks and for each of them, after a line of column names; see ``JUDGING_CHECK_COLUMNS``."""
    return _header(JUDGING_CHECK_COLUMNS) + _encode(JUDGING_CHECK_COLUMNS, judging_check_rows(results))


def _header(columns: tuple[Column, ...]) -> bytes:
    return BYTE_ORDER_MARK + _encode(columns, [tuple(column.name for column in columns)])


def _encode(columns: tuple[Column, ...], rows: Iterable[Row]) -> bytes:
    return b"".join(_encode_part(_form(len(columns), LINE_END), rows))


def _encode_page(page: Sequence[JudgedResponse]) -> Iterator[bytes]:
    return map(_encode_verdicts, chunks(page))


def _encode_verdicts(chunk: Chunk) -> bytes:
    forms = [_form(size, after) for size, after in zip(PART_SIZES, (",", ",", ",", LINE_END), strict=True)]
    return encoded(chunk, [partial(_encode_part, form) for form in forms])


def _form(number: int, after: str) -> str:
    """So many fields of a line, with what comes after them."""
    return ",".join(["%s"] * number) + after


def _encode_part(form: str, rows: Iterable[Row]) -> list[bytes]:
    # Counts are left to the form, which makes text of them in a third of the time.
    return [(form % tuple([v if type(v) is int else _field(v) for v in row])).encode() for row in rows]


def _field(value: Value) -> str:
    """A value as RFC 4180 has it: a text in quotes if it has a character that is one of the form's own."""
    if isinstance(value, str):
        first = value[:1]
        escaped = first in _ESCAPED_STARTS or (first in _BEFORE_SIGN and _LATE_START.match(value))
        text = f"'{value}" if escaped else value
        if ";" in text or "\n" in text or "\t" in text or "\r" in text:
            text = _INNER_START.sub(r"\1'", text)
        quoted = "," in text or '"' in text or "\n" in text or "\r" in text
        return '"' + text.replace('"', '""') + '"' if quoted else text
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
