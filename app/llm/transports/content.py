"""Undoes a body's content coding, up to a bound: a few kilobytes can unpack to gigabytes."""

import asyncio
import zlib
from collections.abc import Iterator

import httpx2

from app.llm.replies.transport_reply import LostConnectionError, Reply, ReplyTooLongError
from app.llm.transports.http1 import MAX_BODY_BYTES

LONG_BYTES = 64 * 1024
"""Longest body that is unpacked on the event loop."""
MOST_RATIO = 200
"""Times by which a long body may be packed; texts and event streams reach a tenth of it."""
_PIECE = 16 * 1024
_GZIP = zlib.MAX_WBITS | 16
_GZIP_START = b"\x1f\x8b\x08"
_MOST_CODINGS = 2
_unpacking = asyncio.Semaphore(2)
"""Long bodies at a time: others' find a free thread."""


async def decoded(reply: Reply) -> Reply:
    """Return a reply with its body unpacked; what may take long is unpacked on a thread.

    Raises:
        LostConnectionError: If the body does not have the coding that it states; half of it may be lost.
        ReplyTooLongError: If it unpacks to more than an answer can be, or than any text is packed by.
    """
    coding = reply.headers.get("content-encoding")
    if coding is None and reply.body.startswith(_GZIP_START):  # no text begins so
        coding = "gzip"
    if coding is None or not reply.body:
        return reply
    names = [
        name.strip().lower().removeprefix("x-") for name in coding.split(",")
    ]  # RFC 9110 section 8.4.1: x-gzip is gzip
    names = [name for name in names if name not in {"", "identity"}]
    if not names:
        return reply
    body = _gunzipped(reply.body) if names == ["gzip"] and len(reply.body) <= LONG_BYTES else None
    if body is None:
        async with _unpacking:
            body = await asyncio.to_thread(_decoded, reply.body, ", ".join(names))
    return reply._replace(body=body)


def _gunzipped(packed: bytes) -> bytes | None:
    """Unpack the most frequent coding at a tenth of the cost of the general way; ``None`` if the body is long."""
    unpacking = zlib.decompressobj(_GZIP)
    try:
        body = unpacking.decompress(packed, LONG_BYTES)
        if unpacking.unconsumed_tail:
            return None
    except zlib.error as error:
        raise LostConnectionError(f"no gzip: {error}") from None
    if not unpacking.eof or unpacking.unused_data:
        raise LostConnectionError("no gzip: its end is not the body's")
    return body


def _decoded(packed: bytes, coding: str) -> bytes:
    """Use the SDKs' decoder, which knows every coding that they ask for and ignores unknown ones."""
    if coding.count(",") >= _MOST_CODINGS:
        raise LostConnectionError("the reply is packed too often")
    pieces: list[bytes] = []
    length = 0
    try:
        for piece in httpx2.Response(
            200, headers={"content-encoding": coding}, stream=_Packed(packed)
        ).iter_bytes():
            length += len(piece)
            _check(length, len(packed))
            pieces.append(piece)
    except httpx2.DecodingError as error:
        problem = f"no {coding}: {error}"
    else:
        return b"".join(pieces)
    raise LostConnectionError(problem)


def _check(length: int, packed: int) -> None:
    if length > MAX_BODY_BYTES:
        raise ReplyTooLongError(f"the reply unpacks to more than {MAX_BODY_BYTES} bytes")
    if length > LONG_BYTES and length > MOST_RATIO * packed:
        raise ReplyTooLongError(f"the reply unpacks to more than {MOST_RATIO} times its length")


class _Packed(httpx2.SyncByteStream):
    def __init__(self, packed: bytes) -> None:
        self._packed = packed

    def __iter__(self) -> Iterator[bytes]:
        for start in range(0, len(self._packed), _PIECE):
            yield self._packed[start : start + _PIECE]
