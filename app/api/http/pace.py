"""Slows down a tenant's changes while other tenants use the service."""

import asyncio
import math
from http import HTTPStatus

from app import clock
from app.api.http.problems import ProblemError

AT_ONCE_SECONDS = 10
"""A burst may hold the changes of this many seconds."""
ACTIVE_SECONDS = 10.0
"""Time after a request during which its tenant counts as active."""
LONGEST_WAIT_SECONDS = 10.0
"""A change that would have to wait longer is refused."""


class ChangePace:
    """Spaces out each tenant's changes if there are too many of them (generic cell rate algorithm). One per process.

    A tenant that is alone is not slowed down.

    Args:
        per_second: Changes of one tenant in a second, on average.
    """

    def __init__(self, per_second: float) -> None:
        self._interval = 1 / per_second
        self._at_once = max(self._interval, AT_ONCE_SECONDS)
        self._active: dict[str, float] = {}
        self._due: dict[str, float] = {}

    def note_request(self, tenant: str) -> None:
        """Note that a tenant is active."""
        self._active.pop(tenant, None)
        self._active[tenant] = clock.monotonic()

    async def wait(self, tenant: str) -> None:
        """Wait until a tenant's next change may begin.

        Raises:
            ProblemError: 429, if too many of the tenant's changes wait already.
        """
        now = clock.monotonic()
        if not self._others_active(tenant, now):
            return
        self._due = {name: due for name, due in self._due.items() if due > now - self._at_once}
        due = max(self._due.get(tenant, 0.0), now - self._at_once) + self._interval
        seconds = due - now
        if seconds > LONGEST_WAIT_SECONDS:
            raise ProblemError(
                HTTPStatus.TOO_MANY_REQUESTS,
                "too_many_changes",
                "too many changes at once while other tenants use the service; try again later",
                headers={"Retry-After": str(math.ceil(seconds - LONGEST_WAIT_SECONDS))},
            )
        self._due[tenant] = due
        if seconds > 0:
            await asyncio.sleep(seconds)

    def _others_active(self, tenant: str, now: float) -> bool:
        last = next((at for name, at in reversed(self._active.items()) if name != tenant), None)
        return last is not None and now - last < ACTIVE_SECONDS
