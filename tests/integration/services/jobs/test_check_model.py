"""What a check of a model finds, over HTTP with a scripted provider."""

import json
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.jobs.budgets import Payers, read_caps
from app.domain.errors import InvalidJobError
from app.domain.providers.contract import CheckedLimits
from app.guard.addresses import parse_networks
from app.guard.targets import Guard
from app.llm.connections.connections import Connections, load_connections
from app.llm.models.prices import GenaiPriceBook
from app.services.errors import SpendingCapError
from app.services.jobs.check_model import Check, CheckDependencies, check_model
from app.services.keys.tenant_limits import LimitChanges, change_limits
from app.services.providers.connection_book import ConnectionBook
from app.services.providers.connections import ConnectionDependencies, create_connection
from app.vault.secret_cipher import SecretCipher
from tests.integration.jobs import TENANT, RecordingQueue, submission_dependencies
from tests.integration.llm.conftest import ANTHROPIC_REPLY, OPENAI_REPLY
from tests.integration.llm.stub_provider import Answer, StubProvider
from tests.job_requests import a_model

Json = dict[str, Any]
GOOD = Answer.of_json(OPENAI_REPLY)
VERDICTS, FORMS = 3, 6
"""Calls to a judge whose server constrains no reply: verdicts, then two forms and four other servers' ways."""


@pytest.fixture
async def stub() -> AsyncIterator[StubProvider]:
    async with StubProvider() as provider:
        yield provider


@pytest.fixture
def operator(stub: StubProvider) -> Connections:
    file = f"""
connections:
  lab:
    kind: openai
    base_url: {stub.url}
    prices: {{priced: {{input: 1000, output: 2000}}}}
    families: {{our-judge: o3}}
  claude: {{kind: anthropic, base_url: "{stub.url}"}}
"""
    return load_connections(file, {}, None)


@pytest.fixture
def deps(engine: AsyncEngine, operator: Connections) -> CheckDependencies:
    book = ConnectionBook(engine, operator, Guard(parse_networks("127.0.0.0/8")), SecretCipher((bytes(32),)))
    submission = submission_dependencies(engine, RecordingQueue())
    return CheckDependencies(engine, submission.catalog, book, GenaiPriceBook(operator), "lean")


async def check(deps: CheckDependencies, model: str = "lab/m", **options: Any) -> Json:
    parameters = options.pop("parameters", {})
    draft = a_model(model, **parameters)
    asked: Json = {"role": "judge", "call": True} | options
    return (await check_model(deps, TENANT, Check(draft, **asked))).model_dump(mode="json")


def bodies(stub: StubProvider) -> list[Json]:
    return [json.loads(seen.body) for seen in stub.seen]


def said(found: Json, *, good: bool) -> str:
    return "\n".join(finding["text"] for finding in found["findings"] if finding["good"] is good)


def saying(text: str) -> Answer:
    choice = {**OPENAI_REPLY["choices"][0], "message": {"role": "assistant", "content": text}}
    return Answer.of_json({**OPENAI_REPLY, "choices": [choice]})


def refusal(message: str, **error: Any) -> Answer:
    return Answer.of_json(
        {"error": {"message": message, "type": "invalid_request_error", **error}}, status=400
    )


class TestAnswered:
    async def test_says_what_it_found(self, deps: CheckDependencies, stub: StubProvider) -> None:
        limits: Json = {"x_ratelimit_limit_requests": "500", "x_ratelimit_limit_tokens": "30000"}
        stub.then(Answer.of_json(OPENAI_REPLY, **limits))
        found = await check(deps, "lab/priced")
        assert (found["works"], found["calls"], found["error"]) == (True, VERDICTS + FORMS, None)
        assert found["reply"]["text"] == "I love parties."
        assert found["limits"] == dict.fromkeys(CheckedLimits.model_fields) | {
            "requests_per_minute": 500,
            "tokens_per_minute": 30000,
        }
        assert found["usd"] == pytest.approx((VERDICTS + FORMS) * (20 * 1000 + 5 * 2000) / 1e6)
        assert found["price"] == {"input": 1000, "output": 2000, "source": "operator"}
        good = said(found, good=True)
        assert "It answered as gpt-4o-2024-08-06 in" in good
        assert "500 requests per minute, 30,000 tokens per minute" in good
        assert "As a judge, a job would send temperature 0.0." in good
        assert "is not sent" not in said(found, good=False)

    @pytest.mark.parametrize("status", [200, 429])
    async def test_says_that_a_day_s_limit_is_used_up_and_until_when(
        self, deps: CheckDependencies, stub: StubProvider, status: int
    ) -> None:
        headers: Json = {
            f"x_ratelimit_{what}_requests": value
            for what, value in (("limit", "30"), ("remaining", "0"), ("reset", "3h0m0s"))
        }
        body = OPENAI_REPLY if status == 200 else {"error": {"message": "Limit 30, Used 30"}}
        stub.then(Answer.of_json(body, status, **headers))
        before = datetime.now(UTC)
        bad = said(await check(deps), good=False)
        ends = re.search(r"daily limit of requests used up, until (.+?) UTC", bad)
        assert ends is not None
        until = datetime.strptime(ends[1], "%Y-%m-%d %H:%M").replace(tzinfo=UTC)
        assert before - timedelta(minutes=1) <= until - timedelta(hours=3) <= datetime.now(UTC)

    async def test_names_limits_of_input_and_output_tokens(
        self, deps: CheckDependencies, stub: StubProvider
    ) -> None:
        limits: Json = {
            f"anthropic_ratelimit_{what}_limit": str(limit)
            for what, limit in (("requests", 50), ("input_tokens", 40_000), ("output_tokens", 8_000))
        }
        stub.then(Answer.of_json(ANTHROPIC_REPLY, **limits))
        good = said(await check(deps, "claude/claude-haiku-4-5"), good=True)
        assert (
            "50 requests per minute, 40,000 input tokens per minute, 8,000 output tokens per minute." in good
        )

    async def test_as_a_persona_agent_it_is_sent_the_papers_sampling(
        self, deps: CheckDependencies, stub: StubProvider
    ) -> None:
        stub.then(GOOD)
        await check(deps, role="persona_agent")
        assert bodies(stub)[0]["temperature"] == bodies(stub)[0]["top_p"] == 0.9

    async def test_what_a_family_refuses_is_not_tried(
        self, deps: CheckDependencies, stub: StubProvider
    ) -> None:
        stub.then(GOOD)
        found = await check(deps, "lab/our-judge")
        assert "temperature" not in bodies(stub)[0]
        assert bodies(stub)[0]["max_completion_tokens"] == 64
        assert "temperature 0.0 is not sent" in said(found, good=False)

    async def test_an_answer_that_was_cut_off_in_its_thoughts_does_not_work(
        self, deps: CheckDependencies, stub: StubProvider
    ) -> None:
        choice = {"index": 0, "message": {"role": "assistant", "content": ""}, "finish_reason": "length"}
        stub.then(Answer.of_json(OPENAI_REPLY | {"choices": [choice]}))
        found = await check(deps)
        assert found["works"] is False
        assert "cut off at max_tokens" in said(found, good=False)

    async def test_thoughts_are_said(self, deps: CheckDependencies, stub: StubProvider) -> None:
        message = {"role": "assistant", "content": "ready", "reasoning_content": "They want one word."}
        stub.then(Answer.of_json(OPENAI_REPLY | {"choices": [{"message": message, "finish_reason": "stop"}]}))
        found = await check(deps)
        assert (found["works"], found["reply"]["text"], found["reply"]["thoughts"]) == (True, "ready", True)
        assert "It thinks before it answers" in said(found, good=True)

    async def test_an_unknown_price_is_said(self, deps: CheckDependencies, stub: StubProvider) -> None:
        stub.then(GOOD)
        assert "No price is known" in said(await check(deps), good=False)


class TestJudge:
    """Verdicts on a high, a low and a neutral sentence."""

    @pytest.mark.parametrize(
        ("replies", "good", "bad"),
        [
            (("5", "1", "9"), "tells opposite sentences apart", ""),
            (("5", "5", "5"), "", "does not tell opposite sentences apart: 5"),
            (("1) Very introverted", "5", "9"), "", "does not tell opposite sentences apart: 1"),
            (("4", "2", "3"), "tells opposite sentences apart", "scores a sentence that says nothing"),
            (("9", "9", "9"), "", "does not tell opposite sentences apart: both are “not applicable”"),
            (("5", "9) None of the above", "9"), "", "“not applicable” to “I avoid people"),
            (("9", "1", "9"), "", "“not applicable” to “I love loud parties"),
            (("I'm ready. I'm ready.",) * 3, "", "cannot be read: “I'm ready. I'm ready.”"),
            (
                ("1) Very extroverted", "5) Very introverted", "1) Moderately extroverted"),
                "",
                "3 of its 3 verdicts cannot be read. Do not use it as a judge.",
            ),
        ],
    )
    async def test_says_whether_it_tells_them_apart(
        self, deps: CheckDependencies, stub: StubProvider, replies: tuple[str, ...], good: str, bad: str
    ) -> None:
        stub.then(*map(saying, replies))
        found = await check(deps)
        assert good in said(found, good=True)
        assert bad in said(found, good=False)
        assert {body["max_tokens"] for body in bodies(stub)} == {64}

    async def test_a_server_that_answers_under_another_name_is_named(
        self, deps: CheckDependencies, stub: StubProvider
    ) -> None:
        stub.then(Answer.of_json({**OPENAI_REPLY, "model": "smollm2-135m.gguf"}))
        assert "answered as smollm2-135m.gguf, not as llama-3-8b" in said(
            await check(deps, "lab/llama-3-8b"), good=False
        )


SEA = "The sea is a wide, blue expanse."
OBJECT = '{"score": 4}'


class TestConstrainedReplies:
    """A text is asked for, so that a number comes back only from a server that constrains replies."""

    @pytest.mark.parametrize(
        ("replies", "forms", "good", "bad"),
        [
            (("4", OBJECT), ["text", "choice", "json_schema"], "to the form choice or json_schema", ""),
            ((SEA, SEA, SEA), ["text"], "constrains no replies as it is configured", ""),
            (
                (SEA, OBJECT, SEA, SEA, "1"),
                ["text", "json_schema", "choice"],
                "json_schema",
                "`server: llama.cpp`",
            ),
            ((SEA, SEA, "9", OBJECT), ["text", "choice", "json_schema"], "", "`server: vllm`"),
        ],
    )
    async def test_are_found_by_what_comes_back(
        self,
        deps: CheckDependencies,
        stub: StubProvider,
        replies: tuple[str, ...],
        forms: list[str],
        good: str,
        bad: str,
    ) -> None:
        stub.then(*map(saying, ("5", "1", "9", *replies)))
        found = await check(deps)
        assert found["reply_forms"] == forms
        assert good in said(found, good=True)
        assert bad in said(found, good=False)
        assert found["calls"] == VERDICTS + (FORMS if len(forms) == 1 else len(replies))
        prompts = {body["messages"][-1]["content"] for body in bodies(stub)[VERDICTS:]}
        assert prompts == {"Describe the sea in one sentence."}

    async def test_that_a_server_refuses_are_not_offered(
        self, deps: CheckDependencies, stub: StubProvider
    ) -> None:
        stub.then(*map(saying, ("5", "1", "9")), refusal("Unrecognized request argument: response_format"))
        found = await check(deps)
        assert (found["works"], found["reply_forms"]) == (True, ["text"])

    async def test_are_not_tried_for_other_roles(self, deps: CheckDependencies, stub: StubProvider) -> None:
        stub.then(GOOD)
        found = await check(deps, role="model")
        assert (found["calls"], found["reply_forms"]) == (1, None)


class TestProfiles:
    async def test_are_asked_in_their_form_and_read(
        self, deps: CheckDependencies, stub: StubProvider
    ) -> None:
        stub.then(*(saying(f"Feedback: It scores 3 or so. [RESULT] {n}") for n in (5, 1, 3)))
        found = await check(deps, parameters={"profile": "prometheus-2"})
        assert "tells opposite sentences apart" in said(found, good=True)
        assert "###Score Rubrics:" in bodies(stub)[0]["messages"][0]["content"]
        assert (found["calls"], found["reply_forms"]) == (VERDICTS, None)

    async def test_are_named_for_a_judge_model_without_one(
        self, deps: CheckDependencies, stub: StubProvider
    ) -> None:
        stub.then(GOOD)
        found = await check(deps, "lab/prometheus-eval/prometheus-7b-v2.0")
        assert '"profile": "prometheus-2"' in said(found, good=False)

    @pytest.mark.parametrize(
        ("role", "profile", "problem"),
        [("judge", "prometheus-3", "known: prometheus-2"), ("model", "selene", "only for judges")],
    )
    async def test_that_do_not_fit_are_refused(
        self, deps: CheckDependencies, role: str, profile: str, problem: str
    ) -> None:
        with pytest.raises(InvalidJobError, match=problem):
            await check(deps, role=role, parameters={"profile": profile})


class TestRefusedParameters:
    async def test_are_left_out_and_named(self, deps: CheckDependencies, stub: StubProvider) -> None:
        stub.then(refusal("`temperature` is deprecated for this model."), GOOD)
        found = await check(deps)
        assert (found["works"], found["calls"]) == (True, 1 + VERDICTS + FORMS)
        assert [one["parameter"] for one in found["refused"]] == ["temperature"]
        sent = ["temperature" in body for body in bodies(stub)]
        assert (sent[0], any(sent[1:])) == (True, False)
        assert '"temperature": null' in said(found, good=False)

    async def test_of_two_that_exclude_each_other_one_stays(
        self, deps: CheckDependencies, stub: StubProvider
    ) -> None:
        words = "temperature and top_p cannot both be specified for this model. Please use only one."
        stub.then(refusal(words), Answer.of_json(ANTHROPIC_REPLY))
        found = await check(deps, "claude/unheard-of", role="persona_agent")
        assert [one["parameter"] for one in found["refused"]] == ["top_p"]
        assert bodies(stub)[1]["temperature"] == 0.9

    async def test_are_tried_no_more_than_a_few_times(
        self, deps: CheckDependencies, stub: StubProvider
    ) -> None:
        stub.then(refusal("temperature, top_p, max_tokens, seed, stop: no"))
        asked = {"temperature": 0.5, "top_p": 0.5, "max_tokens": 9, "seed": 1, "stop": ["END"]}
        found = await check(deps, parameters=asked)
        assert (found["works"], found["calls"]) == (False, 4)

    async def test_what_the_format_demands_is_never_left_out(
        self, deps: CheckDependencies, stub: StubProvider
    ) -> None:
        stub.then(refusal("max_tokens: too many"))
        found = await check(deps, "claude/m")
        assert (found["works"], found["calls"]) == (False, 1)


class TestFailures:
    @pytest.mark.parametrize(
        ("answer", "cause", "remedy"),
        [
            (
                Answer.of_json({"error": {"message": "no", "code": "invalid_api_key"}}, status=401),
                "lab rejected the key",
                "Set the key variable of lab and restart the service.",
            ),
            (
                Answer.of_json({"error": {"message": "no", "code": "model_not_found"}}, status=404),
                "lab has no model m, or the key may not use it",
                "Correct the model's name",
            ),
            (
                Answer.of_json({"error": {"message": "no"}}, status=429),
                "the rate limit of lab",
                "Wait, or raise",
            ),
            (Answer.of_json({"error": {"message": "no"}}, status=503), "lab is down", "in a few minutes"),
            (Answer.of_json({"hello": "world"}), "lab does not answer", "wire format"),
        ],
    )
    async def test_say_why_and_what_to_do(
        self, deps: CheckDependencies, stub: StubProvider, answer: Answer, cause: str, remedy: str
    ) -> None:
        stub.then(answer)
        found = await check(deps)
        assert found["works"] is False
        assert cause in found["error"]["cause"]
        assert remedy in found["error"]["remedy"]
        assert found["error"]["remedy"] in said(found, good=False)

    async def test_of_a_server_that_is_not_there_name_the_address(
        self, deps: CheckDependencies, stub: StubProvider
    ) -> None:
        url = stub.url
        await stub.__aexit__(None, None, None)
        found = await check(deps)
        assert found["error"]["code"] == "connection_failed"
        where = url.removeprefix("http://").partition("/")[0]
        assert f"Nothing listens at {where} (connection_failed)." in said(found, good=False)
        assert "Check that the server is running" in found["error"]["remedy"]

    async def test_a_model_of_no_connection_is_an_error_of_the_request(self, deps: CheckDependencies) -> None:
        with pytest.raises(InvalidJobError, match="unknown connection"):
            await check(deps, "nowhere/m")


async def test_without_a_call_nobody_is_called(deps: CheckDependencies, stub: StubProvider) -> None:
    found = await check(deps, "lab/our-judge", call=False)
    assert (found["works"], found["calls"], stub.seen) == (None, 0, [])
    assert found["parameters"]["family"] == "o-series"


async def test_a_connection_made_over_the_api_is_called_with_its_key(
    deps: CheckDependencies, stub: StubProvider, operator: Connections
) -> None:
    making = ConnectionDependencies(
        deps.engine, operator, Guard(parse_networks("127.0.0.0/8")), SecretCipher((bytes(32),))
    )
    values: Json = {
        "name": "own",
        "kind": "openai",
        "base_url": stub.url,
        "limits": {"models": {}},
        "prices": {},
    }
    values |= {"models": None, "batches": False, "description": None}
    await create_connection(making, TENANT, values, SecretStr("sk-proj-q7Zf3Lw9KxTb2YhVn5Rc"))
    stub.then(GOOD)
    assert (await check(deps, "own/m"))["works"] is True
    assert stub.seen[0].headers["authorization"] == "Bearer sk-proj-q7Zf3Lw9KxTb2YhVn5Rc"


class TestSpendingCap:
    @pytest.fixture
    async def key(self, engine: AsyncEngine) -> str:
        async with engine.begin() as connection:
            await connection.execute(
                text(
                    "INSERT INTO api_keys (id, tenant, name, scopes, prefix, digest, nanos_limit)"
                    " VALUES ('key_1', :tenant, 'k', '{submit}', 'p', '', 2000000000)"
                ),
                {"tenant": TENANT},
            )
        return "key_1"

    async def spent(self, engine: AsyncEngine) -> int:
        async with engine.connect() as connection:
            return int((await connection.execute(text("SELECT nanos FROM api_keys"))).scalar_one())

    async def test_what_a_check_costs_counts(
        self, deps: CheckDependencies, stub: StubProvider, engine: AsyncEngine, key: str
    ) -> None:
        stub.then(GOOD)
        found = await check(deps, "lab/priced", capped_key=key)
        assert await self.spent(engine) == round(found["usd"] * 1e9)

    async def test_counts_too_low_for_the_prompt_are_not_believed(
        self, deps: CheckDependencies, stub: StubProvider, engine: AsyncEngine, key: str
    ) -> None:
        stub.then(Answer.of_json(OPENAI_REPLY | {"usage": {"prompt_tokens": 1, "completion_tokens": 1}}))
        found = await check(deps, "lab/priced", capped_key=key, parameters={"max_tokens": 10})
        assert (found["usd"], found["reply"]["input_tokens"]) == (None, None)
        assert await self.spent(engine) > found["calls"] * 10 * 2000 * 1000

    async def test_a_call_that_failed_unpaid_costs_nothing(
        self, deps: CheckDependencies, stub: StubProvider, engine: AsyncEngine, key: str
    ) -> None:
        stub.then(Answer.of_json({"error": {"message": "no", "code": "invalid_api_key"}}, status=401))
        await check(deps, "lab/priced", capped_key=key)
        assert await self.spent(engine) == 0

    async def test_one_that_may_cost_more_than_is_left_is_not_made(
        self, deps: CheckDependencies, stub: StubProvider, engine: AsyncEngine, key: str
    ) -> None:
        asked = {"max_tokens": 1000}
        with pytest.raises(SpendingCapError, match=r"leaves \$2.0000"):
            await check(deps, "lab/priced", capped_key=key, parameters=asked)
        assert (await self.spent(engine), stub.seen) == (0, [])

    async def test_one_without_a_bound_is_not_made_though_the_provider_refuses_that_it_is_named(
        self, deps: CheckDependencies, stub: StubProvider, engine: AsyncEngine, key: str
    ) -> None:
        stub.then(refusal("Unsupported parameter: 'max_tokens'."), GOOD)
        with pytest.raises(SpendingCapError, match=r"may cost \$3\d\.\d+; .* leaves \$1\.\d+"):
            await check(deps, "lab/priced", capped_key=key)
        assert [body["max_tokens"] for body in bodies(stub)] == [64]
        assert 0 < await self.spent(engine) < 1e9  # the refused call may be charged

    async def test_one_of_unknown_price_is_not_made(
        self, deps: CheckDependencies, stub: StubProvider, key: str
    ) -> None:
        with pytest.raises(SpendingCapError, match="no price is known"):
            await check(deps, capped_key=key)
        assert stub.seen == []

    async def test_the_tenants_counts_and_holds_beside_that_of_the_key(
        self, deps: CheckDependencies, stub: StubProvider, engine: AsyncEngine, key: str
    ) -> None:
        await change_limits(engine, TENANT, LimitChanges(usd=1.5, changes_cap=True))
        with pytest.raises(SpendingCapError, match=r"the tenant's spending cap leaves \$1.5000"):
            await check(deps, "lab/priced", capped_key=key, parameters={"max_tokens": 600})
        with pytest.raises(SpendingCapError, match="the tenant has a spending cap, and no price is known"):
            await check(deps)
        assert stub.seen == []
        stub.then(GOOD)
        found = await check(deps, "lab/priced", capped_key=key)
        async with engine.connect() as connection:
            caps = await read_caps(connection, Payers(key, TENANT))
        assert [cap.nanos_taken for cap in caps] == [round(found["usd"] * 1e9)] * 2
