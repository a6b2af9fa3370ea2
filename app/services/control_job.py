"""Cancels, pauses, resumes and deletes jobs. Each may be asked for any number of times."""

import asyncio
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db import jobs, sets, shards
from app.db.jobs import JobRow
from app.domain.status import ACTIVE, JobStatus
from app.ports import Queue
from app.services.errors import NotFoundError, WrongStateError
from app.services.lease_keeper import JOB_CHECK_SECONDS
from app.services.run_shard import settle

CANCELLED_BY_USER = "cancelled_by_user"
PAUSED_BY_USER = "paused_by_user"


@dataclass(frozen=True, slots=True)
class ControlDependencies:
    """What controlling jobs takes."""

    engine: AsyncEngine
    queue: Queue
    window: int


async def cancel_job(deps: ControlDependencies, tenant: str, job_id: str) -> JobRow:
    """Cancels a job: no call starts after it; what was paid for is kept and reported. A finished job stays as it is.

    Raises:
        NotFoundError: If the tenant has no such job.
    """
    await _get(deps, tenant, job_id)
    async with deps.engine.begin() as connection:
        await jobs.move(
            connection,
            job_id,
            leave=[*ACTIVE, JobStatus.PAUSED],
            to=JobStatus.CANCELLING,
            reason=CANCELLED_BY_USER,
            tenant=tenant,
        )
        status = await jobs.lock_job(connection, job_id)
        settled = status is JobStatus.CANCELLING and await settle(connection, job_id, status)
    await _let_workers_notice(deps, job_id)
    if settled:
        await deps.queue.announce_finalize(job_id)
    return await _get(deps, tenant, job_id)


async def pause_job(deps: ControlDependencies, tenant: str, job_id: str) -> JobRow:
    """Pauses a job: no call starts until it is resumed.

    Raises:
        NotFoundError: If the tenant has no such job.
        WrongStateError: If the job can't be paused any more.
    """
    async with deps.engine.begin() as connection:
        await jobs.move(
            connection, job_id, leave=list(ACTIVE), to=JobStatus.PAUSED, reason=PAUSED_BY_USER, tenant=tenant
        )
    await _let_workers_notice(deps, job_id)
    job = await _get(deps, tenant, job_id)
    if job.status is not JobStatus.PAUSED:
        raise WrongStateError(f"a job that is {job.status} can't be paused", job.status)
    return job


async def resume_job(deps: ControlDependencies, tenant: str, job_id: str) -> JobRow:
    """Lets a paused job go on where it stopped.

    Raises:
        NotFoundError: If the tenant has no such job.
        WrongStateError: If the job has ended or is being cancelled.
    """
    async with deps.engine.begin() as connection:
        moved = await jobs.move(
            connection, job_id, leave=[JobStatus.PAUSED], to=JobStatus.QUEUED, tenant=tenant
        )
        announced: list[int] = []
        if moved:
            await shards.withdraw(connection, job_id)
            announced = await shards.refill(connection, job_id, deps.window)
    await deps.queue.announce_shards(announced)
    job = await _get(deps, tenant, job_id)
    if not job.status.may_call and not moved:
        raise WrongStateError(f"a job that is {job.status} can't be resumed", job.status)
    return job


async def delete_job(deps: ControlDependencies, tenant: str, job_id: str) -> None:
    """Deletes a finished job with everything that belongs to it, and the sets that nobody else has to do with.

    Raises:
        NotFoundError: If the tenant has no such job.
        WrongStateError: If the job has not ended.
    """
    async with deps.engine.begin() as connection:
        job = await jobs.get_job(connection, tenant, job_id)
        if job is None:
            raise NotFoundError(job_id)
        if not job.status.is_terminal:
            raise WrongStateError(f"a job that is {job.status} can't be deleted; cancel it first", job.status)
        its_sets = await sets.sets_of_job(connection, tenant, job_id)
        await jobs.delete_job(connection, tenant, job_id)
        await sets.remove_unused(connection, tenant, its_sets)


async def _let_workers_notice(deps: ControlDependencies, job_id: str) -> None:
    """Waits until the workers that hold shards of a stopped job have looked at its state twice over.

    No call starts after that, unless a worker can't reach the database; such a worker stops with its lease.
    """
    async with deps.engine.connect() as connection:
        _, leased = await jobs.open_work(connection, job_id)
    if leased:
        await asyncio.sleep(2 * JOB_CHECK_SECONDS)


async def _get(deps: ControlDependencies, tenant: str, job_id: str) -> JobRow:
    async with deps.engine.connect() as connection:
        job = await jobs.get_job(connection, tenant, job_id)
    if job is None:
        raise NotFoundError(job_id)
    return job
