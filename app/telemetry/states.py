"""Logs what state a part of the service is in when that changes, and not each time that it is asked."""

from collections.abc import Mapping

import structlog

log = structlog.get_logger(__name__)

OK = "ok"


class StateLog:
    """The states as they were logged last; every part begins as ``ok``."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def note(self, states: Mapping[str, str]) -> None:
        """Logs the parts whose state is another one than before.

        Args:
            states: By part, ``ok`` or what is wrong.
        """
        for part, state in states.items():
            if state != self._known.get(part, OK):
                tell = log.info if state == OK else log.warning
                tell(
                    "part can be used again" if state == OK else "part can't be used", part=part, state=state
                )
        self._known |= states
