from datetime import UTC, datetime

import pytest

from simulator.accounts import Account, Meter
from simulator.conversation import Conversation, ProviderError, Reply
from simulator.provider_profiles import Counted, load_provider_profile

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC).timestamp()


def amounts(requests: int = 1, read: int = 0, written: int = 0) -> dict[Counted, int]:
    return {"requests": requests, "tokens": read + written, "input_tokens": read, "output_tokens": written}


def headers(meter: Meter) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in meter.headers(NOON).splitlines())


class TestMeter:
    def test_openais_headers_fall_and_recover(self) -> None:
        meter = Meter(load_provider_profile("openai-4o-tier-1"))
        meter.take(100.0, amounts(read=3_000), "m")
        assert headers(meter) == {
            "x-ratelimit-limit-requests": "500",
            "x-ratelimit-remaining-requests": "499",
            "x-ratelimit-reset-requests": "120ms",  # 60 s / 500
            "x-ratelimit-limit-tokens": "30000",
            "x-ratelimit-remaining-tokens": "27000",
            "x-ratelimit-reset-tokens": "6.000s",  # 60 s · 3,000 / 30,000
        }
        meter.take(161.0, amounts(read=30), "m")
        assert headers(meter)["x-ratelimit-remaining-tokens"] == "29970"
        assert headers(meter)["x-ratelimit-remaining-requests"] == "499"

    def test_anthropics_are_rounded_dated_and_repeat_the_tightest(self) -> None:
        meter = Meter(load_provider_profile("anthropic-tier-1"))
        meter.take(100.0, amounts(read=3_400, written=4_000), "m")
        found = headers(meter)
        assert found["anthropic-ratelimit-requests-remaining"] == "49"
        # 1.2 s, in whole seconds
        assert found["anthropic-ratelimit-requests-reset"] == "2026-11-22T12:00:01Z"
        assert found["anthropic-ratelimit-input-tokens-remaining"] == "27000"
        assert found["anthropic-ratelimit-output-tokens-remaining"] == "4000"
        assert found["anthropic-ratelimit-output-tokens-reset"] == "2026-11-22T12:00:30Z"
        # of the output half is left, of the input nine tenths
        assert found["anthropic-ratelimit-tokens-limit"] == "8000"

    def test_groqs_name_the_requests_of_a_day_and_not_those_of_a_minute(self) -> None:
        meter = Meter(load_provider_profile("groq-free"))
        for second in range(30):
            meter.take(100.0 + second, amounts(read=10), "m")
        assert headers(meter)["x-ratelimit-limit-requests"] == "14400"
        assert headers(meter)["x-ratelimit-remaining-requests"] == "14370"
        assert headers(meter)["x-ratelimit-reset-requests"] == "3m0.000s"  # 30 · 86,400 s / 14,400
        with pytest.raises(ProviderError, match=r"requests per minute \(RPM\): Limit 30, Used 30") as refusal:
            meter.take(130.0, amounts(), "m")
        assert refusal.value.retry_after == pytest.approx(30.0)

    def test_a_refused_call_takes_nothing_of_any_limit(self) -> None:
        meter = Meter(load_provider_profile("openai-4o-tier-1"))
        meter.take(0.0, amounts(read=29_000), "m")
        before = headers(meter)
        with pytest.raises(ProviderError, match="tokens per min") as refusal:
            meter.take(1.0, amounts(read=2_000), "m")
        assert refusal.value.name == "rate_limited"
        assert refusal.value.retry_after == pytest.approx(59.0)
        assert headers(meter) == before

    def test_a_call_above_the_whole_limit_has_nothing_to_wait_for(self) -> None:
        meter = Meter(load_provider_profile("openai-4o-tier-1"))
        with pytest.raises(ProviderError, match="Requested 30001") as refusal:
            meter.take(0.0, amounts(read=30_001), "m")
        assert (refusal.value.name, refusal.value.retry_after) == ("over_the_whole_limit", None)


class TestAccount:
    def test_each_model_has_limits_of_its_own_and_they_are_counted(self) -> None:
        account = Account(load_provider_profile("openai-free"))
        for _ in range(3):
            account.take("a", Conversation("a", "", (("user", "Hello"),), None), Reply("Hi", "stop", "judge"))
        with pytest.raises(ProviderError):
            account.take("a", Conversation("a", "", (("user", "Hello"),), None), Reply("Hi", "stop", "judge"))
        account.take("b", Conversation("b", "", (("user", "Hello"),), None), Reply("Hi", "stop", "judge"))
        assert account.as_dict() == {
            "a": {"accepted": 3, "over requests per min (RPM)": 1},
            "b": {"accepted": 1},
        }

    @pytest.mark.parametrize(
        ("profile", "left"), [("openai-4o-tier-1", 30_000 - 2 - 1_000), ("openai-4o-tier-2", 448_998)]
    )
    def test_openai_counts_the_longest_answer_that_was_asked_for(self, profile: str, left: int) -> None:
        account = Account(load_provider_profile(profile))
        asked = Conversation("a", "", (("user", "Hello"),), 1_000)
        account.take("a", asked, Reply("Hi", "stop", "generation"))
        assert f"x-ratelimit-remaining-tokens: {left}\r\n" in account.headers("a")
