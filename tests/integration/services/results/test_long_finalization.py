"""What may happen to a job while its results are computed, which takes minutes for a big one."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.engine import connect
from app.db.execution.result_rows import ResultWriter
from app.db.health import WORKER
from app.db.jobs import jobs
from app.db.jobs.jobs import JobRow
from app.domain.jobs.status import JobStatus
from app.services.errors import WrongStateError
from app.services.jobs.control import cancel_job, delete_job, retry_job
from app.services.results import compute as compute_module
from app.services.results.compute import Computed
from app.services.results.finalize import finalize_job
from app.services.results.read import ResultsReader
from app.services.scheduling import sweep as sweep_module
from app.services.scheduling.sweep import sweep
from tests.integration.jobs import (
    BATCH_CALLS,
    TENANT,
    claimed,
    execute,
    expire,
    new_job,
    response_row,
    scalar,
)
from tests.integration.services.jobs.test_retry import UNJUDGED, Moody
from tests.integration.services.scheduling.test_run_shard import Worker


@pytest.fixture
def provider() -> Moody:
    return Moody()


class Slow:
    """Holds up the first computation of results after everything has been read; the others go through."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._computing = threading.Event()
        self._gate = threading.Event()
        self._render = compute_module.render_results
        monkeypatch.setattr(compute_module, "render_results", self._slow)

    async def computing(self) -> None:
        assert await asyncio.to_thread(self._computing.wait, 60)

    def go_on(self) -> None:
        self._gate.set()

    def _slow(self, *args: Any) -> Computed:
        if not self._computing.is_set():
            self._computing.set()
            self._gate.wait()
        return self._render(*args)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Slow]:
    made = Slow(monkeypatch)
    yield made
    made.go_on()


@contextlib.asynccontextmanager
async def finalizing(worker: Worker, slow: Slow, job: JobRow) -> AsyncIterator[None]:
    """Within, results are being computed; afterwards that finalization has come to its end."""
    task = asyncio.create_task(finalize_job(worker.engine, worker.deps.contexts, job.id))
    await slow.computing()
    try:
        yield
    finally:
        slow.go_on()
        await task


async def stored(engine: AsyncEngine, job: JobRow) -> str | None:
    async with engine.connect() as connection:
        return await jobs.stored_result(connection, TENANT, job.id)


class TestLongFinalization:
    async def test_is_not_taken_for_a_frozen_worker(
        self, worker: Worker, slow: Slow, database_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sweep_module, "FROZEN_SECONDS", 0.5)
        job = await new_job(worker.engine)
        await worker.run_all(job)
        engine = connect(database_url, application_name=WORKER)
        task = asyncio.create_task(finalize_job(engine, worker.deps.contexts, job.id))
        await slow.computing()
        await asyncio.sleep(0.6)
        await sweep(worker.engine, worker.queue, 16, BATCH_CALLS)
        slow.go_on()
        await task
        await engine.dispose()
        assert (await worker.job(job)).status is JobStatus.COMPLETED

    async def test_says_that_it_goes_on(self, engine: AsyncEngine, worker: Worker, slow: Slow) -> None:
        job = await new_job(engine)
        await worker.run_all(job)
        async with finalizing(worker, slow, job):
            await execute(engine, "UPDATE jobs SET updated_at = now() - interval '1 hour'")
            for _ in range(1000):
                if await scalar(engine, "SELECT updated_at > now() - interval '1 minute' FROM jobs"):
                    break
                await asyncio.sleep(0.06)
            await sweep(engine, worker.queue, 16, BATCH_CALLS)
        assert worker.queue.finals == [job.id]  # by the last shard, and not again

    async def test_holds_up_neither_cancellation_nor_retry(
        self, engine: AsyncEngine, worker: Worker, slow: Slow
    ) -> None:
        job = await new_job(engine)
        await worker.run_all(job)
        async with finalizing(worker, slow, job):
            assert (await cancel_job(worker.control, TENANT, job.id)).status is JobStatus.FINALIZING
            with pytest.raises(WrongStateError):
                await retry_job(worker.control, TENANT, job.id)
        assert (await worker.job(job)).status is JobStatus.COMPLETED

    async def test_no_row_comes_after_the_results_were_read(
        self, engine: AsyncEngine, worker: Worker, slow: Slow
    ) -> None:
        job = await new_job(engine)
        claim = await claimed(engine, job.id)
        held = (claim.shard_id, claim.token)
        await ResultWriter(engine).write({held: [response_row(claim, 0)]})
        await cancel_job(worker.control, TENANT, job.id)
        await expire(engine, claim)  # its owner stands still, and then goes on
        async with finalizing(worker, slow, job):
            assert await ResultWriter(engine).write({held: [response_row(claim, 1)]}) == {held}
        assert (await worker.job(job)).status is JobStatus.CANCELLED
        assert await scalar(engine, "SELECT count(*) FROM responses") == 1

    async def test_leaves_alone_what_a_faster_one_has_stored(
        self, engine: AsyncEngine, worker: Worker, slow: Slow
    ) -> None:
        job = await new_job(engine)
        await worker.run_all(job)
        async with finalizing(worker, slow, job):
            ended = await worker.finalize(job)
            results = await stored(engine, job)
        assert (ended.status, ended.completeness) == (JobStatus.COMPLETED, "full")
        assert await worker.job(job) == ended
        assert await stored(engine, job) == results

    async def test_does_not_end_a_job_that_was_retried_meanwhile(
        self, engine: AsyncEngine, worker: Worker, slow: Slow
    ) -> None:
        assert isinstance(worker.provider, Moody)
        worker.provider.fails = frozenset({UNJUDGED})
        job = await new_job(engine)
        await worker.run_all(job)
        async with finalizing(worker, slow, job):
            assert (await worker.finalize(job)).completeness == "partial"
            worker.provider.fails = frozenset()
            await retry_job(worker.control, TENANT, job.id)
            await worker.run_all(job)
        ending = await worker.job(job)
        assert (ending.status, ending.completeness) == (JobStatus.FINALIZING, None)
        assert (await worker.finalize(job)).completeness == "full"

    async def test_of_a_job_that_was_deleted_meanwhile_comes_to_nothing(
        self, engine: AsyncEngine, worker: Worker, slow: Slow
    ) -> None:
        job = await new_job(engine)
        await worker.run_all(job)
        async with finalizing(worker, slow, job):
            await worker.finalize(job)
            await delete_job(worker.control, TENANT, job.id)
        assert await scalar(engine, "SELECT count(*) FROM job_results") == 0

    async def test_that_dies_is_begun_again(self, engine: AsyncEngine, worker: Worker, slow: Slow) -> None:
        job = await new_job(engine)
        await worker.run_all(job)
        task = asyncio.create_task(finalize_job(engine, worker.deps.contexts, job.id))
        await slow.computing()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        worker.queue.finals.clear()
        await execute(engine, "UPDATE jobs SET updated_at = now() - interval '11 seconds'")
        await sweep(engine, worker.queue, 16, BATCH_CALLS)
        assert worker.queue.finals == [job.id]
        assert (await worker.finalize(job)).completeness == "full"


class TestReading:
    async def test_a_running_jobs_results_holds_no_connection_while_they_are_computed(
        self, engine: AsyncEngine, worker: Worker, slow: Slow
    ) -> None:
        job = await new_job(engine)
        reading = asyncio.create_task(ResultsReader(engine, worker.deps.contexts).read(job))
        await slow.computing()
        waiting = (
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND state = 'idle in transaction'"
        )
        assert await scalar(engine, waiting) == 0
        slow.go_on()
        assert f'"{job.id}"' in await reading
