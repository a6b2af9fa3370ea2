"""Renews the leases of a process's shards, and stops shards whose lease was lost."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import structlog
from sqlalchemy.ext.asyncio import AsyncEngine

from app import clock
from app.db.engine import single_statements
from app.db.execution import shards
from app.db.execution.shards import AnyClaim
from app.domain.jobs.status import RESUMABLE
from app.services.execution.stop_signal import FRESH_SECONDS, StopReason, StopSignal
from app.telemetry.metrics import LEASES_LOST
from app.telemetry.vital import vital_tasks

log = structlog.get_logger(__name__)

JOB_CHECK_SECONDS = 0.25
"""How soon a worker notices that a job was cancelled or paused."""

RENEWALS_PER_LEASE = 4


class LeaseKeeper:
    """One a process.

    Attributes:
        claiming: Held by whoever looks for a shard to claim, until it is claimed.
    """

    def __init__(self, engine: AsyncEngine, lease_seconds: float) -> None:
        self.claiming = asyncio.Lock()
        self._engine = engine
        self._lease_seconds = lease_seconds
        self._held: dict[AnyClaim, StopSignal] = {}
        self._kept_at = float("-inf")
        self._stopped_for: StopReason | None = None
        self._halting: set[str] = set()

    @contextlib.contextmanager
    def holding(self, claim: AnyClaim, stop: StopSignal, asked: float) -> Iterator[None]:
        """Keeps a claim alive inside the block; after :meth:`stop_all` it is stopped from the start.

        Args:
            claim: The claim.
            stop: Stops its work.
            asked: A moment of the monotonic clock before it was claimed: its job was active then or later, and its lease
                runs from then or later.
        """
        if self._stopped_for is not None:
            stop.set(self._stopped_for)
        if claim.job_id in self._halting:
            stop.set(StopReason.JOB_INACTIVE)
        stop.seen_active(asked)
        if not self._held:
            self._kept_at = asked
        self._held[claim] = stop
        try:
            yield
        finally:
            self.given_back(claim)

    def given_back(self, claim: AnyClaim) -> None:
        """Keeps a claim alive no longer: its shard has ended, or others may claim it. It may be said again."""
        self._held.pop(claim, None)

    def is_working(self, claim: AnyClaim) -> bool:
        """Return whether this process holds a claim whose shard was not stopped."""
        return claim in self._held and self._held[claim].reason is None

    def stop(self, claim: AnyClaim, reason: StopReason) -> None:
        """Stops the shard of a held claim: its calls on the wire are awaited, no other starts."""
        if claim in self._held:
            self._held[claim].set(reason)

    def stop_all(self, reason: StopReason) -> None:
        """Stops every shard of this process, also those still to come."""
        self._stopped_for = reason
        for stop in list(self._held.values()):
            stop.set(reason)

    def cut_all(self) -> int:
        """Gives up every call of this process that is still on the wire after :meth:`stop_all`; returns how many."""
        return sum(stop.cut() for stop in self._held.values())

    @contextlib.contextmanager
    def halting(self, job_id: str) -> Iterator[None]:
        """Stops every shard of a job in this process, also those that come inside the block."""
        self._halting.add(job_id)
        for claim, stop in list(self._held.items()):
            if claim.job_id == job_id:
                stop.set(StopReason.JOB_INACTIVE)
        try:
            yield
        finally:
            self._halting.discard(job_id)

    @property
    def held(self) -> int:
        """How many shards this process holds."""
        return len(self._held)

    @property
    def shard_ids(self) -> list[int]:
        """The shards that this process holds, also those whose leases have run out."""
        return [claim.shard_id for claim in self._held]

    @property
    def stopping(self) -> bool:
        """Whether this process takes up no more work."""
        return self._stopped_for is not None

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Works in the background."""
        async with vital_tasks(
            lease_renewal=self._repeat(self._renew, self._lease_seconds / RENEWALS_PER_LEASE),
            job_checks=self._repeat(self._check_jobs, JOB_CHECK_SECONDS),
            lease_watch=self._watch(),
        ):
            yield

    async def _repeat(self, step: Callable[[], Awaitable[None]], seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            if not self._held:
                continue
            try:
                await step()
            except Exception:
                # The fence, not this, protects the rows; the next round tries again, whatever it was.
                log.exception("lease keeping failed")

    async def _watch(self) -> None:
        """Stops everything once the leases have run out: others may have the shards, what is not on the wire yet would be paid twice.

        A task of its own: a step that waits for a frozen database never comes to an end.
        """
        while True:
            await asyncio.sleep(self._lease_seconds / RENEWALS_PER_LEASE / 2)
            if self._held and clock.monotonic() - self._kept_at > self._lease_seconds:
                for stop in list(self._held.values()):
                    LEASES_LOST.inc(stop.reason is None)
                    stop.set(StopReason.LEASE_LOST)

    async def _renew(self) -> None:
        held = list(self._held.items())
        asked = clock.monotonic()  # the leases run from the database's answer, which is later
        async with single_statements(self._engine) as connection:
            ours = await shards.renew(
                connection, {claim: stop.flying for claim, stop in held}, self._lease_seconds
            )
        self._kept_at = asked
        for claim, stop in held:
            if claim not in ours:
                self._lose(claim, stop)

    def _lose(self, claim: AnyClaim, stop: StopSignal) -> None:
        """Stops the work of a claim that does not hold any more, unless it was given back by us meanwhile."""
        if claim in self._held:
            LEASES_LOST.inc(stop.reason is None)
            stop.set(StopReason.LEASE_LOST)

    async def _check_jobs(self) -> None:
        held, asked = list(self._held.items()), clock.monotonic()
        async with single_statements(self._engine) as connection:
            found = await shards.standing(connection, [claim for claim, _ in held])
        for claim, stop in held:
            status, ours = found.get(claim, (None, False))
            if status is not None and status.may_call and not ours:
                self._lose(claim, stop)
            elif status is not None and status.may_call:
                # What is seen lets calls start for a while: no longer than the leases last for certain.
                stop.seen_active(min(asked, self._kept_at + self._lease_seconds - FRESH_SECONDS))
            elif status in RESUMABLE:
                stop.set(StopReason.JOB_INACTIVE)
            else:
                stop.give_up()
