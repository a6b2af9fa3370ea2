"""Ends or stops the work on a job: when its last shard is over, and when an error says that it must not go on."""

from datetime import datetime

import structlog
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.batches import batches
from app.db.jobs import jobs
from app.domain.jobs.contract import JobError
from app.domain.jobs.status import ENDING, JobStatus
from app.domain.providers.failure import PRICE_UNKNOWN, cause, remedy
from app.services.errors import CallNotAllowedError, internal_cause
from app.services.execution.retries import PROVIDER_UNREACHABLE, JobMustStopError

log = structlog.get_logger(__name__)

MAX_SHARD_FAILURES = 5
"""After so many errors of ours in one shard the job is paused instead of trying for ever."""

INTERNAL_ERROR = "internal_error"


def internal_error(error: Exception, *, shard: int | None = None, batch: int | None = None) -> JobError:
    """Return the ``error`` of a job that an error of the service stops."""
    detail = internal_cause(error)
    return JobError(
        code=INTERNAL_ERROR, detail=detail, remedy=remedy(INTERNAL_ERROR), shard=shard, batch=batch
    )


def not_allowed(error: CallNotAllowedError) -> JobError:
    """Return the ``error`` of a job one of whose calls is not allowed today."""
    return JobError(code=error.code, detail=str(error), model=error.model, remedy=error.remedy)


async def settle(connection: AsyncConnection, job_id: str, status: JobStatus | None) -> bool:
    """Whether a locked job can be finalized now; moves it to ``finalizing`` where its shards are all done.

    A job that ends early, cancelled or failed, waits for its last lease and its last batch: calls on the wire are still
    recorded.
    """
    open_, leased = await jobs.open_work(connection, job_id)
    if status in ENDING:
        return leased == 0 and not await batches.any_left(connection, job_id, MAX_SHARD_FAILURES)
    if open_ == 0:
        return await jobs.move(connection, job_id, to=JobStatus.FINALIZING)
    return False


async def halt_job(
    engine: AsyncEngine,
    job_id: str,
    error: JobMustStopError,
    *,
    early: bool = False,
    claimed_at: datetime | None = None,
) -> Exception | None:
    """Stops the job.

    A job that has got somewhere, or has a batch at its provider, is paused: what is paid for is kept, and it can be resumed once
    the cause is mended. So is one whose first calls of a kind all fail alike, one whose model has no price any more, and one whose
    provider can't be reached, which :mod:`app.services.scheduling.outages` resumes. One
    whose very first calls are turned down (a misspelt model, a wrong key) fails, but not early.

    A job resumed after `claimed_at`, when the call's shard was claimed or its batch leased, is not stopped: the cause may have
    been mended.

    Returns:
        What kept it from being stopped, if anything did.
    """
    detail = stop_error(error)
    try:
        async with engine.begin() as connection:
            paused = error.alike is not None or error.code in {PROVIDER_UNREACHABLE, PRICE_UNKNOWN}
            hopeless = not (
                paused
                or await jobs.any_reply(connection, job_id)
                or await batches.any_submitted(connection, job_id)
            )
            moved = not (hopeless and early) and await jobs.move(
                connection,
                job_id,
                to=JobStatus.FINALIZING if hopeless else JobStatus.PAUSED,
                reason=error.code,
                error=detail,
                unless_resumed_since=claimed_at,
            )
            if moved:
                await batches.hasten(connection, job_id)
                if hopeless:
                    await batches.give_up(connection, job_id, batches.GIVE_UP_SECONDS)
                if error.code == PROVIDER_UNREACHABLE:
                    await jobs.forget_resumptions(connection, job_id)
    except SQLAlchemyError as failure:
        log.exception("job not stopped", code=error.code)
        return failure
    if moved:
        # Without the provider's words, which may repeat a prompt; the job's `error` has them.
        log.warning("job stopped", failed=hopeless, code=error.code, model=error.model)
    return None


def stop_error(error: JobMustStopError) -> JobError:
    """What a job that is stopped shows as its ``error``."""
    return JobError(
        code=error.code,
        cause=cause(error.code, error.status, error.model, str(error)),
        detail=str(error),
        model=error.model,
        stage=error.stage,
        remedy=remedy(error.code, error.status, error.model),
        first_calls=error.alike,
    )
