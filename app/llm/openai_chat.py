"""OpenAI's Chat Completions, and every server that speaks its format."""

from collections.abc import Mapping
from typing import Any

import httpx2
from openai import APIConnectionError, APIStatusError, AsyncOpenAI
from pydantic import SecretStr

from app.domain.model import ChatReply, ChatRequest, FinishReason, ProviderLimits
from app.llm import errors, wire
from app.llm.capabilities import capabilities, sendable, sendable_extra
from app.llm.connections import Connection
from app.llm.limit_headers import LimitHeaders
from app.llm.texts import storable
from app.llm.transports import TransportKind
from app.llm.transports.choice import open_transport
from app.llm.transports.reply import Reply
from app.llm.transports.sdk import PLACEHOLDER_KEY, Faults

FAULTS = Faults(APIStatusError, APIConnectionError)
_FINISH_REASONS: Mapping[str, FinishReason] = {
    "stop": FinishReason.STOP,
    "eos": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "content_filter": FinishReason.CONTENT_FILTER,
}


class OpenAIChat:
    """A ``ChatModel`` over one connection of kind ``openai``; to be built on the loop that it runs on."""

    def __init__(self, connection: Connection, transport: TransportKind) -> None:
        def client(http_client: httpx2.AsyncClient) -> AsyncOpenAI:
            return AsyncOpenAI(
                api_key=PLACEHOLDER_KEY,
                base_url=connection.base_url,
                max_retries=0,
                http_client=http_client,
            )

        self._key = connection.api_key
        self._limits = LimitHeaders()
        self._transport = open_transport(transport, connection, client, "/chat/completions", FAULTS)

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
    choices = body.get("choices")
    if not choices and body.get("error"):
        raise errors.refused_in_reply(body, headers, key)
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise errors.malformed("the reply has no choice with a message")
    text, finish_reason = _answer(message, choice.get("finish_reason"))
    counts = wire.mapping(body.get("usage"))
    return ChatReply(
        text=text,
        finish_reason=finish_reason,
        usage=wire.usage(
            counts.get("prompt_tokens"),
            counts.get("completion_tokens"),
            wire.mapping(counts.get("prompt_tokens_details")).get("cached_tokens"),
        ),
        model_snapshot=wire.short_text(body.get("model")),
        system_fingerprint=wire.short_text(body.get("system_fingerprint")),
        provider_request_id=wire.short_text(headers.get("x-request-id")),
        limits=limits,
    )


def request_body(request: ChatRequest) -> dict[str, object]:
    """The body of a call: the messages and what was asked for, nothing else."""
    model = request.model
    body: dict[str, object] = {"model": model.name, "messages": _messages(request)}
    for name, value in sendable("openai", model).items():
        body[capabilities("openai", model.name).max_tokens_field if name == "max_tokens" else name] = value
    return sendable_extra(model.parameters) | body


def _messages(request: ChatRequest) -> list[dict[str, str]]:
    user = {"role": "user", "content": request.user}
    return [user] if request.system is None else [{"role": "system", "content": request.system}, user]


def _answer(message: Mapping[str, Any], finish_reason: object) -> tuple[str, FinishReason]:
    refusal, content = message.get("refusal"), message.get("content")
    if finish_reason == "error":  # a router's provider broke off in the middle
        raise errors.malformed("the provider broke off the answer")
    if isinstance(refusal, str) and refusal:
        return storable(refusal), FinishReason.REFUSAL
    if content is not None and not isinstance(content, str):
        raise errors.malformed("the answer's content is no text")
    return storable(content or ""), wire.finish_reason(finish_reason, _FINISH_REASONS)
