"""A full worker, and jobs that wait for a place in it."""

import asyncio
import importlib

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.jobs.jobs import JobRow
from app.domain.jobs.priority import Priority
from app.domain.jobs.status import TERMINAL, JobStatus
from app.services.execution.stop_signal import StopReason
from app.services.scheduling import dispatcher as dispatcher_module
from app.services.scheduling.dispatcher import FIRST_SHARDS, Dispatcher
from tests.integration.jobs import execute, new_job, scalar, shard_ids
from tests.integration.services.scheduling.test_run_shard import Worker

JOBS = 4
"""Of how many jobs a full worker takes up the first shard in these tests."""


@pytest.fixture(autouse=True)
def _few_jobs_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher_module, "JOBS_BESIDE", JOBS)


async def wait_long(engine: AsyncEngine) -> None:
    """What is announced, or over, has been so for a while."""
    await execute(engine, "UPDATE shards SET announced_at = announced_at - interval '1 minute'")
    await execute(engine, "UPDATE jobs SET updated_at = updated_at - interval '1 minute'")


class TestFullWorker:
    async def test_waiting_jobs_get_places_beside_those_that_are_taken(
        self, engine: AsyncEngine, worker: Worker
    ) -> None:
        worker.provider.gate = asyncio.Event()
        big = await new_job(engine, iterations=60, window=1)
        running = asyncio.create_task(worker.run((await shard_ids(engine, big.id))[0]))
        await worker.provider.called.wait()
        small = [await new_job(engine) for _ in range(JOBS + 1)]
        await execute(engine, "UPDATE shards SET announced_at = announced_at + interval '10 seconds'")
        dispatcher = Dispatcher(worker.deps, places=1)
        await dispatcher.take_first_shards()
        assert await held(engine) == 1  # they have only just been announced
        await wait_long(engine)
        await dispatcher.take_first_shards()
        assert await until_held(engine, 1 + JOBS)
        await dispatcher.take_first_shards()
        assert await held(engine) == 1 + JOBS  # no more than that, however many wait
        worker.provider.gate.set()
        await dispatcher.ended()
        await running
        finished = await execute(engine, "SELECT job_id FROM shards GROUP BY job_id HAVING bool_and(done)")
        assert {row.job_id for row in finished} == {job.id for job in small[:-1]}

    async def test_one_that_stops_takes_up_nothing(self, engine: AsyncEngine, worker: Worker) -> None:
        await new_job(engine)
        await wait_long(engine)
        dispatcher = Dispatcher(worker.deps, places=1)
        dispatcher.stop()
        await dispatcher.take_first_shards()
        await dispatcher.take_newest()
        assert await scalar(engine, "SELECT max(lease_token) FROM shards") == 0

    async def test_another_tenant_s_first_shards_need_none_of_those_places(
        self, engine: AsyncEngine, worker: Worker
    ) -> None:
        places = 2 * FIRST_SHARDS
        worker.provider.gate = asyncio.Event()
        slow = [await new_job(engine, tenant="slow") for _ in range(places + JOBS + 1)]
        first = (await shard_ids(engine, slow[0].id))[0]
        running = [asyncio.create_task(worker.run(first)) for _ in range(places)]
        assert await until_held(engine, places)
        await wait_long(engine)
        dispatcher = Dispatcher(worker.deps, places=places)
        await dispatcher.take_first_shards()
        assert await held(engine) == places + JOBS
        small = await new_job(engine, tenant="other", iterations=600)
        assert len(await shard_ids(engine, small.id)) > FIRST_SHARDS
        assert await held_of(engine, "other") == 0
        await wait_long(engine)
        for _ in range(2):  # no more than that, however often it looks
            await dispatcher.take_first_shards()
        assert await held_of(engine, "other") == FIRST_SHARDS
        stops = [stop.reason for claim, stop in worker.deps.leases._held.items() if claim.tenant == "other"]
        assert stops == FIRST_SHARDS * [None]  # none gives way to a tenant who has more
        worker.provider.gate.set()
        await dispatcher.ended()
        await asyncio.gather(*running)

    async def test_the_first_of_a_tenant_at_whose_jobs_nobody_works_waits_for_nobody_however_many_are_slow(
        self, engine: AsyncEngine, worker: Worker
    ) -> None:
        worker.provider.gate = asyncio.Event()
        tenants = [f"slow{number}" for number in range(2 * JOBS + 4)]
        slow = await new_job(engine, tenant=tenants[0], iterations=240)
        running = asyncio.create_task(worker.run((await shard_ids(engine, slow.id))[0]))
        assert await until_held(engine, 1)
        dispatcher = Dispatcher(worker.deps, places=2)
        for tenant in tenants[1:]:
            await new_job(engine, tenant=tenant, iterations=240)
            await wait_long(engine)
            await dispatcher.take_first_shards()
            assert await held_of(engine, tenant) > 0
        worker.provider.gate.set()
        await dispatcher.ended()
        await running

    async def test_they_are_not_more_than_the_places_of_a_small_worker(
        self, engine: AsyncEngine, worker: Worker
    ) -> None:
        worker.provider.gate = asyncio.Event()
        big = await new_job(engine, iterations=600)
        running = asyncio.create_task(worker.run((await shard_ids(engine, big.id))[0]))
        assert await until_held(engine, 1)
        await wait_long(engine)
        dispatcher = Dispatcher(worker.deps, places=1)
        await dispatcher.take_first_shards()
        assert await held(engine) == 1
        await new_job(engine, tenant="other")
        await wait_long(engine)
        await dispatcher.take_first_shards()
        assert await held(engine) == 2
        worker.provider.gate.set()
        await dispatcher.ended()
        await running

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
        self, engine: AsyncEngine, worker: Worker
    ) -> None:
        worker.provider.gate = asyncio.Event()
        ended = await new_job(engine)
        await execute(engine, "UPDATE shards SET done = true")
        await execute(engine, "UPDATE jobs SET status = 'finalizing'")
        slow = await new_job(engine, iterations=60, window=1)
        await wait_long(engine)
        dispatcher = Dispatcher(worker.deps, places=1)
        async with dispatcher.running():
            running = asyncio.create_task(dispatcher.run_shard((await shard_ids(engine, slow.id))[0]))
            assert await eventually_over(worker, ended)
            worker.provider.gate.set()
            await running


class TestNewestJobs:
    async def test_a_tenant_s_newest_job_progresses_beside_its_many_slow_ones(
        self, engine: AsyncEngine, worker: Worker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(dispatcher_module, "NEWEST_JOBS", 2)
        worker.provider.gate = asyncio.Event()
        slow = [await new_job(engine) for _ in range(6)]
        dispatcher = Dispatcher(worker.deps, places=1)
        await wait_long(engine)
        for _ in range(2):  # no more than that, however often it looks
            await dispatcher.take_newest()
        assert await jobs_held(engine) == {job.id for job in slow[-2:]}
        small = await new_job(engine)
        await wait_long(engine)
        await dispatcher.take_newest()
        assert small.id not in await jobs_held(engine)  # the others have only just begun
        monkeypatch.setattr(dispatcher_module, "GIVE_WAY_SECONDS", 0.0)
        await dispatcher.take_newest()
        await dispatcher.take_newest()  # nothing newer waits
        assert await jobs_held(engine) == {*(job.id for job in slow[-2:]), small.id}
        stopped = {
            claim.job_id: stop.reason for claim, stop in worker.deps.leases._held.items() if stop.reason
        }
        assert stopped == {slow[-2].id: StopReason.GIVING_WAY}
        worker.provider.gate.set()
        await dispatcher.ended()
        done = await execute(engine, "SELECT job_id FROM shards GROUP BY job_id HAVING bool_and(done)")
        assert {small.id, slow[-1].id} <= {row.job_id for row in done}
        # What gave way lost no call: it is announced, and goes on where it stopped.
        for job in slow:
            await worker.run_all(job)
        assert (await worker.finalize(slow[-2])).completeness == "full"
        calls = await execute(
            engine,
            "SELECT shards.job_id, count(*) AS number FROM calls JOIN shards ON shards.id = shard_id GROUP BY 1",
        )
        assert len({row.number for row in calls}) == 1


class TestFinalization:
    async def test_a_job_whose_last_shard_ends_here_is_finalized_here(
        self, engine: AsyncEngine, worker: Worker
    ) -> None:
        dispatcher = Dispatcher(worker.deps, places=1)
        job = await new_job(engine)
        for shard_id in await shard_ids(engine, job.id):
            await dispatcher.run_shard(shard_id)
        await dispatcher.ended()
        assert (await worker.job(job)).status is JobStatus.COMPLETED
        assert worker.queue.finals == []

    async def test_a_process_that_stops_leaves_it_to_the_others(
        self, engine: AsyncEngine, worker: Worker
    ) -> None:
        job = await new_job(engine)
        await worker.run_all(job)
        worker.queue.finals.clear()
        dispatcher = Dispatcher(worker.deps, places=1)
        await dispatcher.finalize(job.id)
        dispatcher.stop()
        await dispatcher.ended()  # the one that had not begun is left to the sweeper
        await dispatcher.finalize(job.id)
        assert worker.queue.finals == [job.id]
        assert (await worker.job(job)).status is JobStatus.FINALIZING

    async def test_one_that_fails_is_left_to_the_sweeper(
        self, engine: AsyncEngine, worker: Worker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def fail(*_: object) -> None:
            raise OSError("the database is away")

        finalize_module = importlib.import_module("app.services.results.finalize")
        monkeypatch.setattr(finalize_module, "finalize_job", fail)
        job = await new_job(engine)
        dispatcher = Dispatcher(worker.deps, places=1)
        await dispatcher.finalize(job.id)
        await dispatcher.ended()
        assert (await worker.job(job)).status is JobStatus.QUEUED


async def held(engine: AsyncEngine) -> int:
    return int(await scalar(engine, "SELECT count(*) FROM shards WHERE lease_owner IS NOT NULL"))


async def jobs_held(engine: AsyncEngine) -> set[str]:
    rows = await execute(engine, "SELECT job_id FROM shards WHERE lease_owner IS NOT NULL")
    return {row.job_id for row in rows}


async def held_of(engine: AsyncEngine, tenant: str) -> int:
    statement = "SELECT count(*) FROM shards WHERE lease_owner IS NOT NULL AND tenant = :tenant"
    return int(await scalar(engine, statement, tenant=tenant))


async def until_held(engine: AsyncEngine, number: int) -> bool:
    for _ in range(1000):
        if await held(engine) == number:
            return True
        await asyncio.sleep(0.02)
    return False


async def eventually_over(worker: Worker, job: JobRow) -> bool:
    for _ in range(1000):
        if (await worker.job(job)).status in TERMINAL:
            return True
        await asyncio.sleep(0.02)
    return False
