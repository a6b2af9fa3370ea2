"""Reads a job's results: the stored ones of a finished job, freshly computed ones of a running job."""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

import structlog
from sqlalchemy.ext.asyncio import AsyncEngine

from app import clock
from app.db.jobs import jobs
from app.db.jobs.jobs import JobRow
from app.db.jobs.retries import count_reopenings
from app.domain.labels.human_agreement import HumanAgreement, HumanStudy
from app.domain.results.contract import Results, json_text
from app.services.job_context import JobContexts
from app.services.results.calibration import CalibrationReader
from app.services.results.compute import compute_results
from app.services.results.human_agreement import HumanAgreementReader

log = structlog.get_logger(__name__)

FRESH_SECONDS = 5.0
"""How long computed results of a running job are good enough for the next reader."""

SHOWN_SECONDS = 30.0
"""How long they are shown while newer ones are computed, which takes seconds for a big job; ``computed_at`` says how old they are."""

REMEMBERED_JOBS = 32


@dataclass(slots=True)
class _Computed:
    """One job's results without stored ones, and when they were computed.

    Attributes:
        state: Whether the job had ended then, and how often it had been opened again. What was computed in another
            state is shown no longer.
    """

    state: tuple[bool, int]
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    at: float = float("-inf")
    results: str = ""

    @property
    def age(self) -> float:
        """Seconds since the rows were read."""
        return clock.monotonic() - self.at


class ResultsReader:
    """One a process; computes a running job's results once for all who ask at about the same time.

    Attributes:
        calibration: Reads what people would say of all sentences.
    """

    def __init__(self, engine: AsyncEngine, contexts: JobContexts) -> None:
        self._engine = engine
        self._contexts = contexts
        self._people = HumanAgreementReader(engine, contexts)
        self.calibration = CalibrationReader(engine, contexts, self.read_model)
        self._computed: OrderedDict[str, _Computed] = OrderedDict()
        self._renewals: set[asyncio.Task[Any]] = set()

    async def read(self, job: JobRow) -> str:
        """A job's results as JSON text, with how far people agree with its judges where somebody has annotated it."""
        results = await self._read(job)
        agreement = await self._people.read(job)
        if agreement is None:
            return results
        return f'{results.removesuffix("}")},"human_agreement":{json_text(agreement)}}}'

    async def read_people(self, job: JobRow) -> list[HumanAgreement]:
        """Return how far people agree with a job's judges; nothing where nobody has annotated it."""
        return await self._people.read(job) or []

    async def read_study(self, job: JobRow) -> HumanStudy:
        """How far people agree with a job's judges by model and task."""
        return await self._people.read_study(job)

    async def read_model(self, job: JobRow) -> Results:
        """The same as the model that it was written from."""
        return await asyncio.to_thread(Results.read, await self.read(job))

    async def _read(self, job: JobRow) -> str:
        async with self._engine.connect() as connection:
            if job.completeness is not None:
                stored = await jobs.stored_result(connection, job.tenant, job.id)
                if stored is not None:
                    return stored
            reopenings = await count_reopenings(connection, job.tenant, job.id)
        state = (job.status.is_terminal, reopenings)
        computed = self._computed.get(job.id)
        if computed is None or computed.state != state:
            computed = self._computed[job.id] = _Computed(state)
        self._computed.move_to_end(job.id)
        while len(self._computed) > REMEMBERED_JOBS:
            self._computed.popitem(last=False)
        if computed.age > SHOWN_SECONDS:
            await self._compute(job, computed)
        elif computed.age > FRESH_SECONDS and not computed.lock.locked():
            renewal = asyncio.create_task(self._renew(job, computed))
            self._renewals.add(renewal)
            renewal.add_done_callback(self._renewals.discard)
        return computed.results

    async def read_within(self, job: JobRow, seconds: float) -> str | None:
        """The same, if it takes no longer; ``None`` otherwise, while it goes on for the next reader."""
        reading = asyncio.create_task(self.read(job))
        done, _ = await asyncio.wait({reading}, timeout=seconds)
        if done:
            return reading.result()
        self._renewals.add(reading)
        reading.add_done_callback(self._finished)
        return None

    def _finished(self, reading: asyncio.Task[str]) -> None:
        self._renewals.discard(reading)
        if not reading.cancelled() and (error := reading.exception()) is not None:
            log.warning("results not read", error=type(error).__name__)

    async def close(self) -> None:
        """Waits for what is being computed for later readers; a thread that computes can't be stopped."""
        await asyncio.gather(*self._renewals, return_exceptions=True)

    async def _compute(self, job: JobRow, computed: _Computed) -> None:
        async with computed.lock:
            if computed.age > FRESH_SECONDS:
                context = await self._contexts.get(job.tenant, job.id)
                at = clock.monotonic()
                computed.results = (await compute_results(self._engine, job, context)).document
                computed.at = at

    async def _renew(self, job: JobRow, computed: _Computed) -> None:
        """Computes anew for the next reader; who asked has an answer already, so an error is only logged."""
        try:
            await self._compute(job, computed)
        except Exception as error:  # noqa: BLE001 - see above
            log.warning("results not renewed", job=job.id, error=type(error).__name__)
