"""The first calls of a kind. The model is scripted; workers share a real database."""

import asyncio
from collections import Counter

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.domain.jobs.status import JobStatus
from app.domain.providers.failure import remedy
from app.domain.providers.model import ChatReply, ChatRequest
from app.ports import FailureKind, ModelCallError
from app.services.execution import first_calls
from app.services.execution.first_calls import DOUBTED_AFTER, FEWEST_TRIALS, FIRST_CALLS
from app.services.jobs.control import resume_job, retry_job
from app.services.jobs.view import view_job
from tests.integration.jobs import TENANT, execute, new_job, scalar, shard_ids
from tests.integration.services.scheduling.test_run_shard import Provider, Worker
from tests.job_requests import a_model

pytestmark = pytest.mark.usefixtures("looks_often")

WORDS = "HTTP 400: temperature is deprecated for this model"
REFUSED = ModelCallError(WORDS, kind=FailureKind.ITEM, code="invalid_request_error", status=400)
KEY_REFUSED = ModelCallError("HTTP 401: no", kind=FailureKind.JOB, code="invalid_api_key", status=401)
FLAGGED = ModelCallError("HTTP 403: flagged", kind=FailureKind.ITEM, code="http_403", status=403)
UNEXPLAINED = ModelCallError(
    "HTTP 403: no", kind=FailureKind.ITEM, code="http_403", status=403, unexplained=True
)
FILTERED = ModelCallError("HTTP 400: filtered", kind=FailureKind.FILTERED, code="content_filter", status=400)


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

    def made(self) -> Counter[str]:
        return Counter(path.partition("/")[0] for path in self.calls)


@pytest.fixture
def provider() -> Refusing:
    return Refusing()


def provider_of(worker: Worker) -> Refusing:
    assert isinstance(worker.provider, Refusing)
    return worker.provider


class TestTheFirstCall:
    @pytest.mark.parametrize(
        ("stage", "made", "status"),
        [
            ("generation", {"generation": 1}, JobStatus.FINALIZING),
            ("judging", {"generation": 1, "judging": 1}, JobStatus.PAUSED),
        ],
    )
    async def test_is_the_only_one_that_a_wrong_key_costs(
        self, stage: str, made: dict[str, int], status: JobStatus, engine: AsyncEngine, worker: Worker
    ) -> None:
        provider = provider_of(worker)
        provider.stage, provider.refusal = stage, KEY_REFUSED
        job = await new_job(engine, personas=("E-low", "E-high", "A-low", "A-high"), iterations=50)
        shards = await shard_ids(engine, job.id)
        assert len(shards) >= 4
        await asyncio.gather(*map(worker.run, shards))
        assert (provider.made(), (await worker.job(job)).status) == (made, status)

    async def test_goes_alone_only_for_a_while(
        self, engine: AsyncEngine, worker: Worker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(first_calls, "LEAD_SECONDS", 0.05)
        provider = provider_of(worker)
        provider.refusal = None
        first, answered, started = asyncio.Event(), provider.complete, []

        async def slow_first(request: ChatRequest) -> ChatReply:
            started.append(request)
            if len(started) == 1:
                await first.wait()
            return await answered(request)

        monkeypatch.setattr(provider, "complete", slow_first)
        job = await new_job(engine, iterations=20)
        running = asyncio.create_task(worker.run_all(job))
        while provider.made()["judging"] < 10:  # noqa: ASYNC110 - seen from outside
            await asyncio.sleep(0.01)
        first.set()
        await running
        assert (await worker.finalize(job)).completeness == "full"

    async def test_is_made_again_at_once_when_the_job_is_resumed(
        self, engine: AsyncEngine, worker: Worker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(first_calls, "HALTING_SECONDS", 0.05)
        provider = provider_of(worker)
        provider.refusal = KEY_REFUSED
        job = await new_job(engine, iterations=20)
        await worker.run_all(job)
        refused, sent = provider.complete, []

        async def slow(request: ChatRequest) -> ChatReply:
            sent.append(request.request_id)
            await asyncio.sleep(0.1)  # in which others would go, too
            return await refused(request)

        await resume_job(worker.control, TENANT, job.id)
        with monkeypatch.context() as slowly:
            slowly.setattr(provider, "complete", slow)
            await worker.run_all(job)
        assert sum("/judging/" in call for call in sent) == 1
        provider.refusal = None
        await resume_job(worker.control, TENANT, job.id)
        await worker.run_all(job)
        assert (await worker.finalize(job)).completeness == "full"


class TestCallsThatAllFailAlike:
    async def test_of_a_judge_pause_the_job_with_its_words_before_more_texts_are_paid(
        self, engine: AsyncEngine, worker: Worker
    ) -> None:
        job = await new_job(engine, iterations=100)
        await worker.run_all(job)
        paused = await worker.job(job)
        assert (paused.status, paused.status_reason) == (JobStatus.PAUSED, "invalid_request_error")
        assert paused.error is not None
        assert {name: paused.error[name] for name in ("detail", "model", "stage", "first_calls")} == {
            "detail": WORDS,
            "model": "simulated/sim-judge",
            "stage": "judging",
            "first_calls": FIRST_CALLS,
        }
        assert "Change what the provider's message names" in paused.error["remedy"]
        made = provider_of(worker).made()
        assert made["generation"] <= FIRST_CALLS + 4, (
            "of 100; at most those that were in flight beside the first"
        )
        assert FIRST_CALLS <= made["judging"] < 2 * FIRST_CALLS

    async def test_of_a_model_under_test_pause_it_though_nothing_was_answered(
        self, engine: AsyncEngine, worker: Worker
    ) -> None:
        provider_of(worker).stage = "generation"
        job = await new_job(engine, iterations=100)
        await worker.run_all(job)
        paused = await worker.job(job)
        assert (paused.status, paused.status_reason) == (JobStatus.PAUSED, "invalid_request_error")
        assert FIRST_CALLS <= provider_of(worker).made()["generation"] < 2 * FIRST_CALLS

    async def test_are_made_again_when_it_is_resumed(self, engine: AsyncEngine, worker: Worker) -> None:
        job = await new_job(engine, iterations=20)
        await worker.run_all(job)
        provider_of(worker).refusal = None
        await resume_job(worker.control, TENANT, job.id)
        await worker.run_all(job)
        ended = await worker.finalize(job)
        assert (ended.status, ended.completeness, ended.error) == (JobStatus.COMPLETED, "full", None)
        assert await scalar(engine, "SELECT count(*) FROM verdicts WHERE status = 'failed'") == 0

    async def test_pause_it_again_if_nothing_was_mended(self, engine: AsyncEngine, worker: Worker) -> None:
        job = await new_job(engine, iterations=100)
        await worker.run_all(job)
        await resume_job(worker.control, TENANT, job.id)
        await worker.run_all(job)
        assert (await worker.job(job)).status is JobStatus.PAUSED
        assert provider_of(worker).made()["generation"] <= 2 * (FIRST_CALLS + 4)

    async def test_in_a_small_job_fail_it_with_the_words(self, engine: AsyncEngine, worker: Worker) -> None:
        job = await new_job(engine)  # 4 verdicts
        await worker.run_all(job)
        ended = await worker.finalize(job)
        assert (ended.status, ended.status_reason) == (JobStatus.FAILED, "invalid_request_error")
        assert ended.error is not None
        assert (ended.error["detail"], ended.error["stage"]) == (WORDS, "judging")
        provider_of(worker).refusal = None
        await retry_job(worker.control, TENANT, job.id)
        await worker.run_all(job)
        assert (await worker.finalize(job)).completeness == "full"

    async def test_of_one_of_two_judges_stop_the_job_too(self, engine: AsyncEngine, worker: Worker) -> None:
        judges = (a_model("simulated/sim-judge"), a_model("simulated/sim-judge-harsh"))
        complete = worker.provider.complete

        async def refuse_one(request: ChatRequest) -> ChatReply:
            if request.model.name == "sim-judge-harsh":
                return await complete(request)
            return await Provider.complete(worker.provider, request)

        worker.provider.complete = refuse_one  # type: ignore[method-assign] # one model of the two refuses
        job = await new_job(engine, iterations=100, judges=judges)
        await worker.run_all(job)
        paused = await worker.job(job)
        assert paused.status is JobStatus.PAUSED
        assert paused.error is not None
        assert paused.error["model"] == "simulated/sim-judge-harsh"


class TestARunOfRefusals:
    async def test_after_answers_pauses_the_job_and_is_asked_again_when_it_is_resumed(
        self, engine: AsyncEngine, worker: Worker
    ) -> None:
        provider = provider_of(worker)
        provider.stage, provider.refusal = "generation", None
        complete, sent, refused_after = provider.complete, [], []

        async def until_credit_ends(request: ChatRequest) -> ChatReply:
            sent.append(request.request_id)
            provider.refusal = UNEXPLAINED if len(sent) > 60 else None
            try:
                return await complete(request)
            except ModelCallError:
                refused_after.append(len(sent))
                raise

        provider.complete = until_credit_ends  # type: ignore[method-assign] # the credit ends in the middle
        job = await new_job(engine, iterations=100)
        await worker.run_all(job)
        paused = await worker.job(job)
        assert (paused.status, paused.status_reason) == (JobStatus.PAUSED, "http_403")
        assert paused.error is not None
        assert paused.error["detail"] == "HTTP 403: no"
        new = [call for call in sent[refused_after[0] :] if "/generation/" in call]
        assert len(new) <= 2 * FIRST_CALLS
        provider.complete, provider.refusal = complete, None  # type: ignore[method-assign] # there is credit again
        await resume_job(worker.control, TENANT, job.id)
        await worker.run_all(job)
        assert (await worker.finalize(job)).completeness == "full"

    async def test_counts_the_calls_to_all_models_of_a_connection_together(
        self, engine: AsyncEngine, worker: Worker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        complete, sent, several = worker.provider.complete, [], asyncio.Event()
        provider_of(worker).refusal = None

        async def until_credit_ends(request: ChatRequest) -> ChatReply:
            sent.append((request.model.name, request.request_id.split("/")[1]))
            if len(sent) <= 60:
                return await complete(request)
            if len(set(sent[60:])) > 1:
                several.set()
            await several.wait()
            raise UNEXPLAINED

        monkeypatch.setattr(worker.provider, "complete", until_credit_ends)
        models = (a_model("simulated/sim-faithful"), a_model("simulated/sim-drifting"))
        job = await new_job(engine, models=models, iterations=100)
        await asyncio.gather(*map(worker.run, await shard_ids(engine, job.id)))
        assert (await worker.job(job)).status is JobStatus.PAUSED
        refused = Counter(sent[60:])
        assert len(refused) > 1
        assert FIRST_CALLS <= refused.total() <= 2 * FIRST_CALLS

    async def test_sends_one_call_at_a_time_before_the_job_stops(
        self, engine: AsyncEngine, worker: Worker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        complete, sent, flying = worker.provider.complete, [], []
        provider_of(worker).refusal = None

        async def until_credit_ends(request: ChatRequest) -> ChatReply:
            sent.append(request.request_id)
            if len(sent) <= 60:
                return await complete(request)
            flying.append(request.request_id)
            beside = len(flying)
            await asyncio.sleep(0.01)  # others would go, too
            flying.remove(request.request_id)
            alone.append(beside == 1)
            raise UNEXPLAINED

        alone: list[bool] = []
        monkeypatch.setattr(worker.provider, "complete", until_credit_ends)
        job = await new_job(engine, iterations=100)
        await worker.run_all(job)
        assert (await worker.job(job)).status is JobStatus.PAUSED
        assert all(alone[-FEWEST_TRIALS:])

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


class TestSingleFailures:
    @pytest.mark.parametrize("refusal", [REFUSED, FLAGGED])
    async def test_never_stop_a_job(
        self, refusal: ModelCallError, engine: AsyncEngine, worker: Worker
    ) -> None:
        provider = provider_of(worker)
        provider.stage, provider.refusal, provider.only = (
            "generation",
            refusal,
            frozenset({"generation/0/3/0"}),
        )
        job = await new_job(engine, iterations=20)
        await worker.run_all(job)
        ended = await worker.finalize(job)
        assert (ended.status, ended.completeness, ended.error) == (JobStatus.COMPLETED, "partial", None)

    async def test_however_many_do_not_stop_one_that_has_got_answers(
        self, engine: AsyncEngine, worker: Worker
    ) -> None:
        provider = provider_of(worker)
        provider.only = frozenset(
            f"judging/0/{run}/0/{unit}/0/0" for run in range(20) for unit in range(2)
        ) - {"judging/0/0/0/0/0/0"}
        job = await new_job(engine, iterations=20)
        await worker.run_all(job)
        assert (await worker.finalize(job)).status is JobStatus.COMPLETED

    async def test_by_a_filter_say_nothing_of_the_model(self, engine: AsyncEngine, worker: Worker) -> None:
        provider = provider_of(worker)
        provider.stage, provider.refusal = "generation", FILTERED
        provider.only = frozenset(f"generation/0/{run}/0" for run in range(15))
        job = await new_job(engine, iterations=20)
        await worker.run_all(job)
        assert (await worker.finalize(job)).status is JobStatus.COMPLETED


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

    async def test_write_few_texts_until_the_judge_has_answered(
        self, engine: AsyncEngine, worker: Worker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        provider = provider_of(worker)
        provider.refusal = None
        monkeypatch.setattr(first_calls, "LEAD_SECONDS", 0.05)
        judge, answered = asyncio.Event(), provider.complete

        async def slow_judge(request: ChatRequest) -> ChatReply:
            if "judging" in request.request_id:
                await judge.wait()
            return await answered(request)

        monkeypatch.setattr(provider, "complete", slow_judge)
        job = await new_job(engine, iterations=100)
        running = asyncio.create_task(worker.run_all(job))
        while provider.made()["generation"] < FIRST_CALLS:  # noqa: ASYNC110 - seen from outside
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        assert provider.made() == {"generation": FIRST_CALLS}
        judge.set()
        await running
        assert (await worker.finalize(job)).completeness == "full"
        later = await new_job(engine, iterations=100)
        texts = worker.deps.first_calls.texts(later.id, [])
        assert texts.is_open


class TestFailures:
    async def test_are_shown_by_stage_model_code_and_words(self, engine: AsyncEngine, worker: Worker) -> None:
        provider = provider_of(worker)
        provider.only = frozenset({"judging/0/3/0/1/0/0", "judging/0/4/0/0/0/0"})
        job = await new_job(engine, iterations=20)
        await worker.run_all(job)
        await worker.finalize(job)
        (found,) = (await view_job(engine, TENANT, job.id)).failures
        assert found.model_dump(exclude={"last_at"}) == {
            "stage": "judging",
            "model": "simulated/sim-judge",
            "code": "invalid_request_error",
            "http_status": 400,
            "detail": WORDS,
            "remedy": remedy("invalid_request_error", 400, "simulated/sim-judge"),
            "calls": 2,
        }
        errors = await execute(engine, "SELECT error, count(*) FROM verdicts GROUP BY error ORDER BY 2")
        assert [tuple(row) for row in errors] == [(f"invalid_request_error: {WORDS}", 2), (None, 38)]
