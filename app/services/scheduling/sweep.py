"""The sweep: announces shards, and forms batches, of jobs that nobody else does it for."""

import contextlib
from collections.abc import Iterator

import structlog
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db import health
from app.db.batches import batches
from app.db.batches.calls import jobs_that_wait
from app.db.engine import single_statements
from app.db.execution import shards
from app.db.health import is_away
from app.db.jobs import jobs
from app.domain.jobs.status import ACTIVE
from app.ports import Queue
from app.services.batches.shards import form_batches
from app.services.execution.stopping import MAX_SHARD_FAILURES
from app.services.jobs.listing import fill_in

log = structlog.get_logger(__name__)

FROZEN_SECONDS = 60.0
"""A worker that leaves its own transaction waiting for so long holds others up with its locks."""


async def sweep(engine: AsyncEngine, queue: Queue, window: int, batch_calls: int) -> int:
    """One sweep over all tenants' jobs; several at once do no harm. Returns the number of shards that it announced.

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
        unfinished = await jobs.any_unfinished(connection)
    with _others_go_on("of an earlier release"):
        await fill_in(engine)
    if not unfinished:  # an idle service needs no more queries
        return 0
    async with single_statements(engine) as connection:
        due = await shards.jobs_to_announce(connection, window)
        wishing = await jobs_that_wait(connection)
        to_read = await batches.jobs_to_read(connection, MAX_SHARD_FAILURES)
    announced = 0
    for job_id in [*due, *sorted(wishing.difference(due))]:
        with _others_go_on(job_id):
            found = await _sweep_job(engine, job_id, window, batch_calls if job_id in wishing else None)
            await queue.announce_shards(found)
            announced += len(found)
    for job_id in to_read:
        with _others_go_on(job_id):
            found = await _announce_answered(engine, job_id, window)
            await queue.announce_shards(found)
            announced += len(found)
    return announced


async def _sweep_job(engine: AsyncEngine, job_id: str, window: int, batch_calls: int | None) -> list[int]:
    """Form the batches of an active job that are full, and return its shards to announce; none of a job that somebody else is at."""
    async with engine.begin() as connection:
        if await jobs.lock_job(connection, job_id, skip_locked=True) not in ACTIVE:
            return []
        announced = await shards.refill(connection, job_id, window)
        if batch_calls is not None:
            await form_batches(connection, job_id, batch_calls)
    return announced


async def _announce_answered(engine: AsyncEngine, job_id: str, window: int) -> list[int]:
    """Announces the shards of a job that batches hold answers for."""
    async with engine.begin() as connection:
        if await jobs.lock_job(connection, job_id, skip_locked=True) is None:
            return []
        return await shards.refill(connection, job_id, window, answered_below=MAX_SHARD_FAILURES)


@contextlib.contextmanager
def _others_go_on(job_id: str) -> Iterator[None]:
    """Keeps an error of one job, a row of it that somebody holds included, from ending the others' sweep."""
    try:
        yield
    except Exception as error:
        if is_away(error) and not (isinstance(error, DBAPIError) and not error.connection_invalidated):
            raise
        log.exception("job not swept; trying again", job=job_id)
