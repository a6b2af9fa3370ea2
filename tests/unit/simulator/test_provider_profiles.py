from datetime import date

import pytest

from simulator.conversation import ProviderError
from simulator.profiles import MODELS
from simulator.provider_profiles import load_provider_profile, provider_profile_names
from simulator.quirks import read_model_name


class TestData:
    @pytest.mark.parametrize("name", provider_profile_names())
    def test_each_profile_has_a_source_a_date_and_models_that_exist(self, name: str) -> None:
        profile = load_provider_profile(name)
        assert profile.source.startswith("https://")
        assert date.fromisoformat(profile.date) <= date(2027, 1, 1)
        assert all(limit.amount > 0 and limit.seconds > 0 for limit in profile.limits)
        assert profile.models
        for meant in profile.models.values():
            assert read_model_name(meant)[0] in MODELS

    def test_the_tiers_of_the_providers_that_people_use_are_there(self) -> None:
        limits = {
            name: [
                (limit.counts, limit.amount, limit.seconds) for limit in load_provider_profile(name).limits
            ]
            for name in provider_profile_names()
        }
        assert limits["openai-4o-tier-1"] == [("requests", 500, 60), ("tokens", 30_000, 60)]
        assert limits["openai-mini-tier-5"] == [("requests", 30_000, 60), ("tokens", 150_000_000, 60)]
        assert limits["anthropic-tier-1"] == [
            ("requests", 50, 60), ("input_tokens", 30_000, 60), ("output_tokens", 8_000, 60),
        ]  # fmt: skip
        assert ("requests", 14_400, 86_400) in limits["groq-free"]
        assert ("tokens", 6_000, 60) in limits["groq-free"]
        assert ("requests", 15, 60) in limits["gemini-free"]
        assert limits["deepseek"] == limits["vllm-64-slots"] == limits["llama-cpp-one-slot"] == []

    def test_a_queue_is_of_the_providers_that_have_one(self) -> None:
        one = load_provider_profile("llama-cpp-one-slot-oblivious").server
        assert (one.slots, one.notices_hang_ups, one.queue) == (1, False, None)
        assert load_provider_profile("ollama-short-queue").server.queue == 8
        assert load_provider_profile("openai-free").server.slots == 0


class TestError:
    def test_has_the_providers_own_form_with_what_happened_filled_in(self) -> None:
        fault = ProviderError("unknown_model", "There is no x.", values={"model": "x"})
        assert load_provider_profile("gemini-free").error(fault) == (
            404,
            '[{"error": {"code": 404, "message": "There is no x.", "status": "NOT_FOUND"}}]',
        )

    def test_is_left_to_the_wire_format_where_the_profile_has_none(self) -> None:
        assert load_provider_profile("deepseek").error(ProviderError("server_error", "Sorry")) is None
