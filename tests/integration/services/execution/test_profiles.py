"""Jobs whose judges are models with a prompt form and a reply of their own, on a real database."""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.jobs import jobs
from app.db.jobs.jobs import JobRow
from app.domain.jobs.reread import RereadIn
from app.domain.judging.profiles import JudgeProfile
from app.domain.providers.model import ChatReply, ChatRequest, FinishReason, Usage
from app.instruments.profiles_loader import load_profiles
from app.services.results.reread import reread_job
from tests.integration.jobs import TENANT, execute, new_job
from tests.integration.services.execution.test_prepare_persona import Reasoner, new_gym_job
from tests.integration.services.scheduling.test_run_shard import Worker
from tests.job_requests import a_model, a_response, a_task

pytestmark = pytest.mark.usefixtures("looks_often")

NATIVE = {
    "prometheus-2": "Feedback: At first this looks like a score of 2, but it is a 4. [RESULT] {score}",
    "m-prometheus": "Feedback: Cela montre un score de 2 au plus. [RESULT] {score}",
    "selene": "**Reasoning:** It could be a 2, which the rubric calls moderate.\n\n**Result:** {score}",
    "flow-judge": "<feedback>\nThe output is a 2 in part.\n</feedback>\n<score>\n{score}\n</score>",
}
"""A reply of each profile, whose feedback names another score."""


@dataclass
class JudgeModel(Reasoner):
    """Replies to judging prompts in a profile's native form, with score 4; ``asked`` are these prompts."""

    profile: str = "prometheus-2"
    broken: bool = False
    asked: list[ChatRequest] = field(default_factory=list)

    async def complete(self, request: ChatRequest) -> ChatReply:
        said = await super().complete(request)
        stage = self.calls[-1].partition("/")[0]
        if stage == "repairing":
            self.asked.append(request)
            return ChatReply("3", FinishReason.STOP, Usage(10, 1))
        if stage != "judging":
            return said
        self.asked.append(request)
        text = "I lost the form." if self.broken else NATIVE[self.profile].format(score=4)
        return ChatReply(text, FinishReason.STOP, Usage(200, 60))


@pytest.fixture(params=list(NATIVE))
def profile(request: pytest.FixtureRequest) -> JudgeProfile:
    return load_profiles()[request.param]


@pytest.fixture
def provider(profile: JudgeProfile) -> JudgeModel:
    return JudgeModel(profile=profile.id)


async def judged(engine: AsyncEngine, profile: JudgeProfile, **changes: Any) -> JobRow:
    usual: dict[str, Any] = {
        "models": (),
        "instructions": None,
        "responses": (a_response("E-low", "essay", "I stay at home. I read."),),
        "judges": (a_model("simulated/sim-judge", profile=profile.id),),
    }
    return await new_job(engine, **(usual | changes))


async def results(engine: AsyncEngine, worker: Worker, job: JobRow) -> dict[str, Any]:
    await worker.finalize(job)
    async with engine.connect() as connection:
        found: dict[str, Any] = json.loads(await jobs.stored_result(connection, TENANT, job.id) or "")
    return found


async def test_sentences_are_asked_about_and_read_in_its_form(
    engine: AsyncEngine, worker: Worker, provider: JudgeModel, profile: JudgeProfile
) -> None:
    job = await judged(engine, profile)
    await worker.run_all(job)
    rows = await execute(engine, "SELECT status, score FROM verdicts")
    assert [tuple(row) for row in rows] == [("scored", 4)] * 2
    assert all(request.system is None for request in provider.asked)
    prompts = [request.user for request in provider.asked]
    for sentence in ("I stay at home.", "I read."):
        assert sum(sentence in prompt for prompt in prompts) == 1
    for prompt in prompts:
        assert "Score 1: Very introverted\n" in prompt
        assert "the trait extroversion?" in prompt
        assert "None of the above" not in prompt
    found = await results(engine, worker, job)
    again = await reread_job(engine, worker.queue, worker.deps.contexts, TENANT, job.id, RereadIn())
    assert (again.replies, again.changed) == (2, 0)
    assert found["manifest"]["judges"][0]["profile"] == profile.id
    assert found["manifest"]["profiles"] == {
        profile.id: {"version": profile.version, "sha256": profile.content_hash}
    }
    assert any(f"the profile {profile.id}" in line for line in found["manifest"]["deviations"])


async def test_answers_are_graded_in_its_form(
    engine: AsyncEngine, worker: Worker, provider: JudgeModel, profile: JudgeProfile
) -> None:
    job = await new_gym_job(
        engine,
        tasks=(a_task("expected_action", questions=1, atomic=True),),
        judges=(a_model("simulated/sim-judge", profile=profile.id),),
    )
    await worker.run_all(job)
    assert {tuple(row) for row in await execute(engine, "SELECT status, score FROM grades")} == {
        ("scored", 4)
    }
    assert {tuple(row) for row in await execute(engine, "SELECT status, score FROM verdicts")} == {
        ("scored", 4)
    }
    (grade,) = (request.user for request in provider.asked if "logically expected" in request.user)
    assert "Score 5: The response includes the optimal action" in grade
    assert "Example: An example worth 5 of exemplars/" in grade
    sentences = [request.user for request in provider.asked if request.user != grade]
    assert all("Score 1: Contradicts the persona\n" in prompt for prompt in sentences)
    assert provider.stages()["judging"] == 1 + len(sentences)


async def test_a_reply_out_of_form_is_asked_for_once_more_without_9(
    engine: AsyncEngine, worker: Worker, provider: JudgeModel, profile: JudgeProfile
) -> None:
    provider.broken = True
    await worker.run_all(await judged(engine, profile))
    rows = await execute(engine, "SELECT status, score, unread FROM verdicts")
    assert {tuple(row) for row in rows} == {("scored", 3, "no_answer")}
    follow_ups = [request for request in provider.asked if request.turns]
    assert len(follow_ups) == 2
    assert all("1, 2, 3, 4, 5" in each.turns[-1].content for each in follow_ups)
    assert all("9" not in each.turns[-1].content for each in follow_ups)
