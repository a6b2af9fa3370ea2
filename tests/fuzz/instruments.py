"""Instrument files spoiled at random: each is either read or refused with the file's name, and what is read is what it says."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from random import Random
from typing import cast

from app.instruments.grouped_loader import read_grouped_words
from app.instruments.hardened_loader import read_hardened_words
from app.instruments.loader import InstrumentError

JUNK = (
    *(b"\n", b" ", b"\t", b":", b": ", b"- ", b"{", b"}", b"[", b"]", b"&a", b"*a", b"!!python/object:os.system", b"!", b"|", b">"),
    *(b"#", b'"', b"'", b"\0", b"\xff", b"\xc3", b"\xe2\x80\xae", b"2020-13-45", b"1e999", b"null", b"~", b"? ", b"{text}", b"{key}"),
    *(b"<<: *a", b"%YAML 9", b"---", b"...", b"=", b"0x", b"0b2", b"1:60:99", b"[" * 400, b"a: " * 3, b".inf", b"\xef\xbb\xbf"),
)  # fmt: skip


@dataclass(frozen=True)
class MemoryFile:
    """One file, or a directory of such, in place of a package's."""

    name: str
    path: str
    content: bytes

    def __truediv__(self, child: str) -> "MemoryFile":
        return self.joinpath(child)

    def joinpath(self, *descendants: str) -> "MemoryFile":
        return MemoryFile(descendants[-1], "/".join(filter(None, (self.path, *descendants))), self.content)

    def iterdir(self) -> Iterator["MemoryFile"]:
        yield self.joinpath("v1")

    def is_dir(self) -> bool:
        return not self.path.endswith(".yaml")

    def read_text(self, encoding: str = "utf-8") -> str:
        return self.content.decode(encoding)


def originals() -> list[bytes]:
    """The two instruments of a single small file."""
    root = Path(str(files("app.instruments")))
    return [(root / name / "v1/prompts.yaml").read_bytes() for name in ("grouped", "hardened")]


ORIGINALS = originals()
READERS = (read_grouped_words, read_hardened_words)


def check_instrument(draw: Random) -> None:
    """A spoiled file is refused as an instrument that is not valid, or read as it is."""
    which = draw.randrange(2)
    content = bytearray(ORIGINALS[which])
    for _ in range(draw.randrange(1, 4)):
        at = draw.randrange(len(content) + 1)
        content[at : at + draw.choice((0, 0, 1, 5, 80))] = draw.choice(JUNK)
    root = cast("Traversable", MemoryFile("", "", bytes(content)))
    try:
        words = READERS[which](root, "v1")
    except InstrumentError:
        return
    if words.version != "v1" or len(words.content_hash) != 64:
        raise AssertionError(bytes(content))
