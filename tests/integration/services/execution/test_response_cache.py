"""Replies that are used again, on a real database with a scripted model: inside a job, across jobs, and after mishaps."""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.jobs import jobs
from app.db.jobs.jobs import JobRow
from app.domain.jobs.budget import Budget
from app.domain.jobs.request import JudgingIn
from app.domain.jobs.status import JobStatus
from app.domain.providers.model import ChatReply, ChatRequest, FinishReason
from app.domain.providers.reuse import Reuse, ReuseScope
from app.ports import FailureKind, ModelCallError
from app.services.jobs.control import cancel_job, delete_job, retry_job
from app.services.jobs.retention import forget_replies
from app.services.jobs.view import reuse_of
from app.services.results.responses import ResponseFilter, read_page
from tests.integration.jobs import TENANT, execute, new_job, scalar, shard_ids
from tests.integration.services.execution.test_prepare_persona import Reasoner, new_gym_job
from tests.integration.services.scheduling.test_run_shard import Provider, Worker
from tests.job_requests import a_model, a_response

IN_JOB = Reuse(judging=ReuseScope.IN_JOB)
ACROSS_JOBS = Reuse(judging=ReuseScope.ACROSS_JOBS)
TEXTS_TOO = Reuse(judging=ReuseScope.ACROSS_JOBS, generation=ReuseScope.ACROSS_JOBS)
NO_NUMBER = "It is hard to tell."


@dataclass
class Author(Provider):
    """Writes no text twice, but for its last sentence; fails, or says nothing of use, where it is told to."""

    fails: int = 0
    babbles: int = 0
    writes_instead: str | None = None
    writes: Counter[str] = field(default_factory=Counter)

    async def complete(self, request: ChatRequest) -> ChatReply:
        reply = await super().complete(request)
        if "judging" not in request.request_id:
            if self.writes_instead is not None:
                return ChatReply(self.writes_instead, FinishReason.STOP, reply.usage)
            number = self.writes.total()
            self.writes[f"I read book {number}. I stay at home."] += 1
            return ChatReply(f"I read book {number}. I stay at home.", FinishReason.STOP, reply.usage)
        if self.fails:
            self.fails -= 1
            raise ModelCallError("too long", kind=FailureKind.ITEM, code="too_long", status=400)
        if self.babbles:
            self.babbles -= 1
            return ChatReply(NO_NUMBER, FinishReason.STOP, reply.usage)
        return reply

    def asked(self) -> dict[str, int]:
        """Calls by stage since the last time."""
        found = Counter(path.split("/")[0] for path in self.calls)
        self.calls.clear()
        return dict(found)


@contextlib.asynccontextmanager
async def working(worker: Worker) -> AsyncIterator[Worker]:
    """A process with all that runs in it."""
    async with worker.deps.writer.running(), worker.deps.leases.running(), worker.desk.running():
        yield worker


@pytest.fixture
async def worker(engine: AsyncEngine) -> AsyncIterator[Worker]:
    async with working(Worker(engine, Author())) as made:
        yield made


@pytest.fixture
async def other(engine: AsyncEngine, worker: Worker) -> AsyncIterator[Worker]:
    """Another process, with the same provider."""
    async with working(Worker(engine, worker.provider)) as made:
        yield made


@pytest.fixture
def model(worker: Worker) -> Author:
    assert isinstance(worker.provider, Author)
    return worker.provider


async def read_six_times(engine: AsyncEngine, reuse: Reuse = IN_JOB, **changes: Any) -> JobRow:
    """A job over six equal texts of two sentences, in a shard each."""
    text = "I read. I stay at home."
    texts = tuple(a_response("E-low", "essay", text, model=f"writer {n}") for n in range(6))
    return await new_job(engine, models=(), instructions=None, responses=texts, reuse=reuse, **changes)


async def scores(engine: AsyncEngine, job: JobRow) -> list[tuple[str, int | None]]:
    rows = await execute(
        engine,
        "SELECT status, score FROM verdicts JOIN cells ON cells.id = cell_id WHERE job_id = :job"
        " ORDER BY ordinal, run, item, unit",
        job=job.id,
    )
    return [(row.status, row.score) for row in rows]


async def results(engine: AsyncEngine, job: JobRow) -> dict[str, Any]:
    async with engine.connect() as connection:
        found: dict[str, Any] = json.loads(await jobs.stored_result(connection, TENANT, job.id) or "")
    return found


async def texts(engine: AsyncEngine, job: JobRow) -> list[str]:
    rows = await execute(
        engine,
        "SELECT text FROM responses JOIN cells ON cells.id = cell_id WHERE job_id = :job ORDER BY ordinal, run",
        job=job.id,
    )
    return [row.text for row in rows]


class TestInsideAJob:
    async def test_identical_calls_are_made_once_and_what_that_spared_is_told(
        self, engine: AsyncEngine, worker: Worker, model: Author
    ) -> None:
        job = await read_six_times(engine)
        await worker.run_all(job)
        assert model.asked() == {"judging": 2}
        assert await scores(engine, job) == [("scored", 2)] * 12
        ended = await worker.finalize(job)
        assert (ended.status, ended.completeness) == (JobStatus.COMPLETED, "full")
        found = await results(engine, job)
        assert found["reuse"] == {
            "same_job": 10,
            "other_job": 0,
            "input_tokens": 1_000,
            "output_tokens": 40,
            "usd": None,
            "unpriced_replies": 10,
            "oldest": found["reuse"]["oldest"],
            "by_model": [
                {"stage": "judging", "model": "simulated/sim-judge", "same_job": 10, "other_job": 0}
                | {"input_tokens": 1_000, "output_tokens": 40, "usd": None, "unpriced_replies": 10}
            ],
        }
        assert found["usage"]["calls"] == 2

    async def test_shards_of_several_processes_at_once_ask_once(
        self, engine: AsyncEngine, worker: Worker, other: Worker, model: Author
    ) -> None:
        job = await read_six_times(engine)
        ids = await shard_ids(engine, job.id)
        assert len(ids) > 1
        await asyncio.gather(*(w.run(one) for n, one in enumerate(ids) for w in [(worker, other)[n % 2]]))
        assert model.asked() == {"judging": 2}
        assert await scores(engine, job) == [("scored", 2)] * 12
        assert await scalar(engine, "SELECT sum(same_job) FROM shard_reuse") == 10

    async def test_who_does_not_ask_for_it_is_asked_for_all_and_leaves_nothing_behind(
        self, engine: AsyncEngine, worker: Worker, model: Author
    ) -> None:
        job = await read_six_times(engine, Reuse())
        await worker.run_all(job)
        await worker.finalize(job)
        assert model.asked() == {"judging": 12}
        assert await scalar(engine, "SELECT count(*) FROM replies") == 0
        assert (await results(engine, job))["reuse"] is None

    async def test_another_job_is_told_nothing(
        self, engine: AsyncEngine, worker: Worker, model: Author
    ) -> None:
        for _ in range(2):
            await worker.run_all(await read_six_times(engine))
        assert model.asked() == {"judging": 4}

    async def test_a_judge_that_is_drawn_by_chance_is_asked_each_time(
        self, engine: AsyncEngine, worker: Worker, model: Author
    ) -> None:
        judges = tuple(a_model("simulated/sim-judge", f"at {heat}", temperature=heat) for heat in (0.5, 0))
        await worker.run_all(await read_six_times(engine, judges=judges))
        assert model.asked() == {"judging": 12 + 2}

    async def test_judges_with_other_parameters_are_others(
        self, engine: AsyncEngine, worker: Worker, model: Author
    ) -> None:
        judges = tuple(a_model("simulated/sim-judge", f"with {n}", max_tokens=n) for n in (1, 2))
        await worker.run_all(await read_six_times(engine, judges=judges))
        assert model.asked() == {"judging": 4}

    async def test_a_reply_that_says_nothing_of_use_is_shared_with_nobody(
        self, engine: AsyncEngine, worker: Worker, model: Author
    ) -> None:
        model.babbles = 12
        job = await read_six_times(engine, judging=JudgingIn(repair=False))
        await worker.run_all(job)
        assert model.asked() == {"judging": 12}
        await worker.finalize(job)
        assert set(await scores(engine, job)) == {("unparsed", None)}
        await retry_job(worker.control, TENANT, job.id)
        await worker.run_all(job)
        assert model.asked() == {"judging": 2}
        assert await scores(engine, job) == [("scored", 2)] * 12

    async def test_the_first_who_fails_leaves_the_others_to_ask_for_themselves(
        self, engine: AsyncEngine, worker: Worker, model: Author
    ) -> None:
        model.fails = 1
        job = await read_six_times(engine)
        await worker.run_all(job)
        assert Counter(status for status, _ in await scores(engine, job)) == {"scored": 11, "failed": 1}

    async def test_a_budget_pays_for_what_is_asked_only(
        self, engine: AsyncEngine, worker: Worker, model: Author
    ) -> None:
        job = await read_six_times(engine, budget=Budget(calls=2))
        await worker.run_all(job)
        assert (await worker.finalize(job)).status is JobStatus.COMPLETED
        assert model.asked() == {"judging": 2}

    async def test_readers_are_told_which_verdicts_no_call_was_made_for(
        self, engine: AsyncEngine, worker: Worker
    ) -> None:
        job = await read_six_times(engine)
        await worker.run_all(job)
        context = await worker.deps.contexts.get(TENANT, job.id)
        page, _ = await read_page(engine, job, context, ResponseFilter(), after=None, limit=10)
        told = Counter(v.reused for response in page for unit in response.units for v in unit.verdicts)
        assert told == {None: 2, "same_job": 10}


@pytest.mark.usefixtures("calls_at_once")
class TestMishaps:
    async def test_a_dead_process_claim_lapses_with_its_lease(
        self, engine: AsyncEngine, worker: Worker, other: Worker, model: Author
    ) -> None:
        job = await read_six_times(engine)
        first, second, *_ = await shard_ids(engine, job.id)
        model.gate = asyncio.Event()
        dying = asyncio.create_task(worker.run(first))
        await model.called.wait()
        waiting = asyncio.create_task(other.run(second))
        await asyncio.sleep(0.5)
        assert len(model.calls) == 2  # the other one waits
        gate, model.gate = model.gate, None
        await execute(engine, "UPDATE shards SET lease_token = lease_token + 1 WHERE id = :id", id=first)
        await waiting
        assert len(model.calls) == 4
        assert gate is not None
        gate.set()
        await dying
        assert await scores(engine, job) == [("scored", 2)] * 2

    async def test_who_is_stopped_hands_over_to_who_waits(
        self, engine: AsyncEngine, worker: Worker, other: Worker, model: Author
    ) -> None:
        """Here the first job's calls hang on the wire until they are given up."""
        stopped, going_on = [await read_six_times(engine, ACROSS_JOBS) for _ in range(2)]
        model.gate = asyncio.Event()
        asking = asyncio.create_task(worker.run_all(stopped))
        await model.called.wait()
        assert await scalar(engine, "SELECT count(*) FROM replies WHERE text IS NULL") == 2
        waiting = [asyncio.create_task(each.run_all(going_on)) for each in (worker, other)]
        await asyncio.sleep(0.3)
        assert len(model.calls) == 2
        model.gate = None
        await cancel_job(worker.control, TENANT, stopped.id)
        await asyncio.gather(asking, *waiting)
        assert model.asked() == {"judging": 4}
        assert await scores(engine, going_on) == [("scored", 2)] * 12

    async def test_what_a_job_is_asking_for_when_it_is_deleted_is_asked_by_others(
        self, engine: AsyncEngine, worker: Worker, model: Author
    ) -> None:
        gone = await read_six_times(engine, ACROSS_JOBS)
        await worker.run_all(gone)
        await worker.finalize(gone)
        await delete_job(worker.control, TENANT, gone.id)
        assert await scalar(engine, "SELECT count(*) FROM replies") == 0
        assert await scalar(engine, "SELECT count(*) FROM reused_replies") == 0
        model.asked()
        await worker.run_all(await read_six_times(engine, ACROSS_JOBS))
        assert model.asked() == {"judging": 2}

    async def test_who_writes_while_a_job_is_deleted_neither_waits_for_ever_nor_leaves_a_reply(
        self, engine: AsyncEngine, worker: Worker
    ) -> None:
        """A late writer holds a shard and waits for a reply; who deletes may not hold that reply and wait for the shard."""
        gone = await read_six_times(engine, ACROSS_JOBS)
        await worker.run_all(gone)
        await worker.finalize(gone)
        locks = "SELECT FROM {} WHERE job_id = :job FOR {}"
        async with engine.begin() as late:
            await late.execute(text(locks.format("shards", "SHARE")), {"job": gone.id})
            deleting = asyncio.create_task(delete_job(worker.control, TENANT, gone.id))
            waiting = (
                "SELECT count(*) FROM pg_stat_activity"
                " WHERE wait_event_type = 'Lock' AND datname = current_database()"
            )
            for _ in range(3_000):
                if await scalar(engine, waiting):
                    break
                await asyncio.sleep(0.01)
            await late.execute(text(locks.format("replies", "UPDATE NOWAIT")), {"job": gone.id})
            await late.execute(
                text(
                    "INSERT INTO replies (tenant, key, job_id, shared, shard_id, lease_token, text)"
                    " SELECT tenant, key || '\\x00', job_id, shared, shard_id, lease_token, text FROM replies"
                )
            )
        await deleting
        assert await scalar(engine, "SELECT count(*) FROM replies") == 0


class TestAcrossJobs:
    async def test_a_second_job_asks_for_nothing_and_has_the_same_results(
        self, engine: AsyncEngine, worker: Worker, model: Author
    ) -> None:
        first, second = [await read_six_times(engine, ACROSS_JOBS) for _ in range(2)]
        for job in (first, second):
            await worker.run_all(job)
            await worker.finalize(job)
        assert model.asked() == {"judging": 2}
        found, before = await results(engine, second), await results(engine, first)
        assert [found[part] for part in ("cells", "totals")] == [before[part] for part in ("cells", "totals")]
        spared = found["reuse"]
        assert (spared["same_job"], spared["other_job"]) == (0, 12)
        assert found["usage"]["calls"] == 0
        assert found["manifest"]["reuse"] == {
            "judging": "across_jobs",
            "generation": "off",
            "max_age_days": 30,
            "snapshots": [
                {"connection": "simulated", "model": "sim-judge", "snapshot": None}
                | {"system_fingerprint": None, "replies": 12}
            ],
        }

    async def test_the_same_texts_are_the_same_and_no_two_of_a_job_become_one(
        self, engine: AsyncEngine, worker: Worker, model: Author
    ) -> None:
        """Also where a model is named twice, so that a job asks twice for the same in the same words."""
        twins = tuple(a_model("simulated/sim-faithful", label) for label in ("a", "b"))
        first = await new_job(engine, models=twins, iterations=3, reuse=TEXTS_TOO)
        await worker.run_all(first)
        assert model.asked() == {"generation": 6, "judging": 6 + 1}
        equal = await new_job(engine, models=twins, iterations=3, reuse=TEXTS_TOO)
        await worker.run_all(equal)
        assert model.asked() == {}
        written = await texts(engine, first)
        assert len(set(written)) == 6
        assert await texts(engine, equal) == written
        wider = await new_job(
            engine,
            models=twins,
            iterations=4,
            instructions=(0, 1),
            personas=("E-high", "E-low"),
            reuse=TEXTS_TOO,
        )
        await worker.run_all(wider)  # 2 models × 2 personas × 2 instructions × 4 iterations
        assert model.asked()["generation"] == 32 - 6
        assert set(written) < set(await texts(engine, wider))
        assert len(set(await texts(engine, wider))) == 32

    async def test_an_unreadable_reply_is_used_again_with_its_follow_up(
        self, engine: AsyncEngine, worker: Worker, model: Author
    ) -> None:
        model.babbles = 2
        first, second = [await read_six_times(engine, ACROSS_JOBS) for _ in range(2)]
        await worker.run_all(first)
        assert model.asked() == {"judging": 2, "repairing": 2}
        await worker.run_all(second)
        assert model.asked() == {}
        assert await scores(engine, first) == await scores(engine, second) == [("scored", 2)] * 12
        replies = await execute(
            engine, "SELECT raw, unread, repair_raw, count(*) FROM verdicts GROUP BY 1, 2, 3"
        )
        assert [tuple(row) for row in replies] == [(NO_NUMBER, "no_answer", "2", 24)]
        await worker.finalize(second)
        found = await results(engine, second)
        assert [(row["stage"], row["other_job"]) for row in found["reuse"]["by_model"]] == [
            ("judging", 12),
            ("repairing", 12),
        ]

    async def test_a_follow_up_that_cannot_be_read_is_asked_for_again(
        self, engine: AsyncEngine, worker: Worker, model: Author
    ) -> None:
        model.babbles = 24
        job = await read_six_times(engine, ACROSS_JOBS)
        await worker.run_all(job)
        await worker.finalize(job)
        assert set(await scores(engine, job)) == {("unparsed", None)}
        model.babbles, _ = 0, model.asked()
        await retry_job(worker.control, TENANT, job.id)
        await worker.run_all(job)
        assert model.asked() == {"repairing": 2}
        assert await scores(engine, job) == [("scored", 2)] * 12

    @pytest.mark.parametrize("useless", ["I can't help with that request.", ""], ids=["refusal", "nothing"])
    async def test_a_text_that_is_nothing_in_character_is_not_kept(
        self, engine: AsyncEngine, worker: Worker, model: Author, useless: str
    ) -> None:
        model.writes_instead = useless
        for _ in range(2):
            await worker.run_all(await new_job(engine, reuse=TEXTS_TOO))
            assert model.asked() == {"generation": 2}
        assert await scalar(engine, "SELECT count(*) FROM replies") == 0

    async def test_a_job_that_lives_on_replies_of_others_is_paused_or_says_what_its_judge_answered(
        self, engine: AsyncEngine, worker: Worker, model: Author
    ) -> None:
        """Its texts are there, so that it has got somewhere; but a job whose judge answered nothing is not completed."""
        await worker.run_all(await new_job(engine, reuse=TEXTS_TOO))
        model.asked()
        stopped, ended = [
            await new_job(engine, judges=(a_model("simulated/sim-judge-harsh"),), reuse=TEXTS_TOO)
            for _ in range(2)
        ]
        model.error = ModelCallError("no such key", kind=FailureKind.JOB, code="invalid_api_key", status=401)
        await worker.run_all(stopped)
        assert (await worker.job(stopped)).status is JobStatus.PAUSED
        model.error = ModelCallError("too long", kind=FailureKind.ITEM, code="too_long", status=400)
        await worker.run_all(ended)
        assert "generation" not in model.asked()
        found = await worker.finalize(ended)
        assert (found.status, found.completeness, found.status_reason) == (
            JobStatus.FAILED,
            "partial",
            "too_long",
        )

    async def test_answers_are_graded_once_for_equal_forms(self, engine: AsyncEngine) -> None:
        reasoner = Reasoner()
        async with working(Worker(engine, reasoner)) as worker:
            for again in range(2):
                job = await new_gym_job(engine, reuse=TEXTS_TOO)
                await worker.run_all(job)
                await worker.run_all(job)
                graded = await scalar(
                    engine,
                    "SELECT count(*) FROM grades JOIN cells ON cells.id = cell_id WHERE job_id = :job",
                    job=job.id,
                )
                judged = sum("judging" in path for path in reasoner.calls)
                assert graded > 0
                assert (judged > 0) == (not again)
                reasoner.calls.clear()

    async def test_what_is_too_old_is_asked_anew_and_swept(
        self, engine: AsyncEngine, worker: Worker, model: Author
    ) -> None:
        first, second, third = [await read_six_times(engine, ACROSS_JOBS) for _ in range(3)]
        await worker.run_all(first)
        model.asked()
        await execute(engine, "UPDATE replies SET asked_at = asked_at - interval '30 days 1 minute'")
        await worker.run_all(second)
        assert model.asked() == {"judging": 2}
        await worker.run_all(third)
        assert model.asked() == {}
        await forget_replies(engine, 30)
        assert await scalar(engine, "SELECT count(*) FROM replies") == 2
        await execute(engine, "UPDATE replies SET asked_at = asked_at - interval '30 days 1 minute'")
        await forget_replies(engine, 30)
        assert await scalar(engine, "SELECT count(*) FROM replies") == 0

    async def test_who_wants_a_younger_one_does_not_take_what_a_neighbour_was_given(
        self, engine: AsyncEngine, worker: Worker, model: Author
    ) -> None:
        await worker.run_all(await read_six_times(engine, ACROSS_JOBS))
        await execute(engine, "UPDATE replies SET asked_at = asked_at - interval '2 days'")
        model.asked()
        content, strict = [await read_six_times(engine, ACROSS_JOBS) for _ in range(2)]
        await execute(  # submitted under another setting of the operator's
            engine,
            "UPDATE jobs SET spec = jsonb_set(spec::jsonb, '{reuse,max_age_days}', '1') WHERE id = :job",
            job=strict.id,
        )
        await asyncio.gather(worker.run_all(content), worker.run_all(strict))
        assert model.asked() == {"judging": 2}

    async def test_tenants_have_nothing_to_do_with_each_other(
        self, engine: AsyncEngine, worker: Worker, model: Author
    ) -> None:
        await worker.run_all(await read_six_times(engine, ACROSS_JOBS))
        await execute(engine, "UPDATE replies SET tenant = 'somebody else'")
        model.asked()
        await worker.run_all(await read_six_times(engine, ACROSS_JOBS))
        assert model.asked() == {"judging": 2}

    async def test_nothing_is_zero_dollars_but_the_unknown_is_unknown(self) -> None:
        assert reuse_of([]).usd == 0
        assert reuse_of([]).oldest is None
