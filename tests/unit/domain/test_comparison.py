"""Two models' figures become pairs; what has no partner is left out and named."""

import copy
import json
from typing import Any

import pytest

from app.domain.comparison import Comparison, compare, comparison_json, figures_of
from tests.unit.gym_sample import graded_response, gym_results_of
from tests.unit.reports.sample import sample

STEADY, DRIFTING = "simulated/steady", "simulated/drifting"


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    return sample(instructions=3).results


def compared(one: dict[str, Any], other: dict[str, Any], b: str = DRIFTING) -> Comparison:
    return compare(figures_of(one, STEADY), figures_of(other, b))


class TestCompare:
    def test_a_difference_is_over_the_pairs_of_cells(self, results: dict[str, Any]) -> None:
        found = compared(results, results)
        (row,) = [row for row in found.rows if (row.metric, row.task) == ("acc_atom", None)]
        assert row.difference.pairs == 30  # 9 personas, one of them with two traits, × 3 tasks
        assert row.difference.personas == 9
        assert row.a - row.b == pytest.approx(row.difference.value)
        assert row.difference.value > 0.1
        assert row.difference.p_value is not None
        assert row.difference.p_value < 0.05
        assert row.p_holm is not None
        assert row.p_holm >= row.difference.p_value

    def test_each_task_has_its_own_rows(self, results: dict[str, Any]) -> None:
        rows = [row for row in compared(results, results).rows if row.task == "essay"]
        assert {row.metric for row in rows} == {"mean", "acc", "rc", "acc_atom", "ic_atom", "rc_atom"}
        assert all(row.difference.pairs == 10 for row in rows)

    def test_what_only_one_has_is_left_out_with_the_reason(self, results: dict[str, Any]) -> None:
        less = copy.deepcopy(results)
        less["cells"] = [cell for cell in less["cells"] if cell["persona"] != "E-low"]
        first = next(cell for cell in less["cells"] if cell["model"] == STEADY)
        first["metrics"]["rc"] = {"value": None, "n": 0, "reason": "x: it was lost"}
        found = compared(less, results, STEADY)
        assert {
            (each.place.persona, each.reason) for each in found.left_out if each.metric == "acc_atom"
        } == {("E-low", "not_in_a: a has no such persona, task and dimension")}
        assert [each.reason for each in found.left_out if each.reason.startswith("no_value")] == [
            "no_value_in_a: it was lost"
        ]

    def test_the_same_results_do_not_differ(self, results: dict[str, Any]) -> None:
        found = compared(results, results, STEADY)
        assert {row.difference.value for row in found.rows} == {0.0}
        assert {row.difference.p_value for row in found.rows} == {1.0}

    def test_means_on_different_scales_make_no_pair(self, results: dict[str, Any]) -> None:
        other = copy.deepcopy(results)
        for cell in other["cells"]:
            cell["scale"] = cell["scale"] | {"maximum": 10}
        found = compared(results, other, STEADY)
        assert "mean" not in {row.metric for row in found.rows}
        assert all(each.reason.startswith("other_scale:") for each in found.left_out)

    def test_persona_scores_are_paired_by_persona(self) -> None:
        def document(shift: int) -> dict[str, Any]:
            responses = [graded_response(score + shift, persona=f"gym-{score}") for score in (1, 2, 3, 4)]
            return {"cells": [], **gym_results_of(responses)}

        found = compare(figures_of(document(1), STEADY), figures_of(document(0), STEADY))
        assert [(row.metric, row.task, row.difference.value, row.difference.pairs) for row in found.rows] == [
            ("persona_score", None, 1.0, 4),
            ("task_score", "expected_action", 1.0, 4),
        ]

    def test_nothing_in_common_is_nothing(self, results: dict[str, Any]) -> None:
        found = compare(figures_of(results, STEADY), {})
        assert found.rows == ()
        assert len(found.left_out) == 30 * 6

    def test_is_json_without_nan(self, results: dict[str, Any]) -> None:
        assert json.dumps(comparison_json(compared(results, results)), allow_nan=False)
