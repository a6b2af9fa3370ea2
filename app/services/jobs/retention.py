"""Deletes expired data: jobs (by request or age), replies too old to be reused, idempotency keys, uploads."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from functools import partial

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.execution import response_cache
from app.db.health import is_away
from app.db.jobs import budgets, idempotency, jobs, retention
from app.db.reasons import reason
from app.db.sets import sets
from app.db.uploads import uploads
from app.telemetry.vital import vital_tasks

log = structlog.get_logger(__name__)

LOOK_SECONDS = 60.0
"""How long after there was nothing to remove it is looked for anew."""
KEYS_SECONDS = 3600.0
"""The same for idempotency keys: past their day they are not found any more, whether they are there or not."""


async def remove_job(connection: AsyncConnection, tenant: str, job_id: str) -> None:
    """Removes an ended job, which the caller has locked, with all that belongs to it and the sets that nobody else has to do with."""
    its_sets = await sets.sets_of_job(connection, tenant, job_id)
    await budgets.leave_to_payers(connection, job_id)
    await jobs.delete_job(connection, tenant, job_id)
    await sets.remove_unused(connection, tenant, its_sets)


class NotRemovedError(Exception):
    """A job could not be removed; all of it is still there.

    Attributes:
        job_id: Which.
    """

    def __init__(self, job_id: str) -> None:
        super().__init__(job_id)
        self.job_id = job_id


async def remove_expired(
    engine: AsyncEngine, keep_days: int, passed_over: Collection[str] = (), served: Collection[str] = ()
) -> tuple[str, str] | None:
    """Remove the job that ended first, if that is more than ``keep_days`` days ago by the database's clock.

    The job is removed whole or not at all. Two processes take different jobs.

    Args:
        engine: The database.
        keep_days: Days since the end.
        passed_over: Ids of jobs to pass over.
        served: Tenants to pass over.

    Returns:
        The job's tenant and id; ``None`` if no job is left.

    Raises:
        NotRemovedError: If the database refused.
    """
    async with engine.begin() as connection:
        expired = await retention.lock_expired(connection, keep_days, passed_over, served)
        if expired is None:
            return None
        tenant, job_id = expired
        try:
            await remove_job(connection, tenant, job_id)
        except Exception as error:
            if is_away(error):
                raise
            raise NotRemovedError(job_id) from error
        return expired


async def keep_removing(engine: AsyncEngine, keep_days: int) -> None:
    """Remove one expired job after another, in turns by tenant, until it is cancelled; the job at hand then stays whole.

    A job that cannot be removed delays no other; it is tried again when nothing else is left.
    """
    failed: set[str] = set()
    served: set[str] = set()
    while True:
        removed = None
        try:
            removed = await remove_expired(engine, keep_days, failed, served)
        except NotRemovedError as error:
            log.exception("job not removed; trying again", job=error.job_id)
            failed.add(error.job_id)
            continue
        except Exception as error:
            if is_away(error):
                log.warning("removing jobs failed; trying again", reason=reason(error))
            else:
                log.exception("removing jobs failed; trying again")
        if removed is not None:
            tenant, job_id = removed
            served.add(tenant)
            log.info("job removed", job=job_id, keep_days=keep_days)
        elif served:  # the next round
            served.clear()
        else:
            failed.clear()
            await asyncio.sleep(LOOK_SECONDS)


async def forget_replies(engine: AsyncEngine, days: int) -> bool:
    """Removes some of the replies that are too old to be used again; whether there may be more."""
    async with engine.begin() as connection:
        return await response_cache.forget_old(connection, days) == response_cache.FORGOTTEN_AT_ONCE


async def forget_keys(engine: AsyncEngine) -> bool:
    """Removes the idempotency keys whose day has passed; after that there are none."""
    async with engine.begin() as connection:
        await idempotency.forget_keys(connection)
    return False


async def forget_uploads(engine: AsyncEngine) -> bool:
    """Removes an expired upload; whether there was one."""
    async with engine.begin() as connection:
        return await uploads.remove_expired(connection) is not None


async def keep_forgetting(what: str, forget: Callable[[], Awaitable[bool]], seconds: float) -> None:
    """Forgets what is old, until it is cancelled.

    Args:
        what: For the log.
        forget: Forgets some; whether there may be more.
        seconds: How long after there was no more it is looked for anew.
    """
    while True:
        rest = LOOK_SECONDS
        try:
            rest = 0.0 if await forget() else seconds
        except Exception as error:
            if is_away(error):
                log.warning("forgetting failed; trying again", what=what, reason=reason(error))
            else:
                log.exception("forgetting failed; trying again", what=what)
        await asyncio.sleep(rest)


@contextlib.asynccontextmanager
async def removing(engine: AsyncEngine, keep_days: int | None, reply_days: int) -> AsyncIterator[None]:
    """Within, old replies, idempotency keys and uploads are removed, and expired jobs where ``keep_days`` is given."""
    works = {
        "old_replies": keep_forgetting("replies", partial(forget_replies, engine, reply_days), LOOK_SECONDS),
        "old_keys": keep_forgetting("idempotency keys", partial(forget_keys, engine), KEYS_SECONDS),
        "old_uploads": keep_forgetting("uploads", partial(forget_uploads, engine), LOOK_SECONDS),
    }
    if keep_days is not None:
        works["old_jobs"] = keep_removing(engine, keep_days)
    async with vital_tasks(**works):
        yield
