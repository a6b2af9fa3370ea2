"""A file whose bytes are handed on while it is written."""

from collections.abc import Iterator

CHUNK_BYTES = 250_000


def next_chunk(parts: Iterator[bytes]) -> bytes:
    """Some of these parts together, at least :data:`CHUNK_BYTES` of them; empty after the last one."""
    found, length = [], 0
    for part in parts:
        found.append(part)
        length += len(part)
        if length >= CHUNK_BYTES:
            break
    return b"".join(found)


class Sink:
    """A file to whoever writes one; what was written is taken away by :meth:`drain`, so it never grows."""

    closed = False

    def __init__(self) -> None:
        self._pending = bytearray()
        self._written = 0

    def write(self, data: bytes) -> int:
        """Takes the next bytes."""
        self._pending += data
        self._written += len(data)
        return len(data)

    def tell(self) -> int:
        """How many bytes there were, those that were taken away included."""
        return self._written

    def flush(self) -> None:
        """Everything is where it shall be already."""

    def close(self) -> None:
        """Takes no more."""
        self.closed = True

    def drain(self) -> bytes:
        """What was written since the last time."""
        data = bytes(self._pending)
        self._pending.clear()
        return data
