"""Every kind of reply, over real HTTP, through both transports."""

import asyncio
import json
import logging
import socket
import traceback
from typing import Any

import pytest
from pydantic import SecretStr

from app.domain.providers.model import ChatReply, FinishReason, ProviderLimits, Usage
from app.llm.connections.connections import Connection, Connections
from app.llm.gateway import Gateway
from app.llm.transports import TransportKind
from app.ports import ModelCallError
from tests.integration.llm.conftest import ANTHROPIC_REPLY, KEY, OPENAI_REPLY, Ask, good
from tests.integration.llm.provider_replies import (
    ANSWERS,
    DEADLINE,
    FAILURES,
    ITEM,
    JOB,
    LONG,
    PAGE,
    PAGE_FILE,
    RETRY,
    SHORT,
    TOO_LATE,
    WORDS,
    changed,
    choice,
    events,
    openai_error,
    page,
)
from tests.integration.llm.stub_provider import Answer, StubProvider

BILL = {"prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17}


class TestFailures:
    @pytest.mark.parametrize("name", FAILURES)
    async def test_are_told_apart_by_their_exact_codes(
        self, name: str, stub: StubProvider, gateway: Gateway, ask: Ask
    ) -> None:
        connection, answer, kind, code = FAILURES[name]
        stub.then(answer)
        with pytest.raises(ModelCallError) as raised:
            await gateway.complete(ask(connection, deadline=SHORT if name in TOO_LATE else DEADLINE))
        assert (raised.value.kind, raised.value.code) == (kind, code)
        assert len(str(raised.value)) <= 300

    @pytest.mark.parametrize("name", FAILURES)
    async def test_never_show_the_key(
        self, name: str, stub: StubProvider, gateway: Gateway, ask: Ask, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        connection, answer, _, _ = FAILURES[name]
        stub.then(answer)
        with pytest.raises(ModelCallError) as raised:
            await gateway.complete(ask(connection, deadline=SHORT if name in TOO_LATE else DEADLINE))
        error = raised.value
        assert (error.__cause__, error.__context__) == (None, None), "an SDK's exception holds the request"
        shown = "".join(traceback.format_exception(error)) + repr(vars(error)) + repr(gateway) + caplog.text
        assert KEY not in shown

    @pytest.mark.parametrize("name", WORDS)
    async def test_keep_the_provider_s_words_whatever_encloses_them(
        self, name: str, stub: StubProvider, gateway: Gateway, ask: Ask
    ) -> None:
        connection, answer, _, _ = FAILURES[name]
        stub.then(answer)
        with pytest.raises(ModelCallError) as raised:
            await gateway.complete(ask(connection))
        assert str(raised.value) == WORDS[name]

    async def test_keep_the_wait_that_google_asks_for_in_the_body(
        self, stub: StubProvider, gateway: Gateway, ask: Ask
    ) -> None:
        stub.then(FAILURES["Gemini: rate limit"][1])
        with pytest.raises(ModelCallError) as raised:
            await gateway.complete(ask())
        assert raised.value.retry_after == 34.0

    async def test_keep_the_wait_that_the_provider_asks_for(
        self, stub: StubProvider, gateway: Gateway, ask: Ask
    ) -> None:
        stub.then(openai_error(429, "rate_limit_exceeded", retry_after="7"))
        with pytest.raises(ModelCallError) as raised:
            await gateway.complete(ask())
        assert (raised.value.status, raised.value.retry_after, raised.value.maybe_paid) == (429, 7.0, False)

    async def test_have_no_wait_where_waiting_does_not_help(
        self, stub: StubProvider, gateway: Gateway, ask: Ask
    ) -> None:
        stub.then(openai_error(429, "insufficient_quota", retry_after="7"))
        with pytest.raises(ModelCallError) as raised:
            await gateway.complete(ask())
        assert raised.value.retry_after is None

    @pytest.mark.parametrize("connection", ["openai", "anthropic"])
    async def test_come_at_the_deadline_when_no_answer_comes(
        self, connection: str, stub: StubProvider, gateway: Gateway, ask: Ask
    ) -> None:
        stub.then(Answer(delay=10.0))
        started = asyncio.get_running_loop().time()
        with pytest.raises(ModelCallError) as raised:
            await gateway.complete(ask(connection, deadline=0.1))
        assert asyncio.get_running_loop().time() - started < 8
        assert (raised.value.kind, raised.value.code, raised.value.maybe_paid) == (RETRY, "timeout", True)

    @pytest.mark.parametrize(
        ("answer", "maybe_paid"),
        [
            *((answer, True) for answer in (Answer(cut_after=0), PAGE)),
            *((Answer(status), True) for status in (400, 402, 404, 408, 413, 422, 500, 502, 503, 504, 529)),
            *((Answer(status), False) for status in (401, 403, 429)),
            (Answer.of_json({"error": {"code": 429}}), False),
            (changed(OPENAI_REPLY, choices=[{"error": {"code": 429}}]), True),
        ],
    )
    async def test_say_whether_the_provider_may_have_charged(
        self, answer: Answer, maybe_paid: bool, stub: StubProvider, gateway: Gateway, ask: Ask
    ) -> None:
        stub.then(answer)
        with pytest.raises(ModelCallError) as raised:
            await gateway.complete(ask())
        assert raised.value.maybe_paid is maybe_paid

    @pytest.mark.parametrize(
        "answer",
        [
            Answer.of_json({"error": {"message": "no"}, "usage": BILL}, 400),
            Answer.of_json({"error": {"message": "no", "usage": BILL}}, 503),
            Answer.of_json({"error": {"message": "slow down"}, "usage": BILL}, 429),
            changed(
                OPENAI_REPLY, choices=[{"error": {"code": 502}, "message": {"content": "I"}}], usage=BILL
            ),
            changed(OPENAI_REPLY, choices=None, error={"message": "no"}, usage=BILL),
            changed(OPENAI_REPLY, choices="?", usage=BILL),
            changed(
                OPENAI_REPLY, choices=[{"message": {"content": "I"}, "finish_reason": "error"}], usage=BILL
            ),
            events({"choices": [{"index": 0, "delta": {"content": "I"}}]}, {"choices": [], "usage": BILL}),
            events({"choices": [], "usage": BILL}, {"error": {"code": 500, "message": "no"}}),
        ],
    )
    async def test_keep_the_usage_that_their_replies_report(
        self, answer: Answer, stub: StubProvider, gateway: Gateway, ask: Ask
    ) -> None:
        stub.then(answer)
        with pytest.raises(ModelCallError) as raised:
            await gateway.complete(ask())
        assert raised.value.usage == Usage(12, 5)

    @pytest.mark.parametrize("kind", ["openai", "anthropic"])
    async def test_of_a_provider_that_is_not_there_cost_nothing(
        self, kind: Any, ask: Ask, transport: TransportKind
    ) -> None:
        with socket.create_server(("127.0.0.1", 0)) as unused:
            port = unused.getsockname()[1]
        gateway = Gateway(
            Connections({kind: Connection(kind, kind, f"http://127.0.0.1:{port}", SecretStr(KEY))}), transport
        )
        with pytest.raises(ModelCallError) as raised:
            await gateway.complete(ask(kind))
        await gateway.close()
        assert (raised.value.kind, raised.value.code, raised.value.maybe_paid) == (
            RETRY,
            "connection_failed",
            False,
        )
        assert (raised.value.__cause__, raised.value.__context__) == (None, None)

    async def test_of_a_prompt_that_is_no_unicode_touch_no_other_item(
        self, stub: StubProvider, gateway: Gateway, ask: Ask
    ) -> None:
        with pytest.raises(ModelCallError) as raised:
            await gateway.complete(ask(user="\ud800"))
        assert (raised.value.kind, raised.value.code, stub.seen) == (ITEM, "unencodable_request", [])
        assert (raised.value.__cause__, raised.value.__context__) == (None, None)

    async def test_of_a_connection_that_does_not_exist_stop_the_job(self, gateway: Gateway, ask: Ask) -> None:
        with pytest.raises(ModelCallError, match="'nowhere'") as raised:
            await gateway.complete(ask("nowhere"))
        assert raised.value.kind is JOB

    async def test_leave_the_connection_usable(self, stub: StubProvider, gateway: Gateway, ask: Ask) -> None:
        stub.then(*(FAILURES[name][1] for name in ("half an answer", "closed in the body", "bad gateway")))
        stub.then(good("openai"))
        for _ in range(3):
            with pytest.raises(ModelCallError):
                await gateway.complete(ask())
        assert (await gateway.complete(ask())).text == "I love parties."


class TestProbe:
    @pytest.mark.parametrize("connection", ["openai", "anthropic"])
    async def test_asks_for_nothing_and_says_what_the_server_answers(
        self, connection: str, stub: StubProvider, gateway: Gateway
    ) -> None:
        stub.then(Answer.of_json({"error": {"message": "loading model", "code": 503}}, 503))
        with pytest.raises(ModelCallError) as raised:
            await gateway.probe(connection, "default")
        assert raised.value.status == 503
        assert stub.seen[0].json() == {}

    async def test_says_that_nobody_answers(self, stub: StubProvider, gateway: Gateway) -> None:
        await stub.__aexit__(None, None, None)
        with pytest.raises(ModelCallError) as raised:
            await gateway.probe("openai", "default")
        assert raised.value.code == "connection_failed"


class TestAnswers:
    @pytest.mark.parametrize("name", ANSWERS)
    async def test_are_taken_for_what_they_are(
        self, name: str, stub: StubProvider, gateway: Gateway, ask: Ask
    ) -> None:
        good_reply = ANSWERS[name]
        stub.then(good_reply.answer)
        reply = await gateway.complete(ask(good_reply.connection))
        assert (reply.text, reply.finish_reason) == (good_reply.text, good_reply.finish_reason)
        assert (reply.usage is not None) is good_reply.counted


class TestLongReply:
    @pytest.mark.parametrize("announced", [True, False])
    async def test_is_not_read_to_its_end(
        self, announced: bool, stub: StubProvider, gateway: Gateway, ask: Ask
    ) -> None:
        stub.then(Answer(length=LONG, announced=announced))
        with pytest.raises(ModelCallError):
            await gateway.complete(ask())
        assert stub.written < LONG / 2


class TestLimitHeaders:
    async def test_of_a_reply_come_with_it(self, stub: StubProvider, gateway: Gateway, ask: Ask) -> None:
        headers = {"x-ratelimit-limit-requests": "5000", "x-ratelimit-remaining-requests": "4999"}
        stub.then(Answer(body=good("openai").body, headers=headers))
        assert (await gateway.complete(ask())).limits == ProviderLimits(requests_per_minute=5000)

    async def test_of_an_anthropic_reply_come_with_it(
        self, stub: StubProvider, gateway: Gateway, ask: Ask
    ) -> None:
        stub.then(Answer(body=good("anthropic").body, headers={"anthropic-ratelimit-tokens-limit": "40000"}))
        assert (await gateway.complete(ask("anthropic"))).limits == ProviderLimits(tokens_per_minute=40_000)

    async def test_of_a_429_come_with_it(self, stub: StubProvider, gateway: Gateway, ask: Ask) -> None:
        stub.then(openai_error(429, "rate_limit_exceeded", x_ratelimit_limit_requests="500"))
        with pytest.raises(ModelCallError) as raised:
            await gateway.complete(ask())
        assert raised.value.limits == ProviderLimits(requests_per_minute=500)

    async def test_of_a_429_say_when_a_used_up_day_ends_though_that_is_not_waited_for(
        self, stub: StubProvider, gateway: Gateway, ask: Ask
    ) -> None:
        headers = {f"x_ratelimit_{part}_requests": said for part, said in
                   (("limit", "200"), ("remaining", "0"), ("reset", "24h0m0s"))}  # fmt: skip
        stub.then(openai_error(429, "rate_limit_exceeded", retry_after="43200", **headers))
        with pytest.raises(ModelCallError) as raised:
            await gateway.complete(ask())
        assert raised.value.retry_after == 3600
        assert raised.value.limits is not None
        assert raised.value.limits.hold_ends_seconds == 43_200


class TestPage:
    def test_shows_what_was_tested(self) -> None:
        assert PAGE_FILE.read_text("utf-8") == page()
        assert len(FAILURES) + len(ANSWERS) >= 40


class TestOpenAIReply:
    async def test_is_read_whole(self, stub: StubProvider, gateway: Gateway, ask: Ask) -> None:
        stub.then(Answer.of_json(OPENAI_REPLY, x_request_id="req_9"))
        assert (await gateway.complete(ask()))._replace(delivery=None) == ChatReply(
            text="I love parties.",
            finish_reason=FinishReason.STOP,
            usage=Usage(input_tokens=20, output_tokens=5, cached_input_tokens=16),
            model_snapshot="gpt-4o-2024-08-06",
            system_fingerprint="fp_1",
            provider_request_id="req_9",
        )

    @pytest.mark.parametrize(
        ("answer", "text", "finish_reason"),
        [
            (choice("stop", content="Yes.", refusal=None), "Yes.", FinishReason.STOP),
            (choice("eos", content="Yes."), "Yes.", FinishReason.STOP),
            (choice("length", content="I love"), "I love", FinishReason.LENGTH),
            (choice("length", content=None), "", FinishReason.LENGTH),
            (choice("content_filter", content=""), "", FinishReason.CONTENT_FILTER),
            (choice("stop", content=None, refusal="I can't."), "I can't.", FinishReason.REFUSAL),
            (choice("tool_calls", content=None), "", FinishReason.OTHER),
            (choice("tool_calls", content="Yes."), "Yes.", FinishReason.OTHER),
            (choice("a new one", content="Yes."), "Yes.", FinishReason.UNSTATED),
            (choice(None, content="Yes."), "Yes.", FinishReason.UNSTATED),
            (choice("", content="Yes."), "Yes.", FinishReason.UNSTATED),
            (choice("model_length", content="I love"), "I love", FinishReason.LENGTH),
            (choice("MAX_TOKENS", content="I love"), "I love", FinishReason.LENGTH),
            (choice("sensitive", content=""), "", FinishReason.CONTENT_FILTER),
            (choice("content_filter: SAFETY", content=""), "", FinishReason.CONTENT_FILTER),
        ],
    )
    async def test_says_why_the_model_stopped(
        self,
        answer: Answer,
        text: str,
        finish_reason: FinishReason,
        stub: StubProvider,
        gateway: Gateway,
        ask: Ask,
    ) -> None:
        stub.then(answer)
        reply = await gateway.complete(ask())
        assert (reply.text, reply.finish_reason) == (text, finish_reason)

    @pytest.mark.parametrize(
        ("total", "returned"),
        # xAI's and Gemini's; OpenAI's; one that counts something else; none
        [(331, 319), (14, 2), (2, 2), (None, 2)],
    )
    async def test_counts_thoughts_that_only_the_total_has(
        self, stub: StubProvider, gateway: Gateway, ask: Ask, total: object, returned: int
    ) -> None:
        counts: dict[str, object] = {"prompt_tokens": 12, "completion_tokens": 2, "total_tokens": total}
        counts["completion_tokens_details"] = {"reasoning_tokens": returned - 2}
        stub.then(changed(OPENAI_REPLY, usage=counts))
        expected = Usage(12, returned, reasoning_tokens=returned - 2)
        assert (await gateway.complete(ask())).usage == expected

    @pytest.mark.parametrize(
        "cached",
        [
            {"prompt_tokens_details": {"cached_tokens": 8}},
            {"cached_tokens": 8},
            {"prompt_cache_hit_tokens": 8, "prompt_cache_miss_tokens": 4, "prompt_tokens_details": None},
            {"cache_read_input_tokens": 8, "prompt_tokens_details": {"cached_tokens": 0}},
        ],
    )
    async def test_counts_cached_tokens_by_every_provider_s_name(
        self, stub: StubProvider, gateway: Gateway, ask: Ask, cached: dict[str, object]
    ) -> None:
        stub.then(changed(OPENAI_REPLY, usage={"prompt_tokens": 12, "completion_tokens": 2, **cached}))
        assert (await gateway.complete(ask())).usage == Usage(12, 2, 8)

    @pytest.mark.parametrize(
        ("reported", "usd"),
        [
            ({"cost": 0.0125}, 0.0125),
            ({"cost": 0}, 0.0),
            ({"cost": 0.01, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.25}}, 0.26),
            ({"cost": 0.01, "is_byok": True}, None),
            ({"cost": {"input_tokens_cost": 0.1, "total_cost": 0.3}}, 0.3),
            ({"estimated_cost": 1e-6}, 1e-6),
            ({"cost": None}, None),
            ({"cost": "0.1"}, None),
            ({"cost": -1}, None),
            ({"cost": True}, None),
            ({"cost": 1e9}, None),
        ],
    )
    async def test_has_the_cost_that_the_provider_reports(
        self, stub: StubProvider, gateway: Gateway, ask: Ask, reported: dict[str, object], usd: float | None
    ) -> None:
        stub.then(changed(OPENAI_REPLY, usage={"prompt_tokens": 12, "completion_tokens": 2, **reported}))
        assert (await gateway.complete(ask())).usage == Usage(12, 2, reported_usd=usd)

    async def test_without_a_text_is_no_answer_where_tokens_are_counted(
        self, stub: StubProvider, gateway: Gateway, ask: Ask
    ) -> None:
        stub.then(
            choice("stop", content=None), changed(json.loads(choice("stop", content=None).body), usage=None)
        )
        assert (await gateway.complete(ask())).no_answer is not None
        assert (await gateway.complete(ask())).no_answer is None

    @pytest.mark.parametrize(
        "counts", [None, {}, {"prompt_tokens": 3}, {"prompt_tokens": "3", "completion_tokens": -1}]
    )
    async def test_has_no_usage_where_the_provider_counted_none(
        self, counts: object, stub: StubProvider, gateway: Gateway, ask: Ask
    ) -> None:
        stub.then(changed(OPENAI_REPLY, usage=counts))
        assert (await gateway.complete(ask())).usage is None

    async def test_can_be_stored_whatever_the_model_wrote(
        self, stub: StubProvider, gateway: Gateway, ask: Ask
    ) -> None:
        stub.then(
            Answer(200, json.dumps(OPENAI_REPLY).replace("I love", r"\u0000 \ud800 \ud83c\udf89").encode())
        )
        assert (await gateway.complete(ask())).text == "\ufffd \ufffd 🎉 parties."


class TestAnthropicReply:
    async def test_is_read_whole(self, stub: StubProvider, gateway: Gateway, ask: Ask) -> None:
        stub.then(Answer.of_json(ANTHROPIC_REPLY, request_id="req_9"))
        assert (await gateway.complete(ask("anthropic")))._replace(delivery=None) == ChatReply(
            text="I love parties.",
            finish_reason=FinishReason.STOP,
            usage=Usage(
                input_tokens=4 + 16 + 3, output_tokens=5, cached_input_tokens=16, written_input_tokens=3
            ),
            model_snapshot="claude-3-haiku-20240307",
            provider_request_id="req_9",
        )

    @pytest.mark.parametrize(
        ("stop_reason", "finish_reason"),
        [
            ("end_turn", FinishReason.STOP),
            ("stop_sequence", FinishReason.STOP),
            ("max_tokens", FinishReason.LENGTH),
            ("model_context_window_exceeded", FinishReason.LENGTH),
            ("refusal", FinishReason.REFUSAL),
            ("pause_turn", FinishReason.OTHER),
            (None, FinishReason.UNSTATED),
        ],
    )
    async def test_says_why_the_model_stopped(
        self,
        stop_reason: str | None,
        finish_reason: FinishReason,
        stub: StubProvider,
        gateway: Gateway,
        ask: Ask,
    ) -> None:
        stub.then(changed(ANTHROPIC_REPLY, stop_reason=stop_reason))
        assert (await gateway.complete(ask("anthropic"))).finish_reason is finish_reason

    async def test_leaves_out_what_the_model_thought(
        self, stub: StubProvider, gateway: Gateway, ask: Ask
    ) -> None:
        blocks = [{"type": "thinking", "thinking": "Hm.", "signature": "x"}, {"type": "text", "text": "Yes."}]
        stub.then(changed(ANTHROPIC_REPLY, content=blocks))
        reply = await gateway.complete(ask("anthropic"))
        assert (reply.text, reply.thoughts) == ("Yes.", "Hm.")

    async def test_may_be_an_empty_refusal(self, stub: StubProvider, gateway: Gateway, ask: Ask) -> None:
        stub.then(changed(ANTHROPIC_REPLY, content=[], stop_reason="refusal"))
        reply = await gateway.complete(ask("anthropic"))
        assert (reply.text, reply.finish_reason) == ("", FinishReason.REFUSAL)
