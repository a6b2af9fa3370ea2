"""Parquet files, unpacked no further than a limit."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from app.domain.errors import InvalidJobError
from app.importers.records import wrong_file

MOST_ROWS = 200_000
BATCH_ROWS = 64
UNPACKED_BYTES = 64 * 1024 * 1024
"""How much of a Parquet file is unpacked."""


def read_parquet(data: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of a Parquet file, from 1.

    A dictionary's value may stand in any number of rows, so rows are counted as they come out, few at a time where values are long.

    Raises:
        InvalidJobError: If it can't be read, or is too large.
    """
    file, longest = _opened(data)
    if file.metadata.num_rows > MOST_ROWS:
        raise wrong_file(f"{file.metadata.num_rows:,} rows; at most {MOST_ROWS:,}")
    unpacked, number = 0, 0
    for batch in _batches(file, max(1, min(BATCH_ROWS, UNPACKED_BYTES // longest))):
        for row in _rows(batch, number + 1):
            number += 1
            unpacked += _size(row)
            if unpacked > UNPACKED_BYTES:
                raise wrong_file(f"the file unpacks to more than {UNPACKED_BYTES:,} bytes", f"/rows/{number}")
            yield f"/rows/{number}", row


def _opened(data: bytes) -> tuple[pq.ParquetFile, int]:
    """The file, and how many bytes its longest value may have."""
    try:
        file = pq.ParquetFile(pa.BufferReader(data))
        groups = [file.metadata.row_group(n) for n in range(file.metadata.num_row_groups)]
        sizes = [
            group.column(n).total_uncompressed_size for group in groups for n in range(group.num_columns)
        ]
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise _broken(error) from error
    if sum(sizes) > UNPACKED_BYTES:
        raise wrong_file(f"the file unpacks to {sum(sizes):,} bytes; at most {UNPACKED_BYTES:,}")
    return file, max([1, *sizes])


def _size(value: Any) -> int:
    """About how many bytes a value takes."""
    if isinstance(value, dict):
        return sum(map(_size, value.values()), len(value))
    if isinstance(value, list | tuple):
        return sum(map(_size, value), len(value))
    return len(value) if isinstance(value, str | bytes) else 8


def _batches(file: pq.ParquetFile, rows: int) -> Iterator[pa.RecordBatch]:
    batches = file.iter_batches(batch_size=rows, use_threads=False)
    while True:
        try:
            batch = next(batches, None)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise _broken(error) from error
        if batch is None:
            return
        yield batch


def _rows(batch: pa.RecordBatch, first: int) -> list[dict[str, Any]]:
    try:
        found: list[dict[str, Any]] = batch.to_pylist()
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise wrong_file("a value can't be read", f"/rows/{first}") from error
    return found


def _broken(error: Exception) -> InvalidJobError:
    words = str(error).splitlines() or ["unreadable"]
    return wrong_file(f"not a Parquet file that can be read: {words[0][:200]}")
