"""What the simulator needs of a provider's wire format, and what the formats have in common."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from simulator.conversation import Conversation, ProviderError, Reply

Headers = Mapping[bytes, bytes]


@dataclass(frozen=True, slots=True)
class RateState:
    """How much of a model's rate limit is left.

    Attributes:
        limit: Requests a minute.
        remaining: Requests that would be accepted now.
        reset: Seconds until the bucket is full again.
    """

    limit: int
    remaining: int
    reset: float


class WireFormat(Protocol):
    """One provider's way to ask and to answer."""

    def authenticate(self, headers: Headers) -> None:
        """Raises ProviderError "unauthenticated" if there is no key, "wrong_key" if it is `wrong`. Others are accepted."""

    def read(self, payload: object, headers: Headers) -> Conversation:
        """Reads a request's JSON; raises ProviderError "malformed" with the member to blame."""

    def success(self, reply: Reply, conversation: Conversation, number: int, now: int) -> str:
        """The JSON body of a reply. `number` makes its id unique, `now` is in Unix seconds."""

    def error(self, fault: ProviderError, number: int) -> tuple[int, str]:
        """HTTP status and JSON body of an error."""

    def headers(self, number: int, rate: RateState | None, latency: float, now: float) -> str:
        """The provider's own response headers, each ended by CRLF. `latency` in seconds."""

    def models(self, names: list[str]) -> str:
        """The JSON body of the list of models."""

    def model(self, name: str) -> str:
        """The JSON body that describes one model."""


def read_text(content: object, parameter: str) -> str:
    """The text of a message's content: a string, or a list of text parts.

    Raises:
        ProviderError: It is neither.
    """
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise ProviderError(
            "malformed", f"{parameter}: expected a string or a list of text parts", parameter=parameter
        )
    texts = [
        part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None
        for part in content
    ]
    if not all(isinstance(text, str) for text in texts):
        raise ProviderError("malformed", f"{parameter}: only text parts are supported", parameter=parameter)
    return "".join(str(text) for text in texts)


def read_limit(payload: Mapping[str, object], parameter: str) -> int | None:
    """A member that is a whole number of at least 1, or absent.

    Raises:
        ProviderError: It is something else.
    """
    value = payload.get(parameter)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ProviderError("malformed", f"{parameter}: expected a positive integer", parameter=parameter)
    return value


def read_request(payload: object) -> tuple[dict[str, object], str, list[dict[str, object]]]:
    """What both formats share: an object with `model` and a non-empty list of `messages`, and no streaming.

    Returns:
        The object, the model's name and the messages.

    Raises:
        ProviderError: A member is missing, has a wrong type or asks for streaming.
    """
    if not isinstance(payload, dict):
        raise ProviderError("malformed", "The request body must be a JSON object.")
    model, messages = payload.get("model"), payload.get("messages")
    if not isinstance(model, str) or not model:
        raise ProviderError("malformed", "model: Field required", parameter="model")
    if not isinstance(messages, list) or not messages:
        raise ProviderError("malformed", "messages: at least one message is required", parameter="messages")
    for index, message in enumerate(messages):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise ProviderError(
                "malformed", f"messages.{index}.role: Field required", parameter=f"messages.{index}.role"
            )
    if payload.get("stream"):
        raise ProviderError("malformed", "stream: this simulator does not stream", parameter="stream")
    return payload, model, messages


def prompt_characters(conversation: Conversation) -> int:
    """Length of all that the model reads, for the count of tokens."""
    return len(conversation.system) + sum(len(text) for _, text in conversation.turns) + conversation.tools


def tool_characters(payload: Mapping[str, object]) -> int:
    """Length of the tools of a request."""
    return len(json.dumps(payload["tools"])) if "tools" in payload else 0


quote = json.JSONEncoder().encode
"""A JSON string literal in pure ASCII."""

WRONG_KEY = b"wrong"
"""The one key that the simulator does not accept."""


def duration(seconds: float) -> str:
    """A duration as OpenAI writes it: 12ms, 1.5s, 6m0s."""
    if seconds < 1:
        return f"{round(seconds * 1000)}ms"
    minutes, rest = divmod(seconds, 60)
    return f"{int(minutes)}m{rest:.3f}s" if minutes else f"{rest:.3f}s"
