"""What providers say of their rate limits in the headers of every reply.

OpenAI: https://platform.openai.com/docs/guides/rate-limits (``x-ratelimit-*``). Anthropic:
https://platform.claude.com/docs/en/api/rate-limits (``anthropic-ratelimit-*``).
"""

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from app import clock
from app.domain.providers.model import ProviderLimits
from app.llm.replies.header_values import (
    LATEST_END_SECONDS,
    LONGEST_WAIT_SECONDS,
    number,
    seconds_of_duration,
    seconds_until,
)

NEWS_SECONDS = 1.0
"""How often the headers of a model's replies are looked at, unless an allowance is used up."""
_MOST_PER_MINUTE = 1e9
_LONGEST_RESET_SECONDS = 120.0
"""A limit that is whole again only after longer is none by the minute: some name a day's limit in the same header."""
_DAY_SECONDS = 86400.0
_REFILLED_EVENLY = 0.98
"""A used up day's limit that is full again no earlier than after this share of a day comes back evenly, call by call."""


class LimitHeaders:
    """Reads the headers of one connection's replies, a model's at most once a second."""

    def __init__(self) -> None:
        self._next: dict[str, float] = {}

    def news(self, model: str, headers: Mapping[str, str]) -> ProviderLimits | None:
        """The limits that a reply of a model names; ``None`` if it names none, or was not looked at."""
        now = clock.monotonic()
        if now < self._next.get(model, 0.0):
            return None
        self._next[model] = now + NEWS_SECONDS
        return read_limits(headers)


def read_limits(headers: Mapping[str, str], now: datetime | None = None) -> ProviderLimits | None:
    """The limits that a reply's headers name; ``None`` if they name none.

    A limit by the day, which some name in the same headers, is not taken for one by the minute: where it is used up, nothing can be
    called until its reset. A minute's limit that is used up needs no wait: calls are as far apart as it asks for.
    """
    moment = now or clock.now()
    found = {what: _read_limit(headers, what, moment) for what in _PER_MINUTE}
    ends, held, reason = max(
        (
            (
                limit.ends_seconds,
                limit.hold_seconds,
                f"{limit.window} limit of {what.replace('-', ' ')} used up",
            )
            for what, limit in found.items()
            if limit.hold_seconds
        ),
        default=(0.0, 0.0, None),
    )
    limits = ProviderLimits(
        **{field: found[what].per_minute for what, field in _PER_MINUTE.items()},
        hold_seconds=held,
        hold_reason=reason,
        hold_ends_seconds=ends,
    )
    return None if limits == ProviderLimits() else limits


_PER_MINUTE = {
    "requests": "requests_per_minute",
    "tokens": "tokens_per_minute",
    "input-tokens": "input_tokens_per_minute",
    "output-tokens": "output_tokens_per_minute",
}
"""What is limited, as headers call it and as we do."""


class _Limit(NamedTuple):
    per_minute: float | None = None
    hold_seconds: float = 0.0
    window: str = ""
    ends_seconds: float = 0.0


def _read_limit(headers: Mapping[str, str], what: str, now: datetime) -> _Limit:
    limit, left, reset = _openai(headers, what) or _anthropic(headers, what, now)
    if limit is None or not 1 <= limit <= _MOST_PER_MINUTE:
        return _Limit()
    if reset is None or reset <= _LONGEST_RESET_SECONDS:
        return _Limit(limit)
    if left != 0:
        return _Limit()
    # "Full again in a day" is what a limit says that is refilled all the time; until midnight it is less.
    wait = reset / limit if reset >= _REFILLED_EVENLY * _DAY_SECONDS else reset
    window = "daily" if reset > LONGEST_WAIT_SECONDS else "hourly"
    return _Limit(None, min(wait, LONGEST_WAIT_SECONDS), window, min(wait, LATEST_END_SECONDS))


_Numbers = tuple[float | None, float | None, float | None]


def _openai(headers: Mapping[str, str], what: str) -> _Numbers | None:
    limit = headers.get(f"x-ratelimit-limit-{what}")
    if limit is None:
        return None
    left = number(headers.get(f"x-ratelimit-remaining-{what}"))
    return number(limit), left, seconds_of_duration(headers.get(f"x-ratelimit-reset-{what}", ""))


def _anthropic(headers: Mapping[str, str], what: str, now: datetime) -> _Numbers:
    limit, left, reset = (
        headers.get(f"anthropic-ratelimit-{what}-{part}") for part in ("limit", "remaining", "reset")
    )
    return number(limit), number(left), seconds_until(reset, now) if reset else None
