"""Parquet files, read some rows at a time."""

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from app.domain.errors import FieldError, InvalidJobError, escape_pointer
from app.importers.records import wrong_file

BATCH_ROWS = 64
MOST_COLUMNS = 2_000
BATCH_BYTES = 32 * 1024 * 1024
"""Most bytes of the rows that are unpacked at a time."""
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


def read_parquet(file: BinaryIO, *, skip: int) -> Iterator[Rows]:
    """Yield the rows of a Parquet file of any length, some at a time. A hostile one can end the process: call it in a child.

    Args:
        file: The file. Untrusted.
        skip: So many rows are passed over.

    Raises:
        InvalidJobError: If it can't be read.
    """
    table = _opened(file)
    groups = list(range(table.metadata.num_row_groups))
    while groups and skip >= (rows := table.metadata.row_group(groups[0]).num_rows):
        del groups[0]
        skip -= rows
    some: list[dict[str, Any] | FieldError] = []
    size = 0
    for batch in _batches(table, groups):
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


def _opened(file: BinaryIO) -> pq.ParquetFile:
    try:
        _check_end(file)
        table = pq.ParquetFile(
            file,
            pre_buffer=False,
            buffer_size=SOME_BYTES,
            thrift_string_size_limit=FOOTER_BYTES,
            thrift_container_size_limit=FOOTER_BYTES,
        )
        names = table.schema_arrow.names
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise _broken(error) from error
    if len(names) > MOST_COLUMNS:
        raise wrong_file(f"has {len(names):,} columns; at most {MOST_COLUMNS:,}: leave out the others")
    repeated = next((name for name, count in Counter(names).items() if count > 1), None)
    if repeated is not None:
        raise wrong_file(f"the column {repeated[:100]!r} appears more than once")
    return table


def _check_end(file: BinaryIO) -> None:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 8))
    length, magic = int.from_bytes(file.read(4), "little"), file.read(4)
    if magic not in _MAGIC:
        raise wrong_file(
            "not a Parquet file that can be read: it does not end with PAR1, so part of it is missing"
        )
    if length > FOOTER_BYTES:
        raise wrong_file(f"a footer of {length:,} bytes; at most {FOOTER_BYTES:,}")
    file.seek(0)


def size_of(value: Any) -> int:
    """About how many bytes a value takes."""
    if isinstance(value, dict):
        return sum(map(size_of, value.values()), len(value))
    if isinstance(value, list | tuple):
        return sum(map(size_of, value), len(value))
    return len(value) if isinstance(value, str | bytes) else 8


def _batches(table: pq.ParquetFile, groups: list[int]) -> Iterator[pa.RecordBatch]:
    """Yield some rows at a time: fewer of a row group whose rows are long."""
    for number in groups:
        group = table.metadata.row_group(number)
        rows = min(BATCH_ROWS, max(1, SOME_BYTES * group.num_rows // max(group.total_byte_size, 1)))
        batches = table.iter_batches(batch_size=rows, row_groups=[number], use_threads=False)
        while True:
            try:
                batch = next(batches, None)
            except (pa.ArrowException, OSError, ValueError) as error:
                raise _broken(error) from error
            if batch is None:
                break
            if batch.nbytes > BATCH_BYTES:
                raise wrong_file(f"unpacks to more than {BATCH_BYTES:,} bytes in {len(batch)} rows")
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
