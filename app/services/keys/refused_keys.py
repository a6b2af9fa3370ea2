"""Reports refused API keys and sessions: a metric, and one log line for all of a few seconds."""

import asyncio

import structlog

from app.telemetry.metrics import KEYS_REFUSED

log = structlog.get_logger(__name__)

REPORT_SECONDS = 10.0
"""Seconds that one line is about: a flood of guesses fills no log."""


class RefusedKeys:
    """Refused keys and sessions since the last line of the log. One a process."""

    def __init__(self) -> None:
        self._number = 0
        self._sample: dict[str, str | None] = {}

    def note(self, why: str, client: str | None) -> None:
        """Count a refused key; the line has the reason and the client's address of the last one.

        Args:
            why: The reason, without any part of the key.
            client: The address that the request came from.
        """
        KEYS_REFUSED.inc()
        if not self._number:
            asyncio.get_running_loop().call_later(REPORT_SECONDS, self._report)
        self._number += 1
        self._sample = {"reason": why, "client": client}

    def _report(self) -> None:
        log.warning("API keys refused", number=self._number, seconds=REPORT_SECONDS, **self._sample)
        self._number = 0
