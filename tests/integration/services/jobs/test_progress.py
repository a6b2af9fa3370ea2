"""What polls are told of a running job's progress: how old it may be, and when it may not be old at all."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.execution import failures
from app.db.execution.failures import FailureRow
from app.db.execution.result_rows import ResultWriter
from app.db.jobs.jobs import JobRow
from app.domain.jobs.status import JobStatus
from app.services.jobs import progress as module
from app.services.jobs.progress import RecentProgress
from tests.integration.jobs import call_row, claimed, new_job

AN_HOUR = 3600.0

Calls = Callable[[JobStatus], Awaitable[int]]
Call = Callable[[], Awaitable[None]]


@pytest.fixture
async def job(engine: AsyncEngine) -> JobRow:
    return await new_job(engine)


@pytest.fixture
def recent(engine: AsyncEngine) -> RecentProgress:
    return RecentProgress(engine)


@pytest.fixture
def told(engine: AsyncEngine, job: JobRow, recent: RecentProgress) -> Calls:
    """How many calls a reader is told of who finds the job in this state."""

    async def read(status: JobStatus) -> int:
        found = await recent.read(replace(job, status=status))
        return sum(row.calls for row in found.usage)

    return read


@pytest.fixture
async def call(engine: AsyncEngine, job: JobRow) -> Call:
    """Has a further call recorded."""
    claim = await claimed(engine, job.id)

    async def record() -> None:
        await ResultWriter(engine).write({(claim.shard_id, claim.token): [call_row(claim)]})

    return record


@pytest.fixture
def good_for(monkeypatch: pytest.MonkeyPatch) -> Callable[[float, float], None]:
    def choose(fresh: float, shown: float) -> None:
        monkeypatch.setattr(module, "FRESH_SECONDS", fresh)
        monkeypatch.setattr(module, "SHOWN_SECONDS", shown)

    return choose


class TestARunningJob:
    async def test_is_not_looked_at_again_at_once(
        self, told: Calls, call: Call, good_for: Callable[[float, float], None]
    ) -> None:
        good_for(AN_HOUR, AN_HOUR)
        assert await told(JobStatus.RUNNING) == 0
        await call()
        assert await told(JobStatus.RUNNING) == 0

    async def test_is_looked_at_again_behind_the_readers_back(
        self, told: Calls, call: Call, good_for: Callable[[float, float], None], recent: RecentProgress
    ) -> None:
        good_for(0.0, AN_HOUR)
        assert await told(JobStatus.RUNNING) == 0
        await call()
        assert await told(JobStatus.RUNNING) == 0
        await recent.close()
        assert await told(JobStatus.RUNNING) == 1
        await recent.close()

    async def test_whose_progress_is_too_old_is_looked_at_while_the_reader_waits(
        self, told: Calls, call: Call, good_for: Callable[[float, float], None]
    ) -> None:
        good_for(0.0, 0.0)
        assert await told(JobStatus.RUNNING) == 0
        await call()
        assert await told(JobStatus.RUNNING) == 1


@pytest.mark.parametrize("status", [status for status in JobStatus if status is not JobStatus.RUNNING])
async def test_any_other_job_shows_what_it_has_taken_by_now(
    status: JobStatus, told: Calls, call: Call, good_for: Callable[[float, float], None]
) -> None:
    good_for(AN_HOUR, AN_HOUR)
    assert await told(JobStatus.RUNNING) == 0
    await call()
    assert await told(status) == 1
    assert await told(JobStatus.RUNNING) == 1  # what was known before is no longer shown


class TestFailures:
    @pytest.fixture
    def counted(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """The jobs whose failed calls were counted, once for each time."""
        asked: list[str] = []
        histogram = failures.histogram

        async def count(connection: AsyncConnection, tenant: str, job_id: str) -> list[FailureRow]:
            asked.append(job_id)
            return await histogram(connection, tenant, job_id)

        monkeypatch.setattr(failures, "histogram", count)
        return asked

    async def test_are_counted_again_only_where_calls_were_made_since(
        self, engine: AsyncEngine, job: JobRow, recent: RecentProgress, counted: list[str]
    ) -> None:
        claim = await claimed(engine, job.id)
        paused = replace(job, status=JobStatus.PAUSED)
        for failed in (1, 2):
            await ResultWriter(engine).write(
                {(claim.shard_id, claim.token): [call_row(claim, outcome="error")]}
            )
            for _ in range(3):
                (row,) = (await recent.read(paused)).failures.rows
                assert row.calls == failed
            assert len(counted) == failed

    async def test_of_a_running_job_are_counted_again_after_a_while(
        self,
        engine: AsyncEngine,
        job: JobRow,
        recent: RecentProgress,
        counted: list[str],
        good_for: Callable[[float, float], None],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        good_for(0.0, 0.0)
        claim = await claimed(engine, job.id)
        running = replace(job, status=JobStatus.RUNNING)
        shown = []
        for seconds in (AN_HOUR, AN_HOUR, 0.0):
            monkeypatch.setattr(module, "FAILURES_SECONDS", seconds)
            await ResultWriter(engine).write(
                {(claim.shard_id, claim.token): [call_row(claim, outcome="error")]}
            )
            shown += [row.calls for row in (await recent.read(running)).failures.rows]
        assert (shown, len(counted)) == ([1, 1, 3], 2)
