"""Compressed files, unpacked piece by piece and no further than a limit."""

from collections.abc import Iterator
from typing import BinaryIO, Literal

import pyarrow as pa

from app.importers.records import wrong_file

PIECE_BYTES = 1024 * 1024


def unpack(file: BinaryIO, codec: Literal["gzip", "zstd"], *, skip: int, most: int) -> Iterator[bytes]:
    """What a compressed file holds, in pieces.

    Args:
        file: The file. Untrusted.
        codec: By what it is compressed.
        skip: So many unpacked bytes are passed over.
        most: So many it may have.

    Raises:
        InvalidJobError: If it is damaged or has more.
    """
    stream, at = pa.CompressedInputStream(pa.PythonFile(file, "r"), codec), 0
    while True:
        try:
            piece: bytes = stream.read(PIECE_BYTES)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise wrong_file(
                f"can't be unpacked beyond byte {at:,} of what it holds: {error}"[:300]
            ) from error
        if not piece:
            return
        at += len(piece)
        if at > most:
            raise wrong_file(f"unpacks to more than {most:,} bytes")
        if at > skip:
            yield piece[max(0, skip - (at - len(piece))) :]
