"""Tokens and cost that a provider's reply reports, wherever they stand in it."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.domain.providers.model import LONGEST_TOKEN, SHORT_TEXT, Usage

MOST_TOKENS = 2**31 - 1
"""Highest sum of a call's tokens that is believed, and that the database stores."""
MOST_USD = 1000.0
"""Highest reported cost of one call that is accepted."""
_KINDS: Mapping[str, str] = {
    **dict.fromkeys(("prompt_tokens", "input_tokens", "promptTokenCount"), "read"),
    **dict.fromkeys(("completion_tokens", "output_tokens", "candidatesTokenCount"), "returned"),
    **dict.fromkeys(("total_tokens", "totalTokenCount"), "total"),
    **dict.fromkeys(("cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens"), "cached"),
    **dict.fromkeys(("num_cached_tokens", "cachedContentTokenCount"), "cached"),
    "cache_creation_input_tokens": "stored",
}
"""Names of counts and their kinds. Tokens read and returned have those of Chat Completions, of OpenAI's Responses
(https://platform.openai.com/docs/api-reference/responses), and Gemini's (https://ai.google.dev/api/generate-content#UsageMetadata), which
routers pass on. Cached ones have Moonshot's (https://platform.moonshot.ai/docs/api/chat), DeepSeek's
(https://api-docs.deepseek.com/guides/kv_cache) and Anthropic's, which LiteLLM passes on (https://docs.litellm.ai/docs/completion/prompt_caching)."""
_DETAILS: Mapping[str, tuple[str, str]] = {
    "prompt_tokens_details": ("cached_tokens", "cached"),
    "input_tokens_details": ("cached_tokens", "cached"),
    "completion_tokens_details": ("reasoning_tokens", "thought"),
    "output_tokens_details": ("reasoning_tokens", "thought"),
}
_BESIDE = frozenset({"cache_read_input_tokens", "cache_creation_input_tokens"})

_HOLDERS = frozenset({"usage", "usageMetadata"})
_TEXTS = frozenset({"content", "text", "reasoning_content", "reasoning", "thinking", "partial_json"})
_MOST_PARTS = 100_000
"""Values of a failed call's body that are searched."""


def read_usage(counts: Mapping[str, Any], said: int = 0) -> Usage | None:
    """Read the token counts of a reply under the names of all wire formats.

    Anthropic counts what came from the cache, or went into it, beside ``input_tokens``; here it is within. xAI and Gemini count
    thoughts in the total alone (https://docs.x.ai/docs/key-information/consumption-and-rate-limits).

    Args:
        counts: The object that holds the counts.
        said: Characters of text and thoughts in the reply.

    Returns:
        ``None`` if the counts are incomplete or can't be true, so that the call's cost is unknown.
    """
    found: dict[str, int] = {}
    for name, value in counts.items():
        kind, count = _KINDS.get(name), value
        if kind is None:
            if not isinstance(value, dict) or name not in _DETAILS:
                continue
            inner, kind = _DETAILS[name]
            count = value.get(inner)
        if count is None:
            continue
        if type(count) is not int or not 0 <= count <= MOST_TOKENS:  # as in _is_count, without a call
            return None
        if count > found.get(kind, -1):
            found[kind] = count
    if "read" not in found or "returned" not in found:
        return None
    read, returned, cached, written = found["read"], found["returned"], found.get("cached", 0), 0
    if "prompt_tokens" not in counts and not _BESIDE.isdisjoint(counts):
        written = found.get("stored", 0)
        read += cached + written
    else:
        returned = max(returned, found.get("total", 0) - read)
    usage = Usage(read, returned, cached, written, found.get("thought"), reported_usd(counts))
    return usage if _is_possible(usage, said) else None


def billed_usage(bodies: Sequence[object]) -> Usage | None:
    """Return the usage that the body of a failed call, or the events of its stream, report in any place.

    Where several objects report it, the highest number of each kind counts.
    """
    found: dict[str, Any] = {}
    said, waiting = 0, list(bodies)
    for _ in range(_MOST_PARTS):
        if not waiting:
            break
        part = waiting.pop()
        if isinstance(part, list):
            waiting += part
        elif isinstance(part, dict):
            waiting += part.values()
            said += sum(len(text) for name in _TEXTS & part.keys() if isinstance(text := part[name], str))
            for counts in (part[name] for name in _HOLDERS & part.keys() if isinstance(part[name], dict)):
                for name, value in counts.items():
                    known = found.get(name)
                    found[name] = max(known, value) if _is_count(known) and _is_count(value) else value
    return read_usage(found, said) if found else None


def _is_possible(usage: Usage, said: int) -> bool:
    fits = said <= LONGEST_TOKEN * usage.output_tokens + (SHORT_TEXT if usage.output_tokens else 0)
    return (
        fits
        and usage.input_tokens > 0
        and usage.input_tokens + usage.output_tokens <= MOST_TOKENS
        and usage.cached_input_tokens + usage.written_input_tokens <= usage.input_tokens
        and (usage.reasoning_tokens or 0) <= usage.output_tokens
    )


def _is_count(value: object) -> bool:
    # What JSON has: no subclass of a number but true and false, which are none.
    return type(value) is int and 0 <= value <= MOST_TOKENS


def reported_usd(counts: Mapping[str, Any]) -> float | None:
    """Return the cost of the call that the provider reports.

    OpenRouter's ``cost`` lacks what a key of one's own is charged elsewhere (https://openrouter.ai/docs/use-cases/usage-accounting);
    Perplexity's is an object (https://docs.perplexity.ai/api-reference/chat-completions-post); DeepInfra names it ``estimated_cost``
    (https://deepinfra.com/docs/openai_api).
    """
    cost = counts.get("cost", counts.get("estimated_cost"))
    if cost is None:
        return None
    if isinstance(cost, dict):
        return _dollars(cost.get("total_cost"))
    total = _dollars(cost)
    if total is not None and counts.get("is_byok") is True:
        details = counts.get("cost_details")
        upstream = _dollars(details.get("upstream_inference_cost") if isinstance(details, dict) else None)
        return None if upstream is None else total + upstream
    return total


def _dollars(value: object) -> float | None:
    """Return a cost in US dollars from a reply; ``None`` if it is not plausible."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if 0 <= value <= MOST_USD else None
