"""No reply that comes through an SDK is read beyond what an answer can be, so that none fills the memory."""

from collections.abc import AsyncIterator
from typing import cast

import httpx2

from app.llm.replies.transport_reply import ReplyTooLongError
from app.llm.transports.http1 import MAX_BODY_BYTES


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        read = 0
        async for piece in self._stream:
            read += len(piece)
            if read > MAX_BODY_BYTES:
                raise ReplyTooLongError(f"the reply is longer than {MAX_BODY_BYTES} bytes")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


async def bound(response: httpx2.Response) -> None:
    """Lets the reading of a reply end at ``MAX_BODY_BYTES``; to be called with its head."""
    response.stream = _Bounded(cast("httpx2.AsyncByteStream", response.stream))
