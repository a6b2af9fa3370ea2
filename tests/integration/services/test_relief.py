"""A full worker, and jobs that wait for a place in it."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.domain.priority import Priority
from app.domain.status import JobStatus
from app.services import relief
from app.services.relief import relieve, relieving
from tests.integration.jobs import execute, new_job, scalar, shard_ids, take
from tests.integration.services.test_run_shard import Provider, Worker


@pytest.fixture
async def worker(engine: AsyncEngine) -> AsyncIterator[Worker]:
    made = Worker(engine, Provider())
    async with made.deps.writer.running(), made.deps.leases.running():
        yield made


async def wait_long(engine: AsyncEngine) -> None:
    """What is announced, or over, has been so for a while."""
    await execute(engine, "UPDATE shards SET announced_at = announced_at - interval '1 minute'")
    await execute(engine, "UPDATE jobs SET updated_at = updated_at - interval '1 minute'")


class TestFullWorker:
    async def test_one_shard_of_a_big_job_gives_way_and_the_small_job_gets_its_place(
        self, engine: AsyncEngine, worker: Worker
    ) -> None:
        worker.provider.gate = asyncio.Event()
        big = await new_job(engine, iterations=60, window=2)
        first, second, *others = await shard_ids(engine, big.id)
        running = [asyncio.create_task(worker.run(shard)) for shard in (first, second)]
        await worker.provider.called.wait()
        small = await new_job(engine)
        await relieve(worker.deps)
        assert await scalar(engine, "SELECT count(*) FROM shards WHERE lease_owner IS NOT NULL") == 2
        await wait_long(engine)
        await relieve(worker.deps)
        await relieve(worker.deps)  # one at a time
        worker.provider.gate.set()
        await asyncio.gather(*running)
        done = await execute(engine, "SELECT id FROM shards WHERE done")
        assert [row.id for row in done] == [first]
        assert second in worker.queue.shards  # it will be taken up again

        assert await take(engine, second, "another worker") is not None
        await wait_long(engine)
        await worker.run(others[0])  # the next message is of the big job
        assert await scalar(engine, "SELECT bool_and(done) FROM shards WHERE job_id = :job", job=small.id)
        assert await scalar(engine, "SELECT done FROM shards WHERE id = :id", id=others[0])

    async def test_a_jobs_only_shard_does_not_give_way(self, engine: AsyncEngine, worker: Worker) -> None:
        worker.provider.gate = asyncio.Event()
        one = await new_job(engine)
        running = asyncio.create_task(worker.run_all(one))
        await worker.provider.called.wait()
        await new_job(engine)
        await wait_long(engine)
        await relieve(worker.deps)
        worker.provider.gate.set()
        await running
        assert await scalar(engine, "SELECT bool_and(done) FROM shards WHERE job_id = :job", job=one.id)

    async def test_of_several_that_wait_the_one_of_the_highest_priority_comes_first(
        self, engine: AsyncEngine, worker: Worker
    ) -> None:
        message = (await shard_ids(engine, (await new_job(engine, priority=Priority.LOW)).id))[0]
        await new_job(engine)
        high = await new_job(engine, priority=Priority.HIGH)
        await wait_long(engine)
        await worker.run(message)
        assert worker.provider.calls
        done = await execute(
            engine, "SELECT DISTINCT job_id FROM shards WHERE done AND id <> :id", id=message
        )
        assert [row.job_id for row in done] == [high.id]

    async def test_a_job_that_waits_to_be_finalized_needs_no_place(
        self, engine: AsyncEngine, worker: Worker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(relief, "RELIEF_SECONDS", 0.01)
        job = await new_job(engine)
        await worker.run_all(job)
        await wait_long(engine)
        async with relieving(worker.deps, 0):
            for _ in range(1000):
                if (await worker.job(job)).status is JobStatus.COMPLETED:
                    break
                await asyncio.sleep(0.02)
        assert (await worker.job(job)).completeness == "full"
