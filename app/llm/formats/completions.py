"""OpenAI's older Completions, a prompt in and a text out: what base models are asked by, for they know no roles."""

from collections.abc import Mapping
from typing import Any

from pydantic import SecretStr

from app.domain.providers.model import ChatReply, ChatRequest
from app.llm.formats import wire
from app.llm.formats.openai import OpenAIChat
from app.llm.models.table import with_parameters
from app.llm.replies import errors
from app.llm.replies.transport_reply import Reply

BETWEEN = "\n\n"
"""After the system prompt, and after the user's: what follows is the model's."""


class CompletionsChat(OpenAIChat):
    """A connection of kind ``completions``."""

    path = "/completions"

    @staticmethod
    def body(request: ChatRequest) -> dict[str, object]:
        """The body of a call: both prompts as one text."""
        asked = {"model": request.model.name, "prompt": as_one(request).user}
        return with_parameters("completions", request.model, asked)

    @staticmethod
    def read(body: Mapping[str, Any], received: Reply, key: SecretStr | None) -> ChatReply:
        """See :class:`app.llm.formats.chat.Chat`: the reply of a chat, but for where its text stands."""
        choices = body.get("choices")
        if isinstance(choices, list) and choices and "error" not in wire.mapping(choices[0]):
            choice = wire.mapping(choices[0])
            if not isinstance(choice.get("text"), str):
                raise errors.malformed("the reply has no choice with a text")
            message = {"role": "assistant", "content": choice["text"]}
            body = {**body, "choices": [{"message": message, "finish_reason": choice.get("finish_reason")}]}
        return OpenAIChat.read(body, received, key)

    def body_bytes(self, request: ChatRequest) -> int:
        """See :class:`app.llm.formats.chat.Chat`."""
        return super().body_bytes(as_one(request))

    async def complete(self, request: ChatRequest) -> ChatReply:
        """See :class:`app.llm.formats.chat.Chat`."""
        return await super().complete(as_one(request))


def as_one(request: ChatRequest) -> ChatRequest:
    """Return the request with all messages joined into the user prompt."""
    if request.system is None and not request.turns:
        return request
    words = "".join(f"{message.content}{BETWEEN}" for message in request.messages)
    return request._replace(system=None, user=words, turns=())
