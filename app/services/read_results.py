"""Reads a job's results: the stored ones of a finished job, freshly computed ones of a running job."""

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass, field

import structlog
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db import jobs
from app.db.jobs import JobRow
from app.services.compute_results import compute_results
from app.services.job_context import JobContexts

log = structlog.get_logger(__name__)

FRESH_SECONDS = 5.0
"""How long computed results of a running job are good enough for the next reader."""

SHOWN_SECONDS = 30.0
"""How long they are shown while newer ones are computed, which takes seconds for a big job; ``computed_at`` says how old they are."""

REMEMBERED_JOBS = 32


@dataclass(slots=True)
class _Computed:
    """One running job's results, and when they were computed."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    at: float = float("-inf")
    results: str = ""
    renewal: asyncio.Task[None] | None = None

    @property
    def age(self) -> float:
        """Seconds since the rows were read."""
        return time.monotonic() - self.at


class ResultsReader:
    """One a process; computes a running job's results once for all who ask at about the same time."""

    def __init__(self, engine: AsyncEngine, contexts: JobContexts) -> None:
        self._engine = engine
        self._contexts = contexts
        self._computed: OrderedDict[str, _Computed] = OrderedDict()

    async def read(self, job: JobRow) -> str:
        """A job's results as JSON text."""
        if job.completeness is not None:
            async with self._engine.connect() as connection:
                stored = await jobs.stored_result(connection, job.tenant, job.id)
            if stored is not None:
                return stored
        computed = self._computed.setdefault(job.id, _Computed())
        self._computed.move_to_end(job.id)
        while len(self._computed) > REMEMBERED_JOBS:
            self._computed.popitem(last=False)
        if computed.age > SHOWN_SECONDS:
            await self._compute(job, computed)
        elif computed.age > FRESH_SECONDS and not computed.lock.locked():
            computed.renewal = asyncio.create_task(self._renew(job, computed))
        return computed.results

    async def close(self) -> None:
        """Waits for what is being computed for later readers; a thread that computes can't be stopped."""
        renewals = [computed.renewal for computed in self._computed.values() if computed.renewal is not None]
        await asyncio.gather(*renewals)

    async def _compute(self, job: JobRow, computed: _Computed) -> None:
        async with computed.lock:
            if computed.age > FRESH_SECONDS:
                context = await self._contexts.get(job.tenant, job.id)
                at = time.monotonic()
                _, computed.results = await compute_results(self._engine, job, context)
                computed.at = at

    async def _renew(self, job: JobRow, computed: _Computed) -> None:
        """Computes anew for the next reader; who asked has an answer already, so an error is only logged."""
        try:
            await self._compute(job, computed)
        except Exception as error:  # noqa: BLE001 - see above
            log.warning("results not renewed", job=job.id, error=type(error).__name__)
