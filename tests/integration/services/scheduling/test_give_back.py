"""A shard that is given back before its end: nothing that was answered is asked for again, nothing else is held against it."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence

import pytest
import structlog
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.execution import shards
from app.db.execution.result_rows import Held, ResultWriter, Row
from app.db.execution.shards import AnyClaim
from app.domain.jobs.status import JobStatus
from app.domain.providers.model import ChatReply, ChatRequest
from app.services.execution.result_writer import BatchWriter
from app.services.execution.stop_signal import StopReason, StopSignal
from app.services.execution.stopping import MAX_SHARD_FAILURES
from app.services.jobs.control import cancel_job, resume_job
from app.services.scheduling import run_shard
from tests.integration.jobs import TENANT, claimed, execute, new_job, scalar, shard_ids
from tests.integration.services.scheduling.test_run_shard import Provider, Worker

WRITE_SECONDS = 0.2
JUDGED_BEFORE_THE_STOP = 8


class SlowWriter(ResultWriter):
    """A database at some distance."""

    async def write(self, batch: Mapping[Held, Sequence[Row]]) -> set[Held]:
        await asyncio.sleep(WRITE_SECONDS)
        return await super().write(batch)


class SlowProvider(Provider):
    """One that takes its time, so that a shard can be stopped in its middle."""

    async def complete(self, request: ChatRequest) -> ChatReply:
        await asyncio.sleep(0.02)
        return await super().complete(request)


@pytest.fixture
async def worker(engine: AsyncEngine) -> AsyncIterator[Worker]:
    made = Worker(engine, SlowProvider(), BatchWriter(SlowWriter(engine)))
    async with made.deps.writer.running(), made.deps.leases.running():
        yield made


def stop_all(worker: Worker, reason: StopReason) -> None:
    for stop in list(worker.deps.leases._held.values()):
        stop.set(reason)


class TestGivenBack:
    @pytest.mark.parametrize("reason", list(StopReason))
    async def test_what_was_answered_is_on_disk_first_and_is_not_asked_for_again(
        self, engine: AsyncEngine, worker: Worker, reason: StopReason
    ) -> None:
        job = await new_job(engine, iterations=12)
        (shard,) = await shard_ids(engine, job.id)
        running = asyncio.create_task(worker.run(shard))
        while sum("judging" in c for c in worker.provider.calls) < JUDGED_BEFORE_THE_STOP:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        stop_all(worker, reason)
        await running
        before = Counter(worker.provider.calls)
        assert not await scalar(engine, "SELECT done FROM shards")
        assert await scalar(engine, "SELECT count(*) FROM calls") == before.total()
        await worker.run(shard)
        assert set(Counter(worker.provider.calls).values()) == {1}
        assert await scalar(engine, "SELECT done FROM shards")

    async def test_is_not_held_against_it_after_errors_that_were_mended(
        self, engine: AsyncEngine, worker: Worker
    ) -> None:
        job = await new_job(engine)
        (shard,) = await shard_ids(engine, job.id)
        with structlog.testing.capture_logs():
            worker.provider.error = ValueError("ours")
            for _ in range(MAX_SHARD_FAILURES):
                await worker.run(shard)
        assert (await worker.job(job)).status is JobStatus.PAUSED
        worker.provider.error = None
        await resume_job(worker.control, TENANT, job.id)
        assert await scalar(engine, "SELECT failures FROM shards") == 0

        await execute(engine, "UPDATE shards SET failures = :most", most=MAX_SHARD_FAILURES)
        worker.provider.gate = asyncio.Event()
        worker.provider.called.clear()
        running = asyncio.create_task(worker.run(shard))
        await worker.provider.called.wait()
        stop_all(worker, StopReason.SHUTDOWN)
        worker.provider.gate.set()
        await running
        assert (await worker.job(job)).status is JobStatus.RUNNING


class TestHolding:
    async def test_a_claim_from_before_a_cancellation_starts_no_call_after_it(
        self, engine: AsyncEngine, worker: Worker
    ) -> None:
        """However long the process stands still between the claim and its first call."""
        job = await new_job(engine)
        asked = time.monotonic() - 60
        claim = await claimed(engine, job.id)
        await cancel_job(worker.control, TENANT, job.id)
        stop = StopSignal()
        with worker.deps.leases.holding(claim, stop, asked):
            await run_shard._work(worker.deps, claim, stop)
        assert worker.provider.calls == []

    async def test_an_error_that_nobody_foresaw_does_not_end_the_look_at_the_jobs(
        self, engine: AsyncEngine, worker: Worker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        claim = await claimed(engine, (await new_job(engine)).id)
        failed = asyncio.Event()

        async def unknown(
            _: AsyncConnection, __: Sequence[AnyClaim]
        ) -> dict[AnyClaim, tuple[JobStatus, bool]]:
            failed.set()
            raise ValueError("'draining' is not a valid JobStatus")

        stop = StopSignal()
        with worker.deps.leases.holding(claim, stop, time.monotonic()):
            with monkeypatch.context() as newer, structlog.testing.capture_logs():
                newer.setattr(shards, "standing", unknown)
                await failed.wait()
            await execute(engine, "UPDATE jobs SET status = 'paused'")
            async with asyncio.timeout(60):
                while stop.reason is None:  # noqa: ASYNC110 - seen from outside
                    await asyncio.sleep(0.01)
        assert stop.reason is StopReason.JOB_INACTIVE
