"""What is judged of replies with thoughts, and of those that are no finished answer: over real HTTP, from a provider's reply to results."""

import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.jobs import jobs
from app.db.jobs.jobs import JobRow
from app.domain.errors import InvalidJobError
from app.domain.jobs.status import JobStatus
from app.domain.judging.judged_response import ResponseList
from app.domain.providers.model import ChatReply, ChatRequest
from app.domain.providers.reuse import Reuse, ReuseScope
from app.llm.gateway import Gateway
from app.services.jobs.control import retry_job
from app.services.results.compute import compute_results
from app.services.results.responses import ResponseFilter, read_page
from tests.integration.jobs import TENANT, execute, new_job, simulated_connections
from tests.integration.llm.conftest import ANTHROPIC_REPLY, OPENAI_REPLY
from tests.integration.llm.stub_provider import Answer, Seen, StubProvider
from tests.integration.services.execution.test_prepare_persona import new_gym_job, usual
from tests.integration.services.scheduling.test_run_shard import Provider, Worker
from tests.job_requests import a_model, a_response, grouped

pytestmark = pytest.mark.usefixtures("looks_often")

ANSWER = "I stay at home. I read alone. Parties are fun."
THOUGHTS = "I am introverted. So I would say 2, or even 1. Parties are loud. Let me write."
FORMS: Any = yaml.safe_load(
    (Path(__file__).parents[3] / "golden" / "provider_answers.yaml").read_text(encoding="utf-8")
)
SCORES = {"I stay at home.": 1, "I read alone.": 2, "Parties are fun.": 5}
"""What the judge says; ACC_atom of a persona of low extraversion is 2/3."""


def openai(message: dict[str, Any], finish_reason: str | None = "stop", **counts: Any) -> Answer:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish_reason}
    usage = {**OPENAI_REPLY["usage"], **counts}
    return Answer.of_json({**OPENAI_REPLY, "choices": [choice], "usage": usage})


def anthropic(blocks: list[dict[str, Any]], stop_reason: str | None = "end_turn") -> Answer:
    return Answer.of_json({**ANTHROPIC_REPLY, "content": blocks, "stop_reason": stop_reason})


def judged(prompt: str) -> str:
    """What a judge says of the sentence that it is asked about."""
    (score,) = {str(score) for sentence, score in SCORES.items() if sentence in prompt}
    return score


@dataclass
class OverHttp(Provider):
    """Calls a server: ``writes`` says what answers a model under test, ``judges`` what answers a judge's prompt."""

    stub: StubProvider = field(default_factory=StubProvider)
    gateway: Gateway | None = None
    writes: Callable[[], Answer] = lambda: openai({"content": ANSWER})
    judges: Callable[[str], Answer] = lambda prompt: openai({"content": judged(prompt)})

    async def prepare(self, connection: str, tenant: str) -> None:
        assert self.gateway is not None
        await self.gateway.prepare(connection, tenant)

    async def complete(self, request: ChatRequest) -> ChatReply:
        assert self.gateway is not None
        await super().complete(request)
        return await self.gateway.complete(request)

    def answer(self, seen: Seen) -> Answer:
        body = seen.json()
        prompt = body["messages"][-1]["content"]
        return self.judges(prompt) if body["model"] == "sim-judge" else self.writes()


@pytest.fixture
async def provider() -> AsyncIterator[OverHttp]:
    async with StubProvider() as stub:
        made = OverHttp(stub=stub)
        stub.script = made.answer
        made.gateway = Gateway(simulated_connections(stub.url))
        yield made
        await made.gateway.close()


async def ended(worker: Worker, job: JobRow) -> tuple[JobRow, dict[str, Any]]:
    """A job after all its shards, with its results."""
    await worker.run_all(job)
    over = await worker.finalize(job)
    async with worker.engine.connect() as connection:
        stored = await jobs.stored_result(connection, TENANT, job.id)
    return over, json.loads(stored or "null")


async def page(worker: Worker, job: JobRow) -> list[dict[str, Any]]:
    """The responses as the API shows them."""
    context = await worker.deps.contexts.get(job.tenant, job.id)
    found, _ = await read_page(worker.engine, job, context, ResponseFilter(), after=None, limit=10)
    shown = ResponseList(data=found, has_more=False, next_cursor=None)
    return list(shown.model_dump(mode="json")["data"])


def filled(form: object) -> Any:
    """A form with the texts in place."""
    text = json.dumps(form)
    return json.loads(text.replace("THOUGHTS", THOUGHTS).replace("ANSWER", ANSWER))


CASES = [(kind, form) for kind, forms in FORMS.items() for form in forms]


class TestThoughts:
    @pytest.mark.parametrize(
        ("kind", "form"), CASES, ids=lambda case: case if isinstance(case, str) else case["form"]
    )
    async def test_change_nothing_of_what_is_judged(
        self, kind: str, form: dict[str, Any], worker: Worker, provider: OverHttp, engine: AsyncEngine
    ) -> None:
        message = filled(form["message"])
        provider.writes = lambda: openai(message) if kind == "openai" else anthropic(message)
        model = "simulated/sim-faithful" if kind == "openai" else "simulated-anthropic/sim-faithful"
        job, results = await ended(worker, await new_job(engine, models=(a_model(model),)))
        (cell,) = results["cells"]
        assert cell["units"] == cell["units"] | {"total": 6, "scored": 6}  # 2 runs of 3 sentences
        assert cell["metrics"]["acc_atom"]["value"] == pytest.approx(2 / 3)
        shown = await page(worker, job)
        assert {response["text"] for response in shown} == {ANSWER}
        assert {response["thoughts"] for response in shown} == {filled(form["thoughts"])}
        assert [unit["text"] for unit in shown[0]["units"]] == list(SCORES)
        sent = [seen.json()["messages"][-1]["content"] for seen in provider.stub.seen]
        assert not any("introverted. So" in prompt for prompt in sent)

    @pytest.mark.parametrize("form", FORMS["openai"], ids=lambda form: form["form"])
    async def test_of_a_judge_are_not_read_as_its_score(
        self, form: dict[str, Any], worker: Worker, provider: OverHttp, engine: AsyncEngine
    ) -> None:
        def judge(prompt: str) -> Answer:
            return openai(json.loads(json.dumps(filled(form["message"])).replace(ANSWER, judged(prompt))))

        provider.judges = judge
        job, results = await ended(worker, await new_job(engine))
        assert results["cells"][0]["metrics"]["acc_atom"]["value"] == pytest.approx(2 / 3)
        verdicts = [v for r in await page(worker, job) for unit in r["units"] for v in unit["verdicts"]]
        assert {(v["raw"], v["thoughts"], v["finish_reason"]) for v in verdicts} == {
            (str(score), filled(form["thoughts"]), "stop") for score in SCORES.values()
        }

    async def test_are_kept_with_a_reply_that_is_used_again(
        self, worker: Worker, provider: OverHttp, engine: AsyncEngine
    ) -> None:
        provider.writes = lambda: openai({"content": f"<think>{THOUGHTS}</think>{ANSWER}"})
        reuse = Reuse(ReuseScope.ACROSS_JOBS, ReuseScope.ACROSS_JOBS, 30)
        await ended(worker, await new_job(engine, reuse=reuse))
        calls = len(provider.calls)
        job, results = await ended(worker, await new_job(engine, reuse=reuse))
        assert len(provider.calls) == calls
        assert results["cells"][0]["metrics"]["acc_atom"]["value"] == pytest.approx(2 / 3)
        shown = await page(worker, job)
        assert {(r["text"], r["thoughts"], r["reused"]) for r in shown} == {(ANSWER, THOUGHTS, "other_job")}

    async def test_are_kept_with_the_first_of_several_sentences(
        self, worker: Worker, provider: OverHttp, engine: AsyncEngine
    ) -> None:
        lines = "\n".join(f"S{n}: {score}" for n, score in enumerate(SCORES.values(), 1))
        provider.judges = lambda _: openai({"content": lines, "reasoning": THOUGHTS})
        grouping = grouped(3, 0.0, 0)
        job, results = await ended(worker, await new_job(engine, judging=grouping))
        assert results["cells"][0]["metrics"]["acc_atom"]["value"] == pytest.approx(2 / 3)
        shown = await page(worker, job)
        assert [v["thoughts"] for unit in shown[0]["units"] for v in unit["verdicts"]] == [
            THOUGHTS,
            None,
            None,
        ]

    async def test_tokens_of_them_are_counted(
        self, worker: Worker, provider: OverHttp, engine: AsyncEngine
    ) -> None:
        details = {"reasoning_tokens": 3}
        provider.writes = lambda: openai(
            {"content": ANSWER}, prompt_tokens=500, completion_tokens_details=details
        )
        job, _ = await ended(worker, await new_job(engine))
        assert {r["usage"]["reasoning_tokens"] for r in await page(worker, job)} == {3}
        rows = await execute(engine, "SELECT stage, sum(reasoning_tokens) FROM calls GROUP BY 1 ORDER BY 1")
        assert [tuple(row) for row in rows] == [("generation", 6), ("judging", None)]

    async def test_of_a_reasoner_are_no_part_of_what_it_makes_and_only_their_tokens_are_kept(
        self, worker: Worker, provider: OverHttp, engine: AsyncEngine
    ) -> None:
        def answer(seen: Seen) -> Answer:
            body = seen.json()
            said = usual(provider.calls[-1], body["messages"][-1]["content"])
            thinks = body["model"] == "sim-reasoner"
            return openai(
                {"content": f"<think>{THOUGHTS}</think>{said}" if thinks else said},
                prompt_tokens=1_000,
                completion_tokens=5_000,
                completion_tokens_details={"reasoning_tokens": 7},
            )

        provider.stub.script = answer
        job, _ = await ended_gym(worker, await new_gym_job(engine))
        assert (job.status, job.completeness) == (JobStatus.COMPLETED, "full")
        (kept,) = await execute(
            engine, "SELECT count(*) AS n FROM preparations p WHERE p::text LIKE '%introverted%'"
        )
        assert kept.n == 0
        rows = await execute(
            engine, "SELECT DISTINCT stage, reasoning_tokens FROM calls WHERE model = 'sim-reasoner'"
        )
        assert {tuple(row) for row in rows} == {
            ("environments", 7), ("questions", 7), ("exemplars", 7)
        }  # fmt: skip


NO_ANSWERS = {
    "cut off in the thoughts": (openai({"content": "<think>I am shy, and"}, "length"), "maximum length"),
    "cut off in thoughts apart": (
        openai({"content": None, "reasoning_content": "I am"}, "length"),
        "maximum length",
    ),
    "cut off in thoughts that are not shown": (openai({"content": ""}, "length"), "maximum length"),
    "nothing but thoughts": (openai({"content": "", "reasoning": "I am shy."}), "thought and gave no answer"),
    "nothing but tags": (openai({"content": "<think>I am shy.</think>"}), "thought and gave no answer"),
    "a tool call": (openai({"content": "I stay."}, "tool_calls"), "'tool_calls'"),
    "Mistral, cut off": (
        openai({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "I"}]}]}, "length"),
        "maximum length",
    ),
}


class TestExistingTexts:
    @staticmethod
    async def judging(engine: AsyncEngine, *texts: str) -> JobRow:
        """A job that judges texts that are there."""
        responses = tuple(a_response("E-low", "essay", text) for text in texts)
        return await new_job(engine, models=(), instructions=None, responses=responses)

    async def test_are_judged_without_their_thoughts(
        self, worker: Worker, provider: OverHttp, engine: AsyncEngine
    ) -> None:
        texts = (ANSWER, f"<think>{THOUGHTS}</think>\n\n{ANSWER}", f"{THOUGHTS}</think>{ANSWER}")
        job, results = await ended(worker, await self.judging(engine, *texts))
        (cell,) = results["cells"]
        assert cell["units"] == cell["units"] | {"total": 9, "scored": 9}
        assert cell["metrics"]["acc_atom"]["value"] == pytest.approx(2 / 3)
        shown = await page(worker, job)
        assert [(r["text"], r["thoughts"]) for r in shown] == [
            (ANSWER, None), (ANSWER, THOUGHTS), (ANSWER, THOUGHTS)
        ]  # fmt: skip
        assert all([unit["text"] for unit in r["units"]] == list(SCORES) for r in shown)
        assert len(provider.stub.seen) == 9

    async def test_that_nobody_judged_are_planned(self, worker: Worker, engine: AsyncEngine) -> None:
        job = await self.judging(engine, ANSWER, ANSWER, ANSWER)
        job, _ = await ended(worker, job)
        await execute(engine, "DELETE FROM verdicts WHERE run > 0")
        await execute(engine, "DELETE FROM verdicts WHERE unit > 0")
        context = await worker.deps.contexts.get(TENANT, job.id)
        (cell,) = json.loads((await compute_results(engine, job, context)).document)["cells"]
        assert cell["coverage"] == {"share": 1 / 9, "counted": 1, "refused": 0, "planned": 9}
        # of the first text 1 of 3 is in character, and of all else nobody knows
        assert cell["corrected"]["acc_atom_bounds"] == [pytest.approx(1 / 9), 1.0]

    async def test_of_nothing_but_thoughts_all_of_them_are_no_job(self, engine: AsyncEngine) -> None:
        with pytest.raises(InvalidJobError, match="no text has an answer"):
            await self.judging(engine, f"<think>{THOUGHTS}", f"[THINK]{THOUGHTS}[/THINK]")

    async def test_of_nothing_but_thoughts_have_no_answer_and_outlive_a_retry(
        self, worker: Worker, engine: AsyncEngine
    ) -> None:
        job = await self.judging(engine, ANSWER, f"<think>{THOUGHTS}")
        job, results = await ended(worker, job)
        (cell,) = results["cells"]
        assert (job.status, job.completeness) == (JobStatus.COMPLETED, "partial")
        assert cell["generation"] == cell["generation"] | {"planned": 2, "answered": 1, "no_answer": 1}
        assert cell["units"]["total"] == 3
        await execute(engine, "UPDATE verdicts SET status = 'unparsed', score = NULL WHERE unit = 0")
        await retry_job(worker.control, TENANT, job.id)
        job, results = await ended(worker, job)
        assert results["cells"][0]["units"] == cell["units"] | {"total": 3, "scored": 3}
        shown = [(r["status"], r["text"], r["thoughts"], r["error"]) for r in await page(worker, job)]
        assert shown == [
            ("answered", ANSWER, None, None),
            ("no_answer", "", THOUGHTS, "the model thought and gave no answer"),
        ]


class TestNoAnswer:
    @pytest.mark.parametrize("name", NO_ANSWERS)
    async def test_is_a_status_of_its_own_that_nobody_judges(
        self, name: str, worker: Worker, provider: OverHttp, engine: AsyncEngine
    ) -> None:
        answer, why = NO_ANSWERS[name]
        provider.writes = lambda: answer
        job, results = await ended(worker, await new_job(engine))
        assert [path.split("/")[0] for path in provider.calls] == ["generation"] * 2
        shown = await page(worker, job)
        assert {(r["status"], r["refusal"], tuple(r["units"])) for r in shown} == {("no_answer", False, ())}
        assert why in shown[0]["error"]
        counts = {"planned": 2, "answered": 0, "no_answer": 2, "failed": 0, "refused": 0}
        for result in (results["cells"][0], *results["totals"]):
            assert result["generation"] == result["generation"] | counts
            assert result["units"]["total"] == 0
        assert job.completeness == "partial"

    async def test_is_asked_for_again_by_a_retry(
        self, worker: Worker, provider: OverHttp, engine: AsyncEngine
    ) -> None:
        provider.writes = lambda: openai({"content": "<think>I am"}, "length")
        job, _ = await ended(worker, await new_job(engine))
        provider.writes = lambda: openai({"content": ANSWER})
        await retry_job(worker.control, TENANT, job.id)
        job, results = await ended(worker, job)
        assert (job.status, job.completeness) == (JobStatus.COMPLETED, "full")
        assert results["cells"][0]["generation"]["answered"] == 2

    async def test_breaking_off_is_tried_again(
        self, worker: Worker, provider: OverHttp, engine: AsyncEngine
    ) -> None:
        provider.writes = lambda: openai({"content": "I st"}, "insufficient_system_resource")
        _, results = await ended(worker, await new_job(engine))
        assert results["cells"][0]["generation"]["failed"] == 2
        rows = await execute(engine, "SELECT DISTINCT outcome, code FROM calls")
        assert [tuple(row) for row in rows] == [("retry", "insufficient_system_resource")]

    @pytest.mark.parametrize("reason", [None, ""])
    async def test_is_none_where_a_server_never_says_why_it_stopped(
        self, reason: str | None, worker: Worker, provider: OverHttp, engine: AsyncEngine
    ) -> None:
        provider.writes = lambda: openai({"content": ANSWER}, reason)
        provider.judges = lambda prompt: openai({"content": f"Score: {judged(prompt)}"}, reason)
        job, results = await ended(worker, await new_job(engine))
        assert results["cells"][0]["metrics"]["acc_atom"]["value"] == pytest.approx(2 / 3)
        assert {r["finish_reason"] for r in await page(worker, job)} == {"unstated"}

    async def test_is_none_where_a_text_is_cut_off_which_is_counted(
        self, worker: Worker, provider: OverHttp, engine: AsyncEngine
    ) -> None:
        provider.writes = lambda: openai({"content": ANSWER}, "length")
        _, results = await ended(worker, await new_job(engine))
        for result in (results["cells"][0], results["totals"][0]):
            assert (result["generation"]["answered"], result["generation"]["truncated"]) == (2, 2)
            assert result["units"]["scored"] == 6


AZURE = {
    "error": {
        "message": "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
        "type": None,
        "param": "prompt",
        "code": "content_filter",
        "status": 400,
        "innererror": {"code": "ResponsibleAIPolicyViolation"},
    }
}
OPENROUTER = {
    "error": {
        "code": 403,
        "message": "Your chosen model requires moderation and your input was flagged",
        "metadata": {"reasons": ["violence"], "flagged_input": "…", "provider_name": "OpenAI"},
    }
}
FILTERS = {
    "Azure's 400": Answer.of_json(AZURE, 400),
    "OpenRouter's 403": Answer.of_json(OPENROUTER, 403),
    "in the middle of the text": openai({"content": "I stay at"}, "content_filter"),
}


class TestContentFilter:
    @pytest.mark.parametrize("name", FILTERS)
    async def test_refuses_apart_from_the_model(
        self, name: str, worker: Worker, provider: OverHttp, engine: AsyncEngine
    ) -> None:
        answers = iter([FILTERS[name], openai({"content": "I'm sorry, but I can't help with that."})])
        provider.writes = lambda: next(answers)
        job, results = await ended(worker, await new_job(engine))
        assert (job.status, job.completeness) == (JobStatus.COMPLETED, "partial")
        # Nothing failed, so that a retry would change nothing.
        assert results["completeness_reasons"] == [
            "cells_without_figure: 1 of 1 cells have no scored sentence"
        ]
        for result in (results["cells"][0], *results["totals"]):
            counts = {"filtered": 1, "refused": 1, "failed": 0, "answered": 0}
            assert result["generation"] == result["generation"] | counts
        assert Counter(r["status"] for r in await page(worker, job)) == {"filtered": 1, "refused": 1}

    @pytest.mark.parametrize("name", FILTERS)
    async def test_of_a_judge_is_no_failure_of_the_judge(
        self, name: str, worker: Worker, provider: OverHttp, engine: AsyncEngine
    ) -> None:
        def judge(prompt: str) -> Answer:
            return FILTERS[name] if "I read alone." in prompt else openai({"content": judged(prompt)})

        provider.judges = judge
        job, results = await ended(worker, await new_job(engine))
        for result in (results["cells"][0], *results["totals"], *results["judges"]):
            counts = {"total": 6, "scored": 4, "filtered": 2, "failed": 0, "refused": 0}
            assert result["units"] == result["units"] | counts
        assert job.completeness == "full"
        said = [v for r in await page(worker, job) for unit in r["units"] for v in unit["verdicts"]]
        filtered = [v for v in said if v["status"] == "filtered"]
        replied = FILTERS[name].status == 200
        assert {(v["raw"] is not None, v["error"] is not None) for v in filtered} == {(replied, not replied)}

    @pytest.mark.parametrize(
        ("answer", "status", "grade"),
        [
            (FILTERS["Azure's 400"], "filtered", "filtered"),
            (openai({"content": "<think>I ride"}, "length"), "no_answer", "failed"),
        ],
    )
    async def test_leaves_a_personagym_answer_ungraded(
        self,
        answer: Answer,
        status: str,
        grade: str,
        worker: Worker,
        provider: OverHttp,
        engine: AsyncEngine,
    ) -> None:
        provider.stub.script = lambda seen: _gym(provider, seen, answer)
        job, results = await ended_gym(worker, await new_gym_job(engine))
        assert {r["status"] for r in await page(worker, job)} == {status}
        (total,) = results["persona_score_totals"]
        assert (total["responses"][status], total["grades"][grade], total["grades"]["total"]) == (2, 2, 2)
        assert total["persona_score"]["value"] is None


def _gym(provider: OverHttp, seen: Seen, answer: Answer) -> Answer:
    """The reasoner's usual replies, and this answer of the model under test."""
    body = seen.json()
    if body["model"] == "sim-faithful":
        return answer
    return openai({"content": usual(provider.calls[-1], body["messages"][-1]["content"])})


async def ended_gym(worker: Worker, job: JobRow) -> tuple[JobRow, dict[str, Any]]:
    """As :func:`ended`; a call at a time, so that the path last called is the one that is answered."""
    await worker.run_all(job)
    return await ended(worker, job)


class TestJudgeThatIsCutOff:
    @pytest.mark.parametrize(
        ("reply", "status", "score"),
        [
            ("Well, I would say it's a 4", "unparsed", None),
            ("Score: 4", "unparsed", None),
            ("<think>It is a 4", "unparsed", None),
            ("4", "scored", 4),
            (" 4\n", "scored", 4),
            ("<think>Hm.</think>4", "scored", 4),
        ],
    )
    async def test_is_unparsed_unless_it_is_a_bare_number(
        self,
        reply: str,
        status: str,
        score: int | None,
        worker: Worker,
        provider: OverHttp,
        engine: AsyncEngine,
    ) -> None:
        provider.judges = lambda _: openai({"content": reply}, "length")
        job, results = await ended(worker, await new_job(engine))
        assert results["cells"][0]["units"][status] == 6
        verdicts = [v for r in await page(worker, job) for unit in r["units"] for v in unit["verdicts"]]
        assert {(v["status"], v["score"], v["finish_reason"]) for v in verdicts} == {
            (status, score, "length")
        }
