"""A scripted provider, and what is said to it."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from pydantic import SecretStr

from app.domain.providers.model import ChatRequest, Model, ModelParameters
from app.llm.connections.connections import Connection, Connections
from app.llm.gateway import Gateway
from app.llm.transports import TransportKind
from tests.integration.llm.stub_provider import Answer, StubProvider

KEY = "sk-test-0123456789abcdef"
"""Must turn up nowhere but in the header that carries it."""

OPENAI_REPLY: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt-4o-2024-08-06",
    "system_fingerprint": "fp_1",
    "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "I love parties."}, "finish_reason": "stop"}
    ],
    "usage": {"prompt_tokens": 20, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 16}},
}
ANTHROPIC_REPLY: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-3-haiku-20240307",
    "content": [{"type": "text", "text": "I love "}, {"type": "text", "text": "parties."}],
    "stop_reason": "end_turn",
    "usage": {
        "input_tokens": 4,
        "cache_read_input_tokens": 16,
        "cache_creation_input_tokens": 3,
        "output_tokens": 5,
    },
}


@pytest.fixture
async def stub() -> AsyncIterator[StubProvider]:
    async with StubProvider() as provider:
        yield provider


@pytest.fixture(params=["lean", "sdk"])
def transport(request: pytest.FixtureRequest) -> TransportKind:
    kind: TransportKind = request.param
    return kind


@pytest.fixture
async def gateway(stub: StubProvider, transport: TransportKind) -> AsyncIterator[Gateway]:
    key = SecretStr(KEY)
    connections = [
        Connection("openai", "openai", f"{stub.url}/v1", key),
        Connection("anthropic", "anthropic", stub.url, key),
    ]
    built = Gateway(Connections({connection.id: connection for connection in connections}), transport)
    yield built
    await built.close()


Ask = Callable[..., ChatRequest]


@pytest.fixture
def ask() -> Ask:
    """Makes a request; keyword arguments are the model's parameters."""

    def request(
        connection: str = "openai",
        name: str | None = None,
        *,
        system: str | None = "You are outgoing.",
        user: str = "Do you like parties?",
        deadline: float = 5.0,
        **parameters: Any,
    ) -> ChatRequest:
        default = {"openai": "gpt-4o-2024-08-06", "anthropic": "claude-3-haiku-20240307"}
        model_name = name or default.get(connection, "any")
        return ChatRequest(
            model=Model(f"{connection}/{model_name}", connection, model_name, ModelParameters(**parameters)),
            system=system,
            user=user,
            request_id="job_1/generation/7/1",
            deadline_seconds=deadline,
        )

    return request


def good(connection: str) -> Answer:
    """A reply as the provider's documentation shows it."""
    return Answer.of_json(ANTHROPIC_REPLY if connection == "anthropic" else OPENAI_REPLY)
