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
from collections.abc import Sequence

from app.reports.exports.columns import Column
from app.reports.exports.lines import LineWriter

LINE_END = "\r\n"
BYTE_ORDER_MARK = "\ufeff"
FORMULA_STARTS = "=+-@\t\r\n＝＋－＠"  # noqa: RUF001 - the full-width signs begin formulas too
_ESCAPED_STARTS = frozenset("'" + FORMULA_STARTS)
_IGNORED = r'[\s"\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\u2800\U0001d173-\U0001d17a\U000e0000-\U000e0fff]'
"""White space, quotation marks and characters without a width: importers drop them before they look for a formula."""
_LATE_START = re.compile(rf"""{_IGNORED}+['=+\-@＝＋－＠]""")  # noqa: RUF001 - as above
_INNER_START = re.compile(rf"""([;\t\r\n])(?={_IGNORED}*['=+\-@＝＋－＠])""")  # noqa: RUF001 - as above
"""Where a cell begins like a formula for a spreadsheet whose separator is no comma; quotes and spaces before that do not count."""


def csv_writer(columns: Sequence[Column]) -> LineWriter:
    """Writes one line for each row, after a line of column names."""
    header = BYTE_ORDER_MARK + ",".join(column.name for column in columns) + LINE_END
    after = [","] * (len(columns) - 1) + [LINE_END]
    return LineWriter(columns, header.encode(), _fields, missing="", before="", after=after)


def _fields(texts: list[str | None]) -> list[str | None]:
    return [text and _field(text) for text in texts]


def _field(text: str) -> str:
    """A text as RFC 4180 has it: in quotes if it has a character that is one of the form's own."""
    first = text[:1]
    if first in _ESCAPED_STARTS or (not (first.isascii() and first.isalnum()) and _LATE_START.match(text)):
        text = f"'{text}"
    if ";" in text or "\n" in text or "\t" in text or "\r" in text:
        text = _INNER_START.sub(r"\1'", text)
    quoted = "," in text or '"' in text or "\n" in text or "\r" in text
    return '"' + text.replace('"', '""') + '"' if quoted else text
