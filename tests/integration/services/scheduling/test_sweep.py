"""The sweeper finds what nobody does, on a real database."""

import asyncio
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.execution import shards
from app.db.jobs import jobs
from app.domain.jobs.status import JobStatus
from app.services.scheduling.sweep import Swept, sweep
from tests.integration.jobs import (
    BATCH_CALLS,
    RecordingQueue,
    claimed,
    execute,
    expire,
    new_job,
    scalar,
    shard_ids,
)


class TestSweep:
    async def swept(
        self, engine: AsyncEngine, *, window: int = 2, waiting: int | None = 0
    ) -> tuple[list[int], list[str]]:
        queue = RecordingQueue(waiting)
        counted = await sweep(engine, queue, window, BATCH_CALLS)
        assert (counted.shards, counted.jobs) == (len(queue.shards), len(queue.finals))
        return queue.shards, queue.finals

    async def test_there_is_nothing_to_wake_in_a_healthy_job(self, engine: AsyncEngine) -> None:
        await new_job(engine)
        assert await self.swept(engine) == ([], [])

    async def test_an_idle_service_asks_nothing_of_its_queue(self, engine: AsyncEngine) -> None:
        class Untouchable(RecordingQueue):
            async def length(self) -> int | None:
                raise AssertionError("nobody has to know")

        await new_job(engine)
        await execute(engine, "UPDATE jobs SET status = 'completed'")
        assert await sweep(engine, Untouchable(0), 2, BATCH_CALLS) == Swept(0, 0)
        await execute(engine, "UPDATE jobs SET status = 'paused'")
        with pytest.raises(AssertionError, match="nobody"):
            await sweep(engine, Untouchable(0), 2, BATCH_CALLS)

    async def test_a_job_whose_columns_cannot_be_filled_in_keeps_no_other_from_being_woken(
        self, engine: AsyncEngine
    ) -> None:
        job = await new_job(engine, iterations=200)
        await execute(engine, "UPDATE shards SET announced_at = NULL")
        await execute(engine, "UPDATE jobs SET models = NULL")
        await execute(engine, "ALTER TABLE jobs ADD CONSTRAINT none CHECK (models IS NULL)")
        assert await self.swept(engine) == ((await shard_ids(engine, job.id))[:2], [])

    async def test_what_was_committed_but_never_announced_is_announced(self, engine: AsyncEngine) -> None:
        job = await new_job(engine, iterations=200)
        await execute(engine, "UPDATE shards SET announced_at = NULL")
        assert await self.swept(engine) == ((await shard_ids(engine, job.id))[:2], [])

    async def test_a_lease_that_ran_out_is_announced_at_once_and_once(self, engine: AsyncEngine) -> None:
        claim = await claimed(engine, (await new_job(engine)).id)
        await execute(engine, "UPDATE shards SET announced_at = announced_at - interval '10 seconds'")
        await expire(engine, claim)
        assert await self.swept(engine) == ([claim.shard_id], [])
        assert await self.swept(engine) == ([], [])

    async def test_a_message_that_nobody_took_is_sent_again_after_a_while(self, engine: AsyncEngine) -> None:
        job = await new_job(engine)
        await execute(engine, "UPDATE shards SET announced_at = announced_at - interval '31 seconds'")
        assert await self.swept(engine, waiting=1) == ([], [])  # it still waits in the queue
        assert await self.swept(engine, waiting=None) == ([], [])  # the queue can't be reached
        assert await self.swept(engine) == (await shard_ids(engine, job.id), [])

    @pytest.mark.parametrize("status", ["paused", "cancelling", "finalizing", "completed"])
    async def test_an_inactive_jobs_shards_are_left_alone(self, engine: AsyncEngine, status: str) -> None:
        await new_job(engine)
        await execute(engine, "UPDATE shards SET announced_at = NULL")
        await execute(engine, "UPDATE jobs SET status = :status", status=status)
        assert (await self.swept(engine))[0] == []

    @pytest.mark.parametrize("status", ["queued", "running", "finalizing"])
    async def test_a_lost_finalization_is_asked_for_again(self, engine: AsyncEngine, status: str) -> None:
        job = await new_job(engine)
        await execute(engine, "UPDATE shards SET done = true")
        long_ago = "UPDATE jobs SET status = :status, updated_at = now() - interval '11 seconds'"
        await execute(engine, long_ago, status=status)
        assert await self.swept(engine) == ([], [job.id])

    async def test_a_cancelled_job_ends_when_its_last_lease_has_run_out(self, engine: AsyncEngine) -> None:
        job = await new_job(engine)
        claim = await claimed(engine, job.id)
        await execute(engine, "UPDATE jobs SET status = 'cancelling'")
        await execute(engine, "UPDATE jobs SET updated_at = now() - interval '11 seconds'")
        assert await self.swept(engine) == ([], [])
        await expire(engine, claim)
        assert await self.swept(engine) == ([], [job.id])
        assert await self.swept(engine) == ([], [])  # somebody has been told

    async def test_a_job_that_somebody_refills_is_left_to_them(self, engine: AsyncEngine) -> None:
        job = await new_job(engine, iterations=200, window=1)
        async with engine.begin() as connection:
            await jobs.lock_job(connection, job.id)
            assert len(await shards.refill(connection, job.id, 4)) == 3
            assert await asyncio.wait_for(self.swept(engine, window=4), 5) == ([], [])
        assert await scalar(engine, "SELECT count(*) FROM shards WHERE announced_at IS NOT NULL") == 4

    async def test_jobs_that_wait_for_their_turn_are_not_looked_at_one_by_one(
        self, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        idle = [
            await new_job(engine, iterations=200) for _ in range(5)
        ]  # full windows, and shards beyond them
        parked = await new_job(engine)
        await execute(
            engine,
            "UPDATE shards SET announced_at = NULL, parked = true WHERE job_id = :job",
            job=parked.id,
        )
        locked: list[str] = []
        lock_job = jobs.lock_job

        async def noted(connection: AsyncConnection, job_id: str, **options: Any) -> JobStatus | None:
            locked.append(job_id)
            return await lock_job(connection, job_id, **options)

        monkeypatch.setattr(jobs, "lock_job", noted)
        assert await self.swept(engine, window=2, waiting=99) == ([], [])
        assert locked == []
        await execute(
            engine,
            "UPDATE shards SET announced_at = NULL WHERE id = (SELECT min(id) FROM shards WHERE job_id = :job)",
            job=idle[2].id,
        )
        assert (await self.swept(engine, window=16, waiting=99))[0] != []
        assert locked == [idle[2].id]

    async def test_tenants_take_turns(self, engine: AsyncEngine) -> None:
        many = [await new_job(engine) for _ in range(3)]
        other = await new_job(engine, tenant="other")
        await execute(engine, "UPDATE shards SET announced_at = NULL")
        announced, _ = await self.swept(engine)
        order = [
            row.job_id
            for id_ in announced
            for row in await execute(engine, "SELECT job_id FROM shards WHERE id = :id", id=id_)
        ]
        assert order == [many[0].id, other.id, many[1].id, many[2].id]

    async def test_an_error_with_one_job_holds_up_no_other(
        self, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        broken, other = await new_job(engine), await new_job(engine)
        await execute(engine, "UPDATE shards SET announced_at = NULL")
        refill = shards.refill

        async def failing(connection: AsyncConnection, job_id: str, window: int) -> list[int]:
            if job_id == broken.id:
                raise ValueError("a row that can't be read")
            return await refill(connection, job_id, window)

        monkeypatch.setattr(shards, "refill", failing)
        assert await self.swept(engine) == (await shard_ids(engine, other.id), [])
