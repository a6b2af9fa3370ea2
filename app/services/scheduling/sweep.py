"""The sweep: finds shards that were never announced, whose message was lost, or whose worker died."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

import structlog
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db import health
from app.db.batches import batches
from app.db.batches import files as batch_files
from app.db.batches.calls import jobs_that_wait
from app.db.engine import single_statements
from app.db.execution import shards
from app.db.health import is_away
from app.db.jobs import jobs
from app.domain.jobs.status import ACTIVE
from app.ports import Queue
from app.services.batches.shards import form_batches
from app.services.execution.stopping import MAX_SHARD_FAILURES

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
    """One sweep over all tenants' jobs. Several at once do no harm: a shard that is announced twice runs once.

    Each job with something to announce has a transaction of its own, so that no job waits for another's rows.

    Args:
        engine: The database.
        queue: The queue of the workers.
        window: Shards of a job that may be announced at a time.
        batch_calls: Most calls of a batch.
    """
    async with single_statements(engine) as connection:
        frozen = await health.disconnect_frozen_workers(connection, FROZEN_SECONDS)
        if frozen:
            log.warning("frozen workers disconnected", connections=frozen)
        files = await batch_files.due(connection)
        unfinished = await jobs.any_unfinished(connection)
    await queue.announce_files(files)
    if not unfinished:  # an idle service needs no more queries
        return Swept(0, 0)
    waiting = await queue.length()
    async with single_statements(engine) as connection:
        # A queue with a message for every unclaimed shard has lost none; repeated messages would only make it grow.
        lost = waiting is not None and waiting < await shards.unclaimed(connection)
        quiet = UNCLAIMED_SECONDS if lost else None
        due = await shards.jobs_to_announce(connection, window, quiet)
        wishing = await jobs_that_wait(connection)
        unsettled = await jobs.unsettled_jobs(connection, UNFINALIZED_SECONDS)
        to_read = await batches.jobs_to_read(connection, MAX_SHARD_FAILURES)
        batches_due = await batches.due(connection)
    await queue.announce_batches(batches_due)
    announced = 0
    for job_id in [*due, *sorted(wishing.difference(due))]:
        with _others_go_on(job_id):
            most = batch_calls if job_id in wishing else None
            found, formed = await _sweep_job(engine, job_id, window, quiet, most)
            await queue.announce_shards(found)
            await queue.announce_batches(formed)
            announced += len(found)
    for job_id in to_read:
        with _others_go_on(job_id):
            found = await _announce_answered(engine, job_id, window)
            await queue.announce_shards(found)
            announced += len(found)
    for job_id in unsettled:
        await queue.announce_finalize(job_id)
    return Swept(announced, len(unsettled))


async def _sweep_job(
    engine: AsyncEngine, job_id: str, window: int, quiet_seconds: float | None, batch_calls: int | None
) -> tuple[list[int], list[int]]:
    """The shards of an active job to announce, and its batches that are full; none of a job that somebody else is at."""
    async with engine.begin() as connection:
        if await jobs.lock_job(connection, job_id, skip_locked=True) not in ACTIVE:
            return [], []
        announced = await shards.announce_again(connection, job_id, quiet_seconds=quiet_seconds)
        announced += await shards.refill(connection, job_id, window)
        formed = [] if batch_calls is None else await form_batches(connection, job_id, batch_calls)
    return announced, formed


async def _announce_answered(engine: AsyncEngine, job_id: str, window: int) -> list[int]:
    """Announces the shards of a job that batches hold answers for.

    Their messages are not among those that are counted, and there are few: a repetition does no harm.
    """
    async with engine.begin() as connection:
        if await jobs.lock_job(connection, job_id, skip_locked=True) is None:
            return []
        announced = await shards.announce_again(
            connection, job_id, quiet_seconds=UNCLAIMED_SECONDS, answered=True
        )
        return announced + await shards.refill(connection, job_id, window, answered_below=MAX_SHARD_FAILURES)


@contextlib.contextmanager
def _others_go_on(job_id: str) -> Iterator[None]:
    """Keeps an error of one job, a row of it that somebody holds included, from ending the others' sweep."""
    try:
        yield
    except Exception as error:
        if is_away(error) and not (isinstance(error, DBAPIError) and not error.connection_invalidated):
            raise
        log.exception("job not swept; trying again", job=job_id)
