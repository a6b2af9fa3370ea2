"""Reads uploads in a child process: JSON Lines, compressed files and Parquet."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, Literal, NamedTuple, Self

from app.domain.errors import InvalidJobError
from app.domain.instruments.rules import RuleBook, Rules
from app.domain.uploads.records import Place, Read, Record, RecordError, read_lines, read_rows
from app.importers.compressed import unpack
from app.importers.parquet import read_parquet
from app.importers.records import wrong_file
from app.instruments.rules import RULES

SOME, PREVIEW = b"+", b"="
"""First bytes of the results of another tool's file: some records, or the preview."""
NAMES = ("persona", "task", "model", "item", "run", "instruction", "question", "conversation")
"""Columns of a record that are a response's fields."""


class Part(NamedTuple):
    """Some records of an upload.

    Attributes:
        place: Where reading stands after them.
        records: Their columns, if nothing is wrong.
        errors: What is wrong; of many errors, the first.
        wrong: How many errors there are.
        unpacked: Of a packed file, the bytes of its content that were read so far.
        last: The file has no more.
    """

    place: Place
    records: list[dict[str, Any]]
    errors: list[RecordError]
    wrong: int
    unpacked: int = 0
    last: bool = False

    @classmethod
    def of(cls, read: Read, unpacked: int = 0, *, last: bool = False) -> Self:
        """Return what was read, with the records' columns."""
        records = list(map(record_columns, read.records))
        return cls(read.place, records, read.errors, read.wrong, unpacked, last)

    @classmethod
    def refused(cls, place: Place, error: InvalidJobError, unpacked: int = 0) -> Self:
        """Return the part that ends a file that can't be read further."""
        first = error.errors[0]
        message = f"{first.message} ({first.pointer})" if first.pointer else first.message
        return cls(place, [], [RecordError(0, "", message)], 1, unpacked, last=True)

    @classmethod
    def from_json(cls, data: bytes) -> Self:
        """Return the part that :meth:`to_json` wrote."""
        (lines, tail, skipping), records, errors, *rest = json.loads(data)
        place = Place(lines, tail.encode("latin-1"), skipping)
        return cls(place, records, [RecordError(*each) for each in errors], *rest)

    def to_json(self) -> bytes:
        """Write it."""
        place = (self.place.lines, self.place.tail.decode("latin-1"), self.place.skipping)
        return json.dumps([place, *self[1:]]).encode()


def record_columns(record: Record) -> dict[str, Any]:
    """Return the columns of a record."""
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


def load_rules(versions: Mapping[str, Any], book: RuleBook = RULES) -> Rules:
    """Return the versions of rules that an upload began with."""
    return Rules(
        book.segmenter.load(versions["segmenter"]),
        book.refusals.load(versions["refusals"]),
        book.injections.load(versions["injections"]),
    )


def read_piece(
    file: BinaryIO, place: Place, versions: Mapping[str, Any], last: bool, keep: bool
) -> Iterator[bytes]:
    """Read the next bytes of a file of JSON Lines."""
    read = read_lines(place, file.read(), load_rules(versions), last=last, keep=keep)
    yield Part.of(read).to_json()


def read_packed(
    file: BinaryIO,
    format_: Literal["gzip", "zstd", "parquet"],
    place: Place,
    unpacked: int,
    versions: Mapping[str, Any],
    most: int,
) -> Iterator[bytes]:
    """Read a file from where it was left up to the first records that are wrong.

    Args:
        file: The file. Untrusted.
        format_: Its form.
        place: Where reading stands.
        unpacked: Bytes of its content that were read.
        versions: The rules that its texts are read by.
        most: Most bytes of its content.
    """
    rules = load_rules(versions)
    part = Part(place, [], [], 0, unpacked)
    some = (
        _rows(file, part, rules, most) if format_ == "parquet" else _lines(file, part, rules, most, format_)
    )
    try:
        for part in some:
            yield part.to_json()
        yield Part.of(read_lines(part.place, b"", rules, last=True), part.unpacked, last=True).to_json()
    except InvalidJobError as error:
        yield Part.refused(part.place, error, part.unpacked).to_json()


def _rows(file: BinaryIO, at: Part, rules: Rules, most: int) -> Iterator[Part]:
    for some in read_parquet(file, skip=at.place.lines):
        at = Part.of(read_rows(at.place.lines + 1, some.rows, rules), at.unpacked + some.size)
        if at.unpacked > most:
            raise wrong_file(f"unpacks to more than {most:,} bytes")
        yield at


def _lines(
    file: BinaryIO, at: Part, rules: Rules, most: int, codec: Literal["gzip", "zstd"]
) -> Iterator[Part]:
    for piece in unpack(file, codec, skip=at.unpacked, most=most):
        at = Part.of(read_lines(at.place, piece, rules, last=False), at.unpacked + len(piece))
        yield at
