from datetime import UTC, datetime

import pytest

from app.llm.replies.errors import retry_after

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)


class TestRetryAfter:
    @pytest.mark.parametrize(
        ("headers", "seconds"),
        [
            ({}, None),
            ({"retry-after": "7"}, 7.0),
            ({"retry-after": "0.5"}, 0.5),
            ({"retry-after": "-3"}, 0.0),
            ({"retry-after": "inf"}, None),
            ({"retry-after": "soon"}, None),
            ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
            ({"retry-after": "Sat, 21 Nov 2026 12:00:30 GMT"}, 30.0),
            ({"retry-after": "Sat, 21 Nov 2026 11:00:00 GMT"}, 0.0),
            ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s"}, 360.0),
            ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "20ms"}, 0.02),
            ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "59m3.5s"}, 3543.5),
            ({"retry-after": "31536000000"}, 3600.0),  # a thousand years: at most an hour at a time
            ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "later 5s"}, None),
            ({"x-ratelimit-remaining-tokens": "9", "x-ratelimit-reset-tokens": "5s"}, None),
            (
                {
                    "anthropic-ratelimit-requests-remaining": "0",
                    "anthropic-ratelimit-requests-reset": "2026-11-21T12:00:05Z",
                    "anthropic-ratelimit-tokens-remaining": "0",
                    "anthropic-ratelimit-tokens-reset": "2026-11-21T12:01:00Z",
                },
                60.0,
            ),
        ],
    )
    def test_is_what_the_headers_ask_for(self, headers: dict[str, str], seconds: float | None) -> None:
        assert retry_after(headers, NOW) == (None if seconds is None else pytest.approx(seconds))
