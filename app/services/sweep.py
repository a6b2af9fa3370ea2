"""Finds work that nobody is doing: committed but never announced, announced but lost, or leased by the dead."""

from dataclasses import dataclass

import structlog
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db import batches, health, idempotency, jobs, replies, shards
from app.db.batch_calls import jobs_that_wait
from app.domain.status import ACTIVE
from app.ports import Queue
from app.services.batched_shard import form_batches
from app.services.run_shard import MAX_SHARD_FAILURES

log = structlog.get_logger(__name__)

FROZEN_SECONDS = 60.0
"""A worker that leaves its own transaction waiting for so long holds others up with its locks."""

UNCLAIMED_SECONDS = 10.0
"""An announced shard may wait this long before it is announced once more, if the queue has lost messages."""

UNFINALIZED_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep announced."""

    shards: int
    jobs: int


async def sweep(engine: AsyncEngine, queue: Queue, window: int, batch_calls: int) -> Swept:
    """One sweep over all tenants' jobs. Several at once do no harm: whatever is announced twice runs once.

    Each job has a transaction of its own, so that none waits for the others' rows.

    Args:
        engine: The database.
        queue: Whom to tell.
        window: Shards of a job that may be announced at a time.
        batch_calls: Most calls of a batch.
    """
    waiting = await queue.length()
    async with engine.begin() as connection:
        frozen = await health.disconnect_frozen_workers(connection, FROZEN_SECONDS)
    if frozen:
        log.warning("frozen workers disconnected", connections=frozen)
    async with engine.begin() as connection:
        active = await jobs.active_jobs(connection)
        wishing = await jobs_that_wait(connection)
        unclaimed = await shards.unclaimed(connection)
        unsettled = await jobs.unsettled_jobs(connection, UNFINALIZED_SECONDS)
        await idempotency.forget_keys(connection)
        to_read = await batches.jobs_to_read(connection, MAX_SHARD_FAILURES)
        due = await batches.due(connection)
    # A queue that holds a message for every unclaimed shard has lost none; to repeat them would only make it grow.
    lost_some = waiting is not None and waiting < unclaimed
    announced: list[int] = []
    for job_id in active:
        async with engine.begin() as connection:
            if await jobs.lock_job(connection, job_id, skip_locked=True) not in ACTIVE:
                continue
            quiet = UNCLAIMED_SECONDS if lost_some else None
            announced += await shards.announce_again(connection, job_id, quiet_seconds=quiet)
            announced += await shards.refill(connection, job_id, window)
            if job_id in wishing:
                due += await form_batches(connection, job_id, batch_calls)
    for job_id in to_read:
        async with engine.begin() as connection:
            if await jobs.lock_job(connection, job_id, skip_locked=True) is not None:
                # Their messages are not among those that are counted, and there are few: a repetition does no harm.
                announced += await shards.announce_again(
                    connection, job_id, quiet_seconds=UNCLAIMED_SECONDS, answered=True
                )
                announced += await shards.refill(
                    connection, job_id, window, answered_below=MAX_SHARD_FAILURES
                )
    await queue.announce_shards(announced)
    await queue.announce_batches(due)
    for job_id in unsettled:
        await queue.announce_finalize(job_id)
    return Swept(len(announced), len(unsettled))


async def forget_replies(engine: AsyncEngine, days: int) -> None:
    """Removes some of the replies that are too old to be used again."""
    async with engine.begin() as connection:
        await replies.forget_old(connection, days)
