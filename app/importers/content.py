"""What a file is before anything is known of its tool: JSON, JSON Lines, YAML, CSV, Parquet, zip or PNG."""

import codecs
import contextlib
import csv
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import islice
from typing import Any, BinaryIO

from app.domain.errors import FieldError
from app.domain.judging.stepwise_json import StepwiseDecoder
from app.importers.parquet import read_parquet
from app.importers.records import Refused, wrong_file
from persona_assay.json_yaml import parse_yaml

UNPACKED_BYTES = 64 * 1024 * 1024
"""How much of a packed file is unpacked, unless it is read piece by piece; and the longest file that is read whole."""
PIECE_BYTES = 1024 * 1024
LINE_CHARACTERS = 16 * 1024 * 1024
"""Longest line of JSON Lines and CSV, and longest cell of CSV."""
csv.field_size_limit(
    LINE_CHARACTERS
)  # of all that the process reads, and set once: otherwise cells end at 131,072 characters
MOST_NESTED = 500_000
"""Lists and objects of a JSON text."""
MOST_RECORDS = 500_000
"""Lines of JSON Lines, and rows of CSV."""
FIRST_LINES = 20
"""Among so many lines is one of JSON, if a file is JSON Lines."""
RUBRIC = "; rubrics go into rubric sets (assay rubrics FILE, POST /v1/rubric-sets)"
_LINE = re.compile(r"([^\r\n]*)(?:\r\n|\n|\r|\Z)")
_UTF_16 = {b"\xff\xfe", b"\xfe\xff"}
_SEPARATOR_LINE = re.compile(r"""["']?sep=(.)["']?\s*""", re.IGNORECASE)
"""Excel's ``sep=`` line."""
SEPARATORS = (",", ";", "\t", "|")
TABLE_ENDINGS = {"csv", "tsv", "tab"}
DIALECT_LINES = 50
"""Lines by which the separator is found."""


class Form(StrEnum):
    """The forms of files."""

    JSON = "json"
    LINES = "lines"
    YAML = "yaml"
    CSV = "csv"
    PARQUET = "parquet"
    ZIP = "zip"
    PNG = "png"


ROWS = frozenset({Form.LINES, Form.CSV, Form.PARQUET})
RECORDS = ROWS | {Form.JSON}
"""Forms of which any kind of records may be."""
MAGIC = {b"\x89PNG\r\n\x1a\n": Form.PNG, b"PK\x03\x04": Form.ZIP, b"PAR1": Form.PARQUET}


Row = tuple[str, Any]
"""A row's value, or why it has none, with its place."""


@dataclass(frozen=True, slots=True)
class Document:
    """A file, parsed as far as its form tells. Of rows no more is held than is being read.

    Attributes:
        form: Its form.
        name: Its name, without directories; may be empty.
        file: Its bytes.
        most: So many bytes of it are unpacked.
        value: Of JSON and YAML: what it says.
        rows: Of JSON Lines, CSV and Parquet: the rows, from the first on.
        head: Its first value that is an object; empty if there is none.
        header: Of CSV: the names of its columns, of which some may be alike: then it has no rows by name.
    """

    form: Form
    name: str
    file: BinaryIO
    most: int
    value: Any
    rows: Callable[[], Iterator[Row]]
    head: dict[str, Any]
    header: Sequence[str]

    def records(self) -> Iterator[Row]:
        """The values of lines, or of a JSON list, or the only one; each with its place."""
        return self.rows()

    def first(self) -> dict[str, Any]:
        """The first value that is an object; empty if there is none."""
        return self.head

    def whole(self) -> bytes:
        """All of its bytes.

        Raises:
            InvalidJobError: If they are too many.
        """
        _check_whole(self.file)
        self.file.seek(0)
        return self.file.read()


def read_document(file: BinaryIO, name: str, most: int = UNPACKED_BYTES) -> Document:
    """Parses a file.

    Args:
        file: It. Untrusted.
        name: Its name; the ending tells YAML and CSV.
        most: So many bytes of it may be unpacked.

    Raises:
        InvalidJobError: If it has none of the forms, with line and column where they are known.
    """
    form, value = _form(file, name)
    rows = _rows(form, file, value, most)
    header = _header(file) if form is Form.CSV else ()
    repeated = len(set(header)) < len(header)
    head = {} if repeated else next((each for _, each in rows() if isinstance(each, dict)), {})
    return Document(form, name, file, most, value, rows, head, header)


def _form(file: BinaryIO, name: str) -> tuple[Form, Any]:
    """A file's form, and of JSON and YAML its value."""
    file.seek(0)
    beginning = file.read(max(map(len, MAGIC)))
    packed = next((form for magic, form in MAGIC.items() if beginning.startswith(magic)), None)
    if packed is not None:
        return packed, None
    if next(_filled_lines(file, cut=True), None) is None:
        raise wrong_file("the file is empty")
    ending = name.rpartition(".")[2].casefold()
    if ending in {"yaml", "yml"}:
        return Form.YAML, _yaml(_text(file))
    if ending in TABLE_ENDINGS:
        return Form.CSV, None
    return _json_form(file)


def _json_form(file: BinaryIO) -> tuple[Form, Any]:
    beginning = [line for _, line in islice(_filled_lines(file, cut=True), FIRST_LINES)]
    if len(beginning) > 1 and _is_object(beginning[0]):
        return Form.LINES, None
    text = _text(file)
    try:
        return Form.JSON, parse_json(text)
    except ValueError as error:
        if not text.lstrip().startswith("[") and any(map(_is_object, beginning[1:])):
            return Form.LINES, None  # whose first line is broken
        if _is_separated(file):
            return Form.CSV, None
        hint = RUBRIC if "{response}" in text else ""
        raise wrong_file(f"neither JSON nor JSON Lines: {error}{hint}") from error


def _rows(form: Form, file: BinaryIO, value: Any, most: int) -> Callable[[], Iterator[Row]]:
    if form in {Form.ZIP, Form.PNG}:
        return lambda: iter(())
    if form in {Form.JSON, Form.YAML}:
        return partial(_values, value)
    if form is Form.PARQUET:
        return partial(_parquet, file, most)
    return partial(_csv if form is Form.CSV else _lines, file)


def _values(value: Any) -> Iterator[Row]:
    """The values of a list, or the only one."""
    columns, data = (value.get("columns"), value.get("data")) if isinstance(value, dict) else (None, None)
    if isinstance(value, list):
        yield from ((f"/{n}", each) for n, each in enumerate(value))
    elif (
        isinstance(columns, list)
        and isinstance(data, list)
        and all(isinstance(each, str) for each in columns)
    ):
        for n, row in enumerate(data):  # pandas' orientation `split`, as of MLflow's tables
            fits = isinstance(row, list) and len(row) == len(columns)
            yield f"/data/{n}", dict(zip(columns, row, strict=True)) if fits else row
    else:
        yield "", value


def _parquet(file: BinaryIO, most: int) -> Iterator[Row]:
    unpacked = number = 0
    for some in read_parquet(file, skip=0):
        unpacked += some.size
        for row in some.rows:
            number += 1
            place = f"/rows/{number}"
            _check_number(number, place)
            if unpacked > most:
                raise wrong_file(f"the file unpacks to more than {most:,} bytes", place)
            if isinstance(row, FieldError):
                yield place, Refused(f"{place}{row.pointer}", row.message)
            else:
                yield place, row


class _RepeatedNameError(ValueError):
    """A JSON object has a name twice; the usual reader would silently keep the last."""


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        repeated = next(name for name, count in counts.items() if count > 1)
        shown = repeated[:100].encode(errors="replace").decode()
        raise _RepeatedNameError(f"an object has the name {shown!r} twice")
    return members


_DECODER = json.JSONDecoder(object_pairs_hook=_members)


def parse_json(text: str) -> Any:
    """What a JSON text says.

    Raises:
        ValueError: If it is none, with the reason for people.
    """
    decoder = (
        _DECODER
        if text.count("[") + text.count("{") <= MOST_NESTED
        else StepwiseDecoder(most=MOST_NESTED, object_pairs_hook=_members)  # counts those outside texts
    )
    try:
        return decoder.decode(text)
    except _RepeatedNameError:
        raise
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} (line {error.lineno}, column {error.colno})") from error
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    except ValueError as error:
        if "lists and objects" in str(error):
            raise
        raise ValueError("a number is too long") from error


def _check_whole(file: BinaryIO) -> None:
    if file.seek(0, os.SEEK_END) > UNPACKED_BYTES:
        raise wrong_file(
            f"a file of this kind is read whole and may have {UNPACKED_BYTES:,} bytes; divide it, or write JSON Lines"
        )


def _text(file: BinaryIO) -> str:
    _check_whole(file)
    return "".join(_decoded(file))


def _decoded(file: BinaryIO) -> Iterator[str]:
    """A file's text, piece by piece."""
    encoding = _encoding(file)
    file.seek(0)
    decoder = codecs.getincrementaldecoder(encoding)()
    at, line, piece = 0, 1, b"-"
    while piece:
        piece = file.read(PIECE_BYTES)
        try:
            yield decoder.decode(piece, final=not piece)
        except UnicodeDecodeError as error:
            begin = at + len(piece) - len(error.object) + error.start
            line += error.object.count(b"\n", 0, error.start)
            raise wrong_file(
                f"not {encoding.removesuffix('-sig').upper()}: byte {begin + 1} of the file; save it as UTF-8",
                f"/lines/{line}",
            ) from error
        at, line = at + len(piece), line + piece.count(b"\n")


def _encoding(file: BinaryIO) -> str:
    """UTF-16 by its mark or, without one, by the zeros of its first two characters; else UTF-8."""
    file.seek(0)
    beginning = file.read(4)
    if beginning[:2] in _UTF_16:
        return "utf-16"
    zeros = [byte == 0 for byte in beginning]
    if zeros == [False, True, False, True]:
        return "utf-16-le"
    return "utf-16-be" if zeros == [True, False, True, False] else "utf-8-sig"


def _lines_with_ends(file: BinaryIO, *, cut: bool = False) -> Iterator[str]:
    """A file's lines; one that is too long is an error, or is cut and the last."""
    rest, number = "", 0
    for piece in _decoded(file):
        text = rest + piece
        # A carriage return at the end may be the first half of a line's end.
        end = max(text.rfind("\n"), text.rfind("\r", 0, -1)) + 1
        for line in _LINE.finditer(text, 0, end):
            if line[0]:
                number += 1
                yield line[0]
        rest = text[end:]
        if len(rest) > LINE_CHARACTERS:
            if cut:
                break
            raise wrong_file(f"a line of more than {LINE_CHARACTERS:,} characters", f"/lines/{number + 1}")
    yield from (line[0] for line in _LINE.finditer(rest) if line[0])


def _filled_lines(file: BinaryIO, *, cut: bool = False) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(_lines_with_ends(file, cut=cut), 1):
        if line.strip():
            yield number, line.rstrip("\r\n")


def _is_object(line: str) -> bool:
    """Whether a line is a JSON object of its own."""
    try:
        return line.lstrip().startswith("{") and isinstance(parse_json(line), dict)
    except ValueError:
        return False


def _lines(file: BinaryIO) -> Iterator[Row]:
    for n, (number, line) in enumerate(_filled_lines(file), 1):
        place = f"/lines/{number}"
        _check_number(n, place)
        try:
            yield place, parse_json(line)
        except ValueError as error:
            reason = re.sub(r" \(line 1, (column \d+)\)", r" (\1)", str(error))
            yield place, Refused(place, f"not JSON: {reason}")


def _check_number(number: int, place: str) -> None:
    if number > MOST_RECORDS:
        raise wrong_file(f"more than {MOST_RECORDS:,} records; divide the file", place)


def csv_rows(file: BinaryIO) -> Iterator[tuple[str, list[str] | Refused]]:
    """The rows of CSV that have a field which is not blank, each with its place; the first are the names of the columns."""
    separator, skipped = _dialect(file)
    lines = islice(_lines_with_ends(file), skipped, None)
    reader = csv.reader(lines, strict=True, delimiter=separator)
    columns: int | None = None
    number, place = 0, f"/lines/{skipped + 1}"
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                _check_number(number, place)
                number += 1
                columns = columns or len(row)
                fits = len(row) == columns
                yield place, row if fits else Refused(place, "has not as many fields as the header")
            place = f"/lines/{skipped + reader.line_num + 1}"
    except csv.Error as error:
        yield place, Refused(place, f"not CSV from here on: {error}")


def _dialect(file: BinaryIO) -> tuple[str, int]:
    """Find the separator, and how many lines before the header only name it."""
    lines = _first_lines(file)
    named = _SEPARATOR_LINE.fullmatch(lines[0]) if lines else None
    if named is not None:
        return named[1], 1
    return max(SEPARATORS, key=lambda each: _fit(lines, each)), 0


def _first_lines(file: BinaryIO) -> list[str]:
    piece = next(_decoded(file))
    return piece.splitlines(keepends=True)[:DIALECT_LINES]


def _fit(lines: Sequence[str], separator: str) -> tuple[bool, float, int]:
    """Compare separators: several columns first, then the share of rows with as many as the header, then more columns."""
    rows = []
    with contextlib.suppress(csv.Error):
        rows += [row for row in csv.reader(lines, delimiter=separator) if any(cell.strip() for cell in row)]
    width = len(rows[0]) if rows else 0
    return width > 1, sum(len(row) == width for row in rows) / max(len(rows), 1), width


def _is_separated(file: BinaryIO) -> bool:
    """Whether a file of another name is a table: all of its first rows have as many fields as a header that is not JSON."""
    lines = _first_lines(file)
    if not lines or _SEPARATOR_LINE.fullmatch(lines[0]):
        return bool(lines)
    separator, _ = _dialect(file)
    several, share, _ = _fit(lines, separator)
    return several and share == 1 and len(lines) > 1 and not set("{}[]:") & set(lines[0])


def _header(file: BinaryIO) -> Sequence[str]:
    _, first = next(csv_rows(file), ("", []))
    return () if isinstance(first, Refused) else tuple(cell.strip() for cell in first)


def _csv(file: BinaryIO) -> Iterator[Row]:
    header: list[str] | None = None
    for place, row in csv_rows(file):
        if isinstance(row, Refused):
            yield place, row
        elif header is None:
            header = [cell.strip() for cell in row]
            if len(set(header)) < len(header):
                raise wrong_file("a column appears twice", place)
        else:
            yield place, dict(zip(header, row, strict=True))


def _yaml(text: str) -> Any:
    try:
        return parse_yaml(text)
    except ValueError as error:
        raise wrong_file(f"not YAML that can be read: {error}") from error
