"""Removing jobs that ended long ago."""

import asyncio
import json
from typing import Any

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
    async def test_takes_the_oldest_first_whole_and_leaves_what_is_younger(self, worker: Worker) -> None:
        young = await ended(worker, 29.9)
        of_one = await rows(worker.engine)
        assert min(of_one.values()) > 0
        old, older = await ended(worker, 30.1), await ended(worker, 31)
        removed = [await remove_expired(worker.engine, 30) for _ in range(3)]
        assert removed == [(TENANT, older.id), (TENANT, old.id), None]
        assert await rows(worker.engine) == of_one
        assert await scalar(worker.engine, "SELECT id FROM jobs") == young.id

    async def test_leaves_a_job_that_has_not_ended_however_old_it_is(self, engine: AsyncEngine) -> None:
        await new_job(engine)
        await execute(engine, "UPDATE jobs SET created_at = 'epoch', started_at = 'epoch'")
        assert await remove_expired(engine, 1) is None

    async def test_leaves_a_job_as_long_as_it_is_a_baseline(self, worker: Worker) -> None:
        kept, other = await ended(worker, 5), await ended(worker, 4)
        await execute(
            worker.engine,
            "INSERT INTO named_baselines (tenant, name, job_id, model) VALUES (:tenant, 'r1', :job, 'm')",
            tenant=kept.tenant,
            job=kept.id,
        )
        assert await remove_expired(worker.engine, 2) == (TENANT, other.id)
        assert await remove_expired(worker.engine, 2) is None
        await execute(worker.engine, "DELETE FROM named_baselines")
        assert await remove_expired(worker.engine, 2) == (TENANT, kept.id)

    @pytest.mark.parametrize(
        ("job", "anchors"), [({}, {"job": "KEPT"}), ({"responses": {"job": "KEPT"}}, {"job": "another"})]
    )
    async def test_leaves_a_job_as_long_as_a_schedule_judges_its_texts(
        self, worker: Worker, job: dict[str, Any], anchors: dict[str, Any]
    ) -> None:
        kept, other = await ended(worker, 5), await ended(worker, 4)
        await execute(
            worker.engine,
            "INSERT INTO schedules (id, tenant, cron, time_zone, job, figure, anchors) VALUES"
            " ('sched_1', :tenant, '0 3 * * *', 'UTC', CAST(:job AS jsonb), 'acc_atom', CAST(:anchors AS jsonb))",
            tenant=kept.tenant,
            job=json.dumps(job).replace("KEPT", kept.id),
            anchors=json.dumps(anchors).replace("KEPT", kept.id),
        )
        assert await remove_expired(worker.engine, 2) == (TENANT, other.id)
        assert await remove_expired(worker.engine, 2) is None
        await execute(worker.engine, "DELETE FROM schedules")
        assert await remove_expired(worker.engine, 2) == (TENANT, kept.id)

    async def test_passes_over_a_job_that_somebody_holds(self, worker: Worker) -> None:
        other, held = await ended(worker, 3), await ended(worker, 4)
        async with worker.engine.begin() as connection:
            await connection.execute(text("SELECT FROM jobs WHERE id = :job FOR UPDATE"), {"job": held.id})
            assert await remove_expired(worker.engine, 2) == (TENANT, other.id)
            assert await remove_expired(worker.engine, 2) is None

    async def test_takes_turns_by_tenant(self, worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
        for tenant, days in (("many", 9), ("many", 8), ("many", 7), ("other", 5)):
            job = await new_job(worker.engine, tenant=tenant)
            await execute(
                worker.engine,
                "UPDATE jobs SET status = 'completed', finished_at = now() - make_interval(days => :days) WHERE id = :job",
                days=days,
                job=job.id,
            )
        removed: list[str] = []
        remove = retention.remove_job

        async def noted(connection: AsyncConnection, tenant: str, job_id: str) -> None:
            removed.append(tenant)
            await remove(connection, tenant, job_id)

        monkeypatch.setattr(retention, "remove_job", noted)
        async with removing(worker.engine, 2, 30):
            for _ in range(500):
                if await scalar(worker.engine, "SELECT count(*) FROM jobs") == 0:
                    break
                await asyncio.sleep(0.02)
        assert removed == ["many", "other", "many", "many"]


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


class TestRemoving:
    async def test_goes_on_until_its_end_and_does_nothing_unless_asked(
        self, worker: Worker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(retention, "LOOK_SECONDS", 0.02)
        await ended(worker, 3)
        async with removing(worker.engine, None, 30):
            await asyncio.sleep(0.1)
        assert await scalar(worker.engine, "SELECT count(*) FROM jobs") == 1
        async with removing(worker.engine, 2, 30):
            await ended(worker, 3)
            for _ in range(500):
                if await scalar(worker.engine, "SELECT count(*) FROM jobs") == 0:
                    break
                await asyncio.sleep(0.02)
        assert await rows(worker.engine) == dict.fromkeys(TABLES, 0)

    async def test_yesterdays_idempotency_keys_are_forgotten(self, worker: Worker) -> None:
        job = await ended(worker, 1)
        await execute(
            worker.engine,
            "INSERT INTO idempotency_keys (tenant, key, body_hash, job_id, created_at) VALUES"
            " ('t', 'old', '', :job, now() - interval '25 hours'), ('t', 'new', '', :job, now())",
            job=job.id,
        )
        async with removing(worker.engine, None, 30):
            for _ in range(500):
                if await scalar(worker.engine, "SELECT count(*) FROM idempotency_keys") == 1:
                    break
                await asyncio.sleep(0.02)
        assert await scalar(worker.engine, "SELECT key FROM idempotency_keys") == "new"

    async def test_a_job_that_cannot_be_removed_keeps_no_other_from_it(
        self, worker: Worker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(retention, "LOOK_SECONDS", 0.02)
        stuck, _ = await ended(worker, 4), await ended(worker, 3)
        await execute(worker.engine, "CREATE TABLE held (job_id text REFERENCES jobs)")
        await execute(worker.engine, "INSERT INTO held VALUES (:job)", job=stuck.id)
        async with removing(worker.engine, 2, 30):
            for _ in range(500):
                if await scalar(worker.engine, "SELECT count(*) FROM jobs") == 1:
                    break
                await asyncio.sleep(0.02)
        assert await scalar(worker.engine, "SELECT id FROM jobs") == stuck.id
        assert await scalar(worker.engine, "SELECT count(*) FROM verdicts") > 0
