"""Remembers what was computed from a job's labels."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.jobs.jobs import JobRow
from app.db.labels import annotations

T = TypeVar("T")


class LabelMemory(Generic[T]):
    """One a process; remembers until somebody annotates or draws a round, or the job goes on."""

    def __init__(self, engine: AsyncEngine, most: int) -> None:
        self._engine = engine
        self._most = most
        self._computed: OrderedDict[Hashable, tuple[object, T]] = OrderedDict()
        self._computing: WeakValueDictionary[Hashable, asyncio.Lock] = WeakValueDictionary()

    async def read(
        self,
        jobs: Sequence[JobRow],
        compute: Callable[[], Awaitable[T]],
        *,
        of: Hashable = None,
        wanted: object = None,
    ) -> T | None:
        """What was computed, for all who ask and none to change; ``None`` where nobody has annotated one of the jobs.

        Args:
            jobs: Whose labels.
            compute: Computes it.
            of: What of them is asked for; each is remembered.
            wanted: And how; of these the last is remembered.
        """
        async with self._engine.connect() as connection:
            labels = [await annotations.state(connection, job.tenant, job.id) for job in jobs]
        if not all(found[0] for found in labels):
            return None
        state = (labels, [(job.finished_at, job.completeness) for job in jobs], wanted)
        key = (*(job.id for job in jobs), of)
        lock = self._computing.setdefault(key, asyncio.Lock())
        async with lock:  # who comes meanwhile takes the same
            known = self._computed.get(key)
            if known is None or known[0] != state or any(job.finished_at is None for job in jobs):
                known = self._computed[key] = (state, await compute())
            self._computed.move_to_end(key)
        while len(self._computed) > self._most:
            self._computed.popitem(last=False)
        return known[1]
