"""What a file is before anything is known of its tool: JSON, JSON Lines, YAML, CSV, Parquet, zip or PNG."""

import csv
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import yaml

from app.domain.judging.stepwise_json import StepwiseDecoder
from app.importers.parquet import read_parquet
from app.importers.records import Refused, wrong_file

SHORT_CHARACTERS = 64 * 1024
"""The longest JSON that is parsed in one step, in which no other thread runs."""
MOST_NESTED = 500_000
"""Lists and objects of a JSON text."""
MOST_RECORDS = 500_000
"""Lines of JSON Lines, and rows of CSV."""
YAML_CHARACTERS = 500_000
"""YAML is parsed a hundred times more slowly than JSON."""
FIRST_LINES = 20
"""Among so many lines is one of JSON, if a file is JSON Lines."""
_LINE = re.compile(r"([^\r\n]*)(?:\r\n|\n|\r|\Z)")


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


@dataclass(frozen=True, slots=True)
class Document:
    """A file, parsed as far as its form tells.

    Attributes:
        form: Its form.
        name: Its name, without directories; may be empty.
        data: Its bytes.
        value: Of JSON and YAML: what it says.
        rows: Of JSON Lines, CSV and Parquet: each row's value with its place, or why it has none.
    """

    form: Form
    name: str
    data: bytes
    value: Any = None
    rows: Sequence[tuple[str, Any]] = ()

    def records(self) -> Iterator[tuple[str, Any]]:
        """The values of lines, or of a JSON list, or the only one; each with its place."""
        if self.form in ROWS:
            yield from self.rows
        elif isinstance(self.value, list):
            yield from ((f"/{n}", value) for n, value in enumerate(self.value))
        elif self.form in {Form.JSON, Form.YAML}:
            yield "", self.value

    def first(self) -> dict[str, Any]:
        """The first value that is an object; empty if there is none."""
        return next((value for _, value in self.records() if isinstance(value, dict)), {})


def read_document(data: bytes, name: str) -> Document:
    """Parses a file.

    Args:
        data: Its bytes. Untrusted.
        name: Its name; the ending tells YAML and CSV.

    Raises:
        InvalidJobError: If it has none of the forms, with line and column where they are known.
    """
    form = next((form for magic, form in MAGIC.items() if data.startswith(magic)), None)
    if form is Form.PARQUET:
        return Document(form, name, data, rows=list(read_parquet(data)))
    if form is not None:
        return Document(form, name, data)
    text = _text(data)
    if not text.strip():
        raise wrong_file("the file is empty")
    ending = name.rpartition(".")[2].casefold()
    if ending in {"yaml", "yml"}:
        return Document(Form.YAML, name, data, _yaml(text))
    if ending == "csv":
        return Document(Form.CSV, name, data, rows=_csv(text))
    if _is_lines(text):
        return Document(Form.LINES, name, data, rows=_lines(text))
    try:
        return Document(Form.JSON, name, data, parse_json(text))
    except ValueError as error:
        raise wrong_file(f"neither JSON nor JSON Lines: {error}") from error


def parse_json(text: str) -> Any:
    """What a JSON text says.

    Raises:
        ValueError: If it is none, with the reason for people.
    """
    decoder = json.JSONDecoder() if len(text) <= SHORT_CHARACTERS else StepwiseDecoder(most=MOST_NESTED)
    try:
        return decoder.decode(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} (line {error.lineno}, column {error.colno})") from error
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    except ValueError as error:
        if "lists and objects" in str(error):
            raise
        raise ValueError("a number is too long") from error


def _text(data: bytes) -> str:
    encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise wrong_file(f"not UTF-8: byte {error.start + 1} of the file", f"/lines/{line}") from error


def _filled_lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(_LINE.finditer(text), 1):
        if line[1].strip():
            yield number, line[1]


def _is_lines(text: str) -> bool:
    """Whether several lines are JSON objects of their own."""
    beginning = [line for (_, line), _ in zip(_filled_lines(text), range(FIRST_LINES), strict=False)]
    objects = [line for line in beginning if line.startswith("{") and _is_json(line)]
    return len(beginning) > 1 and bool(objects)


def _is_json(line: str) -> bool:
    try:
        parse_json(line)
    except ValueError:
        return False
    return True


def _lines(text: str) -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = []
    for number, line in _filled_lines(text):
        place = f"/lines/{number}"
        try:
            rows.append((place, parse_json(line)))
        except ValueError as error:
            reason = re.sub(r" \(line 1, (column \d+)\)", r" (\1)", str(error))
            rows.append((place, Refused(place, f"not JSON: {reason}")))
        _check_number(rows, place)
    return rows


def _check_number(rows: Sequence[object], place: str) -> None:
    if len(rows) > MOST_RECORDS:
        raise wrong_file(f"more than {MOST_RECORDS:,} records; divide the file", place)


def _csv(text: str) -> list[tuple[str, Any]]:
    lines = (line[0] for line in _LINE.finditer(text) if line[0])
    reader = csv.reader(lines, strict=True)
    rows: list[tuple[str, Any]] = []
    header: list[str] | None = None
    place = "/lines/1"
    try:
        for row in reader:
            if not any(cell.strip() for cell in row):
                pass
            elif header is None:
                header = [cell.strip() for cell in row]
                if len(set(header)) < len(header):
                    raise wrong_file("a column appears twice", place)
            elif len(row) != len(header):
                rows.append((place, Refused(place, "has not as many fields as the header")))
            else:
                rows.append((place, dict(zip(header, row, strict=True))))
            _check_number(rows, place)
            place = f"/lines/{reader.line_num + 1}"
    except csv.Error as error:
        rows.append((place, Refused(place, f"not CSV from here on: {error}")))
    return rows


class _YamlLoader(yaml.SafeLoader):
    """YAML of JSON's types: dates stay texts."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own name and form
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def _yaml(text: str) -> Any:
    if len(text) > YAML_CHARACTERS:
        raise wrong_file(f"YAML of more than {YAML_CHARACTERS:,} characters; convert it to JSON")
    try:
        return yaml.load(text, _YamlLoader)  # noqa: S506 - derived from SafeLoader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = "" if mark is None else f" (line {mark.line + 1}, column {mark.column + 1})"
        raise wrong_file(f"not YAML: {error.problem}{where}") from error
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise wrong_file("not YAML that can be read") from error
