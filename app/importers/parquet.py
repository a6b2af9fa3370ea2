"""Parquet files, read some rows at a time."""

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from app.domain.errors import FieldError, InvalidJobError, escape_pointer
from app.importers.parquet_pages import File, check_histograms, check_pages
from app.importers.records import wrong_file

BATCH_ROWS = 64
MOST_COLUMNS = 2_000
UNPACKED_BYTES = 64 * 1024 * 1024
"""How much is unpacked at a time: less than two pages of each column."""
FOOTER_BYTES = 16 * 1024 * 1024
_MAGIC = {b"PAR1", b"PARE"}
SOME_ROWS, SOME_BYTES = 2_000, 1024 * 1024
"""Rows that are handed on together, and about how long they are."""


class Rows(NamedTuple):
    """Some rows of a table.

    Attributes:
        rows: Each row by column; or, where that can't be read, why.
        size: About how many bytes they take.
    """

    rows: list[dict[str, Any] | FieldError]
    size: int


def read_parquet(file: File, *, skip: int) -> Iterator[Rows]:
    """The rows of a Parquet file of any length, some at a time; of the file little more is held than a page of each column.

    Args:
        file: The file. Untrusted.
        skip: So many rows are passed over.

    Raises:
        InvalidJobError: If it can't be read.
    """
    opened = _opened(file)
    groups = list(range(opened.table.metadata.num_row_groups))
    while groups and skip >= (rows := opened.table.metadata.row_group(groups[0]).num_rows):
        del groups[0]
        skip -= rows
    some: list[dict[str, Any] | FieldError] = []
    size = 0
    for batch in _batches(opened, groups):
        kept = batch.slice(min(skip, len(batch)))
        skip -= len(batch) - len(kept)
        for row in _rows_one_by_one(kept):
            some.append(row)
            size += size_of(row) if isinstance(row, dict) else 0
        if size >= SOME_BYTES or len(some) >= SOME_ROWS:
            yield Rows(some, size)
            some, size = [], 0
    if some:
        yield Rows(some, size)


class _Opened(NamedTuple):
    """A file whose pages were looked at.

    Attributes:
        table: The file.
        rows: How many rows can be held.
    """

    table: pq.ParquetFile
    rows: int


def _opened(file: File) -> _Opened:
    try:
        footer = _footer(file)
        table = pq.ParquetFile(file, pre_buffer=False, buffer_size=SOME_BYTES)
        if footer:
            check_histograms(footer, table.schema)
        names = table.schema_arrow.names
        longest = check_pages(file, table.metadata, table.schema)
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise _broken(error) from error
    if len(names) > MOST_COLUMNS:
        raise wrong_file(f"has {len(names):,} columns; at most {MOST_COLUMNS:,}: leave out the others")
    repeated = next((name for name, count in Counter(names).items() if count > 1), None)
    if repeated is not None:
        raise wrong_file(f"the column {repeated[:100]!r} appears more than once")
    return _Opened(table, max(1, min(BATCH_ROWS, UNPACKED_BYTES // longest)))


def _footer(file: File) -> bytes:
    """What stands before the end of a file; empty where that is encrypted, so that it can't be read anyway."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 8))
    length, magic = int.from_bytes(file.read(4), "little"), file.read(4)
    if magic not in _MAGIC:
        raise wrong_file(
            "not a Parquet file that can be read: it does not end with PAR1, so part of it is missing"
        )
    if length > FOOTER_BYTES:
        raise wrong_file(f"a footer of {length:,} bytes; at most {FOOTER_BYTES:,}")
    file.seek(max(0, size - 8 - length))
    footer = file.read(length)
    file.seek(0)
    return footer if magic == b"PAR1" else b""


def size_of(value: Any) -> int:
    """About how many bytes a value takes."""
    if isinstance(value, dict):
        return sum(map(size_of, value.values()), len(value))
    if isinstance(value, list | tuple):
        return sum(map(size_of, value), len(value))
    return len(value) if isinstance(value, str | bytes) else 8


def _batches(file: _Opened, groups: list[int]) -> Iterator[pa.RecordBatch]:
    batches = file.table.iter_batches(batch_size=file.rows, row_groups=groups, use_threads=False)
    while True:
        try:
            batch = next(batches, None)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise _broken(error) from error
        if batch is None:
            return
        yield batch


def _rows_one_by_one(batch: pa.RecordBatch) -> list[dict[str, Any] | FieldError]:
    try:
        return list(_rows(batch, 1))
    except InvalidJobError:
        return [_row(batch, n) for n in range(len(batch))]


def _row(batch: pa.RecordBatch, number: int) -> dict[str, Any] | FieldError:
    """A row; or the column of which it has no value that can be read."""
    row: dict[str, Any] = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            row[name] = column[number].as_py()
        except (pa.ArrowException, ValueError, OverflowError) as error:
            why = "is not UTF-8" if isinstance(error, UnicodeDecodeError) else "can't be read"
            return FieldError(f"/{escape_pointer(name)}", why)
    return row


def _rows(batch: pa.RecordBatch, first: int) -> list[dict[str, Any]]:
    try:
        found: list[dict[str, Any]] = batch.to_pylist()
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise wrong_file("a value can't be read", f"/rows/{first}") from error
    return found


def _broken(error: Exception) -> InvalidJobError:
    words = str(error).splitlines() or ["unreadable"]
    return wrong_file(f"not a Parquet file that can be read: {words[0][:200]}")
