from datetime import UTC, datetime

import pytest

from app import clock
from app.domain.providers.model import ProviderLimits
from app.llm.replies.limit_headers import LimitHeaders, read_limits

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)


def openai(what: str, limit: str, remaining: str, reset: str) -> dict[str, str]:
    return {
        f"x-ratelimit-limit-{what}": limit,
        f"x-ratelimit-remaining-{what}": remaining,
        f"x-ratelimit-reset-{what}": reset,
    }


def anthropic(what: str, limit: str, remaining: str, reset: str) -> dict[str, str]:
    return {
        f"anthropic-ratelimit-{what}-limit": limit,
        f"anthropic-ratelimit-{what}-remaining": remaining,
        f"anthropic-ratelimit-{what}-reset": reset,
    }


def held(seconds: float, reason: str, ends: float | None = None) -> ProviderLimits:
    return ProviderLimits(hold_seconds=seconds, hold_reason=reason, hold_ends_seconds=ends or seconds)


class TestReadLimits:
    @pytest.mark.parametrize(
        ("headers", "limits"),
        [
            ({}, None),
            ({"x-request-id": "req_1"}, None),
            (
                openai("requests", "5000", "4999", "12ms") | openai("tokens", "800000", "799900", "7ms"),
                ProviderLimits(5000, 800_000),
            ),
            ({"x-ratelimit-limit-requests": "60"}, ProviderLimits(60)),
            # A window of a minute, sliding or not, says when all is there again, however little was taken.
            (openai("requests", "5000", "4990", "59s"), ProviderLimits(5000)),
            # 30 of 14,400 come back in 3 minutes, so all of them in a day: no limit by the minute.
            (openai("requests", "14400", "14370", "2m59.56s"), None),
            (openai("requests", "60", "0", "1m0s"), ProviderLimits(60)),
            (openai("tokens", "60000", "0", "20ms"), ProviderLimits(None, 60_000)),
            # Used up, and whole again in a day: it comes back evenly, one call in 432 s.
            (openai("requests", "200", "0", "24h0m0s"), held(432.0, "daily limit of requests used up")),
            # Used up until midnight, which is asked about once an hour.
            (
                openai("requests", "200", "0", "3h0m0s"),
                held(3600.0, "daily limit of requests used up", 10_800.0),
            ),
            # No nonsense becomes a moment that no calendar has.
            (
                openai("requests", "200", "0", "999999999d"),
                held(3600.0, "daily limit of requests used up", 31 * 86_400.0),
            ),
            (openai("tokens", "90000", "0", "20m0s"), held(1200.0, "hourly limit of tokens used up")),
            (openai("requests", "-5", "0", "soon"), None),
            (openai("requests", "many", "1", ""), None),
            (openai("requests", "nan", "1", "1s"), None),
            (openai("requests", "1e300", "1", "1s"), None),
            (
                anthropic("requests", "4000", "3999", "2026-11-21T12:00:01Z")
                | anthropic("tokens", "480000", "0", "2026-11-21T12:00:30Z"),
                ProviderLimits(4000, 480_000),
            ),
            (
                anthropic("input-tokens", "30000", "0", "2026-11-21T12:00:30Z")
                | anthropic("output-tokens", "8000", "7000", "2026-11-21T12:00:08Z"),
                ProviderLimits(None, None, 30_000, 8000),
            ),
            (anthropic("tokens", "480000", "0", "2026-11-21T11:00:00Z"), ProviderLimits(None, 480_000)),
        ],
    )
    def test_finds_what_a_provider_allows_by_the_minute(
        self, headers: dict[str, str], limits: ProviderLimits | None
    ) -> None:
        assert read_limits(headers, NOW) == limits


class TestNews:
    def test_is_looked_for_once_a_second_for_each_model(self, monkeypatch: pytest.MonkeyPatch) -> None:
        now = 0.0
        monkeypatch.setattr(clock, "monotonic", lambda: now)
        headers = {"x-ratelimit-limit-requests": "60"}
        reader = LimitHeaders()
        assert reader.news("a", headers) == ProviderLimits(60)
        assert reader.news("b", headers) == ProviderLimits(60)
        assert reader.news("a", headers) is None
        now = 1.0
        assert reader.news("a", headers) == ProviderLimits(60)
