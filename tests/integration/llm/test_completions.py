"""Base models: a prompt in, a text out."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import SecretStr

from app.domain.providers.model import ChatRequest, FinishReason, Model, ModelParameters, Usage
from app.llm.connections.connections import Connection, Connections, ConnectionsError, load_connections
from app.llm.gateway import Gateway
from app.llm.transports import TransportKind
from app.ports import FailureKind, ModelCallError
from tests.integration.llm.stub_provider import Answer, StubProvider

REPLY: dict[str, Any] = {
    "id": "cmpl-1",
    "object": "text_completion",
    "created": 1,
    "model": "davinci-002",
    "choices": [{"index": 0, "text": "I love parties.", "logprobs": None, "finish_reason": "length"}],
    "usage": {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25},
}


@pytest.fixture
async def base(stub: StubProvider, transport: TransportKind) -> AsyncIterator[Gateway]:
    connection = Connection("base", "completions", f"{stub.url}/v1", SecretStr("sk-test-0123456789abcdef"))
    gateway = Gateway(Connections({"base": connection}), transport)
    yield gateway
    await gateway.close()


def request(system: str | None = "You are shy.", **parameters: Any) -> ChatRequest:
    model = Model("m", "base", "davinci-002", ModelParameters(**parameters))
    return ChatRequest(model, system, 'Do you "like" parties?', "job_1/1", deadline_seconds=5.0)


class TestRequest:
    async def test_has_both_prompts_as_one_text_and_the_papers_limit(
        self, base: Gateway, stub: StubProvider
    ) -> None:
        stub.then(Answer.of_json(REPLY))
        await base.complete(request())
        assert stub.seen[0].line == "POST /v1/completions HTTP/1.1"
        assert stub.seen[0].body == (
            b'{"model":"davinci-002","prompt":"You are shy.\\n\\nDo you \\"like\\" parties?\\n\\n","max_tokens":100,"stream":false}'
        )

    async def test_without_a_system_prompt_has_the_other_as_it_is(
        self, base: Gateway, stub: StubProvider
    ) -> None:
        stub.then(Answer.of_json(REPLY))
        await base.complete(request(system=None, temperature=1.0, max_tokens=7, stop=("Q:",), seed=3))
        assert stub.seen[0].body == (
            b'{"model":"davinci-002","prompt":"Do you \\"like\\" parties?","temperature":1.0,"max_tokens":7,'
            b'"seed":3,"stop":["Q:"],"stream":false}'
        )

    async def test_of_the_same_words_is_the_same(self, base: Gateway) -> None:
        assert base.fingerprint(request()) == base.fingerprint(request())
        assert base.fingerprint(request()) != base.fingerprint(request(system=None))


class TestReply:
    async def test_is_the_text(self, base: Gateway, stub: StubProvider) -> None:
        stub.then(Answer.of_json(REPLY))
        reply = await base.complete(request())
        assert (reply.text, reply.finish_reason) == ("I love parties.", FinishReason.LENGTH)
        assert reply.usage is not None
        assert reply.usage[:2] == Usage(20, 5)[:2]
        assert reply.model_snapshot == "davinci-002"

    @pytest.mark.parametrize("choices", [[{"index": 0}], [{"text": None}], ["text"], None])
    async def test_without_a_text_is_malformed(
        self, base: Gateway, stub: StubProvider, choices: object
    ) -> None:
        stub.then(Answer.of_json(REPLY | {"choices": choices}))
        with pytest.raises(ModelCallError) as failed:
            await base.complete(request())
        assert failed.value.code == "malformed_reply"

    async def test_that_is_an_error_is_told_as_of_a_chat(self, base: Gateway, stub: StubProvider) -> None:
        error = {"error": {"message": "gone", "type": "invalid_request_error", "code": "model_not_found"}}
        stub.then(Answer.of_json(error, status=404))
        with pytest.raises(ModelCallError) as failed:
            await base.complete(request())
        assert (failed.value.kind, failed.value.code) == (FailureKind.JOB, "model_not_found")


class TestConfiguration:
    def test_names_the_kind(self) -> None:
        file = "connections: {base: {kind: completions, base_url: 'http://gpu:8000/v1'}}"
        assert load_connections(file, {}, None).by_id["base"].kind == "completions"

    def test_has_no_batches(self) -> None:
        file = "connections: {base: {kind: completions, base_url: 'http://gpu:8000/v1', batches: true}}"
        with pytest.raises(ConnectionsError, match=r"connections\.base\.batches"):
            load_connections(file, {}, None)
