"""Removing jobs that ended long ago."""

import asyncio

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.engine import connect
from app.db.jobs.jobs import JobRow
from app.services.jobs import retention
from app.services.jobs.retention import remove_expired, remove_job, removing
from tests.integration.jobs import TENANT, execute, new_job, scalar
from tests.integration.services.jobs.test_retry import Moody
from tests.integration.services.scheduling.test_run_shard import Worker

TABLES = ("jobs", "cells", "shards", "responses", "verdicts", "calls", "shard_usage", "job_results")


@pytest.fixture
def provider() -> Moody:
    return Moody()


async def ended(worker: Worker, days_ago: float) -> JobRow:
    """A job that has run and ended so many days ago."""
    job = await new_job(worker.engine)
    await worker.run_all(job)
    await worker.finalize(job)
    await execute(
        worker.engine,
        "UPDATE jobs SET finished_at = clock_timestamp() - make_interval(secs => :ago) WHERE id = :job",
        job=job.id,
        ago=days_ago * 86_400,
    )
    return job


async def rows(engine: AsyncEngine) -> dict[str, int]:
    return {table: await scalar(engine, f"SELECT count(*) FROM {table}") for table in TABLES}


class TestRemoveExpired:
    async def test_passes_over_a_job_that_somebody_holds(self, worker: Worker) -> None:
        other, held = await ended(worker, 3), await ended(worker, 4)
        async with worker.engine.begin() as connection:
            await connection.execute(text("SELECT FROM jobs WHERE id = :job FOR UPDATE"), {"job": held.id})
            assert await remove_expired(worker.engine, 2) == (TENANT, other.id)
            assert await remove_expired(worker.engine, 2) is None

    async def test_takes_the_oldest_first_and_turns_by_tenant(
        self, worker: Worker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made = {}
        for tenant, days in (("many", 8), ("many", 7), ("many", 9), ("other", 5)):
            job = await new_job(worker.engine, tenant=tenant)
            made[job.id] = (tenant, days)
            await execute(
                worker.engine,
                "UPDATE jobs SET status = 'completed', finished_at = now() - make_interval(days => :days) WHERE id = :job",
                days=days,
                job=job.id,
            )
        removed: list[tuple[str, int]] = []
        remove = retention.remove_job

        async def noted(connection: AsyncConnection, tenant: str, job_id: str) -> None:
            removed.append(made[job_id])
            await remove(connection, tenant, job_id)

        monkeypatch.setattr(retention, "remove_job", noted)
        async with removing(worker.engine, 2, 30):
            for _ in range(500):
                if await scalar(worker.engine, "SELECT count(*) FROM jobs") == 0:
                    break
                await asyncio.sleep(0.02)
        assert removed == [("many", 9), ("other", 5), ("many", 8), ("many", 7)]


class TestRemoveJob:
    async def test_may_take_longer_than_other_statements_of_a_request(
        self, worker: Worker, database_url: str
    ) -> None:
        job = await ended(worker, 0)
        of_requests = connect(database_url, statement_seconds=1)

        async def remove() -> None:
            async with of_requests.begin() as connection:
                await remove_job(connection, TENANT, job.id)

        try:
            async with worker.engine.begin() as slow:
                await slow.execute(text("SELECT FROM shards FOR UPDATE"))
                deletion = asyncio.create_task(remove())
                assert not (await asyncio.wait({deletion}, timeout=3))[0]
            await deletion
        finally:
            await of_requests.dispose()
        assert await rows(worker.engine) == dict.fromkeys(TABLES, 0)
