"""Packs what is sent, for those who can unpack it: a report of 2 MB is sent as a tenth of that."""

import asyncio
import re
import zlib
from collections.abc import AsyncIterator

from starlette.requests import Request

_GZIP = zlib.MAX_WBITS | 16


def takes_gzip(request: Request) -> bool:
    """Whether the client can unpack gzip."""
    offered = request.headers.get("accept-encoding", "").lower().replace(" ", "").split(",")
    # A weight of 0, which may have three decimals, refuses it.
    return any(re.fullmatch(r"gzip(;q=(?!0(\.0*)?$).*)?", part) is not None for part in offered)


async def gzipped(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same bytes, packed on a thread."""
    packer = zlib.compressobj(wbits=_GZIP)
    async for chunk in chunks:
        yield await asyncio.to_thread(packer.compress, chunk)
    yield packer.flush()
