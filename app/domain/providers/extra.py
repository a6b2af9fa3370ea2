"""Which further fields of a request's body a job may set, by wire format, and within which bounds.

They are those that only say how the model samples or reasons. Whatever could send a call elsewhere, add tools or other texts,
answer it more than once, or change the price of a token is not among them: budgets and caps are kept by what is reserved before
a call is sent, and for such a field nobody knows what to reserve. The operator can allow more of them for a connection.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from app.domain.instruments.rules import Versions

FIELDS_OF_MODELS: Mapping[str, str] = {
    **{name: name for name in ("temperature", "top_p", "max_tokens", "seed", "stop")},
    "max_completion_tokens": "max_tokens",
    "max_output_tokens": "max_tokens",
    "max_tokens_to_sample": "max_tokens",
    "random_seed": "seed",
    "stop_sequences": "stop",
}
"""Body fields that a field of the model sets, by that field."""

FIELDS_OF_OURS = frozenset({"model", "messages", "prompt", "input", "system", "stream", "stream_options"})
"""Body fields that would change what is asked, or the form of the answers."""

MULTIPLIERS = frozenset({"n", "best_of", "num_return_sequences", "num_choices", "candidate_count"})
"""Body fields by which one call is answered, and charged, several times."""

MOST_BIASES = 1024
MOST_THOUGHT_TOKENS = 1_000_000


class _Rule(Protocol):
    def problem(self, value: object) -> str | None:
        """What is wrong with a value, if anything is."""


@dataclass(frozen=True, slots=True)
class _Number:
    least: float
    most: float
    whole: bool = False

    def problem(self, value: object) -> str | None:
        taken = (int,) if self.whole else (int, float)
        if isinstance(value, bool) or not isinstance(value, taken) or not self.least <= value <= self.most:
            kind = "a whole number" if self.whole else "a number"
            return f"must be {kind} from {self.least:,} to {self.most:,}"
        return None


@dataclass(frozen=True, slots=True)
class _Word:
    words: tuple[str, ...]

    def problem(self, value: object) -> str | None:
        return (
            None
            if isinstance(value, str) and value in self.words
            else f"must be one of {', '.join(self.words)}"
        )


@dataclass(frozen=True, slots=True)
class _Flag:
    def problem(self, value: object) -> str | None:
        return None if isinstance(value, bool) else "must be true or false"


@dataclass(frozen=True, slots=True)
class _Biases:
    def problem(self, value: object) -> str | None:
        if (
            isinstance(value, dict)
            and len(value) <= MOST_BIASES
            and all(isinstance(token, str) and token.isascii() and token.isdigit() for token in value)
            and not any(_BIAS.problem(bias) for bias in value.values())
        ):
            return None
        return (
            f"must name at most {MOST_BIASES:,} tokens by their numbers, each with a number from -100 to 100"
        )


@dataclass(frozen=True, slots=True)
class _Parts:
    of: Mapping[str, _Rule] = field(default_factory=dict)

    def problem(self, value: object) -> str | None:
        if not isinstance(value, dict) or not value:
            return f"must be an object with some of {', '.join(self.of)}"
        for name, part in value.items():
            rule = self.of.get(name)
            if rule is None:
                return f"must not have {name!r}; allowed: {', '.join(self.of)}"
            wrong = rule.problem(part)
            if wrong is not None:
                return f"{name} {wrong}"
        return None


_BIAS = _Number(-100, 100)
_PENALTY = _Number(-2, 2)
_FACTOR = _Number(0.01, 10)
_SHARE = _Number(0, 1)
_TOP_K = _Number(-1, 1_000_000, whole=True)
_EFFORT = _Word(("none", "minimal", "low", "medium", "high", "xhigh", "max"))
_THOUGHTS = _Number(0, MOST_THOUGHT_TOKENS, whole=True)
_DISPLAY = _Word(("summarized", "omitted"))

# OpenAI: https://developers.openai.com/api/reference/resources/chat
# vLLM, SGLang, Together, Fireworks, OpenRouter: https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html
_SAMPLING: Mapping[str, _Rule] = {
    "frequency_penalty": _PENALTY,
    "presence_penalty": _PENALTY,
    "logit_bias": _Biases(),
    "top_k": _TOP_K,
    "min_p": _SHARE,
    "top_a": _SHARE,
    "typical_p": _SHARE,
    "repetition_penalty": _FACTOR,
    "repeat_penalty": _FACTOR,  # as llama.cpp and Ollama call it
}

_V1: Mapping[str, Mapping[str, _Rule]] = {
    "openai": {
        **_SAMPLING,
        "reasoning_effort": _EFFORT,
        "verbosity": _Word(("low", "medium", "high")),
        # https://openrouter.ai/docs/use-cases/reasoning-tokens
        "reasoning": _Parts(
            {"effort": _EFFORT, "max_tokens": _THOUGHTS, "exclude": _Flag(), "enabled": _Flag()}
        ),
        "include_reasoning": _Flag(),
        # https://console.groq.com/docs/reasoning
        "reasoning_format": _Word(("parsed", "raw", "hidden")),
        # DeepSeek, Kimi and Z.ai: https://api-docs.deepseek.com/guides/thinking_mode; LiteLLM with a budget
        "thinking": _Parts(
            {"type": _Word(("enabled", "disabled", "auto", "adaptive")), "budget_tokens": _THOUGHTS}
        ),
        # Qwen's own host: https://www.alibabacloud.com/help/en/model-studio/deep-thinking
        "enable_thinking": _Flag(),
        "thinking_budget": _THOUGHTS,
        # What the chat templates of Qwen, DeepSeek and gpt-oss know; others can put texts into a prompt.
        "chat_template_kwargs": _Parts(
            {"enable_thinking": _Flag(), "thinking": _Flag(), "reasoning_effort": _EFFORT}
        ),
    },
    "completions": _SAMPLING,
    "anthropic": {
        # https://platform.claude.com/docs/en/api/messages
        "top_k": _TOP_K,
        "thinking": _Parts(
            {
                "type": _Word(("enabled", "disabled", "adaptive")),
                "budget_tokens": _THOUGHTS,
                "display": _DISPLAY,
            }
        ),
        "output_config": _Parts({"effort": _EFFORT}),
        # The whole prompt is reserved for at the price of storing it for five minutes; an hour costs more.
        "cache_control": _Parts({"type": _Word(("ephemeral",)), "ttl": _Word(("5m",))}),
    },
}

EXTRA_FIELDS = Versions("version of the list of fields of `extra`", {"extra-v1": lambda: _V1})
"""The fields that every job may set, by wire format. A job keeps the latest list of its submission; what :func:`fixed_field` names,
no list can allow."""


def fixed_field(name: str) -> str | None:
    """Why nobody may set a field, not even an operator; ``None`` for others."""
    plain = name.casefold()
    if plain in FIELDS_OF_MODELS:
        return f"{FIELDS_OF_MODELS[plain]} sets this"
    if plain in FIELDS_OF_OURS:
        return "is set by this service; another value would change the request's meaning"
    if plain in MULTIPLIERS:
        return "would return, and charge for, several answers per call"
    return None


def extra_problem(
    wire_format: str,
    allowed: tuple[str, ...],
    name: str,
    value: object,
    version: str = EXTRA_FIELDS.names[-1],
) -> str | None:
    """Why a field is not sent; ``None`` where it is.

    Args:
        wire_format: The wire format; where it is not known, as OpenAI's.
        allowed: What the operator allows besides, with any value.
        name: Its name, letter by letter as it would be sent.
        value: Its value.
        version: Of :data:`EXTRA_FIELDS`.
    """
    fixed = fixed_field(name)
    if fixed is not None or name in allowed:
        return fixed
    listed_by_format = EXTRA_FIELDS.load(version)
    listed = listed_by_format.get(wire_format, listed_by_format["openai"])
    rule = listed.get(name)
    if rule is not None:
        return rule.problem(value)
    return (
        f"it is none of the fields that only say how a model samples or reasons ({', '.join(sorted(listed))}): it may change"
        " where the call goes, what is asked or what it costs; the operator can allow it for a connection (allow_extra)"
    )


def extra_conflicts(
    wire_format: str, extra: Mapping[str, object], max_tokens: int | None
) -> Mapping[str, str]:
    """Fields whose values do not go with others, each with what is wrong."""
    if wire_format == "anthropic":
        budget = _whole(_part(extra, "thinking", "budget_tokens"))
        if budget and (max_tokens is None or budget >= max_tokens):
            return {"thinking": "budget_tokens must be below max_tokens of the model, within which it counts"}
    elif extra.get("enable_thinking") is True and "thinking_budget" not in extra:
        reason = "its host does not count thoughts within max_tokens: limit them by thinking_budget"
        return {"enable_thinking": reason}
    return {}


def thought_tokens(wire_format: str, extra: Mapping[str, object]) -> int:
    """How many tokens of thoughts a call may have beyond ``max_tokens``: hosts differ in whether they count them within.

    Anthropic does: https://platform.claude.com/docs/en/build-with-claude/extended-thinking.
    """
    if wire_format == "anthropic":
        return 0
    named = (
        _part(extra, "thinking", "budget_tokens"),
        _part(extra, "reasoning", "max_tokens"),
        extra.get("thinking_budget"),
    )
    return sum(map(_whole, named))


def _part(extra: Mapping[str, object], name: str, part: str) -> object:
    parts = extra.get(name)
    return parts.get(part) if isinstance(parts, Mapping) else None


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
