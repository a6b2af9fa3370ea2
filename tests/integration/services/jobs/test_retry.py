"""What a retry redoes and what it keeps, on a real database with a scripted model."""

import asyncio
import json
from collections import Counter
from dataclasses import dataclass, field

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.execution.result_rows import ResultWriter
from app.db.jobs import jobs
from app.db.jobs.jobs import JobRow
from app.domain.jobs.status import JobStatus
from app.domain.providers.model import ChatReply, ChatRequest, FinishReason
from app.ports import FailureKind, ModelCallError
from app.services.errors import NotFoundError, WrongStateError
from app.services.jobs.control import cancel_job, pause_job, retry_job
from app.services.jobs.view import view_job
from tests.integration.jobs import TENANT, claimed, execute, new_job, scalar, shard_ids, verdict_row
from tests.integration.services.execution.test_prepare_persona import Reasoner, new_gym_job
from tests.integration.services.scheduling.test_run_shard import Provider, Worker

TOO_LONG = ModelCallError("too long", kind=FailureKind.ITEM, code="too_long", status=400)
NO_KEY = ModelCallError("no key", kind=FailureKind.JOB, code="invalid_api_key", status=401)


@dataclass
class Moody(Provider):
    """Fails some calls and answers others without sense, as long as it is in its mood."""

    ids: list[str] = field(default_factory=list)
    fails: frozenset[str] = frozenset()
    babbles: frozenset[str] = frozenset()

    async def complete(self, request: ChatRequest) -> ChatReply:
        reply = await super().complete(request)
        self.ids.append(request.request_id)
        path = self.calls[-1]
        if path in self.fails:
            raise TOO_LONG
        if path in self.babbles:
            return ChatReply("no number", FinishReason.STOP, reply.usage)
        return reply


@pytest.fixture
def provider() -> Moody:
    return Moody()


@pytest.fixture
def model(provider: Moody) -> Moody:
    return provider


BAD_TEXT = "generation/0/1/0"
UNJUDGED = "judging/0/0/0/0/0/0"
UNPARSED = "judging/0/0/0/1/0/0"
FOLLOW_UP = "repairing/0/judging/0/0/1/0/0"


async def partial_job(engine: AsyncEngine, worker: Worker, model: Moody) -> JobRow:
    """Three runs of one text of two sentences: one text and one verdict failed, one verdict is unparsed."""
    model.fails, model.babbles = frozenset({BAD_TEXT, UNJUDGED}), frozenset({UNPARSED, FOLLOW_UP})
    job = await new_job(engine, iterations=3)
    await worker.run_all(job)
    ended = await worker.finalize(job)
    assert (ended.status, ended.completeness) == (JobStatus.COMPLETED, "partial")
    model.fails = model.babbles = frozenset()
    worker.queue.shards.clear()
    return ended


class TestEndedJob:
    async def test_only_what_failed_or_stayed_unparsed_is_done_again_and_all_calls_stay_accounted(
        self, engine: AsyncEngine, worker: Worker, model: Moody
    ) -> None:
        job = await partial_job(engine, worker, model)
        first = list(model.ids)
        before = (await view_job(engine, TENANT, job.id)).usage
        model.calls.clear()

        queued = await retry_job(worker.control, TENANT, job.id)
        assert (queued.status, queued.finished_at, queued.completeness) == (JobStatus.QUEUED, None, None)
        assert worker.queue.shards == await shard_ids(engine, job.id)
        assert (await view_job(engine, TENANT, job.id)).usage == before

        await worker.run_all(job)
        ended = await worker.finalize(job)
        assert (ended.status, ended.completeness) == (JobStatus.COMPLETED, "full")
        others = {"judging/0/1/0/0/0/0", "judging/0/1/0/1/0/0"}  # of the text that there was none of
        assert Counter(model.calls) == Counter({BAD_TEXT, UNJUDGED, UNPARSED} | others)
        assert len(set(model.ids)) == len(model.ids)
        assert {i.rpartition("/")[2] for i in model.ids[len(first) :]} == {"a2"}
        usage = (await view_job(engine, TENANT, job.id)).usage
        assert usage.calls == len(model.ids) == await scalar(engine, "SELECT count(*) FROM calls")
        async with engine.connect() as connection:
            stored = json.loads(await jobs.stored_result(connection, TENANT, job.id) or "")
        assert stored["cells"][0]["units"]["scored"] == 6
        assert stored["usage"]["calls"] == usage.calls

    @pytest.mark.parametrize(
        ("failing", "reason"),
        [
            ("generation/1/0/0", "control_calls_missing"),
            ("judging/1/0/0/0/0/0", "control_calls_missing"),
            ("judging/0/0/0/0/0/0", "calls_missing"),
        ],
    )
    async def test_it_says_in_which_arm_a_call_is_missing(
        self, failing: str, reason: str, engine: AsyncEngine, worker: Worker, model: Moody
    ) -> None:
        model.fails = frozenset({failing})
        job = await new_job(engine, control=True)
        await worker.run_all(job)
        ended = await worker.finalize(job)
        assert (ended.status, ended.completeness) == (JobStatus.COMPLETED, "partial")
        async with engine.connect() as connection:
            stored = json.loads(await jobs.stored_result(connection, TENANT, job.id) or "")
        assert [each.partition(":")[0] for each in stored["completeness_reasons"]] == [reason]
        model.fails = frozenset()
        await retry_job(worker.control, TENANT, job.id)
        await worker.run_all(job)
        assert (await worker.finalize(job)).completeness == "full"

    async def test_with_nothing_to_redo_it_stays_as_it_is(self, engine: AsyncEngine, worker: Worker) -> None:
        job = await new_job(engine)
        await worker.run_all(job)
        ended = await worker.finalize(job)
        assert ended.completeness == "full"
        assert await retry_job(worker.control, TENANT, job.id) == ended

    async def test_asked_for_at_once_by_many_it_happens_once(
        self, engine: AsyncEngine, worker: Worker, model: Moody
    ) -> None:
        job = await partial_job(engine, worker, model)
        await asyncio.gather(*(retry_job(worker.control, TENANT, job.id) for _ in range(5)))
        assert await scalar(engine, "SELECT max(retries) FROM shards") == 1
        assert worker.queue.shards == await shard_ids(engine, job.id)

    async def test_a_late_finalization_does_not_end_it(
        self, engine: AsyncEngine, worker: Worker, model: Moody
    ) -> None:
        job = await partial_job(engine, worker, model)
        await retry_job(worker.control, TENANT, job.id)
        assert (await worker.finalize(job)).status is JobStatus.QUEUED

    async def test_who_held_a_shard_before_cannot_write_into_it_any_more(
        self, engine: AsyncEngine, worker: Worker, model: Moody
    ) -> None:
        model.fails = frozenset({UNJUDGED})
        job = await new_job(engine)
        frozen = await claimed(engine, job.id)
        await execute(engine, "UPDATE shards SET lease_expires_at = clock_timestamp(), lease_token = 0")
        await worker.run_all(job)  # with the very token of the frozen owner
        await worker.finalize(job)
        await retry_job(worker.control, TENANT, job.id)
        late = verdict_row(frozen, 0, 0, score=None)
        held = (frozen.shard_id, frozen.token)
        assert await ResultWriter(engine).write({held: [late]}) == {held}

    async def test_it_can_fail_again_and_be_retried_again(
        self, engine: AsyncEngine, worker: Worker, model: Moody
    ) -> None:
        job = await partial_job(engine, worker, model)
        for attempt in (2, 3):
            model.fails = frozenset({UNJUDGED}) if attempt == 2 else frozenset()
            await retry_job(worker.control, TENANT, job.id)
            await worker.run_all(job)
            await worker.finalize(job)
            assert f"{job.id}/{UNJUDGED}/a{attempt}" in model.ids
        assert (await worker.job(job)).completeness == "full"
        assert len(set(model.ids)) == len(model.ids)

    async def test_a_job_that_failed_does_what_it_never_came_to(
        self, engine: AsyncEngine, worker: Worker, model: Moody
    ) -> None:
        model.error = NO_KEY
        job = await new_job(engine)
        await worker.run_all(job)
        assert (await worker.finalize(job)).status is JobStatus.FAILED
        model.error = None
        model.ids.clear()
        queued = await retry_job(worker.control, TENANT, job.id)
        assert (queued.status, queued.status_reason, queued.error) == (JobStatus.QUEUED, None, None)
        await worker.run_all(job)
        ended = await worker.finalize(job)
        assert (ended.status, ended.completeness) == (JobStatus.COMPLETED, "full")
        assert f"{job.id}/generation/0/0/0/a2" in model.ids


class TestOtherStates:
    async def test_a_paused_job_redoes_its_failures_and_goes_on(
        self, engine: AsyncEngine, worker: Worker, model: Moody
    ) -> None:
        model.fails = frozenset({BAD_TEXT})
        job = await new_job(engine, iterations=40)
        first, *others = await shard_ids(engine, job.id)
        await worker.run(first)
        await pause_job(worker.control, TENANT, job.id)
        model.fails = frozenset()
        assert (await retry_job(worker.control, TENANT, job.id)).status is JobStatus.QUEUED
        for shard in (first, *others):
            await worker.run(shard)
        assert (await worker.finalize(job)).completeness == "full"
        assert Counter(model.calls)[BAD_TEXT] == 2

    async def test_a_paused_job_in_which_nothing_failed_stays_paused(
        self, engine: AsyncEngine, worker: Worker
    ) -> None:
        job = await new_job(engine)
        paused = await pause_job(worker.control, TENANT, job.id)
        assert (await retry_job(worker.control, TENANT, job.id)).status is paused.status

    async def test_a_paused_job_with_calls_on_the_wire_has_to_wait(
        self, engine: AsyncEngine, worker: Worker
    ) -> None:
        job = await new_job(engine)
        await claimed(engine, job.id)
        await execute(engine, "UPDATE jobs SET status = 'paused'")
        with pytest.raises(WrongStateError, match="still in progress"):
            await retry_job(worker.control, TENANT, job.id)

    async def test_an_active_job_stays_as_it_is(self, engine: AsyncEngine, worker: Worker) -> None:
        job = await new_job(engine)
        assert await retry_job(worker.control, TENANT, job.id) == job

    async def test_a_cancelled_job_is_not_taken_up_again(self, engine: AsyncEngine, worker: Worker) -> None:
        job = await new_job(engine)
        await cancel_job(worker.control, TENANT, job.id)
        await worker.finalize(job)
        with pytest.raises(WrongStateError, match="cancelled"):
            await retry_job(worker.control, TENANT, job.id)

    async def test_another_tenants_job_is_not_found(self, engine: AsyncEngine, worker: Worker) -> None:
        job = await new_job(engine)
        with pytest.raises(NotFoundError):
            await retry_job(worker.control, "another", job.id)


class TestPersonaGym:
    async def test_a_preparation_goes_on_where_it_was_given_up_and_keeps_what_it_has(
        self, engine: AsyncEngine
    ) -> None:
        reasoner = Reasoner(
            script=lambda path, _: "none" if path.startswith("exemplars/0/expected") else None
        )
        worker = Worker(engine, reasoner)
        async with worker.deps.writer.running(), worker.deps.leases.running():
            job = await new_gym_job(engine)
            await worker.run_all(job)
            assert (await worker.finalize(job)).completeness == "partial"
            asked = Counter(reasoner.calls)
            reasoner.script = lambda *_: None
            await retry_job(worker.control, TENANT, job.id)
            await worker.run_all(job)
            ended = await worker.finalize(job)
        assert (ended.status, ended.completeness) == (JobStatus.COMPLETED, "full")
        again = Counter(reasoner.calls) - asked
        # One further ask for each question's exemplars, and the two grades that had none.
        assert {path.split("/")[0] for path in again} == {"exemplars", "judging"}
        assert sorted(again.values()) == [1, 1, 1, 1]

    async def test_what_could_not_be_made_for_want_of_environments_is_made_then(
        self, engine: AsyncEngine
    ) -> None:
        reasoner = Reasoner(script=lambda path, _: "none" if path.startswith("environments") else None)
        worker = Worker(engine, reasoner)
        async with worker.deps.writer.running(), worker.deps.leases.running():
            job = await new_gym_job(engine)
            await worker.run_all(job)
            ended = await worker.finalize(job)
            assert (ended.status, ended.status_reason) == (JobStatus.FAILED, "preparation_failed")
            assert ended.completeness == "partial"
            reasoner.script = lambda *_: None
            await retry_job(worker.control, TENANT, job.id)
            await worker.run_all(job)
            ended = await worker.finalize(job)
        assert (ended.status, ended.completeness) == (JobStatus.COMPLETED, "full")
        assert await scalar(engine, "SELECT count(*) FROM responses WHERE status = 'answered'") == 2
