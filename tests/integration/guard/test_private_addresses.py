"""No spelling of a private address, no resolver that changes its mind and no redirect gets a connection through."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from pydantic import SecretStr
from sqlalchemy.ext.asyncio import AsyncEngine

from app.domain.errors import InvalidJobError
from app.domain.providers.model import ChatRequest, Model
from app.domain.webhooks.contract import WebhookIn
from app.domain.webhooks.webhook import WebhookEvent
from app.guard.targets import Guard
from app.llm.batches.anthropic import AnthropicBatches
from app.llm.batches.openai import OpenAIBatches
from app.llm.connections.connections import Connection, Connections
from app.llm.formats.anthropic import AnthropicChat
from app.llm.formats.openai import OpenAIChat
from app.ports import FailureKind, ModelCallError, WebhookError
from app.services.providers.connections import (
    ConnectionDependencies,
    change_connection,
    create_connection,
    list_connections,
)
from app.services.webhooks.webhooks import WebhookDependencies, create_webhook
from app.vault.secret_cipher import SecretCipher
from app.webhooks.sender import HttpWebhookSender
from tests.addresses import HOSTS, answers
from tests.integration.jobs import TENANT
from tests.integration.llm.stub_provider import Answer, StubProvider

AuthMiddleware = Callable[[str, Guard], Awaitable[object]]
PUBLIC, PRIVATE = "93.184.215.14", "127.0.0.1"


def _request(connection: str) -> ChatRequest:
    return ChatRequest(Model("m", connection, "m"), None, "hello", "job_1/1", deadline_seconds=5.0)


async def _lean_openai(url: str, guard: Guard) -> None:
    chat = OpenAIChat(Connection("c", "openai", url, guard=guard), "lean")
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(chat.close)
        await chat.complete(_request("c"))


async def _sdk_openai(url: str, guard: Guard) -> None:
    chat = OpenAIChat(Connection("c", "openai", url, guard=guard), "sdk")
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(chat.close)
        await chat.complete(_request("c"))


async def _sdk_anthropic(url: str, guard: Guard) -> None:
    chat = AnthropicChat(Connection("c", "anthropic", url, guard=guard), "sdk")
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(chat.close)
        await chat.complete(_request("c"))


async def _calls() -> AsyncIterator[tuple[str, str]]:
    yield "1", "{}"


async def _openai_batch(url: str, guard: Guard) -> None:
    batches = OpenAIBatches(Connection("c", "openai", url, guard=guard))
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(batches.close)
        await batches.upload("calls.jsonl", _calls())


async def _openai_results(url: str, guard: Guard) -> None:
    batches = OpenAIBatches(Connection("c", "openai", url, guard=guard))
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(batches.close)
        assert [answer async for answer in batches.answers("batch_1")]


async def _anthropic_results(url: str, guard: Guard) -> None:
    batches = AnthropicBatches(Connection("c", "anthropic", url, guard=guard))
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(batches.close)
        assert [answer async for answer in batches.answers("batch_1")]


async def _webhook(url: str, guard: Guard) -> None:
    sender = HttpWebhookSender(guard, 5.0)
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(sender.close)
        await sender.send(url, {}, "{}")


CALLS: dict[str, AuthMiddleware] = {
    "lean": _lean_openai,
    "openai's SDK": _sdk_openai,
    "anthropic's SDK": _sdk_anthropic,
    "upload of a batch": _openai_batch,
    "results of openai's batch": _openai_results,
    "results of anthropic's batch": _anthropic_results,
}
DOORS = CALLS | {"webhook": _webhook}
ONE_OF_EACH_FORM = HOSTS[::7]
"""What an SDK's client is made for, which takes a while; it sends by the same transport as the webhooks."""


class Listener:
    """Counts who connects to this machine.

    Attributes:
        connections: How many did.
        port: Where, at its addresses of both versions.
    """

    connections = 0
    port = 0

    async def listen(self) -> AsyncIterator["Listener"]:
        first = await asyncio.start_server(self._count, "0.0.0.0", 0)
        self.port = first.sockets[0].getsockname()[1]
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(first)
            with contextlib.suppress(OSError):  # a machine without version 6
                await stack.enter_async_context(await asyncio.start_server(self._count, "::1", self.port))
            yield self

    async def _count(self, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        writer.close()


@pytest.fixture
async def listener() -> AsyncIterator[Listener]:
    async for listening in Listener().listen():
        yield listening


async def test_the_listener_hears_those_who_are_let_through(listener: Listener) -> None:
    everywhere = Guard(hosts={"127.0.0.1"})
    for door in DOORS.values():
        heard = listener.connections
        with contextlib.suppress(Exception):
            await door(f"https://127.0.0.1:{listener.port}/v1", everywhere)
        assert listener.connections > heard


@pytest.mark.parametrize("door", DOORS)
async def test_no_spelling_of_a_private_address_is_connected_to(door: str, listener: Listener) -> None:
    for host in HOSTS if door in {"lean", "webhook"} else ONE_OF_EACH_FORM:
        with contextlib.suppress(Exception):
            await DOORS[door](f"https://{host}:{listener.port}/v1", Guard())
            pytest.fail(f"{host} was answered")
        assert listener.connections == 0, host


async def test_no_spelling_of_a_private_address_can_be_saved_as_a_webhook(
    engine: AsyncEngine, listener: Listener
) -> None:
    deps = WebhookDependencies(engine, Guard(), SecretCipher(()))
    for host in HOSTS:
        # As if its form, which allows no such letters, had let it by.
        draft = WebhookIn.model_construct(
            url=f"https://{host}:{listener.port}/", events=[WebhookEvent.PAUSED]
        )
        with pytest.raises(InvalidJobError) as refused:
            await create_webhook(deps, TENANT, draft)
        assert refused.value.errors[0].pointer == "/url"
    assert listener.connections == 0


async def test_no_spelling_of_a_private_address_can_be_saved_as_a_connection(
    engine: AsyncEngine, listener: Listener
) -> None:
    deps = ConnectionDependencies(engine, Connections({}), Guard(), SecretCipher([bytes(32)]))
    await create_connection(deps, TENANT, _connection("https://93.184.215.14/v1", "kept"), None)
    for host in HOSTS:
        url = f"https://{host}:{listener.port}/v1"
        with pytest.raises(InvalidJobError) as refused:
            await create_connection(deps, TENANT, _connection(url, "new"), SecretStr("a key"))
        assert refused.value.errors[0].pointer == "/base_url"
        with pytest.raises(InvalidJobError) as refused:
            await change_connection(deps, TENANT, "kept", {"base_url": url, "api_key": SecretStr("a key")})
        assert refused.value.errors[0].pointer == "/base_url"
    assert [kept.base_url for kept in (await list_connections(engine, TENANT)).data] == [
        "https://93.184.215.14/v1"
    ]
    assert listener.connections == 0


def _connection(url: str, name: str) -> dict[str, object]:
    nothing: dict[str, object] = {"models": None, "batches": False, "description": None}
    return {"name": name, "kind": "openai", "base_url": url, "limits": {"models": {}}, "prices": {}} | nothing


@pytest.mark.parametrize("door", DOORS)
async def test_a_name_that_stood_for_a_public_address_is_asked_again(door: str, listener: Listener) -> None:
    guard = Guard(look_up=answers(PUBLIC, PRIVATE))
    url = f"https://rebinding.example.com:{listener.port}/v1"
    await guard.check(url)
    with pytest.raises((ModelCallError, WebhookError), match="addresses that are not allowed") as refused:
        await DOORS[door](url, guard)
    assert getattr(refused.value, "kind", FailureKind.JOB) is FailureKind.JOB
    assert listener.connections == 0


@pytest.mark.parametrize("door", DOORS)
async def test_the_address_that_was_checked_is_the_one_connected_to(door: str, listener: Listener) -> None:
    guard = Guard(hosts={"pinned.example.com"}, look_up=answers(PRIVATE, PUBLIC))
    with contextlib.suppress(Exception):
        await DOORS[door](f"https://pinned.example.com:{listener.port}/v1", guard)
    assert listener.connections >= 1, "whoever asks again is sent to the second address, where nobody is"


@pytest.mark.parametrize("status", [302, 307])
@pytest.mark.parametrize("door", CALLS)
async def test_redirects_are_failures(door: str, status: int, listener: Listener) -> None:
    away = {"Location": f"http://127.0.0.1:{listener.port}/v1/elsewhere"}
    async with StubProvider(Answer(status, b"{}", headers=away)) as provider:
        with pytest.raises(ModelCallError):
            await CALLS[door](provider.url, Guard(hosts={"127.0.0.1"}))
    assert listener.connections == 0


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_webhooks_redirect_is_its_answer(status: int, listener: Listener) -> None:
    away = {"Location": f"http://127.0.0.1:{listener.port}/"}
    async with StubProvider(Answer(status, b"", headers=away)) as receiver:
        sender = HttpWebhookSender(Guard(hosts={"127.0.0.1"}))
        assert await sender.send(receiver.url, {}, "{}") == status
        await sender.close()
    assert listener.connections == 0
    assert receiver.connections == 1


@pytest.mark.parametrize("door", DOORS)
async def test_no_proxy_of_the_environment_comes_between(
    door: str, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{listener.port}")
    with contextlib.suppress(Exception):
        await DOORS[door]("https://rebinding.example.com/v1", Guard(look_up=answers(PRIVATE)))
    assert listener.connections == 0
