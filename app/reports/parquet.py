"""Parquet exports, written and handed on row group by row group."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from app.domain.judged import JudgedResponse
from app.reports.columns import (
    CELL_COLUMNS,
    JUDGING_CHECK_COLUMNS,
    PERSONA_SCORE_COLUMNS,
    VERDICT_COLUMNS,
    Column,
    ColumnType,
)
from app.reports.rows import Row, cell_rows, chunks, judging_check_rows, persona_score_rows

_ARROW_TYPES = {
    ColumnType.TEXT: pa.string(),
    ColumnType.INTEGER: pa.int64(),
    ColumnType.NUMBER: pa.float64(),
    ColumnType.BOOLEAN: pa.bool_(),
}


class _Sink:
    """A file to Arrow; what was written is taken away by :meth:`drain`, so it never grows."""

    closed = False

    def __init__(self) -> None:
        self._pending = bytearray()
        self._written = 0

    def write(self, data: bytes) -> int:
        self._pending += data
        self._written += len(data)
        return len(data)

    def tell(self) -> int:
        return self._written

    def flush(self) -> None:
        """Everything is where it shall be already."""

    def close(self) -> None:
        self.closed = True

    def drain(self) -> bytes:
        data = bytes(self._pending)
        self._pending.clear()
        return data


class _Table:
    """A Parquet file in the making."""

    def __init__(self, columns: tuple[Column, ...]) -> None:
        self._sink = _Sink()
        self._schema = pa.schema(
            [pa.field(c.name, _ARROW_TYPES[c.type], metadata={"description": c.meaning}) for c in columns]
        )
        self._writer = parquet.ParquetWriter(self._sink, self._schema, compression="zstd")

    def add(self, rows: Sequence[Row]) -> bytes:
        """Writes rows as one row group and returns the file's next bytes."""
        columns = zip(*rows, strict=True) if rows else ((),) * len(self._schema)
        arrays = [pa.array(v, field.type) for v, field in zip(columns, self._schema, strict=True)]
        self._writer.write_batch(pa.record_batch(arrays, schema=self._schema))
        return self._sink.drain()

    def finish(self) -> bytes:
        """Ends the file and returns its last bytes."""
        self._writer.close()
        return self._sink.drain()


async def rows(responses: AsyncIterator[JudgedResponse]) -> AsyncIterator[bytes]:
    """One row for each verdict; see ``VERDICT_COLUMNS``, whose meanings are in the fields' metadata."""
    table = _Table(VERDICT_COLUMNS)
    async for chunk in chunks(responses):
        yield await asyncio.to_thread(
            table.add, [response + unit + verdict for response, unit, verdict in chunk]
        )
    yield table.finish()


def cells(results: Mapping[str, Any]) -> bytes:
    """One row for each cell; see ``CELL_COLUMNS``, whose meanings are in the fields' metadata."""
    table = _Table(CELL_COLUMNS)
    return table.add(cell_rows(results)) + table.finish()


def persona_scores(results: Mapping[str, Any]) -> bytes:
    """One row for each task score and PersonaScore; see ``PERSONA_SCORE_COLUMNS``."""
    table = _Table(PERSONA_SCORE_COLUMNS)
    return table.add(persona_score_rows(results)) + table.finish()


def judging_check(results: Mapping[str, Any]) -> bytes:
    """One row for each judge, over all tasks and for each of them; see ``JUDGING_CHECK_COLUMNS``."""
    table = _Table(JUDGING_CHECK_COLUMNS)
    return table.add(judging_check_rows(results)) + table.finish()
