"""Refusals of which each of several workers sees a part, on a real database with a scripted model."""

import asyncio

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.domain.jobs.status import JobStatus
from app.domain.providers.model import ChatReply, ChatRequest
from app.ports import FailureKind, ModelCallError
from app.services.execution.first_calls import DOUBTED_AFTER, FEWEST_TRIALS, FIRST_CALLS
from tests.integration.jobs import execute, new_job, shard_ids
from tests.integration.services.scheduling.test_run_shard import Provider, Worker

pytestmark = pytest.mark.usefixtures("looks_often")

WORDS = "HTTP 400: temperature is deprecated for this model"
REFUSED = ModelCallError(WORDS, kind=FailureKind.ITEM, code="invalid_request_error", status=400)
UNEXPLAINED = ModelCallError(
    "HTTP 403: no", kind=FailureKind.ITEM, code="http_403", status=403, unexplained=True
)


class Refusing(Provider):
    """Refuses the calls of a stage, all of them or those of some items."""

    stage = "judging"
    refusal: ModelCallError | None = REFUSED
    only: frozenset[str] | None = None

    async def complete(self, request: ChatRequest) -> ChatReply:
        path = request.request_id.partition("/")[2].rpartition("/")[0]
        reply = await super().complete(request)
        if (
            self.refusal is not None
            and path.startswith(self.stage)
            and (self.only is None or path in self.only)
        ):
            raise self.refusal
        return reply


@pytest.fixture
def provider() -> Refusing:
    return Refusing()


def provider_of(worker: Worker) -> Refusing:
    assert isinstance(worker.provider, Refusing)
    return worker.provider


class TestARunOfRefusals:
    async def test_on_one_worker_does_not_pause_a_job_that_another_serves_well(
        self, engine: AsyncEngine, worker: Worker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        provider_of(worker).refusal = None
        job = await new_job(engine, iterations=100)
        first, second, *others = await shard_ids(engine, job.id)
        other = Worker(engine, Refusing())
        complete, served = other.provider.complete, asyncio.Event()
        refused: list[str] = []

        async def refuse_a_while(request: ChatRequest) -> ChatReply:
            reply = await complete(request)
            if "/generation/" in request.request_id and len(refused) < FIRST_CALLS + FEWEST_TRIALS:
                refused.append(request.request_id)
                if len(refused) > DOUBTED_AFTER:
                    await served.wait()
                raise UNEXPLAINED
            return reply

        provider_of(other).refusal = None
        monkeypatch.setattr(other.provider, "complete", refuse_a_while)
        async with other.deps.writer.running(), other.deps.leases.running():
            running = asyncio.create_task(other.run(first))
            while len(refused) <= DOUBTED_AFTER:  # noqa: ASYNC110 - seen from outside
                await asyncio.sleep(0.01)
            await worker.run(second)
            served.set()
            await running
        assert (await worker.job(job)).status is JobStatus.RUNNING
        for shard in others:
            await worker.run(shard)
        ended = await worker.finalize(job)
        assert (ended.status, ended.completeness) == (JobStatus.COMPLETED, "partial")

    async def test_with_an_answer_between_stops_nothing(self, engine: AsyncEngine, worker: Worker) -> None:
        provider = provider_of(worker)
        provider.stage, provider.refusal = "generation", UNEXPLAINED
        provider.only = frozenset(f"generation/0/{run}/0" for run in range(1, 100) if run % 4)
        job = await new_job(engine, iterations=100)
        await worker.run_all(job)
        ended = await worker.finalize(job)
        assert (ended.status, ended.completeness) == (JobStatus.COMPLETED, "partial")


class TestWorkers:
    async def test_do_not_stop_a_job_in_which_another_has_had_answers(
        self, engine: AsyncEngine, worker: Worker
    ) -> None:
        job = await new_job(engine, iterations=100)
        provider_of(worker).refusal = None
        first, *others = [row.id for row in await execute(engine, "SELECT id FROM shards ORDER BY id")]
        await worker.run(first)
        other = Worker(engine, Refusing())
        async with other.deps.writer.running(), other.deps.leases.running():
            for shard in others:
                await other.run(shard)
        assert (await worker.job(job)).status.may_call or (
            await worker.job(job)
        ).status is JobStatus.FINALIZING
