"""What reaches the wire, byte for byte, through both transports."""

import asyncio
import importlib
import threading

import pytest

from app.domain.providers.model import ChatRequest, ConnectionKind
from app.llm import gateway as gateway_module
from app.llm.connections.connections import Connection, Connections
from app.llm.gateway import Gateway
from app.llm.transports import TransportKind, pool
from app.ports import FailureKind, Fingerprint, ModelCallError
from tests.integration.llm.conftest import KEY, Ask, good
from tests.integration.llm.provider_replies import ANSWERS
from tests.integration.llm.stub_provider import Answer, StubProvider

SYSTEM = b'{"role":"system","content":"You are outgoing."}'
USER = b'{"role":"user","content":"Do you like parties?"}'


class TestOpenAIBody:
    async def test_has_the_messages_and_nothing_that_was_not_asked_for(
        self, stub: StubProvider, gateway: Gateway, ask: Ask
    ) -> None:
        stub.then(good("openai"))
        await gateway.complete(ask())
        assert stub.seen[0].line == "POST /v1/chat/completions HTTP/1.1"
        assert stub.seen[0].body == b'{"model":"gpt-4o-2024-08-06","messages":[%s,%s],"stream":false}' % (
            SYSTEM,
            USER,
        )

    async def test_has_every_parameter_that_was_asked_for(
        self, stub: StubProvider, gateway: Gateway, ask: Ask
    ) -> None:
        stub.then(good("openai"))
        parameters = {"temperature": 0.0, "top_p": 0.9, "max_tokens": 64, "seed": 7, "stop": ("END",)}
        await gateway.complete(
            ask(**parameters, extra={"logit_bias": {"1": 2}, "model": "other", "stream": True})
        )
        assert stub.seen[0].body == (
            b'{"logit_bias":{"1":2},"model":"gpt-4o-2024-08-06","messages":[%s,%s],"temperature":0.0,"top_p":0.9,'
            b'"max_tokens":64,"seed":7,"stop":["END"],"stream":false}' % (SYSTEM, USER)
        )

    async def test_of_a_reasoning_model_has_what_its_family_takes(
        self, stub: StubProvider, gateway: Gateway, ask: Ask
    ) -> None:
        stub.then(good("openai"))
        await gateway.complete(ask(name="o3-mini", temperature=0.0, max_tokens=64, system=None))
        assert (
            stub.seen[0].body
            == b'{"model":"o3-mini","messages":[%s],"max_completion_tokens":64,"stream":false}' % USER
        )

    async def test_is_plain_utf_8(self, stub: StubProvider, gateway: Gateway, ask: Ask) -> None:
        stub.then(good("openai"))
        await gateway.complete(ask(system=None, user='Zoë, 派对? "yes"\n'))
        assert '"content":"Zoë, 派对? \\"yes\\"\\n"'.encode() in stub.seen[0].body


class TestAnthropicBody:
    async def test_has_the_message_and_the_limit_that_the_api_demands(
        self, stub: StubProvider, gateway: Gateway, ask: Ask
    ) -> None:
        stub.then(good("anthropic"))
        await gateway.complete(ask("anthropic"))
        assert stub.seen[0].line == "POST /v1/messages HTTP/1.1"
        assert stub.seen[0].body == (
            b'{"model":"claude-3-haiku-20240307","system":"You are outgoing.","messages":[%s],"max_tokens":1024,"stream":false}'
            % USER
        )

    async def test_has_every_parameter_that_was_asked_for_and_the_api_knows(
        self, stub: StubProvider, gateway: Gateway, ask: Ask
    ) -> None:
        stub.then(good("anthropic"))
        parameters = {"temperature": 1.0, "top_p": 0.9, "max_tokens": 64, "seed": 7, "stop": ("END",)}
        await gateway.complete(ask("anthropic", system=None, **parameters, extra={"top_k": 5}))
        assert stub.seen[0].body == (
            b'{"top_k":5,"model":"claude-3-haiku-20240307","messages":[%s],"temperature":1.0,"top_p":0.9,'
            b'"max_tokens":64,"stop_sequences":["END"],"stream":false}' % USER
        )


@pytest.mark.parametrize(
    ("kind", "asks"),
    [
        ("openai", b',"stream":true,"stream_options":{"include_usage":true}}'),
        ("anthropic", b',"stream":true}'),
    ],
)
async def test_a_connection_of_a_server_that_only_streams_asks_for_streams(
    kind: ConnectionKind, asks: bytes, stub: StubProvider, transport: TransportKind, ask: Ask
) -> None:
    gateway = Gateway(Connections({kind: Connection(kind, kind, stub.url, stream=True)}), transport)
    name = "event stream" if kind == "openai" else "anthropic: event stream"
    stub.then(ANSWERS[name].answer)
    assert (await gateway.complete(ask(kind))).text == "I love parties."
    await gateway.close()
    assert stub.seen[0].body.endswith(asks)


@pytest.mark.parametrize("connection", ["openai", "anthropic"])
class TestEveryCall:
    async def test_carries_the_request_id_and_the_key(
        self, connection: str, stub: StubProvider, gateway: Gateway, ask: Ask
    ) -> None:
        stub.then(good(connection))
        await gateway.complete(ask(connection))
        headers = stub.seen[0].headers
        assert headers["x-client-request-id"] == "job_1/generation/7/1"
        assert [name for name, value in headers.items() if KEY in value] == ["authorization"]

    async def test_of_a_connection_without_a_key_carries_none(
        self, connection: str, stub: StubProvider, ask: Ask, transport: TransportKind
    ) -> None:
        kind: ConnectionKind = "anthropic" if connection == "anthropic" else "openai"
        gateway = Gateway(Connections({connection: Connection(connection, kind, stub.url)}), transport)
        stub.then(good(connection))
        await gateway.complete(ask(connection))
        await gateway.close()
        assert stub.seen[0].headers.keys() & {"authorization", "x-api-key"} == set()

    async def test_carries_nothing_that_the_environment_holds_for_another_host(
        self, connection: str, stub: StubProvider, gateway: Gateway, ask: Ask, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for vendor in ("OPENAI", "ANTHROPIC"):
            monkeypatch.setenv(f"{vendor}_CUSTOM_HEADERS", "Authorization: Bearer ambient\nX-Team: ambient")
        for name in ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_API_KEY", "OPENAI_ADMIN_KEY"):
            monkeypatch.setenv(name, "ambient")
        for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
            monkeypatch.setenv(name, "ambient")
        stub.then(good(connection))
        await gateway.complete(ask(connection))
        headers = stub.seen[0].headers
        assert headers["authorization"] == f"Bearer {KEY}"
        assert [name for name, value in headers.items() if "ambient" in value] == []

    async def test_keeps_the_request_id_to_512_characters_that_a_header_can_hold(
        self, connection: str, stub: StubProvider, gateway: Gateway, ask: Ask
    ) -> None:
        stub.then(good(connection))
        await gateway.complete(ask(connection)._replace(request_id="é\r\nX-Evil: 1" + "a" * 600))
        sent = stub.seen[0].headers["x-client-request-id"]
        assert sent == ("___X-Evil:_1" + "a" * 600)[:512]

    async def test_is_one_http_call_even_when_it_fails(
        self, connection: str, stub: StubProvider, gateway: Gateway, ask: Ask
    ) -> None:
        stub.then(Answer(500), good(connection))
        with pytest.raises(ModelCallError):
            await gateway.complete(ask(connection))
        assert len(stub.seen) == 1

    async def test_shares_connections_with_the_calls_before_it(
        self,
        connection: str,
        stub: StubProvider,
        gateway: Gateway,
        ask: Ask,
        transport: TransportKind,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Once they have rested; through an SDK no connection is used twice."""
        monkeypatch.setattr(pool, "REST_SECONDS", 0.0)
        stub.then(good(connection))
        for _ in range(3):
            await asyncio.gather(*(gateway.complete(ask(connection)) for _ in range(8)))
        assert (len(stub.seen), stub.connections) == (24, 8 if transport == "lean" else 24)

    async def test_never_takes_the_key_to_another_host(
        self, connection: str, stub: StubProvider, gateway: Gateway, ask: Ask
    ) -> None:
        async with StubProvider(good(connection)) as elsewhere:
            stub.then(Answer(307, headers={"location": f"{elsewhere.url}/v1/chat/completions"}))
            with pytest.raises(ModelCallError) as raised:
                await gateway.complete(ask(connection))
            assert (raised.value.code, raised.value.kind) == ("http_307", "job")
            assert elsewhere.seen == []


class TestPreparing:
    @pytest.mark.parametrize("connection", ["openai", "anthropic"])
    async def test_leaves_nothing_to_import_or_to_make_for_the_first_call(
        self, connection: str, stub: StubProvider, gateway: Gateway, ask: Ask, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await asyncio.gather(*(gateway.prepare(connection, "default") for _ in range(3)))
        monkeypatch.setattr(gateway_module, "_chat", None)
        stub.then(good(connection))
        assert (await gateway.complete(ask(connection))).text

    async def test_imports_on_a_thread(self, gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
        threads: list[threading.Thread] = []
        monkeypatch.setattr(importlib, "import_module", lambda _: threads.append(threading.current_thread()))
        await asyncio.gather(*(gateway.prepare("openai", "default") for _ in range(3)))
        (thread,) = threads
        assert thread is not threading.main_thread()

    async def test_of_a_connection_that_is_gone_stops_the_job(self, gateway: Gateway) -> None:
        with pytest.raises(ModelCallError) as raised:
            await gateway.prepare("gone", "default")
        assert (raised.value.kind, raised.value.code) == (FailureKind.JOB, "unknown_connection")


class TestFingerprint:
    async def of(
        self, request: ChatRequest, kind: ConnectionKind = "openai", url: str = "http://127.0.0.1:9/v1"
    ) -> Fingerprint:
        gateway = Gateway(Connections({"openai": Connection("openai", kind, url)}))
        found = gateway.fingerprint(request)
        await gateway.close()
        return found

    async def test_is_the_same_for_what_the_provider_can_not_tell_apart(self, ask: Ask) -> None:
        request = ask(temperature=0.0)
        found = await self.of(request)
        assert found == await self.of(request._replace(request_id="job_2/generation/8/2", deadline_seconds=9))
        assert found.temperature == 0

    async def test_is_another_for_other_words_parameters_and_places(self, ask: Ask) -> None:
        asked = (
            ask(),
            ask(user="?"),
            ask(system=None),
            ask(name="gpt-4o"),
            ask(top_p=0.5),
            ask(extra={"top_k": 1}),
        )
        found = [await self.of(request) for request in asked]
        found.append(await self.of(ask(), url="http://127.0.0.1:8/v1"))
        found.append(await self.of(ask(), "anthropic"))
        assert len({each.digest for each in found}) == len(found)

    async def test_has_no_temperature_where_the_family_takes_none(self, ask: Ask) -> None:
        assert (await self.of(ask(name="o3-mini", temperature=0.0))).temperature is None
