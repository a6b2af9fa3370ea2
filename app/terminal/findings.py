"""What was looked at before a service is used, and what was found."""

from typing import NamedTuple


class Finding(NamedTuple):
    """What was looked at.

    Attributes:
        what: Its name, such as a connection's.
        good: Whether it is in order.
        words: That in words, with what to do.
    """

    what: str
    good: bool
    words: str

    @property
    def line(self) -> str:
        """All of it, for a terminal."""
        return f"{'✓' if self.good else '!'} {self.what}: {self.words}"
