"""Running, sweeping and finalizing on a real database. The model is scripted, so that every call is known."""

import asyncio
import json
from collections import Counter
from dataclasses import dataclass, field

import pytest
import structlog
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.execution.result_rows import ResultWriter
from app.db.jobs import jobs
from app.db.jobs.jobs import JobRow
from app.domain.instruments.rules import RuleBook
from app.domain.jobs.contract import JobError
from app.domain.jobs.status import JobStatus
from app.domain.providers.model import ChatReply, ChatRequest, FinishReason, Model, Stage, Usage
from app.instruments.rules import RULES
from app.llm.batches.gateway import BatchGateway
from app.ports import FailureKind, Fingerprint, ModelCallError, Price
from app.services.execution import stop_signal
from app.services.execution.budget_reservations import BudgetKeeper
from app.services.execution.cache_lookup import ReplyDesk
from app.services.execution.call_rows import CallKey
from app.services.execution.first_calls import FirstCalls
from app.services.execution.leases import LeaseKeeper
from app.services.execution.model_caller import ModelCaller
from app.services.execution.response_cache import SharedReplies
from app.services.execution.result_writer import BatchWriter
from app.services.execution.shard_work import Batching, ShardDependencies
from app.services.execution.stopping import MAX_SHARD_FAILURES
from app.services.execution.suspect_replies import MOST_SUSPECT_REPLIES, LateSuspects, ask_again
from app.services.job_context import JobContexts
from app.services.jobs.control import cancel_job, pause_job, resume_job
from app.services.jobs.view import view_job
from app.services.results.finalize import finalize_job
from app.services.scheduling.dispatcher import run_next
from tests.integration.jobs import (
    BATCH_CALLS,
    TENANT,
    RecordingQueue,
    claimed,
    control_dependencies,
    execute,
    expire,
    new_job,
    scalar,
    shard_ids,
    simulated_connections,
    take,
    whole_run,
)
from tests.integration.no_limits import NoLimits
from tests.job_requests import a_response

pytestmark = pytest.mark.usefixtures("looks_often")

TEXT = "I stay at home. I read alone."


@dataclass
class Provider(NoLimits):
    """Writes two sentences and judges each a 2; a call can be held up, or made to fail."""

    calls: list[str] = field(default_factory=list)
    called: asyncio.Event = field(default_factory=asyncio.Event)
    gate: asyncio.Event | None = None
    error: Exception | None = None
    text: str = TEXT

    async def complete(self, request: ChatRequest) -> ChatReply:
        # The id names job, stage, place and attempt; without the first and the last it names what was asked for.
        self.calls.append(request.request_id.partition("/")[2].rpartition("/")[0])
        self.called.set()
        if self.gate is not None:
            await self.gate.wait()
        if self.error is not None:
            raise self.error
        return ChatReply("2" if "judging" in self.calls[-1] else self.text, FinishReason.STOP, Usage(100, 4))

    def fingerprint(self, request: ChatRequest) -> Fingerprint:
        model = request.model
        seen = repr((model.connection, model.name, model.parameters, request.messages))
        return Fingerprint(seen.encode(), model.parameters.temperature)

    def body_bytes(self, request: ChatRequest) -> int:
        return len(request.user.encode())

    def price(self, model: Model, usage: Usage, *, batched: bool = False) -> Price:
        return Price(None, None)


class Worker:
    """A worker process, as far as shards can tell."""

    def __init__(
        self,
        engine: AsyncEngine,
        provider: Provider,
        writer: BatchWriter | None = None,
        rules: RuleBook = RULES,
    ) -> None:
        self.engine = engine
        self.provider = provider
        self.queue = RecordingQueue()
        self.control = control_dependencies(engine, self.queue, 2)
        self.desk = ReplyDesk(engine)
        writer = writer or BatchWriter(ResultWriter(engine))
        first_calls = FirstCalls(engine)
        caller = ModelCaller(
            chat=provider,
            limiter=provider,
            prices=provider,
            writer=writer,
            attempts=1,
            deadline_seconds=5.0,
            in_flight=lambda *_: 4,
            budgets=BudgetKeeper(engine),
            first_calls=first_calls,
        )
        self.deps = ShardDependencies(
            engine=engine,
            writer=writer,
            caller=caller,
            replies=SharedReplies(
                desk=self.desk, caller=caller, requests=provider, prices=provider, writer=writer
            ),
            first_calls=first_calls,
            batching=Batching(BatchGateway(simulated_connections()), provider, 0.1, BATCH_CALLS),
            leases=LeaseKeeper(engine, 20.0),
            late_suspects=LateSuspects(engine, self.queue, 2),
            contexts=JobContexts(engine),
            queue=self.queue,
            finalize=self.queue.announce_finalize,
            rules=rules,
            call_rules=self.control.call_rules,
            owner="a worker",
            lease_seconds=20.0,
            window=2,
        )

    async def run(self, shard_id: int) -> None:
        await run_next(self.deps, shard_id)

    async def run_all(self, job: JobRow) -> None:
        for shard_id in await shard_ids(self.engine, job.id):
            await self.run(shard_id)

    async def finalize_by_id(self, job_id: str) -> None:
        await finalize_job(self.engine, self.deps.contexts, job_id)

    async def finalize(self, job: JobRow) -> JobRow:
        await self.finalize_by_id(job.id)
        return await self.job(job)

    async def job(self, job: JobRow) -> JobRow:
        async with self.engine.connect() as connection:
            found = await jobs.get_job(connection, TENANT, job.id)
        assert found is not None
        return found

    async def paused(self, job: JobRow) -> None:
        """Wait until a job is paused."""
        for _ in range(3000):
            if (await self.job(job)).status is JobStatus.PAUSED:
                return
            await asyncio.sleep(0.02)
        pytest.fail("the job was not paused")


class RunsOut:
    """Credit that the second judge call finds used up, while the others hang until they are let go."""

    def __init__(self, worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
        self.judged: list[str] = []
        self.hanging = asyncio.Event()
        self._answered = worker.provider.complete
        monkeypatch.setattr(worker.provider, "complete", self._complete)

    async def _complete(self, request: ChatRequest) -> ChatReply:
        if "judging" not in request.request_id:
            return await self._answered(request)
        self.judged.append(request.request_id)
        if len(self.judged) == 2:
            raise ModelCallError("pay", kind=FailureKind.JOB, code="insufficient_quota", status=429)
        await self.hanging.wait()
        return await self._answered(request)


class TestRunShard:
    async def test_it_does_everything_once_and_ends_the_job(
        self, engine: AsyncEngine, worker: Worker
    ) -> None:
        job = await new_job(engine)
        await worker.run_all(job)
        # 2 runs of 1 text of 2 sentences: 2 generations, 4 judgements.
        assert Counter(path.split("/")[0] for path in worker.provider.calls) == {
            "generation": 2,
            "judging": 4,
        }
        assert worker.queue.finals == [job.id]
        ended = await worker.finalize(job)
        assert (ended.status, ended.completeness) == (JobStatus.COMPLETED, "full")
        async with engine.connect() as connection:
            stored = json.loads(await jobs.stored_result(connection, TENANT, job.id) or "")
        assert stored["cells"][0]["metrics"]["mean"] == stored["cells"][0]["metrics"]["mean"] | {"value": 2.0}

    async def test_what_is_recorded_is_not_asked_for_again(self, engine: AsyncEngine, worker: Worker) -> None:
        job = await new_job(engine)
        dead = await claimed(engine, job.id)
        rows = [
            row for row in whole_run(dead, 1) if row != whole_run(dead, 1)[-1]
        ]  # the last verdict is missing
        await ResultWriter(engine).write({(dead.shard_id, dead.token): rows})
        await expire(engine, dead)
        await worker.run_all(job)
        assert sorted(worker.provider.calls) == [
            "generation/0/0/0",
            "judging/0/0/0/0/0/0",
            "judging/0/0/0/1/0/0",
            "judging/0/1/0/1/0/0",
        ]
        assert (await worker.finalize(job)).completeness == "full"

    async def test_running_it_again_asks_for_nothing(self, engine: AsyncEngine, worker: Worker) -> None:
        job = await new_job(engine)
        await worker.run_all(job)
        worker.provider.calls.clear()
        await worker.run_all(job)
        assert worker.provider.calls == []

    async def test_a_message_whose_shard_is_done_waits_for_another_shard_of_a_locked_job(
        self, engine: AsyncEngine, worker: Worker
    ) -> None:
        (first,), (second,) = [await shard_ids(engine, (await new_job(engine)).id) for _ in range(2)]
        await worker.run(second)
        open_ = await execute(engine, "SELECT id, job_id FROM shards WHERE NOT done")
        assert [shard.id for shard in open_] == [second]  # the older job came first
        async with engine.begin() as connection:
            await jobs.lock_job(connection, open_[0].job_id)  # as whoever ends a shard of it does
            running = asyncio.create_task(worker.run(first))
            await asyncio.wait({running}, timeout=1)
        await running
        assert await scalar(engine, "SELECT bool_and(done) FROM shards")

    async def test_a_refusal_is_not_sent_to_the_judge(self, engine: AsyncEngine, worker: Worker) -> None:
        worker.provider.text = "I'm sorry, but I can't help with that."
        job = await new_job(engine)
        await worker.run_all(job)
        assert {path.split("/")[0] for path in worker.provider.calls} == {"generation"}
        assert await scalar(engine, "SELECT count(*) FROM verdicts WHERE status = 'refused'") == 2

    async def test_a_failed_item_leaves_the_job_partial(
        self, engine: AsyncEngine, worker: Worker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job = await new_job(engine)
        first, complete = True, worker.provider.complete

        async def once_too_long(request: ChatRequest) -> ChatReply:
            nonlocal first
            if first:
                first = False
                raise ModelCallError("too long", kind=FailureKind.ITEM, code="too_long", status=400)
            return await complete(request)

        monkeypatch.setattr(worker.provider, "complete", once_too_long)
        await worker.run_all(job)
        ended = await worker.finalize(job)
        assert (ended.status, ended.completeness) == (JobStatus.COMPLETED, "partial")
        assert (
            await scalar(engine, "SELECT error FROM responses WHERE status = 'failed'")
            == "too_long: too long"
        )

    async def test_a_job_whose_first_calls_are_turned_down_fails(
        self, engine: AsyncEngine, worker: Worker
    ) -> None:
        worker.provider.error = ModelCallError(
            "no such", kind=FailureKind.JOB, code="model_not_found", status=404
        )
        job = await new_job(engine)
        await worker.run_all(job)
        ended = await worker.finalize(job)
        assert (ended.status, ended.status_reason) == (JobStatus.FAILED, "model_not_found")
        assert ended.error == {
            "code": "model_not_found",
            "cause": "simulated has no model sim-faithful, or the key may not use it",
            "detail": "no such",
            "model": "simulated/sim-faithful",
            "stage": "generation",
            "remedy": "Correct the model's name or the connection's base URL.",
        }

    async def test_the_first_refusal_stops_a_job_that_got_somewhere_though_other_calls_hang(
        self, engine: AsyncEngine, worker: Worker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        provider = RunsOut(worker, monkeypatch)
        job = await new_job(engine)
        running = asyncio.create_task(worker.run_all(job))
        await worker.paused(job)
        assert not running.done()
        assert (await worker.job(job)).status_reason == "insufficient_quota"
        under_way = len(provider.judged)
        provider.hanging.set()
        await running
        assert len(provider.judged) == under_way <= 4, "at most what was in flight"

    async def test_a_refusal_before_a_resumption_does_not_stop_the_resumed_job(
        self, engine: AsyncEngine, worker: Worker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        provider = RunsOut(worker, monkeypatch)
        job = await new_job(engine)
        first, *_ = await shard_ids(engine, job.id)
        running = asyncio.create_task(worker.run(first))
        await worker.paused(job)
        await resume_job(worker.control, TENANT, job.id)
        assert not running.done()
        provider.hanging.set()
        await running
        assert (await worker.job(job)).status is JobStatus.QUEUED
        await worker.run_all(job)
        assert (await worker.finalize(job)).completeness == "full"

    async def test_a_runaway_text_fails_instead_of_costing_a_call_for_each_sentence(
        self, engine: AsyncEngine, worker: Worker
    ) -> None:
        worker.provider.text = "I like it. " * 1001
        job = await new_job(engine)
        await worker.run_all(job)
        assert {path.split("/")[0] for path in worker.provider.calls} == {"generation"}
        error = await scalar(engine, "SELECT DISTINCT error FROM responses")
        assert error == "runaway: more than 1,000 sentences"

    async def test_hostile_texts_hold_up_the_loop_for_no_longer_than_ordinary_ones(
        self, engine: AsyncEngine, worker: Worker
    ) -> None:
        """Each was split on the loop, 0.2 s for 48 kB and 12 s for 3 MB; now nothing counts their sentences beyond the limit."""
        for text, why in [
            (". " * 24_000, "runaway: 24,000 signs that may end a sentence; at most 5,000"),
            (". " * 1_500_000, "runaway: 3,000,000 characters; at most 200,000"),
        ]:
            worker.provider.text = text
            job = await new_job(engine)
            await worker.run_all(job)
            where = "JOIN cells ON cells.id = responses.cell_id WHERE job_id = :job"
            (row,) = await execute(engine, f"SELECT DISTINCT error FROM responses {where}", job=job.id)
            assert row.error == why

    async def test_a_stopped_job_keeps_its_reason_though_a_call_on_the_wire_succeeds(
        self, engine: AsyncEngine, worker: Worker
    ) -> None:
        job = await new_job(engine)
        await worker.run_all(job)
        error = '{"code": "model_not_found", "detail": "no such", "model": "acme/x"}'
        await execute(
            engine,
            "UPDATE jobs SET status = 'finalizing', status_reason = 'model_not_found', error = CAST(:e AS jsonb)",
            e=error,
        )
        ended = await worker.finalize(job)
        assert (ended.status, ended.status_reason) == (JobStatus.FAILED, "model_not_found")
        assert ended.error == json.loads(error)

    async def test_a_job_that_got_somewhere_is_paused_instead(
        self, engine: AsyncEngine, worker: Worker
    ) -> None:
        job = await new_job(engine, iterations=40)
        first, *others = await shard_ids(engine, job.id)
        await worker.run(first)
        worker.provider.error = ModelCallError(
            "no credit", kind=FailureKind.JOB, code="insufficient_quota", status=429
        )
        await worker.run(others[0])
        assert (await worker.job(job)).status is JobStatus.PAUSED
        worker.provider.error = None
        await resume_job(worker.control, TENANT, job.id)
        for shard_id in others:
            await worker.run(shard_id)
        ended = await worker.finalize(job)
        assert (ended.status, ended.completeness, ended.error) == (JobStatus.COMPLETED, "full", None)

    async def test_an_error_of_ours_gives_the_shard_back_until_it_is_hopeless(
        self, engine: AsyncEngine, worker: Worker
    ) -> None:
        worker.provider.error = RuntimeError("a bug")
        job = await new_job(engine)
        with structlog.testing.capture_logs() as logs:
            for attempt in range(1, MAX_SHARD_FAILURES + 1):
                await worker.run_all(job)
                assert await scalar(engine, "SELECT failures FROM shards") == attempt
        assert [entry["event"] for entry in logs] == ["shard failed"] * MAX_SHARD_FAILURES
        paused = await worker.job(job)
        assert (paused.status, paused.status_reason) == (JobStatus.PAUSED, "internal_error")
        assert paused.error is not None
        assert (
            paused.error["detail"] == "an unexpected error occurred"
        )  # its text might hold a persona or a response

    async def test_existing_texts_are_only_judged(self, engine: AsyncEngine, worker: Worker) -> None:
        texts = tuple(a_response("E-low", "essay", TEXT, run=run) for run in (0, 7))
        job = await new_job(engine, models=(), instructions=None, responses=texts)
        await worker.run_all(job)
        assert Counter(path.split("/")[0] for path in worker.provider.calls) == {"judging": 4}
        assert (await worker.finalize(job)).completeness == "full"

    async def test_finalizing_twice_at_once_is_finalizing(self, engine: AsyncEngine, worker: Worker) -> None:
        job = await new_job(engine)
        await worker.run_all(job)
        await asyncio.gather(*(worker.finalize(job) for _ in range(5)))
        assert (await worker.job(job)).status is JobStatus.COMPLETED
        assert await scalar(engine, "SELECT count(*) FROM job_results") == 1

    async def test_a_job_with_open_shards_is_not_finalized(self, engine: AsyncEngine, worker: Worker) -> None:
        job = await new_job(engine)
        assert (await worker.finalize(job)).status is JobStatus.QUEUED


class TestWithdrawnReplies:
    async def test_pause_a_job_only_if_one_request_is_answered_in_vain_again_and_again(
        self, engine: AsyncEngine, worker: Worker
    ) -> None:
        job = await new_job(engine, iterations=8)
        claim = await claimed(engine, job.id)
        await expire(engine, claim)

        async def answer() -> None:
            await execute(engine, "UPDATE jobs SET status = 'running'")
            await worker.run(claim.shard_id)

        async def withdraw(run: int) -> JobError | None:
            async with engine.begin() as connection:
                return await ask_again(connection, claim, [CallKey(Stage.GENERATION, run, 0)] * 2)

        await answer()
        assert [await withdraw(run) for run in range(8)] == [None] * 8
        for _ in range(MOST_SUSPECT_REPLIES - 1):
            await answer()
            assert await withdraw(0) is None
        await answer()
        error = await withdraw(0)
        assert error is not None
        assert (error.code, error.model) == ("suspect_reply", "simulated/sim-faithful")
        assert error.detail == "6 replies to the same request may belong to other requests"


@pytest.mark.usefixtures("calls_at_once")
class TestStops:
    async def test_after_a_cancellation_no_call_starts_and_what_is_paid_for_is_kept(
        self, engine: AsyncEngine, worker: Worker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(stop_signal, "GRACE_SECONDS", 60.0)
        worker.provider.gate = asyncio.Event()
        job = await new_job(engine)
        running = asyncio.create_task(worker.run_all(job))
        await worker.provider.called.wait()
        await cancel_job(worker.control, TENANT, job.id)
        assert worker.queue.finals == []  # its last lease is still held
        await asyncio.sleep(0.1)
        on_the_wire = len(worker.provider.calls)
        worker.provider.gate.set()
        await running
        assert len(worker.provider.calls) == on_the_wire
        assert worker.queue.finals == [job.id]
        ended = await worker.finalize(job)
        assert (ended.status, ended.completeness) == (JobStatus.CANCELLED, "partial")
        # The calls on the wire were awaited, and their answers are there.
        assert await scalar(engine, "SELECT count(*) FROM calls WHERE outcome = 'ok'") == on_the_wire
        assert await scalar(engine, "SELECT count(*) FROM responses") == on_the_wire

    async def test_a_call_that_hangs_does_not_hold_a_cancellation_and_may_have_been_paid(
        self, engine: AsyncEngine, worker: Worker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(stop_signal, "GRACE_SECONDS", 0.1)
        worker.provider.gate = asyncio.Event()
        job = await new_job(engine)
        running = asyncio.create_task(worker.run_all(job))
        await worker.provider.called.wait()
        await cancel_job(worker.control, TENANT, job.id)
        await running
        ended = await worker.finalize(job)
        assert (ended.status, ended.completeness) == (JobStatus.CANCELLED, "partial")
        rows = await execute(engine, "SELECT DISTINCT outcome, code, maybe_paid, usd FROM calls")
        assert [tuple(row) for row in rows] == [("retry", "abandoned", True, None)]
        assert (await view_job(engine, TENANT, job.id)).cost.unpriced_calls == 2

    async def test_a_call_that_hangs_is_awaited_by_a_paused_job(
        self, engine: AsyncEngine, worker: Worker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(stop_signal, "GRACE_SECONDS", 0.0)
        worker.provider.gate = asyncio.Event()
        job = await new_job(engine)
        running = asyncio.create_task(worker.run_all(job))
        await worker.provider.called.wait()
        await pause_job(worker.control, TENANT, job.id)
        await asyncio.sleep(0.1)
        assert not running.done()
        worker.provider.gate.set()
        await running
        assert await scalar(engine, "SELECT count(*) FROM responses") == 2

    async def test_a_paused_job_goes_on_where_it_stopped(self, engine: AsyncEngine, worker: Worker) -> None:
        worker.provider.gate = asyncio.Event()
        job = await new_job(engine)
        running = asyncio.create_task(worker.run_all(job))
        await worker.provider.called.wait()
        await pause_job(worker.control, TENANT, job.id)
        await asyncio.sleep(0.1)
        worker.provider.gate.set()
        await running
        await resume_job(worker.control, TENANT, job.id)
        await worker.run_all(job)
        assert (await worker.finalize(job)).completeness == "full"
        assert len(worker.provider.calls) == len(set(worker.provider.calls)) == 6

    async def test_a_worker_that_lost_its_lease_stops_and_its_rows_are_refused(
        self, engine: AsyncEngine, worker: Worker
    ) -> None:
        worker.provider.gate = asyncio.Event()
        job = await new_job(engine)
        running = asyncio.create_task(worker.run_all(job))
        await worker.provider.called.wait()
        await execute(engine, "UPDATE shards SET lease_expires_at = clock_timestamp() - interval '1 second'")
        assert await take(engine, (await shard_ids(engine, job.id))[0], "another worker") is not None
        worker.provider.gate.set()
        await running
        assert await scalar(engine, "SELECT count(*) FROM responses") == 0
        assert await scalar(engine, "SELECT count(*) FROM calls") == 2
        assert await scalar(engine, "SELECT lease_owner FROM shards") == "another worker"
