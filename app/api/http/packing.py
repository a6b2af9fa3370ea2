"""Packs what is sent, for those who can unpack it: a report of 2 MB is sent as a tenth of that."""

import asyncio
import zlib
from collections.abc import AsyncIterator

from starlette.requests import Request

_GZIP = zlib.MAX_WBITS | 16


def takes_gzip(request: Request) -> bool:
    """Whether the client can unpack gzip."""
    offered = [
        part.replace(" ", "") for part in request.headers.get("accept-encoding", "").lower().split(",")
    ]
    return any(part.partition(";")[0] == "gzip" and not part.endswith(";q=0") for part in offered)


async def gzipped(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same bytes, packed on a thread."""
    packer = zlib.compressobj(wbits=_GZIP)
    async for chunk in chunks:
        yield await asyncio.to_thread(packer.compress, chunk)
    yield packer.flush()
