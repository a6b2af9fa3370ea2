"""Reads a job's results: the stored ones of a finished job, freshly computed ones of a running job."""

import asyncio
import time
from collections import OrderedDict

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db import jobs
from app.db.jobs import JobRow
from app.services.compute_results import compute_results
from app.services.job_context import JobContexts

FRESH_SECONDS = 5.0
"""How long computed results of a running job are good enough for the next reader."""

REMEMBERED_JOBS = 32


class ResultsReader:
    """One a process; computes a running job's results once for all who ask at about the same time."""

    def __init__(self, engine: AsyncEngine, contexts: JobContexts) -> None:
        self._engine = engine
        self._contexts = contexts
        self._computing = asyncio.Lock()
        self._computed: OrderedDict[str, tuple[float, str]] = OrderedDict()

    async def read(self, job: JobRow) -> str:
        """A job's results as JSON text."""
        if job.completeness is not None:
            async with self._engine.connect() as connection:
                stored = await jobs.stored_result(connection, job.tenant, job.id)
            if stored is not None:
                return stored
        async with self._computing:
            return await self._computed_lately(job)

    async def _computed_lately(self, job: JobRow) -> str:
        computed_at, results = self._computed.get(job.id, (float("-inf"), ""))
        if time.monotonic() - computed_at < FRESH_SECONDS:
            return results
        context = await self._contexts.get(job.tenant, job.id)
        async with self._engine.connect() as connection:
            _, results = await compute_results(connection, job, context)
        self._computed[job.id] = (time.monotonic(), results)
        while len(self._computed) > REMEMBERED_JOBS:
            self._computed.popitem(last=False)
        return results
