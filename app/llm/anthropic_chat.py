"""Anthropic's Messages API."""

from collections.abc import Mapping
from typing import Any

import httpx2
from anthropic import APIConnectionError, APIStatusError, AsyncAnthropic
from pydantic import SecretStr

from app.domain.model import ChatReply, ChatRequest, FinishReason, ProviderLimits, Usage
from app.llm import errors, wire
from app.llm.capabilities import DEFAULT_ANTHROPIC_MAX_TOKENS, sendable, sendable_extra
from app.llm.chat import Chat
from app.llm.connections import Connection
from app.llm.texts import storable
from app.llm.transports.sdk import PLACEHOLDER_KEY, Faults

_FINISH_REASONS: Mapping[str, FinishReason] = {
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "max_tokens": FinishReason.LENGTH,
    "model_context_window_exceeded": FinishReason.LENGTH,
    "refusal": FinishReason.REFUSAL,
}


class AnthropicChat(Chat):
    """A connection of kind ``anthropic``."""

    path = "/v1/messages"
    faults = Faults(APIStatusError, APIConnectionError)

    @staticmethod
    def client(connection: Connection, http_client: httpx2.AsyncClient) -> AsyncAnthropic:
        """The SDK's client for a connection, on top of an HTTP client that knows the key."""
        return AsyncAnthropic(
            api_key=PLACEHOLDER_KEY, base_url=connection.base_url, max_retries=0, http_client=http_client
        )

    @staticmethod
    def body(request: ChatRequest) -> dict[str, object]:
        """The body of a call: the message and what was asked for, nothing else but the limit that the API demands."""
        parameters = sendable("anthropic", request.model)
        parameters.setdefault("max_tokens", DEFAULT_ANTHROPIC_MAX_TOKENS)
        if "stop" in parameters:
            parameters["stop_sequences"] = parameters.pop("stop")
        system = {} if request.system is None else {"system": request.system}
        messages = [{"role": "user", "content": request.user}]
        body: dict[str, object] = {"model": request.model.name, **system, "messages": messages, **parameters}
        return sendable_extra(request.model.parameters) | body

    @staticmethod
    def read(
        body: Mapping[str, Any],
        headers: Mapping[str, str],
        key: SecretStr | None,
        limits: ProviderLimits | None = None,
    ) -> ChatReply:
        """See :class:`app.llm.chat.Chat`."""
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


def _usage(counts: Mapping[str, object]) -> Usage | None:
    """The API counts what came from the cache, or went into it, beside ``input_tokens``; we count it within."""
    cached = wire.count(counts.get("cache_read_input_tokens")) or 0
    written = wire.count(counts.get("cache_creation_input_tokens")) or 0
    fresh = wire.count(counts.get("input_tokens"))
    total = None if fresh is None else fresh + cached + written
    return wire.usage(total, counts.get("output_tokens"), cached, written)
