"""Zip files that are handed on while they are written. The same entries give the same bytes: none has a date of its own."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import NamedTuple
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from app.reports.exports.sink import Sink

LEVEL = 6
_DATE = (1980, 1, 1, 0, 0, 0)
_READABLE = 0o644 << 16


class Entry(NamedTuple):
    """A file in a zip file: its path, and its bytes piece by piece."""

    path: str
    parts: AsyncIterator[bytes]


async def one_part(data: bytes) -> AsyncIterator[bytes]:
    """A file that is there already."""
    yield data


async def zipped(entries: AsyncIterator[Entry]) -> AsyncGenerator[bytes]:
    """A zip file of these entries, each compressed as it comes; on threads, so the event loop goes on."""
    sink = Sink()
    with ZipFile(sink, "w") as file:
        async for entry in entries:
            info = ZipInfo(entry.path, _DATE)
            info.compress_type, info.external_attr = ZIP_DEFLATED, _READABLE
            info._compresslevel = LEVEL  # type: ignore[attr-defined] # noqa: SLF001 - public from Python 3.13 on
            with file.open(info, "w", force_zip64=True) as writer:
                async for part in entry.parts:
                    await asyncio.to_thread(writer.write, part)
                    if made := sink.drain():
                        yield made
    yield sink.drain()
