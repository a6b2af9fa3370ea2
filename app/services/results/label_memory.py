"""Remembers what was computed from a job's labels."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.jobs.jobs import JobRow
from app.db.labels import annotations

T = TypeVar("T")


class LabelMemory(Generic[T]):
    """One a process; remembers until somebody annotates or draws a round, or the job goes on."""

    def __init__(self, engine: AsyncEngine, most: int) -> None:
        self._engine = engine
        self._most = most
        self._computed: OrderedDict[str, tuple[object, T]] = OrderedDict()
        self._computing = asyncio.Lock()

    async def read(
        self, job: JobRow, compute: Callable[[], Awaitable[T]], *, wanted: object = None
    ) -> T | None:
        """What was computed, for all who ask and none to change; ``None`` where nobody has annotated.

        Args:
            job: Whose labels.
            compute: Computes it.
            wanted: What is asked for; of each job the last thing is remembered.
        """
        async with self._engine.connect() as connection:
            labels = await annotations.state(connection, job.tenant, job.id)
        if not labels[0]:
            return None
        state = (*labels, job.finished_at, job.completeness, wanted)
        async with self._computing:  # who comes meanwhile takes the same
            known = self._computed.get(job.id)
            if known is None or known[0] != state or job.finished_at is None:
                known = self._computed[job.id] = (state, await compute())
        self._computed.move_to_end(job.id)
        while len(self._computed) > self._most:
            self._computed.popitem(last=False)
        return known[1]
