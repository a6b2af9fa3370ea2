"""A metric is registered once, and is everywhere: see :mod:`tests.unit.reports.with_a_new_metric`."""

import json
import subprocess
import sys
from typing import Any

import pytest

Json = dict[str, Any]


@pytest.fixture(scope="module")
def found() -> Json:
    command = [sys.executable, "-m", "tests.unit.reports.with_a_new_metric"]
    told: Json = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    return told


class TestANewMetric:
    def test_is_in_the_results_of_cells_judges_and_totals_with_its_interval(self, found: Json) -> None:
        # It is computed as ACC_atom is.
        cells, totals = found["results"]["cells"], found["results"]["totals"]
        every = [*cells, *(own for cell in cells for own in cell["by_judge"].values()), *totals]
        assert len(every) > 200
        for part in every:
            metrics = part["metrics"]
            assert list(metrics)[-1] == "xy_atom"
            assert metrics["xy_atom"] == metrics["acc_atom"]

    def test_is_compared_correlated_and_held_to_thresholds(self, found: Json) -> None:
        rows = {row["metric"]: row for row in found["comparison"] if row["task"] is None}
        assert rows["xy_atom"]["difference"] == rows["acc_atom"]["difference"] > 0
        pairs = [each["metrics"] for each in found["results"]["correlations"]]
        assert [pair for pair in pairs if "xy_atom" in pair] == [
            ["acc", "xy_atom"],
            ["rc", "xy_atom"],
            ["acc_atom", "xy_atom"],
            ["ic_atom", "xy_atom"],
            ["rc_atom", "xy_atom"],
        ]
        assert {each["metric"] for each in found["results"]["length_effects"]} > {"xy_atom", "ic_atom"}
        assert [check["value"] is not None for check in found["gate"]["checks"]] == [True, True]

    def test_is_exported_reported_drawn_and_described(self, found: Json) -> None:
        intervals = [f"ci95_{end}" for end in ("low", "high", "reason")]
        intervals += [f"ci95_wordings_{end}" for end in ("low", "high", "reason")]
        assert [name for name in found["csv"] if name.startswith("xy_atom")] == [
            *("xy_atom", "xy_atom_n", "xy_atom_reason"),
            *(f"xy_atom_{each}" for each in intervals),
        ]
        assert "XYatomnewly measured" in found["report"]
        assert "What nobody has measured before." in found["report"]
        assert "XY_atom · newly measured" in found["figure"]
        assert found["schema"]["xy_atom"]["description"].startswith("XY_atom. What nobody")
        assert "XYa XY_atom" in found["terminal"]

    def test_is_missing_where_nobody_has_computed_it(self, found: Json) -> None:
        assert found["published"]["xy_atom"]["reason"] == "not_published: the paper does not tell it"
        assert "XYatomnewly measured" in found["report_of_results_from_before"]
        assert "xy_atom" not in found["report_of_results_from_before"]
        checks = found["gate_of_results_from_before"]["checks"]
        assert {check["verdict"] for check in checks} == {"inconclusive"}
