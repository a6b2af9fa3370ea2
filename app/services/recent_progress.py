"""How far running jobs are and what they have taken, for polls: to add that up is nearly all of a poll's work."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import structlog
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db import preparations, progress
from app.db.engine import single_statements
from app.db.jobs import JobRow
from app.db.preparations import StepCounts
from app.db.progress import Counts, UsageRow
from app.domain.status import JobStatus

log = structlog.get_logger(__name__)

FRESH_SECONDS = 0.5
"""How long what was added up is good enough for the next reader."""

SHOWN_SECONDS = 2.0
"""How long it is shown while it is added up anew: who asks once a second, as answers propose, never waits for that."""

REMEMBERED_JOBS = 64


@dataclass(frozen=True, slots=True)
class Progress:
    """A job's rows, added up.

    Attributes:
        total: Over all its shards.
        leased: Over those that somebody works on.
        steps: Those of its preparations, by kind; empty for a job without any.
        usage: What its calls took, by stage and model.
    """

    total: Counts
    leased: Counts
    steps: Mapping[str, StepCounts]
    usage: Sequence[UsageRow]


async def read_progress(engine: AsyncEngine, job: JobRow) -> Progress:
    """How far a job is by now, each part from a snapshot of its own."""
    # Each query sees its own moment in a transaction too; without one there are two messages less.
    async with single_statements(engine) as connection:
        total, leased = await progress.counts(connection, job.tenant, job.id)
        steps = await preparations.counts(connection, job.tenant, job.id) if total.preparations else {}
        return Progress(total, leased, steps, await progress.usage(connection, job.tenant, job.id))


@dataclass(slots=True)
class _Known:
    """How far a job was at a time of the monotonic clock, and whether somebody is looking again."""

    at: float
    progress: Progress
    renewed: bool = False


class RecentProgress:
    """One a process. A running job's progress is at most :data:`SHOWN_SECONDS` old; of any other job it is that of now."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._renewals: set[asyncio.Task[None]] = set()

    async def read(self, job: JobRow) -> Progress:
        """How far a job is.

        Args:
            job: Which job, as it is now.
        """
        if job.status is not JobStatus.RUNNING:
            self._known.pop(job.id, None)
            return await read_progress(self._engine, job)
        known = self._known.get(job.id)
        age = float("inf") if known is None else time.monotonic() - known.at
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
        at = time.monotonic()
        found = await read_progress(self._engine, job)
        earlier = self._known.get(job.id)
        if (
            earlier is None or earlier.at < at
        ):  # of two who looked at once, the one who began later knows more
            self._known[job.id] = _Known(at, found)
        self._known.move_to_end(job.id)
        while len(self._known) > REMEMBERED_JOBS:
            self._known.popitem(last=False)
        return found

    async def _renew(self, job: JobRow, known: _Known) -> None:
        """Looks again for the next reader; who asked has an answer already, so an error is only logged."""
        try:
            await self._look(job)
        except (SQLAlchemyError, OSError) as error:
            log.warning("progress not renewed", job=job.id, error=type(error).__name__)
        finally:
            known.renewed = False
