"""What running jobs have taken, for polls: adding up calls, tokens and cost takes longest of all that a poll shows."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import structlog
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db import progress
from app.db.engine import single_statements
from app.db.jobs import JobRow
from app.db.progress import UsageRow
from app.domain.status import JobStatus

log = structlog.get_logger(__name__)

FRESH_SECONDS = 0.5
"""How long what was added up is good enough for the next reader."""

SHOWN_SECONDS = 2.0
"""How long it is shown while it is added up anew."""

REMEMBERED_JOBS = 64


@dataclass(slots=True)
class _Known:
    """What a job's calls had taken at a time of the monotonic clock, and whether somebody is looking again."""

    at: float
    rows: Sequence[UsageRow]
    renewed: bool = False


class RecentUsage:
    """One a process. A running job's usage is at most :data:`SHOWN_SECONDS` old; of any other job it is that of now."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._renewals: set[asyncio.Task[None]] = set()

    async def read(self, connection: AsyncConnection, job: JobRow) -> Sequence[UsageRow]:
        """Calls, tokens and cost of a job by stage and model.

        Args:
            connection: Where to look if nothing is known.
            job: Which job, as it is now.
        """
        if job.status is not JobStatus.RUNNING:
            self._known.pop(job.id, None)
            return await progress.usage(connection, job.tenant, job.id)
        known = self._known.get(job.id)
        age = float("inf") if known is None else time.monotonic() - known.at
        if known is None or age > SHOWN_SECONDS:
            return await self._look(connection, job)
        if age > FRESH_SECONDS and not known.renewed:
            known.renewed = True
            renewal = asyncio.create_task(self._renew(job, known))
            self._renewals.add(renewal)
            renewal.add_done_callback(self._renewals.discard)
        return known.rows

    async def close(self) -> None:
        """Waits for what is being added up for later readers."""
        await asyncio.gather(*self._renewals)

    async def _look(self, connection: AsyncConnection, job: JobRow) -> Sequence[UsageRow]:
        at = time.monotonic()
        rows = await progress.usage(connection, job.tenant, job.id)
        self._known[job.id] = _Known(at, rows)
        self._known.move_to_end(job.id)
        while len(self._known) > REMEMBERED_JOBS:
            self._known.popitem(last=False)
        return rows

    async def _renew(self, job: JobRow, known: _Known) -> None:
        """Looks again for the next reader; who asked has an answer already, so an error is only logged."""
        try:
            async with single_statements(self._engine) as connection:
                await self._look(connection, job)
        except (SQLAlchemyError, OSError) as error:
            log.warning("usage not renewed", job=job.id, error=type(error).__name__)
        finally:
            known.renewed = False
