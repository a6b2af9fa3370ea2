import pytest

from app.telemetry import metrics
from app.telemetry.metrics import MOST_MODELS, OTHER_MODEL
from app.telemetry.tallies import Calls, CallTallies


def named(tallies: CallTallies) -> dict[str, Calls]:
    """What is shown, by model."""
    return {model: calls for (_, model), calls in tallies._shown.items()}


class TestCallTallies:
    @pytest.fixture
    def tallies(self, monkeypatch: pytest.MonkeyPatch) -> CallTallies:
        monkeypatch.setattr(metrics, "_models", set())
        return CallTallies(metrics._labels)

    def test_count_each_model_by_itself(self, tallies: CallTallies) -> None:
        first, second = tallies.of("c", "a"), tallies.of("c", "b")
        assert first is not second
        assert tallies.of("c", "a") is first

    def test_count_models_beyond_many_as_one_and_remember_no_name_of_them(self, tallies: CallTallies) -> None:
        for number in range(3 * MOST_MODELS):
            tallies.of("c", f"m{number}").usd += 1
        shown = named(tallies)
        assert len(shown) == MOST_MODELS + 1
        assert shown[OTHER_MODEL].usd == 2 * MOST_MODELS

    def test_add_up_tokens_and_take_unknown_ones_for_none(self, tallies: CallTallies) -> None:
        calls = tallies.of("c", "a")
        for tokens in ((7, 2), (None, None), (5, None)):
            calls.took(*tokens)
        [family] = [family for family in tallies.collect() if family.name == "assay_tokens"]
        assert {sample.labels["what"]: sample.value for sample in family.samples} == {
            "input": 12,
            "output": 2,
        }
