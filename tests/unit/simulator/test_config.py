import pytest

from simulator.config import Config


class TestConfig:
    def test_a_change_keeps_the_other_settings(self) -> None:
        changed = Config(seed=3).changed({"latency_ms": 50, "error_rate": 0.5})
        assert changed == Config(seed=3, latency_ms=50, error_rate=0.5)

    @pytest.mark.parametrize(
        ("changes", "name"),
        [
            ({"latency": 5}, "latency"),
            ({"latency_ms": -1}, "latency_ms"),
            ({"latency_ms": float("nan")}, "latency_ms"),
            ({"error_rate": 1.5}, "error_rate"),
            ({"position_bias": -0.1}, "position_bias"),
            ({"burst": float("inf")}, "burst"),
            ({"openai_profile": "openai-tier-99"}, "openai_profile"),
        ],
    )
    def test_a_value_out_of_range_is_refused_by_name(self, changes: dict[str, object], name: str) -> None:
        with pytest.raises((ValueError, TypeError), match=name):
            Config().changed(changes)

    @pytest.mark.parametrize(
        "changes",
        [
            {"seed": "1"},
            {"seed": 1.5},
            {"burst": True},
            {"latency_ms": None},
            {"anthropic_profile": 3},
            [],
            "x",
        ],
    )
    def test_a_value_of_the_wrong_type_is_refused(self, changes: object) -> None:
        with pytest.raises(TypeError, match=r"must be of type|expected an object"):
            Config().changed(changes)
