"""Making up personas on a real database, with a scripted reasoner; and what goes with a deleted job."""

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.jobs import jobs
from app.db.jobs.jobs import JobRow
from app.db.sets import sets
from app.domain.jobs.request import GenerateIn, JobIn
from app.domain.jobs.status import JobStatus
from app.domain.personagym.generation import MOST_FRUITLESS, NewPersonas, read_new_personas
from app.domain.providers.model import ChatReply, ChatRequest, FinishReason, Usage
from app.domain.sets.contract import QuestionSetIn
from app.domain.sets.kinds import PERSONA_SET, QUESTION_SET
from app.ports import FailureKind, ModelCallError
from app.services.execution import generate_personas
from app.services.jobs.control import delete_job, retry_job
from app.services.jobs.submit import Submission, submit_job
from app.services.jobs.view import view_job
from app.services.sets.persona_sets import keep_personas, made_up
from app.services.sets.question_sets import keep_questions
from tests.integration.jobs import (
    TENANT,
    RecordingQueue,
    execute,
    scalar,
    shard_ids,
    submission_dependencies,
)
from tests.integration.services.execution.test_prepare_persona import Reasoner, new_gym_job
from tests.integration.services.scheduling.test_run_shard import Provider, Worker

PEOPLE = (
    "A 30-year-old nurse from Lagos who breeds pigeons",
    "A 41-year-old farmer from Oslo who plays the cello",
    "A 52-year-old chemist from Lima who collects maps",
    "A 63-year-old sailor from Kyoto who teaches chess",
)
OLDER = PEOPLE[0].replace("30", "31")
Replies = Callable[[int], str]
"""What the reasoner says to the nth ask, from 1."""


@dataclass
class Inventor(Provider):
    """A reasoner that makes up personas as it is told."""

    replies: Replies = lambda _: json.dumps(PEOPLE)
    prompts: list[str] = field(default_factory=list)
    finish: FinishReason = FinishReason.STOP

    async def complete(self, request: ChatRequest) -> ChatReply:
        await super().complete(request)
        self.prompts.append(request.user)
        return ChatReply(self.replies(int(self.calls[-1].rpartition("/")[2])), self.finish, Usage(10, 4))


@pytest.fixture
def provider() -> Inventor:
    return Inventor()


@pytest.fixture
def inventor(provider: Inventor) -> Inventor:
    return provider


async def submitted(engine: AsyncEngine, wanted: JobIn | GenerateIn, name: str = "crowd") -> JobRow:
    deps = submission_dependencies(engine, RecordingQueue())
    return await submit_job(deps, TENANT, Submission(wanted, {}, name))


async def new_generation(engine: AsyncEngine, count: int) -> JobRow:
    return await submitted(engine, GenerateIn(count=count, reasoner="simulated/sim-reasoner"))


async def ended(worker: Worker, job: JobRow) -> tuple[JobRow, dict[str, Any]]:
    """A job after all of its work, and its results."""
    await worker.run_all(job)
    found = await worker.finalize(job)
    async with worker.engine.connect() as connection:
        return found, json.loads(await jobs.stored_result(connection, TENANT, job.id) or "")


class TestGeneration:
    async def test_it_asks_until_there_are_enough_distinct_ones(
        self, engine: AsyncEngine, worker: Worker, inventor: Inventor
    ) -> None:
        replies = [
            json.dumps([PEOPLE[0], PEOPLE[0].upper(), OLDER, "x"]),
            json.dumps([OLDER, PEOPLE[1]]),
            json.dumps(PEOPLE),
        ]
        inventor.replies = lambda ask: replies[ask - 1]
        job, results = await ended(worker, await new_generation(engine, 3))
        assert (job.status, job.completeness) == (JobStatus.COMPLETED, "full")
        (set_id,) = job.made_sets
        async with engine.connect() as connection:
            made = (await sets.find_sets(connection, PERSONA_SET, TENANT, [set_id]))[set_id]
        assert [persona["description"] for persona in made.content] == [*PEOPLE[:3]]
        assert made.name == "crowd"
        found = results["persona_set"]
        assert (found["id"], found["asks"]) == (set_id, 3)
        # PEOPLE[3] would have been a fourth one; the third reply repeats the first two.
        assert found["dropped"] == {"duplicate": 3, "alike": 2, "unusable": 1, "surplus": 1}
        assert PEOPLE[0] in inventor.prompts[1]
        assert inventor.calls == ["personas/0/1", "personas/0/2", "personas/0/3"]

    @pytest.mark.parametrize(
        ("reply", "reason"),
        [
            (json.dumps(PEOPLE[:2]), "2 of 4 personas; the last 5 asks brought nothing new"),
            ("I'm sorry, I can't.", "0 of 4 personas; the reply is no list; the last 5 asks"),
        ],
    )
    async def test_a_reasoner_that_has_nothing_new_is_given_up_with_what_there_is(
        self, engine: AsyncEngine, worker: Worker, inventor: Inventor, reply: str, reason: str
    ) -> None:
        inventor.replies = lambda _: reply
        job, results = await ended(worker, await new_generation(engine, 4))
        found = results["persona_set"]
        count = found["found"]
        assert (job.status, job.completeness) == (JobStatus.COMPLETED, "partial")
        assert found["error"].startswith(reason)
        assert len(job.made_sets) == (1 if count else 0)
        assert len(inventor.calls) == MOST_FRUITLESS + (1 if count else 0)
        progress = (await view_job(engine, TENANT, job.id)).progress
        parts = progress["personas"]
        assert (list(progress), parts.succeeded, parts.failed) == (["personas"], count, 4 - count)

    async def test_a_reply_that_was_cut_keeps_its_whole_personas(
        self, engine: AsyncEngine, worker: Worker, inventor: Inventor
    ) -> None:
        inventor.replies = lambda ask: json.dumps(PEOPLE)[:130] if ask == 1 else json.dumps(PEOPLE)
        inventor.finish = FinishReason.LENGTH
        _, results = await ended(worker, await new_generation(engine, 4))
        assert (results["persona_set"]["found"], results["persona_set"]["asks"]) == (4, 2)

    async def test_one_that_was_interrupted_goes_on_after_its_last_ask(
        self, engine: AsyncEngine, worker: Worker, inventor: Inventor
    ) -> None:
        def replies(ask: int) -> str:
            if ask == 3 and len(inventor.calls) == 3:
                raise RuntimeError("the worker breaks down")
            return json.dumps(PEOPLE[:1]) if ask < 3 else json.dumps(PEOPLE)

        inventor.replies = replies
        job = await new_generation(engine, 4)
        (shard,) = await shard_ids(engine, job.id)
        await worker.run(shard)
        progress = (await view_job(engine, TENANT, job.id)).progress["personas"]
        assert (progress.succeeded, progress.pending) == (1, 3)
        _, results = await ended(worker, job)
        assert inventor.calls == ["personas/0/1", "personas/0/2", "personas/0/3", "personas/0/3"]
        assert (results["persona_set"]["found"], results["persona_set"]["asks"]) == (4, 3)

    async def test_fruitless_asks_before_an_interruption_count(
        self, engine: AsyncEngine, worker: Worker, inventor: Inventor
    ) -> None:
        def replies(_: int) -> str:
            if len(inventor.calls) == 4:
                raise RuntimeError("the worker breaks down")
            return json.dumps(PEOPLE[:1])

        inventor.replies = replies
        job = await new_generation(engine, 2)
        await worker.run_all(job)
        _, results = await ended(worker, job)
        # One ask with a new persona, five without, one of them made twice.
        assert (results["persona_set"]["asks"], len(inventor.calls)) == (6, 7)

    async def test_a_retry_asks_as_often_again(
        self, engine: AsyncEngine, worker: Worker, inventor: Inventor
    ) -> None:
        inventor.replies = lambda _: json.dumps(PEOPLE[:1])
        job, _ = await ended(worker, await new_generation(engine, 2))
        await retry_job(worker.control, TENANT, job.id)
        _, results = await ended(worker, job)
        assert results["persona_set"]["asks"] == 1 + 2 * MOST_FRUITLESS
        inventor.replies = lambda ask: json.dumps(PEOPLE if ask == 15 else PEOPLE[:1])
        await retry_job(worker.control, TENANT, job.id)
        _, results = await ended(worker, job)
        assert (results["persona_set"]["asks"], results["persona_set"]["found"]) == (15, 2)

    async def test_replies_are_read_where_no_other_work_waits_for_it(
        self, engine: AsyncEngine, worker: Worker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        threads: list[threading.Thread] = []

        def read(reply: str, wanted: int, already: Sequence[str], *, cut: bool) -> NewPersonas:
            threads.append(threading.current_thread())
            return read_new_personas(reply, wanted, already, cut=cut)

        monkeypatch.setattr(generate_personas, "read_new_personas", read)
        await ended(worker, await new_generation(engine, 4))
        assert len(threads) == 1
        assert threads[0] is not threading.current_thread()

    async def test_a_job_whose_only_call_fails_has_failed(
        self, engine: AsyncEngine, worker: Worker, inventor: Inventor
    ) -> None:
        inventor.error = ModelCallError("no", kind=FailureKind.ITEM, code="content_filter", status=400)
        job, results = await ended(worker, await new_generation(engine, 4))
        assert job.status is JobStatus.FAILED
        assert (results["persona_set"]["found"], results["persona_set"]["id"]) == (0, None)


async def kept_sets(engine: AsyncEngine) -> set[str]:
    rows = await execute(
        engine, "SELECT id FROM question_sets UNION ALL SELECT id FROM persona_sets ORDER BY id"
    )
    return {row.id for row in rows}


class TestDeletedJob:
    async def finished(self, engine: AsyncEngine, worker: Worker, **changes: Any) -> JobRow:
        """A job whose questions are frozen."""
        job = await new_gym_job(engine, **changes)
        answering = Worker(engine, Reasoner())
        async with answering.deps.writer.running(), answering.deps.leases.running():
            await answering.run_all(job)
            return await answering.finalize(job)

    async def delete(self, worker: Worker, job: JobRow) -> None:
        await delete_job(worker.control, TENANT, job.id)

    async def test_its_questions_go_with_the_last_job_that_has_to_do_with_them(
        self, engine: AsyncEngine, worker: Worker
    ) -> None:
        first, second = await self.finished(engine, worker), await self.finished(engine, worker)
        (set_id,) = first.made_sets
        assert second.made_sets == [set_id]
        third = await self.finished(engine, worker, questions=set_id)
        await self.delete(worker, first)
        await self.delete(worker, second)
        assert set_id in await kept_sets(engine)
        await self.delete(worker, third)
        assert await kept_sets(engine) == set()
        assert await scalar(engine, "SELECT count(*) FROM job_sets") == 0

    async def test_questions_that_somebody_sent_stay(self, engine: AsyncEngine, worker: Worker) -> None:
        job = await self.finished(engine, worker)
        (set_id,) = job.made_sets
        async with engine.connect() as connection:
            found = await sets.find_set(connection, QUESTION_SET, TENANT, set_id)
        assert found is not None
        catalog = submission_dependencies(engine, RecordingQueue()).catalog
        given = QuestionSetIn(name="mine", questions=found.content)
        kept = await keep_questions(engine, TENANT, given, catalog)
        assert (kept.id, kept.name) == (set_id, "mine")
        await self.delete(worker, job)
        assert await kept_sets(engine) == {set_id}

    @pytest.mark.parametrize("posted_first", [True, False])
    async def test_its_name_goes_with_it_though_somebody_sent_the_same_personas(
        self, engine: AsyncEngine, worker: Worker, *, posted_first: bool
    ) -> None:
        async def post() -> str:
            people, catalog = made_up(PEOPLE[:2]), submission_dependencies(engine, RecordingQueue()).catalog
            sent = await keep_personas(engine, catalog, TENANT, None, people, "/personas")
            return str(sent.id)

        if posted_first:
            await post()
        job, _ = await ended(worker, await new_generation(engine, 2))
        assert [await post()] == job.made_sets
        await self.delete(worker, job)
        assert await execute(engine, "SELECT name FROM persona_sets") == [(None,)]

    async def test_personas_that_it_made_up_stay_as_long_as_a_job_names_them(
        self, engine: AsyncEngine, worker: Worker
    ) -> None:
        made, _ = await ended(worker, await new_generation(engine, 2))
        (set_id,) = made.made_sets
        naming = await self.finished(engine, worker, personas=(set_id,))
        await self.delete(worker, made)
        assert set_id in await kept_sets(engine)
        await self.delete(worker, naming)
        assert await kept_sets(engine) == set()
