"""Cached progress and usage of running jobs: computing them is nearly all of a poll's work."""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import structlog
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from app import clock
from app.db.engine import single_statements
from app.db.execution import failures
from app.db.execution.failures import FailureRow
from app.db.jobs import preparations, progress
from app.db.jobs.jobs import JobRow
from app.db.jobs.preparations import FailedAsksRow, StepCounts
from app.db.jobs.progress import Counts, UsageRow
from app.domain.jobs.status import JobStatus

log = structlog.get_logger(__name__)

FRESH_SECONDS = 0.5
"""How long what was added up is good enough for the next reader."""

SHOWN_SECONDS = 2.0
"""How long it is shown while it is added up anew: who asks once a second, as answers propose, never waits for that."""

FAILURES_SECONDS = 5.0
"""How old what failed may be while calls go on failing: every failed call is read for it, which takes 70 ms for 20,000."""

REMEMBERED_JOBS = 64


@dataclass(frozen=True, slots=True)
class Failures:
    """What a job's failed calls failed of.

    Attributes:
        rows: Failures that are alike, counted.
        usage: What the job's calls had taken then.
        at: When that was, by the monotonic clock.
    """

    rows: Sequence[FailureRow]
    usage: Sequence[UsageRow]
    at: float

    def still_good(self, usage: Sequence[UsageRow], *, running: bool) -> bool:
        """Whether they need not be counted again for a job whose calls have taken this by now."""
        recent = running and bool(self.rows) and clock.monotonic() - self.at < FAILURES_SECONDS
        return recent or usage == self.usage


@dataclass(frozen=True, slots=True)
class Progress:
    """A job's rows, added up.

    Attributes:
        total: Over all its shards.
        leased: Over those that somebody works on.
        steps: Those of its preparations, by kind; empty for a job without any.
        failed_asks: Unusable replies of the reasoner in those steps.
        usage: What its calls took, by stage and model.
        failures: What its failed calls failed of.
    """

    total: Counts
    leased: Counts
    steps: Mapping[str, StepCounts]
    failed_asks: Sequence[FailedAsksRow]
    usage: Sequence[UsageRow]
    failures: Failures


async def read_progress(engine: AsyncEngine, job: JobRow, failed: Failures | None = None) -> Progress:
    """How far a job is by now, each part from a snapshot of its own.

    Args:
        engine: Where to look.
        job: Which job.
        failed: What its calls had failed of before, which may be good enough.
    """
    # Each query sees its own moment in a transaction too; without one there are two messages less.
    async with single_statements(engine) as connection:
        total, leased = await progress.counts(connection, job.tenant, job.id)
        steps = await preparations.counts(connection, job.tenant, job.id) if total.preparations else {}
        asks = await preparations.failed_asks(connection, job.tenant, job.id) if total.preparations else []
        usage = await progress.usage(connection, job.tenant, job.id)
        if failed is None or not failed.still_good(usage, running=job.status is JobStatus.RUNNING):
            at = clock.monotonic()
            any_failed = any(row.failed_calls for row in usage)
            rows = await failures.histogram(connection, job.tenant, job.id) if any_failed else []
            failed = Failures(rows, usage, at)
        return Progress(total, leased, steps, asks, usage, failed)


@dataclass(slots=True)
class _Known:
    """How far a job was at a time of the monotonic clock, and whether somebody is looking again."""

    at: float
    progress: Progress
    renewed: bool = False


class RecentProgress:
    """One a process. A running job's progress is at most :data:`SHOWN_SECONDS` old; of any other job it is that of now.

    What its calls failed of is counted again only where they have taken more since.
    """

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._failures: OrderedDict[str, Failures] = OrderedDict()
        self._renewals: set[asyncio.Task[None]] = set()

    async def read(self, job: JobRow) -> Progress:
        """How far a job is.

        Args:
            job: Which job, as it is now.
        """
        if job.status is not JobStatus.RUNNING:
            self._known.pop(job.id, None)
            return await self._read(job)
        known = self._known.get(job.id)
        age = float("inf") if known is None else clock.monotonic() - known.at
        if known is None or age > SHOWN_SECONDS:
            return await self._look(job)
        if age > FRESH_SECONDS and not known.renewed:
            known.renewed = True
            renewal = asyncio.create_task(self._renew(job, known))
            self._renewals.add(renewal)
            renewal.add_done_callback(self._renewals.discard)
        return known.progress

    async def close(self) -> None:
        """Waits for what is being added up for later readers."""
        await asyncio.gather(*self._renewals)

    async def _look(self, job: JobRow) -> Progress:
        at = clock.monotonic()
        found = await self._read(job)
        earlier = self._known.get(job.id)
        if (
            earlier is None or earlier.at < at
        ):  # of two who looked at once, the one who began later knows more
            self._known[job.id] = _Known(at, found)
        self._known.move_to_end(job.id)
        while len(self._known) > REMEMBERED_JOBS:
            self._known.popitem(last=False)
        return found

    async def _read(self, job: JobRow) -> Progress:
        found = await read_progress(self._engine, job, self._failures.get(job.id))
        earlier = self._failures.get(job.id)
        if earlier is None or earlier.at < found.failures.at:  # as in _look
            self._failures[job.id] = found.failures
        self._failures.move_to_end(job.id)
        while len(self._failures) > REMEMBERED_JOBS:
            self._failures.popitem(last=False)
        return found

    async def _renew(self, job: JobRow, known: _Known) -> None:
        """Looks again for the next reader; who asked has an answer already, so an error is only logged."""
        try:
            await self._look(job)
        except (SQLAlchemyError, OSError) as error:
            log.warning("progress not renewed", job=job.id, error=type(error).__name__)
        finally:
            known.renewed = False
