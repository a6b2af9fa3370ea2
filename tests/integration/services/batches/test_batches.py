"""Calls in batches, against a real simulator and a real database; workers "die" at the instruction that a test names."""

import asyncio
import contextlib
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from typing import Any, Literal
from unittest.mock import AsyncMock

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.batches import batches
from app.db.batches import calls as batch_calls
from app.db.execution import shards
from app.db.jobs.jobs import JobRow
from app.domain.errors import InvalidJobError
from app.domain.instruments.refusal import Refusal, RefusalRules
from app.domain.jobs.budget import Budget
from app.domain.jobs.execution import Execution
from app.domain.jobs.request import JudgingIn
from app.domain.jobs.status import ACTIVE, JobStatus
from app.domain.providers.model import ChatReply, FinishReason, Usage
from app.llm.batches.gateway import BatchGateway
from app.llm.connections.connections import load_connections
from app.llm.models.prices import GenaiPriceBook
from app.ports import BatchTooLargeError, FailureKind, ModelCallError, UploadedBatch
from app.services.batches import advance as advance_module
from app.services.batches.advance import advance_batch
from app.services.batches.files import delete_batch_file
from app.services.execution.retries import JobMustStopError
from app.services.execution.shard_work import Batching
from app.services.execution.stopping import halt_job
from app.services.jobs.control import cancel_job, change_budget, pause_job, resume_job
from app.services.jobs.view import view_job
from app.services.scheduling import sweep as sweep_module
from app.services.scheduling.sweep import sweep
from tests.integration.jobs import (
    TENANT,
    control_dependencies,
    execute,
    new_job,
    scalar,
    shard_ids,
    simulated_connections,
)
from tests.integration.services.scheduling.test_run_shard import Provider, Worker
from tests.integration.simulator.conftest import RunningSimulator
from tests.job_requests import a_model, a_response

MOST_CALLS = 40
ROUNDS = 400


class DiedError(BaseException):
    """Nothing of the worker runs any more; what it held runs out."""


class Service(Worker):
    """A worker and a sweeper, one step after the other; prices make the simulator's models worth something."""

    def __init__(self, engine: AsyncEngine, running: RunningSimulator) -> None:
        super().__init__(engine, Provider())
        connections = simulated_connections(running.url)
        self.simulator = running
        self.gateway = BatchGateway(connections)
        batching = Batching(self.gateway, GenaiPriceBook(connections), 0.01, MOST_CALLS)
        self.deps = replace(self.deps, batching=batching)

    def change_batching(self, **changes: Any) -> None:
        """From now on batches are sent with other dependencies or limits."""
        self.deps = replace(self.deps, batching=replace(self.deps.batching, **changes))

    async def step(self) -> None:
        """Everything that is announced, once."""
        await sweep(self.engine, self.queue, 4, self.deps.batching.most_calls)
        waiting = (self.queue.shards, self.queue.batches, self.queue.finals)
        (self.queue.shards, self.queue.batches, self.queue.finals) = ([], [], [])
        files, self.queue.files = self.queue.files, []
        for shard_id in dict.fromkeys(waiting[0]):
            await self.run(shard_id)
        for batch_id in dict.fromkeys(waiting[1]):
            await advance_batch(self.deps, batch_id)
        for job_id in dict.fromkeys(waiting[2]):
            await self.finalize_by_id(job_id)
        for file_id in files:
            await delete_batch_file(self.deps, file_id)

    async def until(self, job: JobRow, *statuses: JobStatus) -> JobRow:
        for _ in range(ROUNDS):
            found = await self.job(job)
            if found.status in statuses:
                return found
            await self.step()
            await asyncio.sleep(0.01)
        raise AssertionError(f"{found.status} after {ROUNDS} rounds")

    async def completed(self, job: JobRow) -> JobRow:
        return await self.until(job, JobStatus.COMPLETED)

    async def until_submitted(self) -> None:
        for _ in range(ROUNDS):
            if await scalar(self.engine, "SELECT count(*) FROM batches WHERE state = 'submitted'"):
                return
            await self.step()
        raise AssertionError("nothing was submitted")

    async def dies(self) -> None:
        """All leases have run out."""
        for table in ("shards", "batches"):
            await execute(
                self.engine,
                f"UPDATE {table} SET lease_expires_at = clock_timestamp() - interval '1 second'"
                " WHERE lease_expires_at IS NOT NULL",
            )
        await execute(self.engine, "UPDATE batches SET due_at = clock_timestamp() WHERE state <> 'ended'")

    def asked(self, job: JobRow) -> Counter[str]:
        """How often the provider was asked for the same, whatever the attempt."""
        ids = [str(entry["request_id"]) for entry in self.simulator.ledger()]
        return Counter(id_.rpartition("/")[0] for id_ in ids if id_.startswith(job.id))


@pytest.fixture(scope="class")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSimulator]:
    """A provider of their own for the tests of a class: batches without names are found by size and time."""
    running = RunningSimulator(tmp_path_factory.mktemp("simulator"))
    yield running
    running.stop()


@pytest.fixture
async def service(engine: AsyncEngine, simulator: RunningSimulator) -> AsyncIterator[Service]:
    simulator.configure(batch_ms=0, batch_limit=0, batch_expired=0, error_rate=0)
    made = Service(engine, simulator)
    async with made.deps.writer.running(), made.deps.leases.running():
        yield made
    await made.gateway.close()


@pytest.fixture(params=["simulated", "simulated-anthropic"])
def connection(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def batched_job(service: Service, connection: str = "simulated", **changes: Any) -> JobRow:
    usual: dict[str, Any] = {
        "models": (a_model(f"{connection}/sim-faithful"),),
        "judges": (a_model(f"{connection}/sim-judge"),),
    }
    return await new_job(service.engine, queue=service.queue, execution=Execution.BATCH, **(usual | changes))


def dying_once(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[str]:
    """The worker dies with the next call of a coroutine function."""
    original: Callable[..., Any] = getattr(owner, name)
    died: list[str] = []

    async def dying(*args: Any, **kwargs: Any) -> Any:
        if not died:
            died.append(name)
            raise DiedError
        return await original(*args, **kwargs)

    monkeypatch.setattr(owner, name, dying)
    return died


async def survived(service: Service, job: JobRow) -> None:
    """Drives a job to its end, over the death of a worker."""
    for _ in range(ROUNDS):
        with contextlib.suppress(DiedError):
            await service.step()
        await service.dies()
        if (await service.job(job)).status is JobStatus.COMPLETED:
            return
    raise AssertionError("not completed")


class TestRefusalChecks:
    @pytest.mark.parametrize(("refusals", "read"), [("judge", Refusal.UNSURE), ("judge_all", Refusal.NO)])
    async def test_follow_their_texts_in_a_further_round_and_are_asked_once(
        self,
        refusals: Literal["judge", "judge_all"],
        read: Refusal,
        engine: AsyncEngine,
        service: Service,
        monkeypatch: pytest.MonkeyPatch,
        connection: str,
    ) -> None:
        monkeypatch.setattr(RefusalRules, "read", lambda *_: read)
        monkeypatch.setattr(RefusalRules, "is_refusal", lambda *_: False)
        died = dying_once(monkeypatch, batches, "store_answers")
        job = await batched_job(service, connection, judging=JudgingIn(refusals=refusals))
        await survived(service, job)
        assert died
        assert set(service.asked(job).values()) == {1}
        texts = await execute(engine, "SELECT notes ->> 'refusal_check', input_tokens IS NULL FROM responses")
        assert {tuple(row) for row in texts} <= {("No", False), ("Yes", False)}
        answered = "SELECT count(*) FROM calls WHERE stage = 'refusal_check' AND outcome = 'ok'"
        assert await scalar(engine, answered) == len(texts) > 0


class TestFollowUps:
    async def test_follow_unreadable_replies_in_a_further_round_and_are_asked_once(
        self, engine: AsyncEngine, service: Service, monkeypatch: pytest.MonkeyPatch, connection: str
    ) -> None:
        service.change_batching(most_calls=1_000)
        job = await batched_job(
            service, connection, judges=(a_model(f"{connection}/sim-judge-noisy"),), iterations=20
        )
        while not await scalar(engine, "SELECT count(*) FROM unread_replies"):
            await service.step()
        died = dying_once(monkeypatch, batches, "store_answers")
        await survived(service, job)
        assert died
        assert set(service.asked(job).values()) == {1}
        found = await execute(
            engine, "SELECT status, score, unread, repair_raw FROM verdicts WHERE unread IS NOT NULL"
        )
        assert found
        assert all(row.status != "unparsed" and row.repair_raw for row in found)
        assert await scalar(engine, "SELECT count(*) FROM calls WHERE stage = 'repairing'") == len(found)
        same_batch = "SELECT count(*) FROM calls a JOIN calls b USING (batch_id, cell_id, run, item, unit, trait, judge)"
        assert not await scalar(engine, f"{same_batch} WHERE a.stage = 'judging' AND b.stage = 'repairing'")
        assert await scalar(engine, "SELECT count(*) FROM unread_replies") == 0


class TestDeath:
    @pytest.mark.parametrize(
        ("connection", "owner", "name"),
        [
            ("simulated", batches, "submitted"),
            ("simulated", batches, "store_answers"),
            ("simulated", batches, "end"),
            ("simulated", batch_calls, "replace"),
            ("simulated", shards, "park"),
            ("simulated", shards, "finish"),
            ("simulated-anthropic", batches, "submitted"),
            ("simulated-anthropic", batches, "store_answers"),
        ],
        ids=lambda value: getattr(value, "__name__", str(value)).rpartition(".")[2],
    )
    async def test_costs_nothing_twice(
        self,
        engine: AsyncEngine,
        service: Service,
        monkeypatch: pytest.MonkeyPatch,
        connection: str,
        owner: Any,
        name: str,
    ) -> None:
        died = dying_once(monkeypatch, owner, name)
        # No other test's batch at the simulator, of the last five minutes, has as many calls.
        job = await batched_job(service, connection, iterations=5)
        await survived(service, job)
        assert died
        assert set(service.asked(job).values()) == {1}
        assert (await service.job(job)).completeness == "full"
        assert await scalar(engine, "SELECT count(*) FROM calls") == service.asked(job).total()
        assert not await scalar(engine, "SELECT count(*) FROM batch_calls")

    async def test_before_the_provider_was_asked_leads_to_another_submission(
        self, service: Service, monkeypatch: pytest.MonkeyPatch, connection: str
    ) -> None:
        upload = service.gateway.upload
        died: list[str] = []

        async def dying(where: str, name: str, calls: AsyncIterator[tuple[str, str]]) -> UploadedBatch:
            uploaded = await upload(where, name, calls)

            async def submit_later(name: str) -> str:
                if not died:
                    died.append(name)
                    raise DiedError
                return await uploaded.submit(name)

            return uploaded._replace(submit=submit_later)

        monkeypatch.setattr(service.gateway, "upload", dying)
        job = await batched_job(service, connection)
        await survived(service, job)
        assert died
        assert set(service.asked(job).values()) == {1}

    async def test_anothers_batch_that_is_taken_for_ours_is_found_out_and_ours_counts_as_perhaps_paid(
        self, engine: AsyncEngine, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        upload = service.gateway.upload
        sent: list[list[str]] = []

        async def dying(where: str, name: str, calls: AsyncIterator[tuple[str, str]]) -> UploadedBatch:
            requests = [request async for _, request in calls]

            async def given() -> AsyncIterator[tuple[str, str]]:
                for number, request in enumerate(requests):
                    yield f"another-{number}", request

            uploaded = await upload(where, name, given())

            async def submit_anothers(name: str) -> str:
                monkeypatch.undo()
                sent.append(requests)
                await uploaded.submit(name)
                raise DiedError

            return uploaded._replace(submit=submit_anothers)

        monkeypatch.setattr(service.gateway, "upload", dying)
        job = await batched_job(service, "simulated-anthropic")
        await survived(service, job)
        lost = await execute(engine, "SELECT maybe_paid, usd FROM calls WHERE code = 'batch_lost'")
        assert [(row.maybe_paid, row.usd) for row in lost] == [(True, 0.0)] * len(sent[0])
        assert (await service.job(job)).completeness == "full"


class TestSingleFailures:
    async def test_go_into_another_round(
        self, engine: AsyncEngine, service: Service, connection: str
    ) -> None:
        service.simulator.configure(error_rate=0.15)
        job = await batched_job(service, connection)
        await service.completed(job)
        rows = await execute(engine, "SELECT outcome, count(*) AS calls FROM calls GROUP BY outcome")
        outcomes = {row.outcome: row.calls for row in rows}
        assert outcomes["retry"] > 0
        assert outcomes["ok"] + outcomes["retry"] == service.asked(job).total()
        assert await scalar(engine, "SELECT count(*) FROM responses WHERE status = 'failed'") == 0

    @pytest.mark.parametrize(("iterations", "rounds"), [(40, 1), (2, 2)])
    async def test_that_are_all_alike_pause_the_job_before_further_rounds(
        self, engine: AsyncEngine, service: Service, iterations: int, rounds: int
    ) -> None:
        job = await batched_job(service, iterations=iterations)
        service.simulator.configure(error_rate=1)
        paused = await service.until(job, JobStatus.PAUSED)
        assert await scalar(engine, "SELECT max(attempt) FROM calls") == rounds
        assert await scalar(engine, "SELECT count(*) FROM calls") == iterations * rounds
        assert paused.error is not None
        assert paused.error["stage"] == "generation"
        assert paused.error["first_calls"] >= min(10, iterations)
        service.simulator.configure(error_rate=0)
        await resume_job(service.control, TENANT, job.id)
        assert (await service.completed(job)).completeness == "full"

    async def test_that_are_all_alike_pause_a_job_of_many_shards_once(
        self, engine: AsyncEngine, service: Service
    ) -> None:
        service.change_batching(most_calls=100)
        job = await batched_job(service, iterations=24, personas=("E-high", "E-low", "A-high"))
        service.simulator.configure(error_rate=1)
        await service.until(job, JobStatus.PAUSED)
        for _ in range(20):
            await service.step()
        service.simulator.configure(error_rate=0)
        await resume_job(service.control, TENANT, job.id)
        assert (await service.completed(job)).completeness == "full"
        assert await scalar(engine, "SELECT count(*) FROM calls WHERE outcome <> 'ok'") == 72

    async def test_of_judges_that_are_all_alike_pause_the_job_with_its_texts(
        self, engine: AsyncEngine, service: Service
    ) -> None:
        job = await batched_job(service, iterations=16)
        while not await scalar(engine, "SELECT count(*) FROM responses"):
            await service.step()
        service.simulator.configure(error_rate=1)
        paused = await service.until(job, JobStatus.PAUSED)
        assert paused.error is not None
        assert paused.error["stage"] == "judging"
        assert await scalar(engine, "SELECT max(attempt) FROM calls") == 1
        assert await scalar(engine, "SELECT count(*) FROM responses WHERE status = 'answered'") == 16

    async def test_follow_ups_that_all_fail_leave_the_replies_unparsed(
        self, engine: AsyncEngine, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        broken = False

        def decode(connection: str, answer: str) -> ChatReply:
            if broken:
                raise ModelCallError("no", kind=FailureKind.ITEM, code="bad_request", status=400)
            return ChatReply("Hard to say.", FinishReason.STOP, Usage(10, 4))

        monkeypatch.setattr(service.gateway, "decode", decode)
        text = " ".join(f"I like {number} cats." for number in range(12))
        job = await new_job(
            engine,
            models=(),
            instructions=None,
            responses=(a_response("E-low", "essay", text),),
            judges=(a_model("simulated/sim-judge"),),
            execution=Execution.BATCH,
        )
        while await scalar(engine, "SELECT count(*) FROM unread_replies") < 12:
            await service.step()
        broken = True
        await service.until(job, JobStatus.COMPLETED, JobStatus.FAILED)
        assert await scalar(engine, "SELECT count(*) FROM verdicts WHERE status = 'unparsed'") == 12
        assert await scalar(engine, "SELECT count(*) FROM calls WHERE stage = 'repairing'") == 12

    async def test_expired_ones_are_asked_again_and_cost_nothing(
        self, engine: AsyncEngine, service: Service, connection: str
    ) -> None:
        service.simulator.configure(batch_expired=0.3)
        job = await batched_job(service, connection)
        await service.completed(job)
        (expired,) = await execute(
            engine, "SELECT count(*), bool_or(maybe_paid) AS paid FROM calls WHERE code = 'batch_expired'"
        )
        assert expired.count > 0
        assert not expired.paid


class TestSize:
    async def test_a_batch_beyond_the_enqueued_limit_is_made_smaller(
        self, engine: AsyncEngine, service: Service
    ) -> None:
        service.simulator.configure(batch_limit=15)
        job = await batched_job(service)
        assert (await service.completed(job)).completeness == "full"
        assert await scalar(engine, "SELECT max(calls) FROM batches") <= 15
        assert set(service.asked(job).values()) == {1}


class TestControl:
    async def test_a_paused_job_collects_what_is_on_its_way_and_submits_nothing(
        self, engine: AsyncEngine, service: Service
    ) -> None:
        job = await batched_job(service)
        await service.until_submitted()
        await pause_job(service.control, TENANT, job.id)
        for _ in range(20):
            await service.step()
        assert await scalar(engine, "SELECT array_agg(DISTINCT state) FROM batches") == ["ended"]
        written = await scalar(engine, "SELECT count(*) FROM responses")
        assert 0 < written == service.asked(job).total()
        await resume_job(service.control, TENANT, job.id)
        assert (await service.completed(job)).completeness == "full"
        assert set(service.asked(job).values()) == {1}

    async def test_a_cancelled_job_keeps_what_was_answered(
        self, engine: AsyncEngine, service: Service, connection: str
    ) -> None:
        job = await batched_job(service, connection, iterations=16)
        service.simulator.configure(batch_ms=8000)
        await service.until_submitted()
        await asyncio.sleep(1.0)
        await cancel_job(service.control, TENANT, job.id)
        assert (await service.until(job, JobStatus.CANCELLED)).status is JobStatus.CANCELLED
        answered = service.asked(job).total()
        assert 0 < answered < 16
        assert await scalar(engine, "SELECT count(*) FROM responses") == answered
        assert await scalar(engine, "SELECT count(*) FROM calls WHERE outcome = 'ok'") == answered

    async def test_a_budget_cuts_batches_and_pauses_the_job(
        self, engine: AsyncEngine, service: Service
    ) -> None:
        job = await batched_job(service, budget=Budget(calls=20))
        paused = await service.until(job, JobStatus.PAUSED)
        assert paused.status_reason == "budget_exhausted"
        assert service.asked(job).total() == 20
        assert await scalar(engine, "SELECT count(*) FROM batches WHERE cut") > 0
        await change_budget(service.control, TENANT, job.id, Budget(calls=10_000))
        await resume_job(service.control, TENANT, job.id)
        assert (await service.completed(job)).completeness == "full"
        assert set(service.asked(job).values()) == {1}

    async def test_one_that_others_leave_no_room_for_is_tried_again_until_they_do(
        self, engine: AsyncEngine, service: Service
    ) -> None:
        service.simulator.configure(batch_limit=15, batch_ms=600_000)

        async def others() -> AsyncIterator[tuple[str, str]]:
            for number in range(15):
                yield f"another-{number}", '{"model": "sim-faithful", "messages": []}'

        await service.gateway.prepare("simulated", TENANT)
        uploaded = await service.gateway.upload("simulated", "others.jsonl", others())
        provider_id = await uploaded.submit("another program's")
        service.simulator.configure(batch_ms=0)
        job = await batched_job(service, iterations=10)
        for _ in range(ROUNDS):
            await service.step()
            if await scalar(engine, "SELECT max(submissions) FROM batches") > 4:
                break
        assert (await service.job(job)).status is JobStatus.RUNNING
        assert await scalar(engine, "SELECT min(calls) FROM batches") >= advance_module.FEWEST_CALLS // 2
        # Only one of them is tried.
        assert await scalar(engine, "SELECT count(*) FROM batches WHERE submissions > 0") == 1
        await service.gateway.cancel("simulated", provider_id)
        service.simulator.configure(batch_limit=0)
        assert (await service.completed(job)).completeness == "full"
        assert set(service.asked(job).values()) == {1}


class TestFailingProvider:
    async def test_a_key_that_is_refused_does_not_have_the_other_batches_asked_for_at_once(
        self, engine: AsyncEngine, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        service.simulator.configure(batch_ms=600_000)
        job = await batched_job(service)
        await service.until_submitted()
        await pause_job(service.control, TENANT, job.id)
        asked = AsyncMock()
        monkeypatch.setattr(service.gateway, "has_ended", asked)
        due = "SELECT due_at FROM batches WHERE state = 'submitted'"
        (batch_id,) = [row.id for row in await execute(engine, "SELECT id FROM batches")]
        await execute(engine, "UPDATE batches SET due_at = clock_timestamp() + interval '60 seconds'")
        before = await scalar(engine, due)
        await halt_job(engine, job.id, JobMustStopError("invalid_api_key", "", "simulated/sim-faithful"))
        assert await scalar(engine, due) == before
        await advance_batch(service.deps, batch_id)  # a message that was late
        asked.assert_not_awaited()

    @pytest.mark.parametrize(
        "refusal",
        [
            ModelCallError("wrong key", kind=FailureKind.JOB, code="invalid_api_key", status=401),
            BatchTooLargeError("one call is too many", for_now=False),
        ],
        ids=["key", "size"],
    )
    async def test_a_refusal_from_before_a_resumption_does_not_stop_the_job(
        self, service: Service, monkeypatch: pytest.MonkeyPatch, refusal: Exception
    ) -> None:
        job = await batched_job(service, iterations=1, instructions=(1,))
        upload = service.gateway.upload

        async def refused_late(*_: Any) -> UploadedBatch:
            monkeypatch.setattr(service.gateway, "upload", upload)
            await pause_job(service.control, TENANT, job.id)
            await resume_job(service.control, TENANT, job.id)
            raise refusal

        monkeypatch.setattr(service.gateway, "upload", refused_late)
        while service.gateway.upload is not upload:
            await service.step()
        assert (await service.job(job)).status in ACTIVE
        assert (await service.completed(job)).completeness == "full"

    @pytest.mark.parametrize("made", [True, False])
    async def test_a_batch_that_a_5xx_may_have_hidden_is_looked_for(
        self,
        engine: AsyncEngine,
        service: Service,
        monkeypatch: pytest.MonkeyPatch,
        connection: str,
        made: bool,
    ) -> None:
        upload = service.gateway.upload

        async def failing(where: str, name: str, calls: AsyncIterator[tuple[str, str]]) -> UploadedBatch:
            uploaded = await upload(where, name, calls)

            async def submit_and_fail(name: str) -> str:
                monkeypatch.undo()
                if made:
                    await uploaded.submit(name)
                raise ModelCallError("HTTP 502", kind=FailureKind.RETRY, code="http_502", status=502)

            return uploaded._replace(submit=submit_and_fail)

        monkeypatch.setattr(service.gateway, "upload", failing)
        job = await batched_job(service, connection)
        assert (await service.completed(job)).completeness == "full"
        assert await scalar(engine, "SELECT max(submissions) FROM batches") <= (1 if made else 2)

    async def test_an_interrupted_submission_is_not_mistaken_for_one_whose_upload_took_long(
        self, engine: AsyncEngine, service: Service
    ) -> None:
        service.change_batching(most_calls=23)  # a size that no other test leaves at the simulator
        job = await batched_job(service, "simulated-anthropic", iterations=46)
        for shard_id in await shard_ids(engine, job.id):
            await service.run(shard_id)
        first, second = service.queue.batches
        await advance_batch(service.deps, first)
        await execute(
            engine,
            "UPDATE batches SET submitted_at = submitted_at - interval '8 minutes' WHERE id = :id",
            id=first,
        )
        await execute(
            engine,
            "UPDATE batches SET state = 'submitting', submissions = 1, submitted_at = clock_timestamp()"
            " WHERE id = :id",
            id=second,
        )
        await advance_batch(service.deps, second)
        assert await scalar(engine, "SELECT state FROM batches WHERE id = :id", id=second) == "formed"


class TestEnding:
    async def test_a_job_that_waits_for_a_provider_that_fails_says_so(
        self, engine: AsyncEngine, service: Service
    ) -> None:
        job = await batched_job(service)
        await service.until_submitted()
        await execute(engine, """UPDATE jobs SET request = request || '{"execution": "batch"}'""")
        await execute(engine, "UPDATE batches SET failures = 3")
        running = (await view_job(engine, TENANT, job.id)).batches
        await cancel_job(service.control, TENANT, job.id)
        ending = (await view_job(engine, TENANT, job.id)).batches
        assert running is not None
        assert re.fullmatch(
            r"1 batch, submitted at \d{4}-\d\d-\d\d \d\d:\d\d UTC; the provider could not be asked 3 times in a row",
            running.waiting_for or "",
        )
        assert ending is not None
        assert re.fullmatch(
            re.escape(f"{running.waiting_for}; the job ends when the provider has ended it, and gives up at ")
            + r"\d{4}-\d\d-\d\d \d\d:\d\d UTC; cancel it again to give up now",
            ending.waiting_for or "",
        )

    async def test_a_cancelled_job_ends_though_the_queue_lost_the_messages_about_what_is_to_be_read(
        self, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sweep_module, "UNCLAIMED_SECONDS", 0.1)
        job = await batched_job(service)
        await service.until_submitted()
        await cancel_job(service.control, TENANT, job.id)
        while not service.queue.shards:
            await service.step()
        service.queue.shards.clear()
        ended = await service.until(job, JobStatus.CANCELLED)
        assert ended.status is JobStatus.CANCELLED

    async def test_a_cancelled_job_reads_its_answers_though_other_shards_of_it_are_announced(
        self, engine: AsyncEngine, service: Service
    ) -> None:
        service.change_batching(most_calls=2)
        personas = ("E-low", "E-high", "C-low", "C-high", "A-low", "A-high")
        job = await batched_job(service, personas=personas, iterations=1)
        for shard_id in (await shard_ids(engine, job.id))[:2]:
            await service.run(shard_id)
        (batch_id,) = service.queue.batches
        await advance_batch(service.deps, batch_id)
        await sweep(engine, service.queue, 4, 2)
        await cancel_job(service.control, TENANT, job.id)
        await service.until(job, JobStatus.CANCELLED)


class TestLostBatches:
    def lose(self, service: Service, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
        """Has the provider answer so many polls that it has no such batch."""
        original, left = service.gateway.has_ended, [None] * times

        async def has_ended(connection: str, provider_id: str) -> bool:
            if left:
                left.pop()
                raise ModelCallError("No batch", kind=FailureKind.JOB, code="http_404", status=404)
            return await original(connection, provider_id)

        monkeypatch.setattr(service.gateway, "has_ended", has_ended)

    async def test_one_that_comes_back_goes_on_and_is_asked_once(
        self, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.lose(service, monkeypatch, 4)
        job = await batched_job(service)
        assert (await service.completed(job)).completeness == "full"
        assert set(service.asked(job).values()) == {1}

    async def test_one_that_stays_away_pauses_the_job_which_goes_on_once_it_is_back(
        self, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as lost:
            self.lose(service, lost, 10_000)
            job = await batched_job(service)
            paused = await service.until(job, JobStatus.PAUSED)
        assert paused.error is not None
        assert (paused.status_reason, paused.error["model"]) == ("batch_not_found", "simulated/sim-faithful")
        assert "cancel the job to give the batch up" in paused.error["remedy"]
        await resume_job(service.control, TENANT, job.id)
        assert (await service.completed(job)).completeness == "full"
        assert set(service.asked(job).values()) == {1}

    @pytest.mark.parametrize("status", ["running", "paused", "cancelling", "finalizing"])
    async def test_a_job_that_waits_for_one_is_ended_by_cancelling_it(
        self, engine: AsyncEngine, service: Service, monkeypatch: pytest.MonkeyPatch, status: str
    ) -> None:
        self.lose(service, monkeypatch, 10_000)
        job = await batched_job(service, budget=Budget(usd=5.0))
        await service.until_submitted()
        await execute(engine, "UPDATE jobs SET status = :status", status=status)
        await cancel_job(service.control, TENANT, job.id)
        if status in {"running", "paused"}:
            for _ in range(10):
                await service.step()
            assert (await service.job(job)).status is JobStatus.CANCELLING
            await cancel_job(service.control, TENANT, job.id)
        ended = await service.until(job, JobStatus.CANCELLED, JobStatus.FAILED, JobStatus.COMPLETED)
        assert ended.status is (JobStatus.FAILED if status == "finalizing" else JobStatus.CANCELLED)
        assert await scalar(engine, "SELECT count(*) FROM batches WHERE state <> 'ended'") == 0

    async def test_one_that_its_provider_never_ends_is_given_up_when_its_time_is_over(
        self, engine: AsyncEngine, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(service.gateway, "has_ended", AsyncMock(return_value=False))
        job = await batched_job(service)
        await service.until_submitted()
        await cancel_job(service.control, TENANT, job.id)
        for _ in range(10):
            await service.step()
        assert (await service.job(job)).status is JobStatus.CANCELLING
        await execute(engine, "UPDATE batches SET give_up_at = clock_timestamp(), due_at = clock_timestamp()")
        assert (await service.until(job, JobStatus.CANCELLED)).status is JobStatus.CANCELLED


class TestWhereThereAreNone:
    async def test_the_job_is_refused(self, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
        file = "connections: {own: {kind: openai, base_url: 'http://127.0.0.1:9/v1'}}"
        connections = load_connections(file, {}, None)
        monkeypatch.setattr("tests.integration.jobs.simulated_connections", lambda: connections)
        with pytest.raises(InvalidJobError) as refused:
            await batched_job(service, "own")
        (problem,) = refused.value.errors
        assert problem.pointer == "/execution"
        assert "'own'" in problem.message

    async def test_a_provider_that_knows_no_batches_stops_the_job(
        self, engine: AsyncEngine, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(advance_module, "LONGEST_BACKOFF_SECONDS", 0.01)
        own = f"{{kind: openai, base_url: '{service.simulator.url}/elsewhere', api_key_env: KEY, batches: true}}"
        nowhere = load_connections(f"connections: {{own: {own}}}", {"KEY": "a key"}, None)
        gateway = BatchGateway(nowhere)
        service.change_batching(chat=gateway)
        monkeypatch.setattr("tests.integration.jobs.simulated_connections", lambda: nowhere)
        service.deps = replace(service.deps, call_rules=control_dependencies(engine).call_rules)
        job = await batched_job(service, "own")
        failed = await service.until(job, JobStatus.FAILED)
        await gateway.close()
        assert failed.error is not None
        assert (failed.status_reason, failed.error["model"]) == ("no_batch_endpoints", "own/sim-faithful")
