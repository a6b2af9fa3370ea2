"""A job whose results can't be computed does not hang."""

from collections.abc import Iterator

import pytest
import structlog
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import AsyncEngine

from app.domain.jobs.status import JobStatus
from app.services.jobs.control import cancel_job
from app.services.results import finalize as module
from app.services.results.finalize import MAX_FINALIZATIONS
from tests.integration.jobs import TENANT, execute, new_job, scalar
from tests.integration.services.scheduling.test_run_shard import Worker


@pytest.fixture(autouse=True)
def logged() -> Iterator[None]:
    """Errors are logged with the values of all variables, which takes seconds on a terminal."""
    with structlog.testing.capture_logs():
        yield


def fail(patch: pytest.MonkeyPatch, error: Exception) -> None:
    async def compute(*_: object) -> None:
        raise error

    patch.setattr(module, "compute_results", compute)


class TestFinalization:
    async def test_that_always_fails_ends_the_job_and_says_so(
        self, engine: AsyncEngine, worker: Worker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job = await new_job(engine)
        await worker.run_all(job)
        fail(monkeypatch, ZeroDivisionError("division by zero"))
        for _ in range(MAX_FINALIZATIONS - 1):
            assert (await worker.finalize(job)).status is JobStatus.FINALIZING
        ended = await worker.finalize(job)
        assert (ended.status, ended.status_reason) == (JobStatus.FAILED, "internal_error")
        assert ended.error is not None
        assert ended.error["detail"] == "an unexpected error occurred"
        assert "log" in ended.error["remedy"]
        assert await scalar(engine, "SELECT scores FROM jobs") == []
        assert await scalar(engine, "SELECT count(*) FROM responses") == 2

    async def test_that_fails_and_then_does_not_leaves_no_trace(
        self, engine: AsyncEngine, worker: Worker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job = await new_job(engine)
        await worker.run_all(job)
        with monkeypatch.context() as patch:
            fail(patch, ZeroDivisionError("division by zero"))
            await worker.finalize(job)
        ended = await worker.finalize(job)
        assert (ended.status, ended.completeness, ended.error) == (JobStatus.COMPLETED, "full", None)

    async def test_a_database_that_is_away_does_not_count(
        self, engine: AsyncEngine, worker: Worker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job = await new_job(engine)
        await worker.run_all(job)
        away = OperationalError("SELECT", {}, ConnectionError("gone"))
        with monkeypatch.context() as patch:
            fail(patch, away)
            for _ in range(MAX_FINALIZATIONS + 1):
                with pytest.raises(OperationalError):
                    await worker.finalize(job)
        assert (await worker.finalize(job)).status is JobStatus.COMPLETED

    async def test_of_a_cancelled_job_ends_it_as_cancelled(
        self, engine: AsyncEngine, worker: Worker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job = await new_job(engine)
        await execute(engine, "UPDATE jobs SET started_at = clock_timestamp()")
        await cancel_job(worker.control, TENANT, job.id)
        fail(monkeypatch, ZeroDivisionError("division by zero"))
        for _ in range(MAX_FINALIZATIONS):
            ended = await worker.finalize(job)
        assert (ended.status, ended.status_reason) == (JobStatus.CANCELLED, "internal_error")
