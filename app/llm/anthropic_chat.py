"""Anthropic's Messages API."""

from collections.abc import Mapping
from typing import Any

import httpx2
from anthropic import APIConnectionError, APIStatusError, AsyncAnthropic
from pydantic import SecretStr

from app.domain.model import ChatReply, ChatRequest, FinishReason, ProviderLimits, Usage
from app.llm import errors, wire
from app.llm.capabilities import DEFAULT_ANTHROPIC_MAX_TOKENS, sendable, sendable_extra
from app.llm.connections import Connection
from app.llm.limit_headers import LimitHeaders
from app.llm.texts import storable
from app.llm.transports import TransportKind
from app.llm.transports.choice import open_transport
from app.llm.transports.reply import Reply
from app.llm.transports.sdk import PLACEHOLDER_KEY, Faults

FAULTS = Faults(APIStatusError, APIConnectionError)
_FINISH_REASONS: Mapping[str, FinishReason] = {
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "max_tokens": FinishReason.LENGTH,
    "model_context_window_exceeded": FinishReason.LENGTH,
    "refusal": FinishReason.REFUSAL,
}


class AnthropicChat:
    """A ``ChatModel`` over one connection of kind ``anthropic``; to be built on the loop that it runs on."""

    def __init__(self, connection: Connection, transport: TransportKind) -> None:
        def client(http_client: httpx2.AsyncClient) -> AsyncAnthropic:
            return AsyncAnthropic(
                api_key=PLACEHOLDER_KEY,
                base_url=connection.base_url,
                max_retries=0,
                http_client=http_client,
            )

        self._key = connection.api_key
        self._limits = LimitHeaders()
        self._transport = open_transport(transport, connection, client, "/v1/messages", FAULTS)

    async def complete(self, request: ChatRequest) -> ChatReply:
        """The model's answer, by one HTTP call.

        Raises:
            ModelCallError: If there was none.
        """
        body = self.body(request)
        reply = await self._transport.post(body, request.request_id, request.deadline_seconds)
        return self._reply(request.model.name, reply)

    @staticmethod
    def body(request: ChatRequest) -> dict[str, object]:
        """What is sent."""
        return request_body(request)

    async def close(self) -> None:
        """Closes all connections."""
        await self._transport.close()

    def _reply(self, model: str, reply: Reply) -> ChatReply:
        limits = self._limits.news(model, reply.headers)
        return read_reply(wire.json_object(reply), reply.headers, self._key, limits)


def read_reply(
    body: Mapping[str, Any],
    headers: Mapping[str, str],
    key: SecretStr | None,
    limits: ProviderLimits | None = None,
) -> ChatReply:
    """The reply in a body of the format.

    Raises:
        ModelCallError: If there is none in it.
    """
    blocks = body.get("content")
    if blocks is None and body.get("error"):
        raise errors.refused_in_reply(body, headers, key)
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        raise errors.malformed("the reply has no content blocks")
    texts = [block.get("text") for block in blocks if block.get("type") == "text"]
    counts = body.get("usage")
    return ChatReply(
        text=storable("".join(text for text in texts if isinstance(text, str))),
        finish_reason=wire.finish_reason(body.get("stop_reason"), _FINISH_REASONS),
        usage=_usage(counts) if isinstance(counts, dict) else None,
        model_snapshot=wire.short_text(body.get("model")),
        provider_request_id=wire.short_text(headers.get("request-id")),
        limits=limits,
    )


def request_body(request: ChatRequest) -> dict[str, object]:
    """The body of a call: the message and what was asked for, nothing else but the limit that the API demands."""
    parameters = sendable("anthropic", request.model)
    parameters.setdefault("max_tokens", DEFAULT_ANTHROPIC_MAX_TOKENS)
    if "stop" in parameters:
        parameters["stop_sequences"] = parameters.pop("stop")
    system = {} if request.system is None else {"system": request.system}
    messages = [{"role": "user", "content": request.user}]
    body: dict[str, object] = {"model": request.model.name, **system, "messages": messages, **parameters}
    return sendable_extra(request.model.parameters) | body


def _usage(counts: Mapping[str, object]) -> Usage | None:
    """The API counts what came from the cache, or went into it, beside ``input_tokens``; we count it within."""
    cached = wire.count(counts.get("cache_read_input_tokens")) or 0
    written = wire.count(counts.get("cache_creation_input_tokens")) or 0
    fresh = wire.count(counts.get("input_tokens"))
    total = None if fresh is None else fresh + cached + written
    return wire.usage(total, counts.get("output_tokens"), cached, written)
