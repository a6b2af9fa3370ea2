"""What a provider says of one call in a batch, and what becomes of it."""

import json
from collections.abc import AsyncIterator

import pytest

from app.domain.providers.model import FinishReason
from app.llm.batches.batch_wire import lines
from app.llm.batches.gateway import BatchGateway
from app.llm.connections.connections import load_connections
from app.ports import BATCH_LOST, FailureKind, ModelCallError

FREE = frozenset({"batch_expired", "batch_canceled", "authentication_error"})
"""Codes of calls that are certainly not charged."""
RETRY, ITEM, JOB = FailureKind.RETRY, FailureKind.ITEM, FailureKind.JOB


@pytest.fixture
async def gateway() -> AsyncIterator[BatchGateway]:
    made = BatchGateway(
        load_connections(None, {"OPENAI_API_KEY": "a key", "ANTHROPIC_API_KEY": "a key"}, None)
    )
    for connection in ("openai", "anthropic"):
        await made.prepare(connection, "default")
    yield made
    await made.close()


def of_openai(status: int, body: object) -> str:
    response = {"status_code": status, "request_id": "req_1", "body": body}
    return json.dumps({"custom_id": "c", "response": response, "error": None})


def openai_fault(code: str) -> str:
    return json.dumps({"custom_id": "c", "response": None, "error": {"code": code, "message": "m"}})


def without_status(**body: object) -> str:
    return json.dumps({"custom_id": "c", "response": {"body": body}})


def of_anthropic(kind: str, **members: object) -> str:
    return json.dumps({"custom_id": "c", "result": {"type": kind} | members})


def anthropic_fault(kind: str) -> str:
    return of_anthropic("errored", error={"type": "error", "error": {"type": kind, "message": "m"}})


class TestReplies:
    def test_of_openai_are_those_of_direct_calls(self, gateway: BatchGateway) -> None:
        choice = {"message": {"content": "four"}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 3, "completion_tokens": 1}
        body = {"choices": [choice], "usage": usage, "model": "m-1", "system_fingerprint": "fp"}
        reply = gateway.decode("openai", of_openai(200, body))
        assert (reply.text, reply.finish_reason, reply.model_snapshot) == ("four", FinishReason.STOP, "m-1")
        assert reply.usage is not None
        assert (reply.usage.input_tokens, reply.provider_request_id) == (3, "req_1")

    @pytest.mark.parametrize("is_wrapped", [True, False])
    def test_without_a_status_are_read(self, gateway: BatchGateway, is_wrapped: bool) -> None:
        body = {"choices": [{"message": {"content": "four"}, "finish_reason": "stop"}]}
        line = {"custom_id": "c", "response": {"body": body} if is_wrapped else body}
        assert gateway.decode("openai", json.dumps(line)).text == "four"

    def test_of_anthropic_are_those_of_direct_calls(self, gateway: BatchGateway) -> None:
        message = {
            "content": [{"type": "text", "text": "four"}],
            "stop_reason": "max_tokens",
            "usage": {"input_tokens": 3, "output_tokens": 1},
        }
        reply = gateway.decode("anthropic", of_anthropic("succeeded", message=message))
        assert (reply.text, reply.finish_reason) == ("four", FinishReason.LENGTH)


class TestFailures:
    @pytest.mark.parametrize(
        ("connection", "answer", "kind", "code"),
        [
            ("openai", of_openai(429, {"error": {"code": "insufficient_quota"}}), JOB, "insufficient_quota"),
            (
                "openai",
                of_openai(400, {"error": {"code": "context_length_exceeded"}}),
                ITEM,
                "context_length_exceeded",
            ),
            ("openai", of_openai(400, {"error": {"message": "no"}}), ITEM, "http_400"),
            ("openai", of_openai(500, {}), RETRY, "http_500"),
            ("openai", of_openai(0, {}), RETRY, "batch_unanswered"),
            ("openai", openai_fault("batch_expired"), RETRY, "batch_expired"),
            ("openai", openai_fault("insufficient_quota"), JOB, "insufficient_quota"),
            ("openai", openai_fault("model_not_found"), JOB, "model_not_found"),
            ("openai", openai_fault("context_length_exceeded"), ITEM, "context_length_exceeded"),
            ("openai", without_status(error={"code": "InternalError"}), RETRY, "InternalError"),
            ("openai", without_status(error={"code": 400, "message": "no"}), ITEM, "http_400"),
            ("openai", without_status(base_resp={"status_code": 1008}), RETRY, "batch_unanswered"),
            ("openai", "", RETRY, "batch_unanswered"),
            ("openai", "no JSON", RETRY, "batch_unanswered"),
            ("anthropic", anthropic_fault("invalid_request_error"), ITEM, "invalid_request_error"),
            ("anthropic", anthropic_fault("authentication_error"), JOB, "authentication_error"),
            ("anthropic", anthropic_fault("overloaded_error"), RETRY, "overloaded_error"),
            ("anthropic", anthropic_fault("something_new"), RETRY, "something_new"),
            ("anthropic", of_anthropic("expired"), RETRY, "batch_expired"),
            ("anthropic", of_anthropic("canceled"), RETRY, "batch_canceled"),
            ("anthropic", "", RETRY, "batch_unanswered"),
        ],
    )
    def test_are_those_of_direct_calls(
        self, gateway: BatchGateway, connection: str, answer: str, kind: FailureKind, code: str
    ) -> None:
        with pytest.raises(ModelCallError) as failed:
            gateway.decode(connection, answer)
        assert (failed.value.kind, failed.value.code) == (kind, code)
        assert failed.value.maybe_paid is not (code in FREE or '"status_code": 429' in answer)

    def test_a_line_with_neither_status_nor_answer_is_asked_for_once_more(
        self, gateway: BatchGateway
    ) -> None:
        with pytest.raises(ModelCallError) as failed:
            gateway.decode("openai", without_status(output={"text": "four"}))
        assert (failed.value.code, failed.value.most_attempts) == ("malformed_reply", 2)

    @pytest.mark.parametrize("connection", ["openai", "anthropic"])
    def test_a_batch_that_is_not_to_be_found_may_have_been_paid(
        self, gateway: BatchGateway, connection: str
    ) -> None:
        with pytest.raises(ModelCallError) as failed:
            gateway.decode(connection, BATCH_LOST)
        assert (failed.value.kind, failed.value.maybe_paid) == (RETRY, True)


class TestLines:
    async def test_end_with_line_feeds_only(self) -> None:
        async def pieces() -> AsyncIterator[bytes]:
            for piece in ("a\u2028b", "\r\n", "c\nd"):
                yield piece.encode()

        assert [line async for line in lines(pieces())] == ["a\u2028b\r", "c", "d"]
