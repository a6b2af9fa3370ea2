"""Whether a connection's server is away, as one process knows it; all its models share this."""

IN_A_ROW = 3
"""Calls that did not reach a server, with none between them that did, after which it is away."""

AWAY = "away"
BACK = "back"


class Outage:
    """Counts calls that did not reach the server, and keeps what Redis is still to be told."""

    __slots__ = ("_failed", "is_on", "news", "reason")

    def __init__(self) -> None:
        self._failed = 0
        self.is_on = False
        """Whether Redis said so last."""
        self.news = ""
        """What Redis does not know yet: ``away``, ``back`` or nothing."""
        self.reason = ""

    def reached(self) -> None:
        """A call got an answer from the server."""
        self._failed = 0
        if self.is_on or self.news:
            self.news = BACK

    def failed(self, reason: str) -> None:
        """A call did not reach the server."""
        self._failed += 1
        if self._failed >= IN_A_ROW and not self.is_on:
            self.news, self.reason = AWAY, reason

    def told(self, news: str, *, is_on: bool) -> None:
        """Redis has been told, and answered whether the server is away."""
        if self.news == news:
            self.news = ""
        if self.is_on and not is_on:
            self._failed = 0
        self.is_on = is_on
