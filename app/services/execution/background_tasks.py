"""Background tasks of a worker, which take none of the slots for messages."""

import asyncio
import importlib
from collections.abc import Callable, Coroutine, Sequence
from typing import Any
from uuid import UUID

import structlog
from sqlalchemy.ext.asyncio import AsyncEngine

from app.ports import Queue
from app.services.execution.leases import LeaseKeeper
from app.services.job_context import JobContexts

log = structlog.get_logger(__name__)

FINALIZATION = "finalization"
"""The kind of work."""

FINALIZATIONS_AT_A_TIME = 4
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
        """How many messages wait for a worker; see :class:`app.ports.Queue`."""
        return await self._queue.length()


def finalizing(engine: AsyncEngine, contexts: JobContexts) -> Finalize:
    """Finalizes jobs, a few at a time, each once at a time, however many end together.

    One that is asked for while it is under way is looked at once more afterwards: its last shard may have ended after the
    look that found one still held. What finalizing takes (scipy) is imported at the first, on a thread, lest calls stand
    still meanwhile.
    """
    asked_again: dict[str, bool] = {}
    places = asyncio.Semaphore(FINALIZATIONS_AT_A_TIME)

    async def finalize(job_id: str) -> None:
        if job_id in asked_again:
            asked_again[job_id] = True
            return
        asked_again[job_id] = True
        try:
            async with places:
                module = await asyncio.to_thread(importlib.import_module, "app.services.results.finalize")
                while asked_again[job_id]:
                    asked_again[job_id] = False
                    await module.finalize_job(engine, contexts, job_id)
        finally:
            del asked_again[job_id]

    return finalize
