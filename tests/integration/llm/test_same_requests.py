"""The lean transport's requests are the SDKs' own, to the byte."""

from itertools import product
from typing import Any

import pytest
from pydantic import SecretStr

from app.domain.providers.model import ChatRequest, ConnectionKind
from app.llm.connections.connections import Connection, Connections
from app.llm.gateway import Gateway
from app.llm.transports import TransportKind
from tests.integration.llm.conftest import KEY, Ask, good
from tests.integration.llm.stub_provider import StubProvider

CHOICES: dict[str, tuple[Any, ...]] = {
    "system": (None, 'You are "outgoing".\n'),
    "temperature": (None, 0.0, 1e-7),
    "top_p": (None, 1),
    "max_tokens": (None, 64),
    "seed": (None, 2**53 + 1),
    "stop": ((), ("END", "Zoë\u2028")),
    "extra": ({}, {"top_k": 5, "thinking": {"type": "disabled"}, "model": "other"}),
}
NAMES: dict[ConnectionKind, tuple[str, ...]] = {
    "openai": ("gpt-4o-2024-08-06", "o3-mini", "gpt-5-chat-latest", "meta-llama/llama-3"),
    "anthropic": ("claude-3-haiku-20240307",),
}
PATHS = ("", "/v1", "/v1/", "/a%20b/%2f/v1", "/ä/v1", "/100%25/x;y=1/v1")
KINDS: tuple[ConnectionKind, ...] = ("openai", "anthropic")


async def sent(
    stub: StubProvider, transport: TransportKind, connection: Connection, requests: list[ChatRequest]
) -> list[bytes]:
    stub.seen.clear()
    gateway = Gateway(Connections({connection.id: connection}), transport)
    for request in requests:
        await gateway.complete(request)
    await gateway.close()
    return [seen.wire for seen in stub.seen]


@pytest.mark.parametrize("kind", KINDS)
class TestRequests:
    async def test_are_the_same_for_every_combination_of_parameters(
        self, kind: ConnectionKind, stub: StubProvider, ask: Ask
    ) -> None:
        stub.then(good(kind))
        connection = Connection(kind, kind, f"{stub.url}/v1", SecretStr(KEY))
        requests = [
            ask(kind, name, **dict(zip(CHOICES, choice, strict=True)))
            for name, *choice in product(NAMES[kind], *CHOICES.values())
        ]
        lean, sdk = [await sent(stub, transport, connection, requests) for transport in ("lean", "sdk")]
        assert lean == sdk
        assert len(set(lean)) > len(requests) // 3  # the others differ in what is not sent to that model

    @pytest.mark.parametrize("path", PATHS)
    @pytest.mark.parametrize("key", [None, SecretStr(KEY), SecretStr("100%s%(id)s")])
    async def test_are_the_same_for_every_way_to_a_server(
        self, path: str, key: SecretStr | None, kind: ConnectionKind, stub: StubProvider, ask: Ask
    ) -> None:
        stub.then(good(kind))
        connection = Connection(kind, kind, f"{stub.url}{path}", key)
        lean, sdk = [await sent(stub, transport, connection, [ask(kind)]) for transport in ("lean", "sdk")]
        assert lean == sdk

    async def test_are_the_same_whatever_is_asked(
        self, kind: ConnectionKind, stub: StubProvider, ask: Ask
    ) -> None:
        stub.then(good(kind))
        connection = Connection(kind, kind, stub.url.replace("127.0.0.1", "localhost"), SecretStr(KEY))
        texts = ["", "\0\x1f\x7f", "\u2028\u2029", "派对 🎉", "</script>&<>", "\\\"'/%s%d", "x" * 100_000]
        requests = [ask(kind, user=text, system=text) for text in texts]
        lean, sdk = [await sent(stub, transport, connection, requests) for transport in ("lean", "sdk")]
        assert lean == sdk
