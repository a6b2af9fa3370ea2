"""Shards of a tenant that the operator pauses and resumes."""

import asyncio

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.domain.jobs.status import JobStatus
from app.services.keys.tenant_limits import pause_tenant, resume_tenant
from tests.integration.jobs import TENANT, execute, new_job, scalar, shard_ids
from tests.integration.services.scheduling.test_run_shard import Worker

WAITING = (
    "SELECT count(*) FROM pg_locks JOIN pg_database d ON d.oid = database"
    " WHERE datname = current_database() AND locktype = 'advisory' AND NOT granted"
)


async def test_one_resumption_is_enough_for_a_job_whose_worker_saw_the_pause(
    engine: AsyncEngine, worker: Worker
) -> None:
    job = await new_job(engine)
    await pause_tenant(engine, TENANT)
    # A resumption that did not see the pause, as one after an outage.
    await execute(engine, "UPDATE jobs SET status = 'queued' WHERE id = :job", job=job.id)
    async with engine.begin() as connection:
        await connection.execute(text("SELECT FROM tenant_limits FOR UPDATE"))
        resuming = asyncio.create_task(resume_tenant(engine, TENANT))  # under way until this lock is gone
        await until(engine, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
        running = asyncio.create_task(worker.run((await shard_ids(engine, job.id))[0]))
        await until(engine, WAITING)  # the worker read that the tenant is paused
    await asyncio.gather(resuming, running)
    assert (await worker.job(job)).status in {JobStatus.QUEUED, JobStatus.RUNNING}
    assert worker.provider.calls == []
    await execute(engine, "UPDATE shards SET announced_at = clock_timestamp()")
    await worker.run_all(job)
    assert (await worker.finalize(job)).status is JobStatus.COMPLETED


async def until(engine: AsyncEngine, count: str) -> None:
    """Wait until a count is above 0."""
    for _ in range(1000):
        if await scalar(engine, count):
            return
        await asyncio.sleep(0.02)
    raise AssertionError(count)
