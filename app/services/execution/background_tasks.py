"""Background tasks of a worker, which take none of the slots for messages."""

import asyncio
import importlib
from collections.abc import Callable, Coroutine, Sequence
from typing import Any
from uuid import UUID

import structlog
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.engine import single_statements
from app.db.jobs import jobs
from app.ports import Queue
from app.services.execution.leases import LeaseKeeper
from app.services.job_context import JobContexts
from app.services.tenant_turns import TenantTurns, TurnedWork

log = structlog.get_logger(__name__)

FINALIZATION = "finalization"
BATCH = "batch"
"""Kinds of tasks."""

FINALIZATIONS_AT_A_TIME = 2
"""Each holds a connection of the shards' pool and, while it computes, all scores of its job."""

Finalize = Callable[[str], Coroutine[Any, Any, None]]


class BackgroundTasks:
    """Work that ends by itself. One a process."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, work: Coroutine[Any, Any, None], kind: str) -> None:
        """Begins something; an error is logged, and the sweeper finds what it left undone.

        Args:
            work: What to do.
            kind: What :meth:`number` counts it by.
        """
        task = asyncio.create_task(_logged(work, kind), name=kind)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def number(self, kind: str) -> int:
        """How many of a kind are under way."""
        return sum(task.get_name() == kind for task in self._tasks)

    def cancel(self, kind: str) -> None:
        """Cancels the tasks of a kind."""
        for task in self._tasks:
            if task.get_name() == kind:
                task.cancel()

    async def ended(self) -> None:
        """Waits until nothing is under way."""
        while self._tasks:
            await asyncio.wait(self._tasks)


async def _logged(work: Coroutine[Any, Any, None], kind: str) -> None:
    structlog.contextvars.clear_contextvars()  # those of the shard during which it was begun
    try:
        await work
    except Exception:
        log.exception("left to the sweeper", kind=kind)


class FinalizingQueue:
    """A worker's queue: jobs whose last shard ends here are finalized here, with no message and no place.

    A process that is about to stop tells the others instead.

    Args:
        queue: The queue that all processes share.
        background: Where finalizations run.
        leases: Know whether this process stops.
        finalize: Finalizes a job.
    """

    def __init__(
        self, queue: Queue, background: BackgroundTasks, leases: LeaseKeeper, finalize: Finalize
    ) -> None:
        self._queue = queue
        self._background = background
        self._leases = leases
        self._finalize = finalize

    async def announce_shards(self, shard_ids: Sequence[int]) -> None:
        """Tells all workers; see :class:`app.ports.Queue`."""
        await self._queue.announce_shards(shard_ids)

    async def announce_finalize(self, job_id: str) -> None:
        """Begins to finalize the job; see :class:`app.ports.Queue`."""
        if self._leases.stopping:
            await self._queue.announce_finalize(job_id)
        else:
            self._background.begin(self._finalize(job_id), FINALIZATION)

    async def announce_batches(self, batch_ids: Sequence[int]) -> None:
        """Tells all workers; see :class:`app.ports.Queue`."""
        await self._queue.announce_batches(batch_ids)

    async def announce_files(self, file_ids: Sequence[UUID]) -> None:
        """Tells all workers; see :class:`app.ports.Queue`."""
        await self._queue.announce_files(file_ids)

    async def length(self) -> int | None:
        """Return the number of waiting messages about shards; see :class:`app.ports.Queue`."""
        return await self._queue.length()


def finalizing(engine: AsyncEngine, contexts: JobContexts, leases: LeaseKeeper) -> Finalize:
    """Finalizes jobs, a few at a time, in turns by tenant. A process that stops begins none: the sweeper announces them again.

    Finalization needs scipy, which the first one imports on a thread so that no call waits for the import.
    """

    async def tenant_of(job_id: str) -> str | None:
        async with single_statements(engine) as connection:
            return await jobs.tenant_of_unended(connection, job_id)

    async def finalize(job_id: str) -> None:
        if not leases.stopping:
            module = await asyncio.to_thread(importlib.import_module, "app.services.results.finalize")
            await module.finalize_job(engine, contexts, job_id)

    return TurnedWork(TenantTurns(FINALIZATIONS_AT_A_TIME), tenant_of, finalize)
