"""What a request asks and what a model replies, whatever the wire format."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

ReasonerTask = Literal["environments", "questions", "exemplars", "personas"]
ChatKind = Literal["generation", "judge", "grade", "refusal_check", ReasonerTask]
Kind = Literal[ChatKind, "other"]
Finish = Literal["stop", "length", "refusal", "content_filter"]


@dataclass(frozen=True, slots=True)
class Conversation:
    """A chat request.

    Attributes:
        model: Name of the model that is asked.
        system: All system text, in order.
        turns: (role, text) of each message after it, in order.
        max_tokens: Most tokens that the reply may have; None for no limit.
        tools: Characters of the tools that go with it, which a provider counts as prompt.
    """

    model: str
    system: str
    turns: tuple[tuple[str, str], ...]
    max_tokens: int | None
    tools: int = 0

    @property
    def prompt(self) -> str:
        """The text to reply to: the last message."""
        return self.turns[-1][1]

    @property
    def opening(self) -> "Conversation":
        """The conversation up to its first message."""
        return self if len(self.turns) == 1 else replace(self, turns=self.turns[:1])


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's reply, and the truth about it.

    Attributes:
        text: What is sent back.
        finish: Why it ended. "refusal" and "content_filter" are sent in the provider's own form for them.
        kind: Which part of the simulator wrote it.
        record: JSON members for the ledger, with what only the simulator knows.
        cached: Tokens of the prompt that the provider had read before.
    """

    text: str
    finish: Finish
    kind: Kind
    record: dict[str, object] = field(default_factory=dict)
    cached: int = 0


FaultName = Literal[
    "malformed",
    "unauthenticated",
    "unknown_model",
    "unknown_path",
    "too_large",
    "rate_limited",
    "over_the_whole_limit",
    "quota_exhausted",
    "unsupported_parameter",
    "unsupported_value",
    "filtered",
    "wrong_key",
    "server_error",
    "overloaded",
]


class ProviderError(Exception):
    """A request that gets an error reply.

    Attributes:
        name: Which error; each wire format has its own status and words for it.
        detail: What to tell the client.
        parameter: The member of the request that is to blame, if one is.
        retry_after: Seconds after which a repeated request may succeed; None if that would not help.
        values: What a provider's own form of the error has places for, besides `detail` and `parameter`.
    """

    def __init__(
        self,
        name: FaultName,
        detail: str,
        *,
        parameter: str | None = None,
        retry_after: float | None = None,
        values: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.name: FaultName = name
        self.detail = detail
        self.parameter = parameter
        self.retry_after = retry_after
        self.values: Mapping[str, str] = values or {}


CHARACTERS_PER_TOKEN = 4


def limited(text: str, max_tokens: int | None) -> str:
    """As much of a text as `max_tokens` allow; None is no limit."""
    return text if max_tokens is None else text[: max_tokens * CHARACTERS_PER_TOKEN]


def tokens(characters: int) -> int:
    """A plausible number of tokens for a text: a quarter of its characters, rounded up."""
    return -(-characters // CHARACTERS_PER_TOKEN)
