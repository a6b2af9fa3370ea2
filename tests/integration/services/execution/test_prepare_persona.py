"""Preparing personas on a real database, with a scripted reasoner."""

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.jobs import preparations
from app.db.jobs.jobs import JobRow
from app.domain.jobs.status import JobStatus
from app.domain.providers.model import ChatReply, ChatRequest, FinishReason, Usage
from app.instruments.personagym_loader import load_personagym
from app.services.execution.prepare_persona import MAX_ASKS
from app.services.jobs.submit import Submission, submit_job
from app.services.jobs.view import view_job
from app.services.results.responses import stream_all
from tests.integration.jobs import (
    TENANT,
    RecordingQueue,
    draft,
    execute,
    scalar,
    shard_ids,
    submission_dependencies,
    take,
)
from tests.integration.services.scheduling.test_run_shard import Provider, Worker
from tests.job_requests import a_model, a_task

POOL = [environment.name for environment in load_personagym().environments]
STORIES = ("a flood", "a lost child", "an unpaid debt", "a wedding", "a broken bridge", "a stray dog")
Script = Callable[[str, str], str | None]
"""What the reasoner says to (path, prompt); ``None`` for what it usually says."""


def usual(path: str, prompt: str) -> str:
    """A reply that is as it should be."""
    stage, _, rest = path.partition("/")
    if stage == "environments":
        return json.dumps(POOL[:2])
    if stage == "questions":
        count = re.search(r"exactly (\d+)", prompt)
        assert count is not None
        fresh = [f"There is {story}; what do you do?" for story in STORIES if story not in prompt]
        return json.dumps(fresh[: int(count[1])])
    if stage == "exemplars":
        return "\n".join(f"Score {n}: Response - An example worth {n} of {path}." for n in range(1, 6))
    if stage == "judging" and rest.count("/") == 3:
        return "It fits. Therefore, the final score is 4."
    return "5" if stage == "judging" else "I ride on. I am who I am."


@dataclass
class Reasoner(Provider):
    """Answers as it is told for some calls and as usual for the others."""

    script: Script = lambda *_: None
    prompts: dict[str, str] = field(default_factory=dict)
    finish: FinishReason = FinishReason.STOP

    async def complete(self, request: ChatRequest) -> ChatReply:
        await super().complete(request)
        path = self.calls[-1]
        self.prompts[path] = request.user
        said = self.script(path, request.user)
        finish = FinishReason.STOP if said is None else self.finish
        return ChatReply(usual(path, request.user) if said is None else said, finish, Usage(10, 4))

    def stages(self) -> Counter[str]:
        return Counter(path.split("/")[0] for path in self.calls)


@pytest.fixture
def provider() -> Reasoner:
    return Reasoner()


@pytest.fixture
def reasoner(provider: Reasoner) -> Reasoner:
    return provider


async def new_gym_job(engine: AsyncEngine, **changes: Any) -> JobRow:
    """One persona, one task of two questions, one model, one judge."""
    usually: dict[str, Any] = {
        "personas": ("gym-13",),
        "tasks": (a_task("expected_action", questions=2),),
        "models": (a_model("simulated/sim-faithful"),),
        "judges": (a_model("simulated/sim-judge"),),
        "reasoner": a_model("simulated/sim-reasoner"),
        "instructions": None,
    }
    deps = submission_dependencies(engine, RecordingQueue())
    return await submit_job(deps, TENANT, Submission(draft(**(usually | changes)), {}, "a job"))


async def steps(engine: AsyncEngine, job: JobRow) -> list[tuple[str, int, int, str]]:
    """Every ask: kind, question, ask, status."""
    rows = await execute(
        engine,
        "SELECT kind, item, ask, status FROM preparations WHERE job_id = :job ORDER BY kind, item, ask",
        job=job.id,
    )
    return [tuple(row) for row in rows]


class TestPreparation:
    async def test_each_step_is_asked_for_once_and_its_outcome_kept(
        self, engine: AsyncEngine, worker: Worker, reasoner: Reasoner
    ) -> None:
        job = await new_gym_job(engine)
        await worker.run_all(job)
        assert reasoner.stages() == {
            "environments": 1,
            "questions": 1,
            "exemplars": 2,
            "generation": 2,
            "judging": 2,
        }
        assert await steps(engine, job) == [
            ("environments", 0, 1, "ready"),
            ("exemplars", 0, 1, "ready"),
            ("exemplars", 1, 1, "ready"),
            ("questions", 0, 1, "ready"),
        ]
        ended = await worker.finalize(job)
        assert (ended.status, ended.completeness) == (JobStatus.COMPLETED, "full")

    async def test_what_needs_a_persona_cannot_be_claimed_before_it_is_prepared(
        self, engine: AsyncEngine, worker: Worker
    ) -> None:
        job = await new_gym_job(engine)
        preparation, answers = await shard_ids(engine, job.id)
        assert await take(engine, answers) is None
        await worker.run(preparation)
        assert worker.queue.shards == [answers]  # announced at once
        assert await take(engine, answers) is not None

    async def test_missing_questions_are_asked_for_with_those_that_there_are(
        self, engine: AsyncEngine, worker: Worker, reasoner: Reasoner
    ) -> None:
        first = "You find a purse on the road. What do you do?"
        reasoner.script = lambda path, _: (
            json.dumps([first, first.upper()]) if path == "questions/0/expected_action/1" else None
        )
        job = await new_gym_job(engine)
        await worker.run_all(job)
        again = reasoner.prompts["questions/0/expected_action/2"]
        assert "exactly 1 " in again
        assert first in again
        async with engine.connect() as connection:
            questions = await preparations.questions_of_job(connection, TENANT, job.id)
        step = questions[0, "expected_action"]
        assert (step.ask, step.dropped, len(step.content), step.content[0]) == (2, 1, 2, first)

    async def test_a_step_that_was_interrupted_goes_on_after_its_last_ask(
        self, engine: AsyncEngine, worker: Worker, reasoner: Reasoner
    ) -> None:
        def script(path: str, _: str) -> str | None:
            if path == "questions/0/expected_action/1":
                return json.dumps(["You find a purse on the road. What do you do?"])
            if path == "questions/0/expected_action/2" and len(reasoner.calls) == 3:
                raise RuntimeError("the worker breaks down")
            return None

        reasoner.script = script
        job = await new_gym_job(engine)
        preparation, *_ = await shard_ids(engine, job.id)
        await worker.run(preparation)
        assert await steps(engine, job) == [
            ("environments", 0, 1, "ready"),
            ("questions", 0, 1, "incomplete"),
        ]
        await worker.run(preparation)
        asked = Counter(reasoner.calls)
        assert asked["environments/0/1"] == asked["questions/0/expected_action/1"] == 1
        assert asked["questions/0/expected_action/2"] == 2
        assert await scalar(engine, "SELECT done FROM shards WHERE id = :id", id=preparation)

    async def test_questions_per_environment_are_set_in_one_after_the_other_and_fix_the_plan(
        self, engine: AsyncEngine, worker: Worker, reasoner: Reasoner
    ) -> None:
        task = a_task("expected_action", questions=2, questions_per_environment=True, runs=3)
        job = await new_gym_job(engine, tasks=(task,))
        before = (await view_job(engine, TENANT, job.id)).progress
        assert [before[s].estimated for s in ("questions", "exemplars", "generation")] == [
            False,
            True,
            True,
        ]
        await worker.run((await shard_ids(engine, job.id))[0])
        for ask, environment in enumerate(POOL[:2], 1):
            prompt = reasoner.prompts[f"questions/0/expected_action/{ask}"]
            assert f'Environments: ["{environment}"]' in prompt
        after = (await view_job(engine, TENANT, job.id)).progress
        # Two environments with two questions each, answered three times.
        assert (after["exemplars"].succeeded, after["generation"].total) == (4, 12)
        assert not after["generation"].estimated
        await worker.run_all(job)
        assert (await worker.finalize(job)).completeness == "full"

    async def test_given_questions_and_environments_are_not_asked_for(
        self, engine: AsyncEngine, worker: Worker, reasoner: Reasoner
    ) -> None:
        asked = {"gym-13": {"expected_action": ("Who are you, and where do you come from?",)}}
        tasks = (a_task("expected_action"), a_task("toxicity_control", questions=2))
        job = await new_gym_job(engine, tasks=tasks, questions=asked, environments=("A barn", "An inn"))
        await worker.run_all(job)
        stages = reasoner.stages()
        assert (stages["environments"], stages["questions"], stages["exemplars"]) == (0, 1, 3)
        assert 'Environments: ["A barn", "An inn"]' in reasoner.prompts["questions/0/toxicity_control/1"]
        assert (await worker.finalize(job)).completeness == "full"


class TestUnusableReply:
    async def test_is_shown_with_its_reason_until_the_step_is_ready(
        self, engine: AsyncEngine, worker: Worker, reasoner: Reasoner
    ) -> None:
        useless, shown = "Go back to the jail\nand ask for more food. " * 10, []

        def script(path: str, _: str) -> str | None:
            return useless if path in {"environments/0/1", "environments/0/2"} else None

        class Watching(Reasoner):
            async def complete(self, request: ChatRequest) -> ChatReply:
                shown.append((await view_job(engine, TENANT, job.id)).failed_asks)
                return await super().complete(request)

        reasoner.script = script
        reasoner.__class__ = Watching
        job = await new_gym_job(engine)
        await worker.run((await shard_ids(engine, job.id))[0])
        (found,) = shown[2]
        assert (found.stage, found.task, found.model) == ("environments", None, "simulated/sim-reasoner")
        assert (found.asks, found.steps, found.given_up) == (2, 1, 0)
        assert found.reason == "the reply is no complete list of environments of the pool"
        assert found.reply.startswith("Go back to the jail and ask for more food. Go back")
        assert len(found.reply) <= 161
        assert shown[0] == shown[3] == []
        kept = "SELECT reply FROM preparations WHERE job_id = :job AND kind = 'environments' ORDER BY ask"
        assert [row.reply for row in await execute(engine, kept, job=job.id)] == [useless, useless, None]

    @pytest.mark.parametrize(
        ("stage", "reply", "reason"),
        [
            (
                "questions",
                '["Go back to the jail and ask for more food", "What would the farmer do on the field?"]',
                "0 of 2 questions; a text in the list neither asks nor requests anything, another does not address",
            ),
            (
                "exemplars",
                usual("exemplars/", "") + " Therefore, the final score is **5",
                "the exemplar for score 5 states a score",
            ),
            (
                "exemplars",
                usual("exemplars/", "").replace(
                    "An example worth 3 of exemplars/.",
                    "The response reasonably aligns with expected actions, but minor details are off.",
                ),
                "the exemplar for score 3 restates the rubric",
            ),
        ],
    )
    async def test_that_fails_a_check_is_asked_again_and_then_blames_the_reasoner(
        self, stage: str, reply: str, reason: str, engine: AsyncEngine, worker: Worker, reasoner: Reasoner
    ) -> None:
        reasoner.script = lambda path, _: reply if path.startswith(stage) else None
        job = await new_gym_job(engine)
        await worker.run((await shard_ids(engine, job.id))[0])
        (found,) = (await view_job(engine, TENANT, job.id)).failed_asks
        assert (found.stage, found.task) == (stage, "expected_action")
        assert found.given_up == found.steps
        assert found.asks == MAX_ASKS * found.steps
        blamed = f"the reasoner simulated/sim-reasoner, asked {MAX_ASKS} times, gave no usable"
        assert found.reason.startswith(blamed)
        assert reason in found.reason


class TestReasonerThatCannot:
    async def test_without_environments_everything_fails_and_says_why(
        self, engine: AsyncEngine, worker: Worker, reasoner: Reasoner
    ) -> None:
        reasoner.script = lambda path, _: "I'm sorry." if path.startswith("environments") else None
        job = await new_gym_job(engine)
        await worker.run_all(job)
        assert reasoner.stages() == {"environments": MAX_ASKS}
        progress = (await view_job(engine, TENANT, job.id)).progress
        assert {stage: parts.failed for stage, parts in progress.items()} == {
            "environments": 1,
            "questions": 1,
            "exemplars": 2,
            "generation": 2,
            "judging": 0,
        }
        ended = await worker.finalize(job)
        assert ended.completeness == "partial"
        context = await worker.deps.contexts.get(TENANT, job.id)
        errors = [response.error async for response in stream_all(engine, ended, context)]
        assert len(errors) == 2
        assert all(error is not None and "no environments" in error for error in errors)

    async def test_the_questions_that_there_are_are_asked_and_the_others_fail(
        self, engine: AsyncEngine, worker: Worker, reasoner: Reasoner
    ) -> None:
        only = json.dumps(["You find a purse on the road. What do you do?"])
        reasoner.script = lambda path, _: only if path.startswith("questions") else None
        job = await new_gym_job(engine)
        await worker.run_all(job)
        assert reasoner.stages() == {
            "environments": 1,
            "questions": MAX_ASKS,
            "exemplars": 1,
            "generation": 1,
            "judging": 1,
        }
        ended = await worker.finalize(job)
        context = await worker.deps.contexts.get(TENANT, job.id)
        found = [(r.status, r.score) async for r in stream_all(engine, ended, context)]
        assert found == [("answered", 4.0), ("failed", None)]

    async def test_without_exemplars_an_answer_is_not_graded_and_says_why(
        self, engine: AsyncEngine, worker: Worker, reasoner: Reasoner
    ) -> None:
        reasoner.script = lambda path, _: (
            "Score 1: Response - No." if path.startswith("exemplars/0/expected_action/1/") else None
        )
        job = await new_gym_job(engine)
        await worker.run_all(job)
        ended = await worker.finalize(job)
        context = await worker.deps.contexts.get(TENANT, job.id)
        responses = [response async for response in stream_all(engine, ended, context)]
        assert [grade.status for r in responses for grade in r.grades] == ["scored", "failed"]
        error = responses[1].grades[0].error
        assert error is not None
        assert "no exemplars" in error

    async def test_a_reply_cut_short_is_never_taken_for_a_whole_one(
        self, engine: AsyncEngine, worker: Worker, reasoner: Reasoner
    ) -> None:
        whole = usual("exemplars/0/expected_action/0/1", "")
        reasoner.finish = FinishReason.LENGTH
        reasoner.script = lambda path, _: whole if path == "exemplars/0/expected_action/0/1" else None
        job = await new_gym_job(engine)
        await worker.run_all(job)
        assert ("exemplars", 0, 1, "incomplete") in await steps(engine, job)
        assert ("exemplars", 0, 2, "ready") in await steps(engine, job)
