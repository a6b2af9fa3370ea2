"""Every kind of reply, over real HTTP, through both transports."""

import asyncio
import json
import logging
import socket
import traceback
from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import SecretStr

from app.domain.model import ChatReply, FinishReason, Usage
from app.llm.connections import Connection, Connections
from app.llm.gateway import Gateway
from app.llm.transports import TransportKind
from app.ports import FailureKind, ModelCallError
from tests.integration.llm.conftest import ANTHROPIC_REPLY, KEY, OPENAI_REPLY, Ask, good
from tests.integration.llm.stub_provider import Answer, StubProvider

RETRY, ITEM, JOB = FailureKind.RETRY, FailureKind.ITEM, FailureKind.JOB


def openai_error(status: int, code: object, kind: str = "invalid_request_error", **headers: str) -> Answer:
    fault = {"message": f"It says {KEY} here.", "type": kind, "param": None, "code": code}
    return Answer.of_json({"error": fault}, status, **headers)


def anthropic_error(status: int, kind: str, error_code: str | None = None, **headers: str) -> Answer:
    fault: dict[str, object] = {"type": kind, "message": f"It says {KEY} here."}
    details = {"details": {"error_code": error_code}} if error_code else {}
    return Answer.of_json(
        {"type": "error", "error": fault | details, "request_id": "req_1"}, status, **headers
    )


def changed(reply: Mapping[str, Any], **changes: Any) -> Answer:
    return Answer.of_json({**reply, **changes})


def choice(finish_reason: str | None = "stop", **message: Any) -> Answer:
    answer = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish_reason}
    return changed(OPENAI_REPLY, choices=[answer])


HALF = Answer.of_json(OPENAI_REPLY).body[:100]
PAGE = Answer(200, b"<html>Sign in</html>", {"content-type": "text/html"})
BIG = "x" * 5000

FAILURES: dict[str, tuple[str, Answer, FailureKind, str]] = {
    "rate limit": ("openai", openai_error(429, "rate_limit_exceeded", "requests"), RETRY, "rate_limit_exceeded"),
    "no credit": ("openai", openai_error(429, "insufficient_quota", "insufficient_quota"), JOB, "insufficient_quota"),
    "wrong key": ("openai", openai_error(401, "invalid_api_key"), JOB, "invalid_api_key"),
    "payment required": ("openai", openai_error(402, 402), JOB, "invalid_request_error"),
    "forbidden": ("openai", openai_error(403, "unsupported_country_region_territory"), JOB, "unsupported_country_region_territory"),
    "no such model": ("openai", openai_error(404, "model_not_found"), JOB, "model_not_found"),
    "no such path": ("openai", Answer(404, b"404 page not found"), JOB, "http_404"),
    "prompt too long": ("openai", openai_error(400, "context_length_exceeded"), ITEM, "context_length_exceeded"),
    "prompt against policy": ("openai", openai_error(400, "content_policy_violation"), ITEM, "content_policy_violation"),
    "prompt filtered": ("openai", openai_error(400, "content_filter"), ITEM, "content_filter"),
    "prompt invalid": ("openai", openai_error(400, "invalid_prompt"), ITEM, "invalid_prompt"),
    "parameter refused": ("openai", openai_error(400, "unsupported_parameter"), JOB, "unsupported_parameter"),
    "value refused": ("openai", openai_error(400, "unsupported_value"), JOB, "unsupported_value"),
    "vLLM's bad request": ("openai", Answer.of_json({"object": "error", "message": "no", "code": 400}, 400), ITEM, "http_400"),
    "error as text": ("openai", Answer.of_json({"error": "model is loading"}, 503), RETRY, "http_503"),
    "body too large": ("openai", Answer(413), ITEM, "http_413"),
    "request time-out": ("openai", Answer(408), RETRY, "http_408"),
    "conflict": ("openai", Answer(409), RETRY, "http_409"),
    "server error": ("openai", openai_error(500, None, "server_error"), RETRY, "server_error"),
    "bad gateway": ("openai", Answer(502, b"<html>502</html>"), RETRY, "http_502"),
    "a code that is no code": ("openai", openai_error(500, BIG, "x y"), RETRY, "http_500"),
    "page in place of an answer": ("openai", PAGE, RETRY, "malformed_reply"),
    "half an answer": ("openai", Answer(200, HALF), RETRY, "malformed_reply"),
    "nothing": ("openai", Answer(200, b""), RETRY, "malformed_reply"),
    "a list": ("openai", Answer.of_json([]), RETRY, "malformed_reply"),
    "a hundred thousand brackets": ("openai", Answer(200, b"[" * 100_000), RETRY, "malformed_reply"),
    "no choices": ("openai", changed(OPENAI_REPLY, choices=[]), RETRY, "malformed_reply"),
    "null choices": ("openai", changed(OPENAI_REPLY, choices=None), RETRY, "malformed_reply"),
    "null message": ("openai", changed(OPENAI_REPLY, choices=[{"message": None}]), RETRY, "malformed_reply"),
    "content that is no text": ("openai", choice(content=[1]), RETRY, "malformed_reply"),
    "answer broken off": ("openai", choice("error", content="I lo"), RETRY, "malformed_reply"),
    "a router's rate limit": ("openai", Answer.of_json({"error": {"code": 429, "message": "slow"}}), RETRY, "http_429"),
    "a router's empty purse": ("openai", Answer.of_json({"error": {"code": 402, "message": "pay"}}), JOB, "http_402"),
    "a router's vague error": ("openai", Answer.of_json({"error": "odd"}), RETRY, "http_502"),
    "closed unanswered": ("openai", Answer(cut_after=0), RETRY, "connection_lost"),
    "closed in the head": ("openai", Answer(cut_after=9), RETRY, "connection_lost"),
    "closed in the body": ("openai", Answer(body=HALF, cut_after=80), RETRY, "connection_lost"),
    "no HTTP": ("openai", Answer(headers={"bad header\0": "x"}), RETRY, "connection_lost"),
    "broken gzip": ("openai", Answer(body=b"no gzip", headers={"content-encoding": "gzip"}), RETRY, "connection_lost"),
    "anthropic: rate limit": ("anthropic", anthropic_error(429, "rate_limit_error"), RETRY, "rate_limit_error"),
    "anthropic: spend limit": ("anthropic", anthropic_error(429, "rate_limit_error", "enforced_spend_limit_reached"), JOB, "enforced_spend_limit_reached"),
    "anthropic: overloaded": ("anthropic", anthropic_error(529, "overloaded_error"), RETRY, "overloaded_error"),
    "anthropic: wrong key": ("anthropic", anthropic_error(401, "authentication_error"), JOB, "authentication_error"),
    "anthropic: billing": ("anthropic", anthropic_error(402, "billing_error"), JOB, "billing_error"),
    "anthropic: no such model": ("anthropic", anthropic_error(404, "not_found_error"), JOB, "not_found_error"),
    "anthropic: bad request": ("anthropic", anthropic_error(400, "invalid_request_error"), ITEM, "invalid_request_error"),
    "anthropic: server error": ("anthropic", anthropic_error(500, "api_error"), RETRY, "api_error"),
    "anthropic: error in a good reply": ("anthropic", anthropic_error(200, "overloaded_error"), RETRY, "overloaded_error"),
    "anthropic: page": ("anthropic", PAGE, RETRY, "malformed_reply"),
    "anthropic: no content": ("anthropic", changed(ANTHROPIC_REPLY, content=None), RETRY, "malformed_reply"),
    "anthropic: odd content": ("anthropic", changed(ANTHROPIC_REPLY, content=["text"]), RETRY, "malformed_reply"),
    "anthropic: closed unanswered": ("anthropic", Answer(cut_after=0), RETRY, "connection_lost"),
}  # fmt: skip


class TestFailures:
    @pytest.mark.parametrize("name", FAILURES)
    async def test_are_told_apart_by_their_exact_codes(
        self, name: str, stub: StubProvider, gateway: Gateway, ask: Ask
    ) -> None:
        connection, answer, kind, code = FAILURES[name]
        stub.then(answer)
        with pytest.raises(ModelCallError) as raised:
            await gateway.complete(ask(connection))
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
            await gateway.complete(ask(connection))
        error = raised.value
        assert (error.__cause__, error.__context__) == (None, None), "an SDK's exception holds the request"
        shown = "".join(traceback.format_exception(error)) + repr(vars(error)) + repr(gateway) + caplog.text
        assert KEY not in shown

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
        stub.then(Answer(delay=1.0))
        started = asyncio.get_running_loop().time()
        with pytest.raises(ModelCallError) as raised:
            await gateway.complete(ask(connection, deadline=0.1))
        assert asyncio.get_running_loop().time() - started < 0.5
        assert (raised.value.kind, raised.value.code, raised.value.maybe_paid) == (RETRY, "timeout", True)

    @pytest.mark.parametrize(
        ("answer", "maybe_paid"),
        [(Answer(cut_after=0), True), (PAGE, True), (Answer(504), True), (Answer(500), False)],
    )
    async def test_say_whether_the_provider_may_have_charged(
        self, answer: Answer, maybe_paid: bool, stub: StubProvider, gateway: Gateway, ask: Ask
    ) -> None:
        stub.then(answer)
        with pytest.raises(ModelCallError) as raised:
            await gateway.complete(ask())
        assert raised.value.maybe_paid is maybe_paid

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


class TestOpenAIReply:
    async def test_is_read_whole(self, stub: StubProvider, gateway: Gateway, ask: Ask) -> None:
        stub.then(Answer.of_json(OPENAI_REPLY, x_request_id="req_9"))
        assert await gateway.complete(ask()) == ChatReply(
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
            (choice(None, content="Yes."), "Yes.", FinishReason.OTHER),
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
        assert await gateway.complete(ask("anthropic")) == ChatReply(
            text="I love parties.",
            finish_reason=FinishReason.STOP,
            usage=Usage(input_tokens=4 + 16, output_tokens=5, cached_input_tokens=16),
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
            (None, FinishReason.OTHER),
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
        assert (await gateway.complete(ask("anthropic"))).text == "Yes."

    async def test_may_be_an_empty_refusal(self, stub: StubProvider, gateway: Gateway, ask: Ask) -> None:
        stub.then(changed(ANTHROPIC_REPLY, content=[], stop_reason="refusal"))
        reply = await gateway.complete(ask("anthropic"))
        assert (reply.text, reply.finish_reason) == ("", FinishReason.REFUSAL)
