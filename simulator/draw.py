"""Reproducible random numbers: a stream is a pure function of its key, on every platform and Python version."""

from collections.abc import Sequence
from hashlib import blake2b
from itertools import accumulate
from struct import Struct
from typing import TypeVar

T = TypeVar("T")

_BLOCK = Struct("<8Q")


class Draws:
    """A stream of random numbers that is determined by `key`.

    Args:
        key: What the stream belongs to; parts are told apart by their type and length, not only by their text.
    """

    __slots__ = ("_block", "_count", "_key")

    def __init__(self, *key: str | int | None) -> None:
        self._key = blake2b(ascii(key).encode("ascii")).digest()
        self._block: list[int] = []
        self._count = 0

    def unit(self) -> float:
        """A number in [0, 1), uniformly."""
        if not self._block:
            digest = blake2b(self._count.to_bytes(8, "little"), key=self._key).digest()
            self._block = list(_BLOCK.unpack(digest))
            self._count += 1
        return (self._block.pop() >> 11) * 2.0**-53

    def between(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included, uniformly."""
        return low + int(self.unit() * (high - low + 1))

    def pick(self, choices: Sequence[T]) -> T:
        """One of the choices, uniformly."""
        return choices[int(self.unit() * len(choices))]

    def weighted(self, weights: Sequence[float]) -> int:
        """An index into `weights`, with probability proportional to its weight."""
        totals = list(accumulate(weights))
        point = self.unit() * totals[-1]
        return next(index for index, total in enumerate(totals) if point < total)
