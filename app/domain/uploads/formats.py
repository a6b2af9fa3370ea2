"""What form an uploaded file has, by its first bytes."""

from typing import Literal

Format = Literal["lines", "gzip", "zstd", "parquet", "tool_file"]
TOOL_FILE: Format = "tool_file"
"""Of an upload that is another tool's file, whatever its bytes are."""

HEAD_BYTES = 4
"""So many tell it."""

_MAGIC: dict[bytes, Format] = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    **{
        bytes([n]) + b"\x2a\x4d\x18": "zstd" for n in range(0x50, 0x60)
    },  # a frame to be skipped: pzstd begins so
    b"PAR1": "parquet",
    b"PARE": "parquet",  # its footer is encrypted
}


def format_of(head: bytes) -> Format:
    """The form of a file that begins so; JSON Lines where nothing else is meant."""
    return next((form for magic, form in _MAGIC.items() if head.startswith(magic)), "lines")
