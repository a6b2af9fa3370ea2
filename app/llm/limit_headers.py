"""What providers say of their rate limits in the headers of every reply.

OpenAI: https://platform.openai.com/docs/guides/rate-limits (``x-ratelimit-*``). Anthropic:
https://platform.claude.com/docs/en/api/rate-limits (``anthropic-ratelimit-*``).
"""

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from app.domain.model import ProviderLimits
from app.llm.header_values import LONGEST_WAIT_SECONDS, number, seconds_of_duration, seconds_until

NEWS_SECONDS = 1.0
"""How often the headers of a model's replies are looked at, unless an allowance is used up."""
_MOST_PER_MINUTE = 1e9
_LONGEST_WINDOW_SECONDS = 600.0
"""A limit that is full again only after longer is none by the minute: some name a day's limit in the same header."""

_REMAINING = {
    "x-ratelimit-remaining-requests": "x-ratelimit-reset-requests",
    "x-ratelimit-remaining-tokens": "x-ratelimit-reset-tokens",
    "anthropic-ratelimit-requests-remaining": "anthropic-ratelimit-requests-reset",
    "anthropic-ratelimit-tokens-remaining": "anthropic-ratelimit-tokens-reset",
}
"""Header of what is left, and of when it is whole again."""


class LimitHeaders:
    """Reads the headers of one connection's replies, a model's at most once a second.

    Args:
        clock: Seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next: dict[str, float] = {}

    def news(self, model: str, headers: Mapping[str, str]) -> ProviderLimits | None:
        """The limits that a reply of a model names; ``None`` if it names none, or was not looked at."""
        now = self._clock()
        if now < self._next.get(model, 0.0):
            return None
        self._next[model] = now + NEWS_SECONDS
        return read_limits(headers)


def read_limits(headers: Mapping[str, str], now: datetime | None = None) -> ProviderLimits | None:
    """The limits that a reply's headers name; ``None`` if they name none.

    A limit by the day, which some name in the same headers, is not taken for one by the minute. Where Anthropic gives limits
    of input and of output beside one of tokens, the latter is the tightest of them.
    """
    moment = now or datetime.now(UTC)
    limits = ProviderLimits(
        requests_per_minute=_per_minute(headers, "requests"),
        tokens_per_minute=_per_minute(headers, "tokens"),
        exhausted_seconds=_exhausted(headers, moment),
    )
    return None if limits == ProviderLimits() else limits


def _per_minute(headers: Mapping[str, str], what: str) -> float | None:
    openai = headers.get(f"x-ratelimit-limit-{what}")
    limit = number(headers.get(f"anthropic-ratelimit-{what}-limit") if openai is None else openai)
    if limit is None or not 1 <= limit <= _MOST_PER_MINUTE:
        return None
    left = number(headers.get(f"x-ratelimit-remaining-{what}"))
    reset = seconds_of_duration(headers.get(f"x-ratelimit-reset-{what}", ""))
    # What was taken comes back evenly, so that tells how long all of it takes.
    taken = limit - left if left is not None else 0.0
    by_the_day = reset is not None and taken > 0 and reset * limit / taken > _LONGEST_WINDOW_SECONDS
    return None if by_the_day else limit


def _exhausted(headers: Mapping[str, str], now: datetime) -> float:
    """Seconds until everything that is used up is there again."""
    waits = [0.0]
    for remaining, reset in _REMAINING.items():
        if headers.get(remaining) == "0":
            when = headers.get(reset, "")
            wait = seconds_of_duration(when)
            waits.append((seconds_until(when, now) if wait is None else wait) or 0.0)
    return min(max(waits), LONGEST_WAIT_SECONDS)
