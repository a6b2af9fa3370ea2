"""Finds work that nobody is doing: committed but never announced, announced but lost, or leased by the dead."""

from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db import jobs, shards
from app.ports import Queue

UNCLAIMED_SECONDS = 10.0
"""An announced shard may wait this long in the queue before it is announced once more."""

UNFINALIZED_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep announced."""

    shards: int
    jobs: int


async def sweep(engine: AsyncEngine, queue: Queue, window: int) -> Swept:
    """One sweep over all tenants' jobs. Several at once do no harm: whatever is announced twice runs once."""
    async with engine.begin() as connection:
        active = await jobs.active_jobs(connection)
        announced = await shards.announce_again(connection, active, UNCLAIMED_SECONDS) if active else []
        for job_id in active:
            announced += await shards.refill(connection, job_id, window)
        unsettled = await jobs.unsettled_jobs(connection, UNFINALIZED_SECONDS)
        await jobs.forget_idempotency_keys(connection)
    await queue.announce_shards(announced)
    for job_id in unsettled:
        await queue.announce_finalize(job_id)
    return Swept(len(announced), len(unsettled))
