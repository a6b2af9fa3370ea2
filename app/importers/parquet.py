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

    Raises:
        InvalidJobError: If it can't be read, or is too large.
    """
    file = _opened(data)
    if file.metadata.num_rows > MOST_ROWS:
        raise wrong_file(f"{file.metadata.num_rows:,} rows; at most {MOST_ROWS:,}")
    unpacked, number = 0, 0
    for batch in _batches(file):
        unpacked += batch.nbytes
        if unpacked > UNPACKED_BYTES:
            raise wrong_file(f"the file unpacks to more than {UNPACKED_BYTES:,} bytes", f"/rows/{number + 1}")
        for row in _rows(batch, number + 1):
            number += 1
            yield f"/rows/{number}", row


def _opened(data: bytes) -> pq.ParquetFile:
    try:
        file = pq.ParquetFile(pa.BufferReader(data))
        groups = [file.metadata.row_group(n) for n in range(file.metadata.num_row_groups)]
        size = sum(group.total_byte_size for group in groups)
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise _broken(error) from error
    if size > UNPACKED_BYTES:
        raise wrong_file(f"the file unpacks to {size:,} bytes; at most {UNPACKED_BYTES:,}")
    return file


def _batches(file: pq.ParquetFile) -> Iterator[pa.RecordBatch]:
    batches = file.iter_batches(batch_size=BATCH_ROWS, use_threads=False)
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
