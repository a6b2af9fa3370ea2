"""Reads a job's results: the stored ones of a finished job, freshly computed ones of a running job."""

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass, field

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db import jobs
from app.db.jobs import JobRow
from app.services.compute_results import compute_results
from app.services.job_context import JobContexts

FRESH_SECONDS = 5.0
"""How long computed results of a running job are good enough for the next reader."""

REMEMBERED_JOBS = 32


@dataclass(slots=True)
class _Computed:
    """One running job's results, and when they were computed."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    at: float = float("-inf")
    results: str = ""


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
        async with computed.lock:
            if time.monotonic() - computed.at > FRESH_SECONDS:
                context = await self._contexts.get(job.tenant, job.id)
                _, computed.results = await compute_results(self._engine, job, context)
                computed.at = time.monotonic()
            return computed.results
