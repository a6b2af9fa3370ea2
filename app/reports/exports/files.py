"""Tables as files, whatever their format."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing
from itertools import chain
from typing import Protocol, TypeAlias

import pyarrow as pa

from app.domain.judging.judged_response import JudgedResponse
from app.domain.results.contract import Results
from app.reports.exports.batches import page_batches, record_batch, response_batches, table_batch
from app.reports.exports.columns import RESPONSE_COLUMNS, TABLES, VERDICT_COLUMNS, Column, Record


class Writer(Protocol):
    """Makes a file of a table, batch by batch."""

    def begin(self) -> bytes:
        """The file's first bytes."""
        ...

    def add(self, batch: pa.RecordBatch) -> Iterator[bytes]:
        """The next bytes, piece by piece: a batch's rows."""
        ...

    def end(self) -> bytes:
        """The file's last bytes."""
        ...


Format: TypeAlias = Callable[[Sequence[Column]], Writer]
"""A format: makes a writer of a table with these columns."""


def write_table(format_: Format, name: str, results: Results) -> bytes:
    """A file of one of :data:`TABLES`."""
    table = TABLES[name]
    file = format_(table.columns)
    return b"".join([file.begin(), *file.add(table_batch(table, results)), file.end()])


PAGED = {
    "verdicts": (VERDICT_COLUMNS, page_batches),
    "responses": (RESPONSE_COLUMNS, response_batches),
    "control_verdicts": (VERDICT_COLUMNS, page_batches),
}
"""The tables that are made of responses, by their names in the API: their columns, and what makes rows of a page."""


async def write_records(
    format_: Format, columns: Sequence[Column], pages: AsyncIterator[Sequence[Record]]
) -> AsyncIterator[bytes]:
    """A file of these records, page by page."""
    file = format_(columns)
    yield file.begin()
    async for page in pages:
        yield await asyncio.to_thread(b"".join, file.add(record_batch(columns, page)))
    yield file.end()


async def write_pages(
    format_: Format, name: str, pages: AsyncGenerator[Sequence[JudgedResponse]]
) -> AsyncGenerator[bytes]:
    """A file of one of :data:`PAGED`, page by page; made on threads, so the event loop goes on."""
    columns, batches = PAGED[name]
    file = format_(columns)
    yield file.begin()
    async with aclosing(pages):
        async for page in pages:
            parts = chain.from_iterable(map(file.add, batches(page)))
            while (part := await asyncio.to_thread(next, parts, None)) is not None:
                yield part
    yield file.end()
