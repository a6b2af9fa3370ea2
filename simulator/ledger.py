"""The simulator's own record of what it was asked and what it answered: the oracle that results are checked against."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

FLUSH_SECONDS = 0.2
_PIECE = 2**18
_encode = json.JSONEncoder(separators=(",", ":")).encode


class Counters:
    """How many requests came in and how many replies went out, by what they were.

    Their size depends on the number of models and statuses only, not on the number of requests.
    """

    def __init__(self) -> None:
        self.received = 0
        self.answered = 0
        self._rows: dict[tuple[str, str | None, str, int], list[int]] = {}

    def receive(self, endpoint: str, model: str | None, kind: str, status: int) -> list[int]:
        """Counts a request.

        Args:
            endpoint: Path of the endpoint.
            model: Name of the model; None if there is none of that name.
            kind: What the request was for.
            status: HTTP status that the reply has, or will have.

        Returns:
            The row [received, answered] that the request belongs to, for `answer`.
        """
        key = (endpoint, model, kind, status)
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = [0, 0]
        row[0] += 1
        return row

    def answer(self, row: list[int]) -> int:
        """Counts a reply that was sent; returns its number in the order of replies, from 1."""
        row[1] += 1
        self.answered += 1
        return self.answered

    def as_dict(self) -> dict[str, object]:
        """The counts as JSON members."""
        return {
            "received": self.received,
            "answered": self.answered,
            "counts": [
                {
                    "endpoint": endpoint,
                    "model": model,
                    "kind": kind,
                    "status": status,
                    "received": row[0],
                    "answered": row[1],
                }
                for (endpoint, model, kind, status), row in self._rows.items()
            ],
        }


class Ledger:
    """A JSONL file with one line a request, appended to at most 200 ms after the reply.

    Args:
        path: The file; it is created if it does not exist, and never cut.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("ab")
        self._lines: list[str] = []
        self._timer: asyncio.TimerHandle | None = None

    def append(self, entry: dict[str, object]) -> None:
        """Adds a line. Needs a running event loop, which flushes it."""
        self._lines.append(_encode(entry))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FLUSH_SECONDS, self.flush)

    def flush(self) -> None:
        """Hands all lines to the operating system."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._lines:
            self._file.write("\n".join([*self._lines, ""]).encode("ascii"))
            self._lines.clear()
        self._file.flush()

    def size(self) -> int:
        """Length of the file in bytes, everything flushed."""
        self.flush()
        return self._file.tell()

    def read(self, size: int) -> Iterator[bytes]:
        """The first `size` bytes of the file, in pieces."""
        with self.path.open("rb") as file:
            while size > 0 and (piece := file.read(min(size, _PIECE))):
                size -= len(piece)
                yield piece

    def close(self) -> None:
        """Flushes and closes the file."""
        self.flush()
        self._file.close()
