"""Tracks, for one process, whether a connection's server can be reached and whether one of its models answers.

A connection is away for all its models only when nothing connects. An answered error concerns its model: the model is held when several
different calls in a row end in one. While it has never answered, plain 500s are left to :mod:`app.services.execution.first_calls`.
"""

IN_A_ROW = 3
"""Calls that did not reach a server, with none between them that did, after which it is away."""
FAILING_IN_A_ROW = 5
"""Different calls of a model that ended in an error of its server, with none between them that was answered, after which all wait."""

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
        self._forget()
        if self.is_on or self.news:
            self.news = BACK

    def failed(self, reason: str) -> None:
        """A call did not reach the server."""
        self._failed += 1
        if self._failed >= IN_A_ROW:
            self._begin(reason)

    def told(self, news: str, *, is_on: bool) -> None:
        """Redis has been told, and answered whether the server is away."""
        if self.news == news:
            self.news = ""
        if self.is_on and not is_on:
            self._forget()
        self.is_on = is_on

    def _forget(self) -> None:
        self._failed = 0

    def _begin(self, reason: str) -> None:
        if not self.is_on:
            self.news, self.reason = AWAY, reason


class Errors(Outage):
    """Counts the different calls of one model that ended in an error of its server."""

    __slots__ = ("_calls", "_has_answered")

    def __init__(self) -> None:
        super().__init__()
        self._calls: set[str] = set()
        self._has_answered = False

    def answered(self) -> None:
        """A call was answered."""
        self._has_answered = True
        self.reached()

    def failed_in(self, call: str, reason: str, *, first_calls_judge: bool = True) -> None:
        """Note that a call, of which there may be several attempts, ended in an error.

        Args:
            call: Which call.
            reason: The error's words.
            first_calls_judge: Whether the first calls decide on such errors while the model has never answered.
        """
        if call and (self._has_answered or not first_calls_judge):
            self._calls.add(call)
            if len(self._calls) >= FAILING_IN_A_ROW:
                self._begin(f"all calls end in an error: {reason}")

    def _forget(self) -> None:
        self._calls.clear()
