"""Anthropic's Messages API."""

from collections.abc import Mapping
from typing import Any, ClassVar

import httpx2
from anthropic import APIConnectionError, APIStatusError, AsyncAnthropic
from pydantic import SecretStr

from app.domain.providers.model import ChatReply, ChatRequest
from app.llm.connections.connections import Connection
from app.llm.formats import events, reply, wire
from app.llm.formats.chat import Chat
from app.llm.models.table import with_parameters
from app.llm.replies import errors
from app.llm.replies.transport_reply import Reply
from app.llm.replies.usage import read_usage
from app.llm.transports.sdk import PLACEHOLDER_KEY, Faults


class AnthropicChat(Chat):
    """A connection of kind ``anthropic``."""

    path = "/v1/messages"
    faults = Faults(APIStatusError, APIConnectionError)
    streaming: ClassVar[Mapping[str, object]] = {"stream": True}

    @staticmethod
    def client(connection: Connection, http_client: httpx2.AsyncClient) -> AsyncAnthropic:
        """The SDK's client for a connection, on top of an HTTP client that knows the key."""
        return AsyncAnthropic(
            api_key=PLACEHOLDER_KEY, base_url=connection.base_url, max_retries=0, http_client=http_client
        )

    @staticmethod
    def body(request: ChatRequest) -> dict[str, object]:
        """The body of a call: the message and what was asked for, nothing else but the limit that the API demands."""
        system = {} if request.system is None else {"system": request.system}
        messages = [each._asdict() for each in request.messages if each.role != "system"]
        asked = {"model": request.model.name, **system, "messages": messages}
        return with_parameters("anthropic", request.model, asked)

    assemble = staticmethod(events.anthropic_body)

    @staticmethod
    def read(body: Mapping[str, Any], received: Reply, key: SecretStr | None) -> ChatReply:
        """See :class:`app.llm.formats.chat.Chat`."""
        blocks = body.get("content")
        if blocks is None and (fault := errors.fault_of(body)) is not None:
            raise errors.refused_in_reply(fault, received.headers, key)
        if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
            raise errors.malformed("the reply has no content blocks")
        said = reply.of_parts(blocks)
        stopped = body.get("stop_reason")
        finish_reason = wire.finish_reason(stopped)
        return ChatReply(
            text=said.text,
            finish_reason=finish_reason,
            usage=read_usage(wire.mapping(body.get("usage")), said.characters),
            model_snapshot=wire.short_text(body.get("model")),
            provider_request_id=wire.short_text(received.headers.get("request-id")),
            thoughts=said.thoughts,
            provider_finish_reason=wire.unusual_word(stopped, finish_reason),
            delivery=received.delivery,
        )
