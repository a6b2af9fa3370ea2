"""Parquet exports, written and handed on row group by row group."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyarrow import parquet

from app.reports.exports.columns import Column
from app.reports.exports.sink import Sink


class ParquetWriter:
    """Writes one row group for each batch; the columns' meanings are in the fields' metadata."""

    def __init__(self, columns: Sequence[Column]) -> None:
        fields = [pa.field(c.name, str(c.type), metadata={"description": c.meaning}) for c in columns]
        self._schema = pa.schema(fields)
        self._sink = Sink()
        self._writer = parquet.ParquetWriter(self._sink, self._schema, compression="zstd")

    def begin(self) -> bytes:
        """The file's first bytes."""
        return self._sink.drain()

    def add(self, batch: pa.RecordBatch) -> Iterator[bytes]:
        """The batch as a row group."""
        columns = [column.dictionary_decode() for column in batch.columns]
        self._writer.write_batch(pa.record_batch(columns, schema=self._schema))
        yield self._sink.drain()

    def end(self) -> bytes:
        """The file's last bytes."""
        self._writer.close()
        return self._sink.drain()
