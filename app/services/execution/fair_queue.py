"""The fair queue of calls to a model in one process: tenants take turns, then the stages of each tenant's jobs by priority.

Where calls wait for a slot, all have an equal share of the slots' time: a judge's short calls do not wait behind as many long ones of
a reasoner. Where they wait for a rate limit, all have an equal share of the calls.

A call waits here rather than in the rate limiter, whose line is served in order of arrival: only about a second's
worth of calls is let through to it. So a small job's calls never stand behind the thousands that a big job has ready. Nor do
they wait for another tenant's calls in flight, which may take minutes: a tenant's first few need no place of those.
"""

import asyncio
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TypeVar

from app.domain.jobs.priority import Priority

FEWEST_AT_LIMITER = 4
"""Calls that may wait at the rate limiter, however slow it is; else as many as it let pass within a second."""

FIRST_CALLS = 4
"""Calls of a tenant that start though all places are taken; all tenants' together are no more than so many above the limit."""

SHORT_SECONDS = 0.5
"""Calls that take less count as if they took so long."""

SLOW_SECONDS = 2.0
"""If calls that wait for slots take longer in the mean, only one waits at the limiter: each that does delays the next choice."""

NEWEST_SHARE = 0.2
"""Weight of the newest call in the mean duration."""

REMEMBERED = 64
"""Idle members of a rota that are not looked through, for whether they can be forgotten."""


@dataclass(slots=True)
class _Member:
    """One of those that take turns: the one that has had least goes next.

    Attributes:
        at: Seconds of slots that its calls took or are expected to take, times ``step``.
        step: Factor of its priority.
    """

    at: float = 0.0
    step: float = 1.0
    waiting: int = 0
    in_flight: int = 0


@dataclass(slots=True)
class _Line(_Member):
    """The calls of a job's stage, in order of arrival.

    Attributes:
        seconds: Mean duration of its calls; 0 until one has ended.
    """

    seconds: float = 0.0
    calls: deque["asyncio.Future[Turn]"] = field(default_factory=deque)


@dataclass(slots=True)
class _Tenant(_Member):
    """A tenant's lines, how far the last of them to have had a turn was before it, and the calls that have theirs."""

    lines: dict[str, _Line] = field(default_factory=dict)
    now: float = 0.0
    at_limiter: int = 0


M = TypeVar("M", bound=_Member)


class Turn:
    """One call's place."""

    __slots__ = ("_at_limiter", "_by_time", "_charged", "_line", "_passed_at", "_queue", "_tenant")

    def __init__(self, queue: "FairQueue", tenant: _Tenant, line: _Line | None, charged: float) -> None:
        self._queue = queue
        self._tenant = tenant
        self._line = line
        self._charged = charged
        self._at_limiter = True
        self._passed_at: float | None = None
        self._by_time = False

    def passed(self, *, by_time: bool = False) -> None:
        """Note that the rate limiter has let the call pass.

        Args:
            by_time: Whether calls wait for slots and not for a rate: then the call counts by the time it takes.
        """
        if self._at_limiter:
            self._at_limiter = False
            self._by_time = by_time
            self._passed_at = self._queue.left_limiter(self._tenant, passed=True)

    def end(self) -> None:
        """Give the place back, once: the call is over, or was not made."""
        if self._at_limiter:
            self._at_limiter = False
            self._queue.left_limiter(self._tenant, passed=False)
        if self._passed_at is not None:
            self._queue.took(self._tenant, self._line, self._passed_at, self._charged, by_time=self._by_time)
        self._queue.ended(self._tenant)


class FairQueue:
    """The calls to one model; to be built on the loop that it belongs to.

    Args:
        limit: Most calls in flight, those at the limiter included; for tenants' first ones a few more.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._loop = asyncio.get_running_loop()
        self._tenants: dict[str, _Tenant] = {}
        self._now = 0.0
        self._seconds = SHORT_SECONDS
        self._by_time = False
        self._waiting = 0
        self._in_flight = 0
        self._at_limiter = 0
        self._second = 0
        self._passed = 0
        self._passed_before = 0

    @property
    def is_idle(self) -> bool:
        """Whether nobody has a turn or waits for one."""
        return not (self._in_flight or self._waiting)

    def turn_at_once(self, tenant: str) -> Turn | None:
        """A turn, if nobody waits for one and there is room. Whoever is given it must end it."""
        if self._waiting or not self._has_room():
            return None
        return self._begin(self._tenant(tenant), None, 0.0)

    async def turn_in_line(self, tenant: str, name: str, priority: Priority) -> Turn:
        """Wait for a turn of a line, if none was available at once. The caller must end the turn.

        Args:
            tenant: Whose the call is.
            name: Names the line: the job and its stage.
            priority: Of the job.
        """
        granted: asyncio.Future[Turn] = self._loop.create_future()
        self._join(tenant, name, priority, granted)
        if self._is_first(self._tenants[tenant]):
            self._grant()
        try:
            return await granted
        except asyncio.CancelledError:
            if not granted.cancelled():
                granted.result().end()
            raise

    def left_limiter(self, tenant: _Tenant, *, passed: bool) -> float:
        """Note that a call waits at the limiter no longer; return the time."""
        self._at_limiter -= 1
        tenant.at_limiter -= 1
        now = self._loop.time()
        if passed:
            self._turn_second(now)
            self._passed += 1
        if self._waiting:
            self._grant()
        return now

    def took(
        self, tenant: _Tenant, line: _Line | None, passed_at: float, charged: float, *, by_time: bool
    ) -> None:
        """Replace the time charged for a call by the time that it took, or by the mean if calls count alike."""
        seconds = max(SHORT_SECONDS, self._loop.time() - passed_at)
        self._seconds += NEWEST_SHARE * (seconds - self._seconds)
        by_time = by_time or self._in_flight >= self._limit
        self._by_time = by_time
        if line is None:
            return
        line.seconds += (NEWEST_SHARE if line.seconds else 1.0) * (seconds - line.seconds)
        more = (seconds if by_time else self._seconds) - charged
        line.at += more * line.step
        tenant.at += more * tenant.step

    def ended(self, tenant: _Tenant) -> None:
        """A call is over."""
        self._in_flight -= 1
        tenant.in_flight -= 1
        if self._waiting:
            self._grant()

    def _join(self, tenant: str, name: str, priority: Priority, granted: "asyncio.Future[Turn]") -> None:
        """Take a place in a line. Idleness saves up no turns."""
        share = self._tenant(tenant)
        line = share.lines.get(name)
        if line is None:
            share.lines = _without_idle(share.lines, share.now)
            line = share.lines[name] = _Line(step=1 / priority.weight)
        if not share.waiting:
            share.at = max(share.at, self._now)
        if not line.waiting:
            line.at = max(line.at, share.now)
        line.calls.append(granted)
        line.waiting += 1
        share.waiting += 1
        self._waiting += 1

    def _tenant(self, name: str) -> _Tenant:
        tenant = self._tenants.get(name)
        if tenant is None:
            self._tenants = _without_idle(self._tenants, self._now)
            tenant = self._tenants[name] = _Tenant()
        return tenant

    def _grant(self) -> None:
        while self._waiting:
            served: Collection[_Tenant] = self._tenants.values()
            has_room = self._has_room()
            if not has_room:
                served = [tenant for tenant in served if tenant.waiting and self._is_first(tenant)]
                if not served:
                    return
            share = _next(served)
            line = _next(share.lines.values())
            granted = line.calls.popleft()
            line.waiting -= 1
            share.waiting -= 1
            self._waiting -= 1
            if granted.done():  # it was stopped
                continue
            self._now, share.now = share.at, line.at
            if not has_room:  # those whose calls take all room save up no turns meanwhile
                for other in self._tenants.values():
                    if not self._is_first(other):
                        other.at = max(other.at, self._now)
            expected = line.seconds or self._seconds
            share.at += expected * share.step
            line.at += expected * line.step
            granted.set_result(self._begin(share, line, expected))

    def _begin(self, tenant: _Tenant, line: _Line | None, expected: float) -> Turn:
        self._in_flight += 1
        self._at_limiter += 1
        tenant.in_flight += 1
        tenant.at_limiter += 1
        return Turn(self, tenant, line, expected)

    def _is_first(self, tenant: _Tenant) -> bool:
        """Whether a tenant's next call starts though others' take all room: it has few in flight, and none at the limiter."""
        few = tenant.in_flight < min(FIRST_CALLS, self._in_flight) and not tenant.at_limiter
        if not few or self._in_flight >= self._limit + FIRST_CALLS:
            return False
        # Where slots are shared by time, a few long calls in flight may be more than a tenant's share. One call is not: those
        # who have had less may wait for calls that take minutes.
        return (
            not self._by_time
            or not tenant.in_flight
            or all(tenant.at <= other.at for other in self._tenants.values() if other.waiting)
        )

    def _has_room(self) -> bool:
        if self._in_flight >= self._limit:
            return False
        is_slow = self._by_time and self._seconds > SLOW_SECONDS
        if self._at_limiter < (1 if is_slow else FEWEST_AT_LIMITER):
            return True
        self._turn_second(self._loop.time())
        return self._at_limiter < max(self._passed, self._passed_before)

    def _turn_second(self, now: float) -> None:
        second = int(now)
        if second != self._second:
            self._passed_before = self._passed if second == self._second + 1 else 0
            self._second, self._passed = second, 0


def _next(members: Collection[M]) -> M:
    """Who goes next of those who wait; at least one does."""
    if len(members) == 1:
        return next(iter(members))
    return min((member for member in members if member.waiting), key=lambda member: member.at)


def _without_idle(members: dict[str, M], now: float) -> dict[str, M]:
    """The members who wait or have calls in flight, or, having had more than their share, could not come back as if they were new."""
    if len(members) < REMEMBERED:
        return members
    return {
        name: member
        for name, member in members.items()
        if member.waiting or member.in_flight or member.at > now
    }
