"""Limits the length of replies that come through an SDK, as sent and unpacked, so that none fills the memory."""

from collections.abc import AsyncIterator
from typing import cast

import httpx2

from app.llm.replies.transport_reply import Reply, ReplyTooLongError
from app.llm.transports.content import decoded
from app.llm.transports.http1 import MAX_BODY_BYTES


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, response: httpx2.Response) -> None:
        self._stream = stream
        self._response = response
        self._coding = response.headers.pop("content-encoding", None)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        read = 0
        packed: list[bytes] = []
        async for piece in self._stream:
            read += len(piece)
            if read > MAX_BODY_BYTES:
                raise ReplyTooLongError(f"the reply is longer than {MAX_BODY_BYTES} bytes")
            if self._coding is None:
                yield piece
            else:
                packed.append(piece)
        if packed and self._coding is not None:
            headers = {"content-encoding": self._coding}
            yield (await decoded(Reply(self._response.status_code, headers, b"".join(packed)))).body

    async def aclose(self) -> None:
        await self._stream.aclose()


async def bound(response: httpx2.Response) -> None:
    """End the reading of a reply at ``MAX_BODY_BYTES``; to be called with its head."""
    response.stream = _Bounded(cast("httpx2.AsyncByteStream", response.stream), response)
