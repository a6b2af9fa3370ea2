"""Calls of which nobody will know whether they were answered: none keeps its reservation, fails its item or gets lost."""

import asyncio

import structlog
from sqlalchemy.ext.asyncio import AsyncEngine

from app.domain.jobs.budget import Budget
from app.services.execution.stop_signal import StopReason
from tests.integration.jobs import execute, new_job, scalar
from tests.integration.services.scheduling.test_run_shard import Provider, Worker

UNSETTLED = "SELECT count(*) FROM reservations WHERE call_id NOT IN (SELECT id FROM calls)"


class TestCallsThatBreakOff:
    async def test_a_call_that_hangs_when_the_worker_must_go_may_have_been_paid_and_is_made_again(
        self, engine: AsyncEngine, worker: Worker
    ) -> None:
        worker.provider.gate = asyncio.Event()
        job = await new_job(engine, budget=Budget(calls=100))
        running = asyncio.create_task(worker.run_all(job))
        await worker.provider.called.wait()
        worker.deps.leases.stop_all(StopReason.SHUTDOWN)
        await asyncio.sleep(0.1)
        assert not running.done()
        assert worker.deps.leases.cut_all() == len(worker.provider.calls) == 1
        await running
        rows = await execute(engine, "SELECT DISTINCT outcome, code, maybe_paid, usd FROM calls")
        assert [tuple(row) for row in rows] == [("retry", "abandoned", True, None)]
        assert await scalar(engine, "SELECT count(*) FROM responses") == 0, "it was the last attempt allowed"
        assert await scalar(engine, UNSETTLED) == 0
        heir = Worker(engine, Provider())
        async with heir.deps.writer.running(), heir.deps.leases.running():
            await heir.run_all(job)
        assert (await heir.finalize(job)).completeness == "full"

    async def test_a_call_in_which_something_of_ours_broke_may_have_been_paid(
        self, engine: AsyncEngine, worker: Worker
    ) -> None:
        worker.provider.error = ImportError("half an install")
        job = await new_job(engine, budget=Budget(calls=100))
        with structlog.testing.capture_logs():
            await worker.run_all(job)
        worker.provider.error = None
        await worker.run_all(job)
        assert (await worker.finalize(job)).completeness == "full"
        rows = await execute(
            engine, "SELECT outcome, maybe_paid, usd FROM calls WHERE code = 'internal_error'"
        )
        assert {tuple(row) for row in rows} == {("retry", True, None)}
        assert await scalar(engine, UNSETTLED) == 0
