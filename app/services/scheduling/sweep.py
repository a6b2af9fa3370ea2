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
from app.services.jobs.listing import fill_in

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
    async with single_statements(engine) as connection:
        frozen = await health.disconnect_frozen_workers(connection, FROZEN_SECONDS)
        if frozen:
            log.warning("frozen workers disconnected", connections=frozen)
        files = await batch_files.due(connection)
        unfinished = await jobs.any_unfinished(connection)
    await queue.announce_files(files)
    with _others_go_on("of an earlier release"):
        await fill_in(engine)
    if not unfinished:  # all that an idle service is asked
        return Swept(0, 0)
    waiting = await queue.length()
    async with engine.begin() as connection:
        active = await jobs.active_jobs(connection)
        wishing = await jobs_that_wait(connection)
        unclaimed = await shards.unclaimed(connection)
        unsettled = await jobs.unsettled_jobs(connection, UNFINALIZED_SECONDS)
        to_read = await batches.jobs_to_read(connection, MAX_SHARD_FAILURES)
        due = await batches.due(connection)
    # A queue that holds a message for every unclaimed shard has lost none; to repeat them would only make it grow.
    quiet = UNCLAIMED_SECONDS if waiting is not None and waiting < unclaimed else None
    announced: list[int] = []
    try:
        for job_id in active:
            with _others_go_on(job_id):
                most = batch_calls if job_id in wishing else None
                found, formed = await _sweep_job(engine, job_id, window, quiet, most)
                announced += found
                due += formed
        for job_id in to_read:
            with _others_go_on(job_id):
                announced += await _announce_answered(engine, job_id, window)
    finally:  # what was committed as announced is, also if the database goes away in between
        await queue.announce_shards(announced)
        await queue.announce_batches(due)
    for job_id in unsettled:
        await queue.announce_finalize(job_id)
    return Swept(len(announced), len(unsettled))


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
