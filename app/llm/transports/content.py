"""Undoes a body's content coding, up to a bound: a few kilobytes can unpack to gigabytes."""

import zlib
from collections.abc import Iterator

import httpx2

from app.llm.replies.transport_reply import LostConnectionError, Reply, ReplyTooLongError
from app.llm.transports.http1 import MAX_BODY_BYTES

_GZIP = zlib.MAX_WBITS | 16
_MOST_CODINGS = 2


def decoded(reply: Reply) -> Reply:
    """A reply with its body as it was before it was packed for the way.

    Raises:
        LostConnectionError: If the body is not what its coding says; half of it may have got lost.
        ReplyTooLongError: If it is longer than an answer can be.
    """
    coding = reply.headers.get("content-encoding")
    if coding is None or not reply.body:
        return reply
    names = [
        name.strip().lower().removeprefix("x-") for name in coding.split(",")
    ]  # RFC 9110 section 8.4.1: x-gzip is gzip
    names = [name for name in names if name not in {"", "identity"}]
    body = _gunzipped(reply.body) if names == ["gzip"] else _decoded(reply.body, ", ".join(names))
    return reply._replace(body=body)


def _gunzipped(packed: bytes) -> bytes:
    """By far the most frequent coding, at a tenth of the cost of the general way."""
    unpacking = zlib.decompressobj(_GZIP)
    try:
        body = unpacking.decompress(packed, MAX_BODY_BYTES + 1)
    except zlib.error as error:
        raise LostConnectionError(f"no gzip: {error}") from None
    _check(len(body))
    if not unpacking.eof or unpacking.unused_data:
        raise LostConnectionError("no gzip: its end is not the body's")
    return body


def _decoded(packed: bytes, coding: str) -> bytes:
    """By the library under the SDKs, which knows every coding that they ask for and ignores what is none."""
    if coding.count(",") >= _MOST_CODINGS:
        raise LostConnectionError("the reply is packed too often")
    pieces: list[bytes] = []
    length = 0
    try:
        for piece in httpx2.Response(
            200, headers={"content-encoding": coding}, stream=_Packed(packed)
        ).iter_bytes():
            length += len(piece)
            _check(length)
            pieces.append(piece)
    except httpx2.DecodingError as error:
        problem = f"no {coding}: {error}"
    else:
        return b"".join(pieces)
    raise LostConnectionError(problem)


def _check(length: int) -> None:
    if length > MAX_BODY_BYTES:
        raise ReplyTooLongError(f"the reply unpacks to more than {MAX_BODY_BYTES} bytes")


class _Packed(httpx2.SyncByteStream):
    def __init__(self, packed: bytes) -> None:
        self._packed = packed

    def __iter__(self) -> Iterator[bytes]:
        yield self._packed
