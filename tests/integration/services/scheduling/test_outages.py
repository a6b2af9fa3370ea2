"""Jobs of a provider whose server could not be reached are resumed when it answers."""

import asyncio
from dataclasses import dataclass, field

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.execution.result_rows import ResultWriter
from app.db.jobs import jobs
from app.domain.jobs.status import ACTIVE, JobStatus
from app.ports import FailureKind, ModelCallError
from app.services.execution.retries import PROVIDER_UNREACHABLE, JobMustStopError
from app.services.execution.stopping import halt_job
from app.services.jobs.control import PAUSED_BY_USER, pause_job, resume_job
from app.services.scheduling.outages import resume_reachable
from tests.integration.jobs import (
    TENANT,
    RecordingQueue,
    call_row,
    claimed,
    control_dependencies,
    execute,
    new_job,
)

WINDOW = 16
REFUSED = ModelCallError("refused", kind=FailureKind.RETRY, code="connection_failed")
LOADING = ModelCallError("loading", kind=FailureKind.RETRY, code="http_503", status=503)
INCOMPLETE = ModelCallError("no model", kind=FailureKind.ITEM, code="http_400", status=400)
DELETED = ModelCallError("no such connection", kind=FailureKind.JOB, code="unknown_connection")
"""The job's next call says it, and stops the job with this reason."""
WRONG_KEY = ModelCallError("no", kind=FailureKind.JOB, code="http_401", status=401)


@dataclass
class Provider:
    """A server that gives one answer to all."""

    answer: ModelCallError | None = None
    probed: list[tuple[str, str]] = field(default_factory=list)

    async def probe(self, connection: str, tenant: str) -> None:
        self.probed.append((connection, tenant))
        if self.answer is not None:
            raise self.answer


class SlowAndBroken(Provider):
    """Servers of which one answers only when the others have been tried, with 503, and one breaks the probe."""

    def __init__(self) -> None:
        super().__init__()
        self.others = asyncio.Event()

    async def probe(self, connection: str, tenant: str) -> None:
        await super().probe(connection, tenant)
        if len(self.probed) == 3:
            self.others.set()
        if connection == "broken":
            raise ZeroDivisionError
        if connection == "slow":
            await asyncio.wait_for(self.others.wait(), 60)
            raise LOADING


async def unreachable_job(engine: AsyncEngine, model: str = "simulated/sim-faithful") -> str:
    job = await new_job(engine)
    error = JobMustStopError(PROVIDER_UNREACHABLE, "refused", model)
    assert await halt_job(engine, job.id, error) is None
    assert await standing(engine, job.id) == ("paused", PROVIDER_UNREACHABLE)
    return job.id


async def standing(engine: AsyncEngine, job_id: str) -> tuple[str, str | None]:
    [row] = await execute(engine, f"SELECT status, status_reason FROM jobs WHERE id = '{job_id}'")
    return row[0], row[1]


class TestResumeReachable:
    @pytest.mark.parametrize("answer", [None, INCOMPLETE, WRONG_KEY, DELETED])
    async def test_lets_jobs_go_on_whose_server_answers(
        self, engine: AsyncEngine, answer: ModelCallError | None
    ) -> None:
        first, second = await unreachable_job(engine), await unreachable_job(engine)
        provider, queue = Provider(answer), RecordingQueue()
        assert set(await resume_reachable(engine, queue, provider, WINDOW)) == {first, second}
        assert await standing(engine, first) == ("queued", None)
        assert [connection for connection, _ in provider.probed] == ["simulated"]
        assert queue.shards

    @pytest.mark.parametrize("answer", [REFUSED, LOADING])
    async def test_leaves_those_paused_whose_server_is_still_away(
        self, engine: AsyncEngine, answer: ModelCallError
    ) -> None:
        job = await unreachable_job(engine)
        provider, queue = Provider(answer), RecordingQueue()
        assert await resume_reachable(engine, queue, provider, WINDOW) == []
        assert await standing(engine, job) == ("paused", PROVIDER_UNREACHABLE)

    async def test_lets_no_server_keep_the_jobs_of_others_waiting(self, engine: AsyncEngine) -> None:
        await unreachable_job(engine, "broken/m")
        await unreachable_job(engine, "slow/m")
        job = await unreachable_job(engine)
        provider = SlowAndBroken()
        assert await resume_reachable(engine, RecordingQueue(), provider, WINDOW) == [job]

    async def test_never_resumes_what_a_person_paused(self, engine: AsyncEngine) -> None:
        provider, queue = Provider(), RecordingQueue()
        deps = control_dependencies(engine, queue, WINDOW)
        job = await unreachable_job(engine)
        async with engine.connect() as connection:
            [paused] = await jobs.paused_jobs(connection, PROVIDER_UNREACHABLE)
        await pause_job(deps, paused.tenant, job)
        assert await standing(engine, job) == ("paused", PAUSED_BY_USER)
        other = (await new_job(engine)).id
        async with engine.begin() as connection:
            await jobs.move(connection, other, leave=list(ACTIVE), to=JobStatus.PAUSED, reason=PAUSED_BY_USER)
        assert await resume_reachable(engine, queue, provider, WINDOW) == []
        assert await standing(engine, other) == ("paused", PAUSED_BY_USER)


async def pause_again(engine: AsyncEngine, job_id: str, minutes: float) -> None:
    """Pauses a resumed job once more; so many minutes pass."""
    error = JobMustStopError(PROVIDER_UNREACHABLE, "refused", "simulated/sim-faithful")
    assert await halt_job(engine, job_id, error) is None
    await execute(
        engine, "UPDATE jobs SET updated_at = updated_at - :past * interval '1 minute'", past=minutes
    )


class TestResumptionsInVain:
    async def test_take_longer_each_time_and_end(self, engine: AsyncEngine) -> None:
        provider, queue = Provider(), RecordingQueue()
        job = await unreachable_job(engine)
        assert await resume_reachable(engine, queue, provider, WINDOW) == [job]
        for minutes in (1, 4, 16, 64, 256):
            await pause_again(engine, job, minutes - 0.5)
            assert await resume_reachable(engine, queue, provider, WINDOW) == []
            await execute(engine, "UPDATE jobs SET updated_at = updated_at - interval '1 minute'")
            assert await resume_reachable(engine, queue, provider, WINDOW) == [job]
        await pause_again(engine, job, 100_000)
        probes = len(provider.probed)
        assert await resume_reachable(engine, queue, provider, WINDOW) == []
        assert len(provider.probed) == probes
        assert await standing(engine, job) == ("paused", PROVIDER_UNREACHABLE)
        await resume_job(control_dependencies(engine, queue, WINDOW), TENANT, job)
        await pause_again(engine, job, 0)
        assert await resume_reachable(engine, queue, provider, WINDOW) == [job], "a user has begun anew"

    @pytest.mark.parametrize("connection", ["simulated", "other"])
    async def test_are_forgotten_once_the_same_server_answers_a_call(
        self, engine: AsyncEngine, connection: str
    ) -> None:
        provider, queue = Provider(), RecordingQueue()
        job = await unreachable_job(engine)
        assert await resume_reachable(engine, queue, provider, WINDOW) == [job]
        claim = await claimed(engine, job)
        answered = call_row(claim)._replace(connection=connection)
        await ResultWriter(engine).write({(claim.shard_id, claim.token): [answered]})
        await execute(
            engine, "UPDATE jobs SET resumed_at = (SELECT min(started_at) FROM calls) - interval '1 s'"
        )
        await pause_again(engine, job, 0)
        resumed = await resume_reachable(engine, queue, provider, WINDOW)
        assert resumed == ([job] if connection == "simulated" else [])
