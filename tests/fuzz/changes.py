"""Changes files at random: their bytes, or the values and texts inside a packed or JSON file."""

import gzip
import hashlib
import io
import json
import warnings
import zipfile
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import pyarrow as pa

from tests.unit.importers.samples import CARD, card_chunk, picture, zstandard_archive

ZSTANDARD = 93
HEADER_BYTES = 30
"""Length of the fixed part of a header before a member of a zip."""
MOST_CHANGED = 9
ODD = (b"\x00", b"\xff", b"\x7f", b"\x80", b"[", b"{", b'"', b"\\ud800", b"<<: ", b"*a", b"9" * 400, b"PAR1")
ODD_VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 0.5, 32_768, 2**31, 2**63, 10**30, -(10**30), 1e308, float("nan"), float("inf")),
    *("", "x", "\x00", "\ud800", "{response}", "{{v}}", "<BOT>", "2026-13-45T99:99:99Z", "9" * 5_000),
    *("word " * 20_000, [], {}, [[]], [None] * 1_000, {"": ""}, {str(n): n for n in range(1_000)}),
)


def changed_bytes(data: bytes, draw: Random) -> bytes:
    """Replace, repeat, leave out or insert some bytes."""
    made = bytearray(data)
    for _ in range(draw.randint(1, 3)):
        at, length = draw.randrange(len(made) + 1), draw.randint(1, MOST_CHANGED)
        other = draw.choice(
            (draw.randbytes(length), draw.choice(ODD), bytes(made[at : at + length]) * 2, b"")
        )
        made[at : at + draw.choice((0, length))] = other
    return bytes(made)


def changed_value(value: Any, draw: Random) -> Any:
    """Replace, repeat, leave out or insert one member somewhere in a JSON value."""
    if not isinstance(value, dict | list) or not value or not draw.randrange(12):
        return draw.choice(ODD_VALUES)
    made: Any = value.copy()
    key = draw.choice(list(made)) if isinstance(made, dict) else draw.randrange(len(made))
    act = draw.randrange(20)
    if act == 0:
        del made[key]
    elif act == 1 and isinstance(made, dict):
        made[draw.choice(("x", "", "\ud800", "id", "text"))] = made[key]
    elif act == 1:
        made *= draw.choice((2, 50))
    else:
        made[key] = changed_value(made[key], draw)
    return made


def changed_text(data: bytes, draw: Random) -> bytes:
    """Change a value of JSON or of a line of JSON Lines; bytes of another file."""
    if draw.randrange(4):
        try:
            return json.dumps(changed_value(json.loads(data), draw)).encode()
        except (ValueError, RecursionError):
            lines = data.split(b"\n")
            at = draw.randrange(len(lines))
            try:
                lines[at] = json.dumps(changed_value(json.loads(lines[at]), draw)).encode()
            except (ValueError, RecursionError):
                return changed_bytes(data, draw)
            return b"\n".join(lines)
    return changed_bytes(data, draw)


def changed_members(data: bytes, draw: Random) -> bytes:
    """Change one member of a zip, or the order and names of its members. A bundle gets the hashes that its files have then."""
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        infos = packed.infolist()
        zstandard = infos[0].compress_type == ZSTANDARD
        unpack = partial(unpacked_by_zstd, data) if zstandard else packed.read
        files = [(info.filename, unpack(info)) for info in infos]
    at = draw.randrange(len(files))
    name, content = files[at]
    act = draw.randrange(40)
    if act == 0:
        del files[at]
    elif act == 1:
        files.insert(0, (name, content))
    elif act == 2:
        files[at] = (draw.choice(files)[0], content)
    else:
        files[at] = (name, changed_text(content, draw))
    if zstandard:
        return zstandard_archive(dict(files))
    made = io.BytesIO()
    method = draw.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    with warnings.catch_warnings(action="ignore"), zipfile.ZipFile(made, "w", method) as packed:
        for each, content in files:
            packed.writestr(each, hashed(content, files) if each == "bundle.json" else content)
    return made.getvalue()


def unpacked_by_zstd(archive: bytes, info: zipfile.ZipInfo) -> bytes:
    """Return a member that `zipfile` can't unpack."""
    begin = info.header_offset + HEADER_BYTES + len(info.filename)
    packed = archive[begin : begin + info.compress_size]
    return bytes(pa.decompress(packed, info.file_size, codec="zstd", asbytes=True))


def hashed(header: bytes, files: list[tuple[str, bytes]]) -> bytes:
    """Return a bundle's header with the hashes of its files, unless it is not one any more."""
    try:
        found = json.loads(header)
        for name, content in files:
            if name in found["files"]:
                found["files"][name] = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        return json.dumps(found).encode()
    except (ValueError, LookupError, TypeError, RecursionError):
        return header


def changed_gzip(data: bytes, draw: Random) -> bytes:
    """Change what is compressed."""
    return gzip.compress(changed_text(gzip.decompress(data), draw), compresslevel=1)


def changed_zstd(data: bytes, draw: Random) -> bytes:
    """Change what is compressed."""
    made = changed_text(pa.CompressedInputStream(pa.BufferReader(data), "zstd").read(), draw)
    return bytes(pa.compress(made, codec="zstd", asbytes=True))


def changed_picture(_: bytes, draw: Random) -> bytes:
    """Change the card that a picture holds."""
    return picture(card_chunk(changed_value(CARD, draw)))


INSIDE: dict[bytes, Callable[[bytes, Random], bytes]] = {
    b"PK\x03\x04": changed_members,
    b"\x1f\x8b": changed_gzip,
    b"\x28\xb5\x2f\xfd": changed_zstd,
    b"PAR1": changed_bytes,
    b"\x89PNG": changed_picture,
}


def changed(data: bytes, draw: Random) -> bytes:
    """Change a file's bytes, or what is inside."""
    if draw.randrange(3) == 0:
        return changed_bytes(data, draw)
    inside = next((change for magic, change in INSIDE.items() if data.startswith(magic)), changed_text)
    return inside(data, draw)
