"""Readers that do what a hostile file could make a reader do."""

import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import BinaryIO

from app.domain.errors import FieldError, InvalidJobError


def prepare() -> None:
    """Nothing is needed."""


PREPARED: list[bool] = []


def prepare_drawing() -> None:
    PREPARED.append(True)


def prepared(_: BinaryIO) -> Iterator[bytes]:
    yield b"yes" if PREPARED == [True] else b"no"


def length(file: BinaryIO) -> Iterator[bytes]:
    yield str(len(file.read())).encode()


def places(file: BinaryIO) -> Iterator[bytes]:
    """Read the last bytes, then the first."""
    file.seek(-3, os.SEEK_END)
    yield file.read(10)
    file.seek(0)
    yield file.read(3)


def answers(_: BinaryIO) -> Generator[bytes, bytes]:
    first = yield b"one"
    second = yield first * 2
    yield second


def variables(_: BinaryIO) -> Iterator[bytes]:
    yield ",".join(sorted(os.environ)).encode()


def nice(_: BinaryIO) -> Iterator[bytes]:
    yield str(os.nice(0)).encode()


def process(_: BinaryIO) -> Iterator[bytes]:
    yield str(os.getpid()).encode()


def crash(_: BinaryIO) -> Iterator[bytes]:
    os.kill(os.getpid(), signal.SIGABRT)
    yield b""


def crash_once(_: BinaryIO, mark: str) -> Iterator[bytes]:
    if not Path(mark).exists():
        Path(mark).touch()
        os.abort()
    yield b"read"


def be_killed(_: BinaryIO) -> Iterator[bytes]:
    os.kill(os.getpid(), signal.SIGKILL)
    yield b""


def be_killed_once(_: BinaryIO, mark: str) -> Iterator[bytes]:
    if not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    yield b"read"


def fail(file: BinaryIO) -> Iterator[bytes]:
    yield {b"other": b""}[file.read()]


def refuse(_: BinaryIO) -> Iterator[bytes]:
    yield b"some"
    raise InvalidJobError([FieldError("/rows/2", "is wrong")])


def take_memory(_: BinaryIO) -> Iterator[bytes]:
    """Take memory bit by bit."""
    yield b"".join(os.urandom(1) * 2**20 for _ in range(10_000))


def take_memory_at_once(_: BinaryIO) -> Iterator[bytes]:
    yield bytes(2**34)


def compute(_: BinaryIO) -> Iterator[bytes]:
    yield str(sum(range(10**12))).encode()


def begin_and_wait(_: BinaryIO) -> Iterator[bytes]:
    yield str(os.getpid()).encode()
    signal.pause()


def wait(_: BinaryIO) -> Iterator[bytes]:
    signal.pause()
    yield b""
