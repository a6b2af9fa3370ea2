"""Parquet exports, written and handed on row group by row group."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from app.domain.judging.judged_response import JudgedResponse
from app.reports.exports.columns import (
    CELL_COLUMNS,
    JUDGING_CHECK_COLUMNS,
    PERSONA_SCORE_COLUMNS,
    VERDICT_COLUMNS,
    Column,
    ColumnType,
)
from app.reports.exports.rows import (
    GROUP_CHARACTERS,
    GROUP_ROWS,
    Chunk,
    Row,
    cell_rows,
    chunks,
    judging_check_rows,
    persona_score_rows,
    written,
)

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
        return self._write([pa.array(v, field.type) for v, field in zip(columns, self._schema, strict=True)])

    def add_page(self, page: Sequence[JudgedResponse]) -> Iterator[bytes]:
        """Writes a page's rows as a few row groups and returns the file's next bytes."""
        return map(self._add_chunk, chunks(page, GROUP_ROWS, GROUP_CHARACTERS))

    def _add_chunk(self, chunk: Chunk) -> bytes:
        types = iter(self._schema.types)
        columns = []
        for part, places in zip(chunk.parts, zip(*chunk.rows, strict=True), strict=True):
            taken = pa.array(places, pa.int32())
            columns += [pa.array(v, next(types)).take(taken) for v in zip(*part, strict=True)]
        return self._write(columns)

    def _write(self, columns: list[pa.Array]) -> bytes:
        self._writer.write_batch(pa.record_batch(columns, schema=self._schema))
        return self._sink.drain()

    def finish(self) -> bytes:
        """Ends the file and returns its last bytes."""
        self._writer.close()
        return self._sink.drain()


async def rows(pages: AsyncIterator[Sequence[JudgedResponse]]) -> AsyncIterator[bytes]:
    """One row for each verdict; see ``VERDICT_COLUMNS``, whose meanings are in the fields' metadata."""
    table = _Table(VERDICT_COLUMNS)
    async for part in written(pages, table.add_page):
        yield part
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
