"""What the adapters of all wire formats have in common."""

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import httpx2
from pydantic import SecretStr

from app.domain.providers.model import ChatReply, ChatRequest, ProviderLimits
from app.llm.connections.connections import Connection
from app.llm.formats import events, wire
from app.llm.replies import errors
from app.llm.replies.error_bodies import parsed
from app.llm.replies.limit_headers import LimitHeaders
from app.llm.replies.redact_key import keyless
from app.llm.replies.transport_reply import Reply
from app.llm.replies.usage import billed_usage
from app.llm.transports import TransportKind
from app.llm.transports.body import Body, BodyForms, EmptyBody
from app.llm.transports.choice import open_transport
from app.llm.transports.sdk import Client, Faults
from app.ports import ModelCallError

PROBE_DEADLINE_SECONDS = 10.0


class Chat(ABC):
    """A ``ChatModel`` over one connection; to be built on the loop that it runs on.

    Attributes:
        path: Where calls go, below the connection's base URL.
        faults: The SDK's errors.
        streaming: Fields of the body that ask for server-sent events.
    """

    path: ClassVar[str]
    faults: ClassVar[Faults]
    streaming: ClassVar[Mapping[str, object]]

    def __init__(self, connection: Connection, transport: TransportKind) -> None:
        self._key = connection.api_key
        self._streaming = dict(self.streaming) if connection.stream else {"stream": False}
        self._limits = LimitHeaders()
        self._reading = asyncio.Lock()  # long replies, one at a time: other connections' find a free thread
        self._forms = BodyForms(self._sent)
        client = partial(self.client, connection)
        self._transport = open_transport(transport, connection, client, self.path, self.faults)

    @staticmethod
    @abstractmethod
    def client(connection: Connection, http_client: httpx2.AsyncClient) -> Client:
        """The SDK's client for a connection, on top of an HTTP client that knows the key."""

    @staticmethod
    @abstractmethod
    def body(request: ChatRequest) -> dict[str, object]:
        """What is sent."""

    @staticmethod
    @abstractmethod
    def assemble(reply: Reply, key: SecretStr | None) -> Mapping[str, Any]:
        """Return the body that a reply of server-sent events stands for.

        Raises:
            ModelCallError: If it has an error, or lacks its end.
        """

    @staticmethod
    @abstractmethod
    def read(body: Mapping[str, Any], received: Reply, key: SecretStr | None) -> ChatReply:
        """Return the reply in a body of the format.

        Args:
            body: The body, or what its events stand for.
            received: The reply as it came, for its headers and delivery.
            key: The connection's key, kept out of errors.

        Raises:
            ModelCallError: If there is none in it.
        """

    def body_bytes(self, request: ChatRequest) -> int:
        """How long the body of a call is, as it is sent.

        Raises:
            ModelCallError: If no JSON can express it.
        """
        with contextlib.suppress(ValueError):  # raised in its place, ours would keep it, and it the text
            return len(Body(request, self._forms).content)
        raise errors.unencodable()

    async def complete(self, request: ChatRequest) -> ChatReply:
        """The model's answer, by one HTTP call.

        Raises:
            ModelCallError: If there was none.
        """
        body = Body(request, self._forms)
        reply = await self._transport.post(body, request.request_id, request.deadline_seconds)
        limits = self._limits.news(request.model.name, reply.headers)
        if not wire.is_long(reply):
            return self._read(reply, limits)
        async with self._reading:
            return await asyncio.to_thread(self._read, reply, limits)

    def _read(self, reply: Reply, limits: ProviderLimits | None) -> ChatReply:
        is_stream = events.is_stream(reply)
        try:
            body = self.assemble(reply, self._key) if is_stream else wire.json_object(reply)
            read = self.read(body, reply, self._key)
        except ModelCallError as error:
            error.charge(billed_usage(list(events.objects(reply)) if is_stream else [parsed(reply.body)]))
            raise
        return keyless(read if limits is None else read._replace(limits=limits), self._key)

    def _sent(self, request: ChatRequest) -> dict[str, object]:
        """Return the body of a direct call. Some servers stream unless told otherwise."""
        return {**self.body(request), **self._streaming}

    async def probe(self) -> None:
        """Posts an empty object where calls go.

        Raises:
            ModelCallError: What the server answered, or why nothing came.
        """
        await self._transport.post(EmptyBody(), "probe", PROBE_DEADLINE_SECONDS)

    async def close(self) -> None:
        """Closes all connections."""
        await self._transport.close()
