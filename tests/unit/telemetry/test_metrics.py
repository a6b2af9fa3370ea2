import pytest

from app.telemetry import metrics
from app.telemetry.metrics import OTHER_MODEL, REGISTRY, calls_of


def shown(name: str, connection: str, model: str, **labels: str) -> float | None:
    """A model's figure, as it is given to whoever asks for the metrics."""
    return REGISTRY.get_sample_value(name, {"connection": connection, "model": model, **labels})


class TestCallsOf:
    def test_counts_each_model_by_itself(self) -> None:
        first, second = calls_of("each", "a"), calls_of("each", "b")
        assert first is not second
        assert calls_of("each", "a") is first
        first.in_flight += 1
        assert shown("assay_calls_in_flight", "each", "a") == 1
        assert shown("assay_calls_in_flight", "each", "b") == 0
        first.in_flight -= 1

    def test_counts_models_beyond_many_as_one_and_shows_no_name_of_them(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(metrics, "_models", set())
        monkeypatch.setattr(metrics, "MOST_MODELS", 2)
        before = shown("assay_cost_usd_total", OTHER_MODEL, OTHER_MODEL) or 0
        for number in range(6):
            calls_of("many", f"m{number}").ended("judging", "ok", 0.2, 1.0)
        assert shown("assay_cost_usd_total", "many", "m1") == 1
        assert shown("assay_cost_usd_total", "many", "m2") is None
        assert shown("assay_cost_usd_total", OTHER_MODEL, OTHER_MODEL) == before + 4

    def test_adds_up_tokens_and_takes_unknown_ones_for_none(self) -> None:
        calls = calls_of("tokens", "a")
        for tokens in ((7, 2), (None, None), (5, None)):
            calls.took(*tokens)
        assert shown("assay_tokens_total", "tokens", "a", what="input") == 12
        assert shown("assay_tokens_total", "tokens", "a", what="output") == 2

    def test_shows_attempts_by_stage_and_outcome_and_a_cost_where_one_is_known(self) -> None:
        calls = calls_of("ended", "a")
        calls.ended("judging", "ok", 0.2, None)
        assert shown("assay_cost_usd_total", "ended", "a") is None
        calls.ended("judging", "retry", 3.0, 0.5)
        assert shown("assay_calls_total", "ended", "a", stage="judging", outcome="retry") == 1
        assert shown("assay_call_seconds_bucket", "ended", "a", le="0.25") == 1
        assert shown("assay_call_seconds_sum", "ended", "a") == pytest.approx(3.2)
        assert shown("assay_cost_usd_total", "ended", "a") == 0.5

    def test_shows_waits_by_what_was_waited_for(self) -> None:
        calls_of("waits", "a").waited("rate", 0.01)
        assert shown("assay_wait_seconds_count", "waits", "a", limiter="rate") == 1
        assert shown("assay_wait_seconds_count", "waits", "a", limiter="slots") is None
