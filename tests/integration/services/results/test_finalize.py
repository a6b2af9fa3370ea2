"""How a job ends whose calls were made and came to nothing. The model is scripted, the database real."""

from collections.abc import Callable, Iterator
from itertools import chain, repeat

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.jobs.jobs import JobRow
from app.domain.jobs.status import JobStatus
from app.domain.providers.model import ChatReply, ChatRequest, FinishReason, Usage
from app.ports import FailureKind, ModelCallError
from app.services.execution.prepare_persona import MAX_ASKS
from app.services.jobs.control import retry_job
from tests.integration.jobs import TENANT, new_job
from tests.integration.services.execution.test_prepare_persona import new_gym_job, usual
from tests.integration.services.scheduling.test_run_shard import TEXT, Provider, Worker
from tests.job_requests import a_model

pytestmark = pytest.mark.usefixtures("looks_often")

Said = ChatReply | ModelCallError


def said(text: str, finish: FinishReason = FinishReason.STOP, thoughts: str | None = None) -> ChatReply:
    return ChatReply(text, finish, Usage(10, 4), thoughts=thoughts)


WORDS = "HTTP 400: the prompt triggered our policy"
FILTERED = ModelCallError(WORDS, kind=FailureKind.FILTERED, code="content_filter", status=400)
TOO_LONG = ModelCallError("HTTP 400: too long", kind=FailureKind.ITEM, code="too_long", status=400)
STOPPED = said("I stay", FinishReason.CONTENT_FILTER)
THOUGHT = said("", FinishReason.LENGTH, "I would")
RUNAWAY = said("I like it. " * 1001)
REFUSAL = said("I'm sorry, but I can't help with that.")
UNSURE = said("It may be 2 or 4.")
NONE_OF_THEM = "none of the model's responses can be judged: "
NO_SCORE = "none of the judge's verdicts has a score: "


class Scripted(Provider):
    """Says in turn what it is told, a model under test as well as a judge."""

    texts: Iterator[Said] = repeat(said(TEXT))
    verdicts: Iterator[Said] = repeat(said("2"))
    judge: Callable[[ChatRequest], Said | None] = staticmethod(lambda _: None)
    prepared: Callable[[str], str | None] = staticmethod(lambda _: None)

    async def complete(self, request: ChatRequest) -> ChatReply:
        await super().complete(request)
        stage = self.calls[-1].partition("/")[0]
        answer: Said
        if stage == "generation":
            answer = next(self.texts)
        elif stage == "judging":
            answer = self.judge(request) or next(self.verdicts)
        else:
            words = self.prepared(self.calls[-1])
            answer = said(usual(self.calls[-1], request.user) if words is None else words)
        if isinstance(answer, ModelCallError):
            raise answer
        return answer


@pytest.fixture
def provider() -> Scripted:
    return Scripted()


async def ended(worker: Worker, job: JobRow) -> JobRow:
    await worker.run_all(job)
    return await worker.finalize(job)


def told(job: JobRow) -> tuple[str | None, str, str, str]:
    """Of a failed job: its reason, and its error's model, stage and detail."""
    assert job.status is JobStatus.FAILED
    error = job.error or {}
    assert error["code"] == job.status_reason
    assert error["remedy"]
    return job.status_reason, str(error["model"]), str(error["stage"]), str(error["detail"])


class TestTexts:
    @pytest.mark.parametrize(
        ("texts", "detail"),
        [
            ([FILTERED, FILTERED], f'2 filtered ("content_filter: {WORDS}")'),
            ([STOPPED, STOPPED], "2 filtered"),
            ([THOUGHT, THOUGHT], "2 no_answer"),
            ([RUNAWAY, RUNAWAY], '2 failed ("runaway: more than 1,000 sentences")'),
            ([FILTERED, RUNAWAY], '1 failed ("runaway'),
            ([THOUGHT, TOO_LONG], '1 failed ("too_long: HTTP 400: too long")'),
        ],
    )
    async def test_of_which_none_can_be_judged_fail_the_job_with_the_words(
        self, texts: list[Said], detail: str, worker: Worker, provider: Scripted, engine: AsyncEngine
    ) -> None:
        provider.texts = iter(texts)
        reason, model, stage, words = told(await ended(worker, await new_job(engine)))
        assert (reason, model, stage) == ("no_usable_text", "simulated/sim-faithful", "generation")
        assert words.startswith(NONE_OF_THEM + detail)

    @pytest.mark.parametrize("other", [FILTERED, STOPPED, THOUGHT, RUNAWAY])
    @pytest.mark.parametrize("good", [said(TEXT), REFUSAL])
    async def test_of_which_one_is_an_answer_or_a_refusal_complete_it(
        self, good: Said, other: Said, worker: Worker, provider: Scripted, engine: AsyncEngine
    ) -> None:
        provider.texts = iter([good, other])
        job = await ended(worker, await new_job(engine))
        assert (job.status, job.error) == (JobStatus.COMPLETED, None)

    async def test_that_are_all_refusals_are_a_result(
        self, worker: Worker, provider: Scripted, engine: AsyncEngine
    ) -> None:
        provider.texts = repeat(REFUSAL)
        job = await ended(worker, await new_job(engine))
        assert (job.status, job.completeness, job.error) == (JobStatus.COMPLETED, "partial", None)

    async def test_of_one_of_two_models_fail_it_too(
        self, worker: Worker, provider: Scripted, engine: AsyncEngine
    ) -> None:
        models = (a_model("simulated/sim-faithful"), a_model("simulated/sim-drifting"))
        job = await new_job(engine, models=models)
        provider.texts = chain([said(TEXT)] * 2, repeat(FILTERED))  # cells are run in the models' order
        assert told(await ended(worker, job))[1] == "simulated/sim-drifting"


class TestPreparation:
    """A reasoner that prepares nothing is named, not the model under test or the judge."""

    @pytest.mark.parametrize(
        ("stage", "needed"),
        [
            ("environments", "list of environments"),
            ("questions", "list of questions"),
            ("exemplars", "example for each score"),
        ],
    )
    @pytest.mark.parametrize(
        ("reply", "quoted"),
        [
            ("Go back to\nthe jail.", 'the last reply begins: "Go back to the jail."'),
            ("No. " * 500, 'No. No.…"'),
            ("", "the last reply is empty"),
        ],
    )
    async def test_that_fails_names_the_reasoner_and_its_stage(
        self,
        stage: str,
        needed: str,
        reply: str,
        quoted: str,
        worker: Worker,
        provider: Scripted,
        engine: AsyncEngine,
    ) -> None:
        provider.prepared = lambda path: reply if path.startswith(stage) else None
        job = await ended(worker, await new_gym_job(engine))
        reason, model, at, words = told(job)
        assert (reason, model, at) == ("preparation_failed", "simulated/sim-reasoner", stage)
        assert words.startswith(
            f"the reasoner simulated/sim-reasoner, asked {MAX_ASKS} times, gave no usable {needed}: "
        )
        assert words.endswith(quoted)
        assert job.error is not None
        assert job.error["cause"] == words
        assert "another reasoner" in job.error["remedy"]

    async def test_that_fails_for_some_questions_leaves_the_blame_with_the_model(
        self, worker: Worker, provider: Scripted, engine: AsyncEngine
    ) -> None:
        provider.prepared = lambda path: (
            '["You find a purse on the road. What do you do?"]' if path.startswith("questions") else None
        )
        provider.texts = repeat(FILTERED)
        job = await ended(worker, await new_gym_job(engine))
        assert told(job)[:3] == ("no_usable_text", "simulated/sim-faithful", "generation")


class TestVerdicts:
    @pytest.mark.parametrize(
        ("verdicts", "detail"),
        [
            ([FILTERED] * 4, f'4 filtered ("content_filter: {WORDS}")'),
            ([STOPPED] * 4, '4 filtered ("I stay")'),
            ([UNSURE] * 4, '4 unparsed ("It may be 2 or 4.")'),
            ([REFUSAL] * 4, "4 refused (\"I'm sorry, but I can't help with that.\")"),
            ([UNSURE] * 3 + [FILTERED], '3 unparsed ("It may be 2 or 4."), 1 filtered ("content_filter'),
            ([UNSURE] * 3 + [TOO_LONG], '3 unparsed ("It may be 2 or 4."), 1 failed ("too_long'),
            ([FILTERED] * 3 + [TOO_LONG], "none"),
        ],
    )
    async def test_of_which_none_has_a_score_fail_the_job_with_the_words(
        self, verdicts: list[Said], detail: str, worker: Worker, provider: Scripted, engine: AsyncEngine
    ) -> None:
        provider.verdicts = iter(verdicts)
        reason, model, stage, words = told(await ended(worker, await new_job(engine)))
        assert (model, stage) == ("simulated/sim-judge", "judging")
        if detail == "none":  # no call was answered: the provider's code and words say it already
            assert (reason, words) == ("too_long", "HTTP 400: too long")
        else:
            assert reason == "no_score"
            assert words.startswith(NO_SCORE + detail)

    @pytest.mark.parametrize("good", [said("2"), said("N/A")])
    @pytest.mark.parametrize("other", [FILTERED, UNSURE, REFUSAL, TOO_LONG])
    async def test_of_which_one_says_something_complete_it(
        self, good: Said, other: Said, worker: Worker, provider: Scripted, engine: AsyncEngine
    ) -> None:
        provider.verdicts = chain([good], repeat(other))
        job = await ended(worker, await new_job(engine))
        assert (job.status, job.error) == (JobStatus.COMPLETED, None)

    async def test_of_one_of_two_judges_fail_it_too(
        self, worker: Worker, provider: Scripted, engine: AsyncEngine
    ) -> None:
        provider.judge = lambda request: UNSURE if request.model.name == "sim-judge-harsh" else None
        judges = (a_model("simulated/sim-judge"), a_model("simulated/sim-judge-harsh"))
        job = await new_job(engine, judges=judges)
        assert told(await ended(worker, job))[:2] == ("no_score", "simulated/sim-judge-harsh")

    @pytest.mark.parametrize(
        ("grade", "words"), [(FILTERED, "2 filtered"), (UNSURE, "2 unparsed"), (STOPPED, "2 filtered")]
    )
    async def test_that_are_grades_are_no_exception(
        self, grade: Said, words: str, worker: Worker, provider: Scripted, engine: AsyncEngine
    ) -> None:
        provider.verdicts = repeat(grade)
        job = await new_gym_job(engine)
        await worker.run_all(job)
        found = told(await ended(worker, job))
        assert found[0] == "no_score"
        assert found[3].startswith(NO_SCORE + words)

    async def test_of_another_job_change_nothing(
        self, worker: Worker, provider: Scripted, engine: AsyncEngine
    ) -> None:
        assert (await ended(worker, await new_job(engine))).status is JobStatus.COMPLETED
        provider.verdicts = repeat(UNSURE)
        assert told(await ended(worker, await new_job(engine)))[0] == "no_score"
        provider.verdicts = repeat(said("2"))
        assert (await ended(worker, await new_job(engine))).status is JobStatus.COMPLETED

    async def test_that_a_retry_mends_complete_it(
        self, worker: Worker, provider: Scripted, engine: AsyncEngine
    ) -> None:
        provider.verdicts = repeat(UNSURE)
        job = await new_job(engine)
        assert told(await ended(worker, job))[0] == "no_score"
        provider.verdicts = repeat(said("2"))
        await retry_job(worker.control, TENANT, job.id)
        over = await ended(worker, job)
        assert (over.status, over.completeness, over.error) == (JobStatus.COMPLETED, "full", None)
