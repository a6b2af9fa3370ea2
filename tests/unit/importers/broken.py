"""Breaks files in many ways: cut off, damaged, of other types, badly encoded, nested, too large."""

import json
import random
from collections.abc import Iterator
from typing import Any

OTHERS: tuple[Any, ...] = (None, 5, "", [], {}, True, "\ud800", [[]], {"a": 1}, 1e308, -1, "\0")


def broken(data: bytes, least: int = 40) -> Iterator[tuple[str, bytes]]:
    """Broken forms of a file, each with a name; at least so many."""
    yield from _cut(data)
    yield from _damaged(data)
    yield from _badly_encoded(data)
    yield from _of_other_types(data)
    made = random.Random(7)
    for n in range(least):
        position, length = made.randrange(len(data)), made.randrange(1, 9)
        yield f"noise {n}", data[:position] + made.randbytes(length) + data[position + length :]


def _cut(data: bytes) -> Iterator[tuple[str, bytes]]:
    for tenth in range(10):
        yield f"cut off after {tenth} tenths", data[: len(data) * tenth // 10]
    yield "without its last byte", data[:-1]
    yield "without its first byte", data[1:]


def _damaged(data: bytes) -> Iterator[tuple[str, bytes]]:
    for tenth in range(1, 10):
        position = len(data) * tenth // 10
        yield (
            f"a bit flipped at {tenth} tenths",
            data[:position] + bytes([data[position] ^ 4]) + data[position + 1 :],
        )
    yield "twice", data + data
    yield "zeros at its end", data + bytes(50)


def _badly_encoded(data: bytes) -> Iterator[tuple[str, bytes]]:
    yield "Latin-1", data.replace(b"a", b"\xe4", 3)
    yield "UTF-16 without a mark", data.decode("latin-1").encode("utf-16-le")
    yield "a mark of UTF-16", b"\xff\xfe" + data
    yield "a mark of UTF-8", b"\xef\xbb\xbf" + data
    for word in (b"NaN", b"1e999", b"9" * 5000, b"[" * 100_000, b'{"a":' * 5_000, b'"\\ud800"'):
        yield f"with {word[:8].decode()}", data.replace(b'"', word + b'"', 1)
        yield f"only {word[:8].decode()}", word


def _of_other_types(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Each value of a JSON file, or of its first line, in turn of another type."""
    try:
        lines = [json.loads(line) for line in data.splitlines()]
    except ValueError:
        return
    whole = lines[0]
    for n, path in enumerate(_paths(whole)):
        for turn in range(3):
            other = OTHERS[(n * 3 + turn) % len(OTHERS)]
            changed = json.dumps(_with(whole, path, other)).encode()
            rest = b"".join(b"\n" + json.dumps(line).encode() for line in lines[1:])
            yield f"{'/'.join(map(str, path))} is {other!r:.20}", changed + rest


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    members = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, each in members:
        yield from _paths(each, (*path, key))


def _with(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    if not path:
        return other
    copy = value.copy()
    copy[path[0]] = _with(value[path[0]], path[1:], other)
    return copy
