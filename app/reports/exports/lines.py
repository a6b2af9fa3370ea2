"""Record batches as lines of text, which CSV and JSON Lines have in common."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import pyarrow as pa
import pyarrow.compute as pc

from app.reports.exports.columns import Column

STEP_ROWS = 1_000
"""Lines that are made, and handed on, at a time: a batch as text has some megabytes."""


@dataclass(frozen=True, slots=True)
class LineWriter:
    """Writes a table line by line.

    Attributes:
        columns: The table's columns.
        header: What the file begins with.
        texts: Makes texts of a column's texts.
        missing: Stands for a missing value.
        before: Stands before a line's first value.
        after: For each column what follows its value.
    """

    columns: Sequence[Column]
    header: bytes
    texts: Callable[[list[str | None]], Sequence[str | bytes | None]]
    missing: str
    before: str
    after: Sequence[str]

    def begin(self) -> bytes:
        """The file's beginning."""
        return self.header

    def add(self, batch: pa.RecordBatch) -> Iterator[bytes]:
        """The rows of a batch. Neighbouring columns of one source are put together once for each of its objects."""
        groups: list[tuple[pa.Array, pa.Array, str]] = []
        fields = zip(self.columns, batch.columns, self.after, strict=True)
        for _, group in groupby(fields, key=lambda field: field[0].source):
            parts: list[pa.Array | pa.Scalar] = []
            without = ""
            for _, column, after in group:
                parts += [self._encoded(column.dictionary).fill_null(self.missing), pa.scalar(after)]
                without += self.missing + after
            groups.append((pc.binary_join_element_wise(*parts, ""), column.indices, without))
        for start in range(0, batch.num_rows, STEP_ROWS):
            rows = [
                texts.take(indices.slice(start, STEP_ROWS)).fill_null(without)
                for texts, indices, without in groups
            ]
            lines = pc.binary_join_element_wise(pa.scalar(self.before), *rows, "")
            yield bytes(lines.buffers()[2][: pc.sum(pc.binary_length(lines)).as_py()])

    def end(self) -> bytes:
        """Nothing stands behind the last line."""
        return b""

    def _encoded(self, values: pa.Array) -> pa.Array:
        if pa.types.is_string(values.type):
            return pa.array(self.texts(values.to_pylist()), pa.string())
        if pa.types.is_floating(values.type):  # Python's digits, which JSON writes as well
            numbers = [None if value is None else repr(value) for value in values.to_pylist()]
            return pa.array(numbers, pa.string())
        return values.cast(pa.string())
