"""Compressed files are unpacked piece by piece, no further than asked for."""

import gzip
import io
import tracemalloc
from typing import Literal

import pyarrow as pa
import pytest

from app.domain.errors import InvalidJobError
from app.importers.compressed import PIECE_BYTES, unpack

Codec = Literal["gzip", "zstd"]
CODECS: tuple[Codec, ...] = ("gzip", "zstd")
PLAIN = b"".join(b"line %d\n" % n for n in range(400_000))


def packed(codec: Codec, data: bytes) -> bytes:
    if codec == "gzip":
        return gzip.compress(data)
    found: bytes = pa.compress(data, codec=codec, asbytes=True)
    return found


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(
    "skip", [0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, len(PLAIN) - 1, len(PLAIN)]
)
def test_reading_goes_on_at_any_byte(codec: Codec, skip: int) -> None:
    file = io.BytesIO(packed(codec, PLAIN))
    pieces = list(unpack(file, codec, skip=skip, most=len(PLAIN)))
    assert b"".join(pieces) == PLAIN[skip:]
    assert all(0 < len(piece) <= PIECE_BYTES for piece in pieces)


@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_stops_at_the_limit(codec: Codec) -> None:
    """1 GB of zeros in less than 1.1 MB: 10 MB of them are unpacked."""
    file = io.BytesIO(packed(codec, bytes(100_000_000)) * 10)
    assert len(file.getvalue()) < 1_100_000
    tracemalloc.start()
    try:
        with pytest.raises(InvalidJobError, match="unpacks to more than 10,000,000 bytes"):
            for _ in unpack(file, codec, skip=0, most=10_000_000):
                pass
        assert tracemalloc.get_traced_memory()[1] < 8 * 2**20
    finally:
        tracemalloc.stop()
