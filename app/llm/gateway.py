"""The one way out to all models: finds a request's connection and speaks its wire format."""

import asyncio
import hashlib
import importlib
import json
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, get_args

from app.domain.providers.model import ChatReply, ChatRequest, ConnectionKind
from app.llm.connections.connections import Connection, Connections
from app.llm.connections.retired import Retired
from app.llm.transports import TransportKind
from app.ports import FailureKind, Fingerprint, ModelCallError

if TYPE_CHECKING:
    from app.llm.formats.chat import Chat  # with the SDKs' errors


Fetch = Callable[[str, str], Awaitable[Connection | None]]
"""Looks up a tenant's connection by name and tenant; the connections know it from then on."""


async def no_other(_connection: str, _tenant: str) -> None:
    """Finds nothing: there are the operator's connections alone."""


class Gateway:
    """A ``ChatModel`` over all connections.

    Clients are made when a connection is prepared or first called, so that a gateway can be built before a process
    forks and before a loop runs; from then on it belongs to that loop.

    Args:
        connections: Where the models are.
        transport: How calls are sent; ``sdk`` should the lean way ever fail somewhere.
        fetch: Looks up what is not among the connections.
    """

    def __init__(
        self, connections: Connections, transport: TransportKind = "lean", fetch: Fetch = no_other
    ) -> None:
        self._connections = connections
        self._transport = transport
        self._fetch = fetch
        self._retired: Retired[Chat] = Retired()
        self._chats: dict[str, Chat] = {}
        self._preparing = asyncio.Lock()

    async def prepare(self, connection: str, tenant: str) -> None:
        """Imports what a connection needs, on a thread, and makes its client.

        Raises:
            ModelCallError: If this tenant has no such connection.
        """
        if connection in self._chats and self._connections.usable(connection, tenant):
            return
        async with self._preparing:
            if self._connections.usable(connection, tenant) is None:
                await fetch_connection(connection, tenant, self._fetch)
                self.renew(connection)
            if connection not in self._chats:
                kind = find_connection(self._connections, connection).kind
                await asyncio.to_thread(importlib.import_module, _adapter(kind))
                self._connect(connection)

    def complete(self, request: ChatRequest) -> Coroutine[Any, Any, ChatReply]:
        """The model's answer, by one HTTP call.

        Raises:
            ModelCallError: If there was none.
        """
        return self._chat_of(request.model.connection).complete(request)

    def body_bytes(self, request: ChatRequest) -> int:
        """How long the encoded body of a request is.

        Raises:
            ModelCallError: If it can't be encoded, or there is no such connection.
        """
        return self._chat_of(request.model.connection).body_bytes(request)

    async def probe(self, connection: str, tenant: str) -> None:
        """See :class:`app.ports.ProviderProbe`."""
        await self.prepare(connection, tenant)
        await self._chat_of(connection).probe()

    def fingerprint(self, request: ChatRequest) -> Fingerprint:
        """What makes a request the same as another: its provider's address, and the body that it is sent."""
        connection = find_connection(self._connections, request.model.connection)
        body = self._chat_of(connection.id).body(request)
        seen = json.dumps([connection.kind, connection.base_url, body], sort_keys=True, separators=(",", ":"))
        return Fingerprint(hashlib.sha256(seen.encode("ascii")).digest(), body.get("temperature"))

    async def close(self) -> None:
        """Closes all connections; the next call opens new ones."""
        await self._retired.close()
        chats, self._chats = list(self._chats.values()), {}
        for chat in chats:
            await chat.close()

    def renew(self, connection: str) -> None:
        """Has the next call make a new client; calls on the wire are still answered by the old one."""
        chat = self._chats.pop(connection, None)
        if chat is not None:
            self._retired.add(chat)

    def _chat_of(self, name: str) -> "Chat":
        return self._chats.get(name) or self._connect(name)

    def _connect(self, name: str) -> "Chat":
        self._chats[name] = chat = _chat(find_connection(self._connections, name), self._transport)
        return chat


def find_connection(connections: Connections, name: str) -> Connection:
    """The connection of a name.

    Raises:
        ModelCallError: If there is none.
    """
    connection = connections.get(name)
    if connection is None:
        raise _unknown(name)
    return connection


async def fetch_connection(name: str, tenant: str, fetch: Fetch) -> Connection:
    """A tenant's connection, looked up anew.

    Raises:
        ModelCallError: If there is none of this name.
    """
    connection = await fetch(name, tenant)
    if connection is None:
        raise _unknown(name)
    return connection


def _unknown(name: str) -> ModelCallError:
    return ModelCallError(
        f"there is no connection named {name!r}", kind=FailureKind.JOB, code="unknown_connection"
    )


def adapters(connections: Connections) -> list[str]:
    """The modules that speak the connections' wire formats. With its SDK each takes a quarter of a second or more to import.

    The simulator's in Anthropic's format, whose SDK takes longest, is left out: few jobs call it.
    """
    called = {each.kind for each in connections if not each.simulated or each.kind == "openai"}
    return [_adapter(kind) for kind in sorted(called, reverse=True)]


def _adapter(kind: ConnectionKind) -> str:
    return f"{__package__}.formats.{kind}"


def _chat(connection: Connection, transport: TransportKind) -> "Chat":
    if connection.kind == "anthropic":
        from app.llm.formats.anthropic import AnthropicChat  # noqa: PLC0415

        return AnthropicChat(connection, transport)
    if connection.kind == "completions":
        from app.llm.formats.completions import CompletionsChat  # noqa: PLC0415

        return CompletionsChat(connection, transport)
    from app.llm.formats.openai import OpenAIChat  # noqa: PLC0415

    return OpenAIChat(connection, transport)


ADAPTERS = tuple(_adapter(kind) for kind in sorted(get_args(ConnectionKind), reverse=True))
"""The modules of all wire formats."""
