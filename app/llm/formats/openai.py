"""OpenAI's Chat Completions, and every server that speaks its format."""

from collections.abc import Mapping
from typing import Any, ClassVar

import httpx2
from openai import APIConnectionError, APIStatusError, AsyncOpenAI
from pydantic import SecretStr

from app.domain.providers.model import ChatReply, ChatRequest, FinishReason
from app.llm.connections.connections import Connection
from app.llm.formats import events, reply, wire
from app.llm.formats.chat import Chat
from app.llm.formats.reply import Replied
from app.llm.models.table import with_parameters
from app.llm.replies import errors
from app.llm.replies.texts import storable
from app.llm.replies.transport_reply import Reply
from app.llm.replies.usage import read_usage, reported_usd
from app.llm.transports.sdk import PLACEHOLDER_KEY, Faults


class OpenAIChat(Chat):
    """A connection of kind ``openai``."""

    path = "/chat/completions"
    faults = Faults(APIStatusError, APIConnectionError)
    streaming: ClassVar[Mapping[str, object]] = {"stream": True, "stream_options": {"include_usage": True}}

    @staticmethod
    def client(connection: Connection, http_client: httpx2.AsyncClient) -> AsyncOpenAI:
        """The SDK's client for a connection, on top of an HTTP client that knows the key."""
        return AsyncOpenAI(
            api_key=PLACEHOLDER_KEY, base_url=connection.base_url, max_retries=0, http_client=http_client
        )

    @staticmethod
    def body(request: ChatRequest) -> dict[str, object]:
        """The body of a call: the messages and what was asked for, nothing else."""
        model = request.model
        return with_parameters("openai", model, {"model": model.name, "messages": _messages(request)})

    assemble = staticmethod(events.openai_body)

    @staticmethod
    def read(body: Mapping[str, Any], received: Reply, key: SecretStr | None) -> ChatReply:
        """See :class:`app.llm.formats.chat.Chat`."""
        choices = body.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        message = choice.get("message") if isinstance(choice, dict) else None
        # MiniMax sends an empty text beside its error.
        is_empty = not choice or (isinstance(message, dict) and message.get("content") == "")
        if is_empty and (fault := errors.fault_of(body)) is not None:
            raise errors.refused_in_reply(fault, received.headers, key)
        if choices == [] or (not choices and wire.mapping(body.get("promptFeedback")).get("blockReason")):
            # Gemini's reply to a prompt that its filter blocked
            choice = {"finish_reason": "content_filter"}
        stopped = choice.get("finish_reason") if isinstance(choice, dict) else None
        if isinstance(choice, dict) and choice.get("error"):
            # OpenRouter's, of a provider that failed on the way
            raise errors.refused_in_reply(choice["error"], received.headers, key, started=True)
        if message is None and wire.finish_reason(stopped) is FinishReason.CONTENT_FILTER:
            message = {}
        if not isinstance(message, dict):
            raise errors.malformed("the reply has no choice with a message")
        said, finish_reason = _answer(message, stopped)
        counts = _counts(body, choice)
        usage = read_usage(counts, said.characters)
        return ChatReply(
            text=said.text,
            finish_reason=finish_reason,
            usage=usage,
            reported_usd=reported_usd(counts) if usage is None else None,
            model_snapshot=wire.short_text(body.get("model")),
            system_fingerprint=wire.short_text(body.get("system_fingerprint")),
            provider_request_id=wire.short_text(received.headers.get("x-request-id")),
            thoughts=said.thoughts,
            provider_finish_reason=wire.unusual_word(stopped, finish_reason),
            delivery=received.delivery,
        )


def _counts(body: Mapping[str, Any], choice: object) -> Mapping[str, Any]:
    """Return the token counts: at the top, else in the choice (Moonshot's streams), below ``x_groq``, or Gemini's."""
    usage = wire.mapping(body.get("usage"))
    if usage:
        return usage
    elsewhere = (
        wire.mapping(choice).get("usage"),
        wire.mapping(body.get("x_groq")).get("usage"),
        body.get("usageMetadata"),
    )
    return next((found for each in elsewhere if (found := wire.mapping(each))), {})


def _messages(request: ChatRequest) -> list[dict[str, str]]:
    return [message._asdict() for message in request.messages]


def _answer(message: Mapping[str, Any], finish_reason: object) -> tuple[Replied, FinishReason]:
    refusal = message.get("refusal")
    if finish_reason == "error":  # a router's provider broke off in the middle
        raise errors.broken_off()
    said = reply.of_message(message)
    if isinstance(refusal, str) and refusal:
        return said._replace(text=storable(refusal)), FinishReason.REFUSAL
    return said, wire.finish_reason(finish_reason)
