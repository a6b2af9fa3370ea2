import json
from pathlib import Path
from typing import Any

import pytest

from tests.stub_service import Answer, StubService
from tests.unit.cli.documents import problem
from tests.unit.cli.test_cli import assay

SIDE = {"job": "job_1", "baseline": None, "model": "m", "completeness": "full", "simulated": True}
ROW = {
    "metric": "acc_atom", "task": None, "a": 0.8, "b": 0.7, "difference": 0.1, "ci95": [0.05, 0.151],
    "ci95_reason": None, "pairs": 45, "personas": 15, "p_value": 0.001, "p_value_holm": 0.006,
    "smallest_p_value": 0.0001, "smallest_detectable": 0.0712, "smallest_detectable_reason": None, "over_items": None,
}  # fmt: skip
COMPARISON = {
    "object": "comparison",
    "a": SIDE,
    "b": SIDE | {"job": None, "baseline": "GPT-4o", "model": "GPT-4o", "simulated": False},
    "simulated": True,
    "unpaired": [],
    "differences": [
        ROW,
        ROW
        | {
            "task": "essay",
            "ci95": None,
            "ci95_reason": "too_few_personas: 2 personas; an interval needs 5",
            "smallest_detectable": None,
            "smallest_detectable_reason": "too_few_personas: the test finds nothing",
        },
    ],
    "left_out": [{"metric": "rc", "persona": "p", "task": "essay", "dimension": "E", "reason": "x: y"}],
    "notes": ["The judges differ, which may explain a difference."],
}


def ranking(metric: str, values: list[tuple[str, float, list[int]]], **rest: Any) -> dict[str, Any]:
    models = [{"name": name, "value": value, "rank": rank} for name, value, rank in values]
    found = {"metric": metric, "models": models, "differences": []}
    return found | {"smallest_detectable": None, "smallest_detectable_reason": None} | rest


PAIR = {
    "a": "one", "b": "two", "difference": 0.3, "ci95": [0.1, 0.5], "ci95_reason": None, "p_value": 0.001,
    "p_value_corrected": 0.004,
}  # fmt: skip
NOTHING = {
    "a": "two", "b": "three\x1b[2J", "difference": 0.1, "ci95": None, "ci95_reason": "x: nothing is known",
    "p_value": None, "p_value_corrected": None,
}  # fmt: skip
MODELS = {
    "object": "comparison_of_models",
    "rankings": [
        ranking(
            "acc_atom",
            [("one", 0.8, [1, 1]), ("two", 0.5, [2, 3]), ("three\x1b[2J", 0.4, [2, 3])],
            differences=[PAIR, NOTHING],
            smallest_detectable=0.12,
        ),
        ranking("rc", [("one", 0.6, [1, 3]), ("three\x1b[2J", 0.5, [1, 3]), ("two", 0.4, [1, 3])]),
    ],
    "notes": ["The judges differ, which may explain a difference."],
}


def gate(verdict: str) -> dict[str, Any]:
    check = {
        "threshold": "acc_atom>=0.8", "of": {"model": "m\x1b[2J"}, "verdict": verdict, "reason": "0.90, and so on",
        "value": 0.9, "ci95": [0.85, 0.95],
    }  # fmt: skip
    return {"job": "job_1", "object": "gate", "verdict": verdict, "checks": [check]}


class TestUnpaired:
    def test_a_published_personagym_model_has_its_rows(self, service: StubService) -> None:
        row = {
            "metric": "persona_score", "task": None, "a": 4.5, "b": 4.38, "difference": 0.12, "ci95": [0.02, 0.22],
            "ci95_reason": None, "personas_a": 50, "personas_b": 200,
        }  # fmt: skip
        lost = {
            "metric": "task_score",
            "task": "expected_action",
            "ci95": None,
            "ci95_reason": "x: one persona",
        }
        found = COMPARISON | {"differences": [], "left_out": [], "unpaired": [row, row | lost]}
        service.on("POST /v1/comparisons", Answer(found))
        out = assay(service, "compare", "job_1:m", "baseline:GPT 3.5").stdout
        for words in (
            "PersonaScore",
            "+0.120",
            "[+0.020, +0.220]",
            "50, 200",
            "personas",
            "expected action",
            "– one persona.",
        ):
            assert words in out
        assert "significant" not in out


class TestCompare:
    def test_shows_differences_intervals_and_what_was_left_out(self, service: StubService) -> None:
        service.on("POST /v1/comparisons", Answer(COMPARISON))
        result = assay(service, "compare", "job_1:a/model:x", "baseline:GPT-4o")
        assert result.exit_code == 0
        assert service.asked[0].body == {
            "a": {"job": "job_1", "model": "a/model:x"},
            "b": {"baseline": "GPT-4o"},
            "pairing": "cells",
        }
        for shown in ("ACC_atom", "+0.100*", "SIMULATED", "2 personas; an interval needs 5", "1 value"):
            assert shown in result.stdout
        assert "– the test finds nothing." in result.stdout
        assert "The judges differ" in result.stdout

    def test_marks_no_difference_that_the_correction_leaves_to_chance(self, service: StubService) -> None:
        service.on(
            "POST /v1/comparisons", Answer(COMPARISON | {"differences": [ROW | {"p_value_holm": 0.1168}]})
        )
        result = assay(service, "compare", "job_1", "job_2")
        assert "+0.100" in result.stdout
        assert "+0.100*" not in result.stdout

    def test_as_json_is_the_services_own(self, service: StubService) -> None:
        service.on("POST /v1/comparisons", Answer(COMPARISON))
        assert json.loads(assay(service, "compare", "job_1", "job_2", "--json").stdout) == COMPARISON
        assert service.asked[0].body == {
            "a": {"job": "job_1"},
            "b": {"job": "job_2"},
            "pairing": "cells",
        }

    def test_pairs_items_and_shows_how_sure_they_make_it(self, service: StubService) -> None:
        over_items = {
            "items": 30,
            "ci95": [0.071, 0.129],
            "p_value_holm": 0.0004,
            "smallest_detectable": 0.04,
        }
        service.on(
            "POST /v1/comparisons", Answer(COMPARISON | {"differences": [ROW | {"over_items": over_items}]})
        )
        result = assay(service, "compare", "job_1", "job_2", "--pairing", "items")
        assert service.asked[0].body["pairing"] == "items"
        [line] = [line for line in result.stdout.splitlines() if "over items" in line]
        assert line.split() == ["over", "items", "[+0.071,", "+0.129]", "0.0004", "0.040", "30"]
        assert assay(service, "compare", "job_1", "job_2", "--pairing", "runs").exit_code == 3

    def test_of_several_models_shows_ranks_and_all_pairs(self, service: StubService) -> None:
        service.on("POST /v1/comparisons", Answer(MODELS))
        result = assay(service, "compare", "job_1", "job_2:a/model:x", "baseline:GPT-4o")
        assert result.exit_code == 0
        assert service.asked[0].body == {
            "models": [{"job": "job_1"}, {"job": "job_2", "model": "a/model:x"}, {"baseline": "GPT-4o"}],
            "pairing": "cells",
        }
        lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
        for shown in (
            "model ACC_atom RC",
            "one 0.80 (1) 0.60 (1–3)",
            "three�[2J 0.40 (2–3) 0.50 (1–3)",
            "one two +0.300* [+0.100, +0.500] 0.0040",
            "two three�[2J +0.100 – –",
            "– nothing is known.",
            "Smallest difference detectable with 80 % power: 0.120.",
        ):
            assert shown in lines
        assert "ACC_atom of the two differs: p ≤ 0.05, corrected for all 2 pairs" in " ".join(lines)
        assert json.loads(assay(service, "compare", "job_1", "--json").stdout) == MODELS

    def test_of_several_models_shows_each_task_and_pairs_items(self, service: StubService) -> None:
        in_task = ranking(
            "acc_atom", [("two", 0.9, [1, 1]), ("one", 0.8, [2, 3]), ("three\x1b[2J", 0.7, [2, 3])]
        )
        service.on(
            "POST /v1/comparisons", Answer(MODELS | {"in_tasks": [in_task | {"task": "es\x1b[2Jsay"}]})
        )
        result = assay(service, "compare", "job_1", "--pairing", "items")
        assert service.asked[0].body == {"models": [{"job": "job_1"}], "pairing": "items"}
        lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
        assert "model ACC_atom in es�[2Jsay" in lines
        assert lines.index("one 0.80 (2–3)") < lines.index("two 0.90 (1)")


class TestGate:
    @pytest.mark.parametrize(("verdict", "code"), [("pass", 0), ("fail", 1), ("inconclusive", 2)])
    def test_ends_as_the_gate_says(self, service: StubService, verdict: str, code: int) -> None:
        path = "/v1/jobs/job_1/gate?threshold=acc_atom%3E%3D0.8&threshold=rc%3C%3D1&interval=runs"
        service.on(f"GET {path}", Answer(gate(verdict)))
        result = assay(
            service, "gate", "job_1", "-t", "acc_atom>=0.8", "--threshold", "rc<=1", "--interval", "runs"
        )
        assert result.exit_code == code
        assert f"gate: {'✓✗?'[('pass', 'fail', 'inconclusive').index(verdict)]} {verdict}" in result.stdout
        assert "\x1b" not in result.stdout

    def test_without_thresholds_the_jobs_own_are_used(self, service: StubService) -> None:
        service.on("GET /v1/jobs/job_1/gate?interval=personas", Answer(gate("pass")))
        assert json.loads(assay(service, "gate", "job_1", "--json").stdout) == gate("pass")

    @pytest.mark.parametrize("verdict", ["pass", "inconclusive"])
    def test_the_checks_are_saved_for_build_servers_whatever_they_say(
        self, service: StubService, tmp_path: Path, verdict: str
    ) -> None:
        service.on("GET /v1/jobs/job_1/gate?threshold=acc%3E%3D1&interval=personas", Answer(gate(verdict)))
        path = "GET /v1/jobs/job_1/gate?threshold=acc%3E%3D1&interval=personas&format=junit"
        service.on(path, Answer(b"<testsuites/>"))
        junit = str(tmp_path / "gate.xml")
        assay(service, "gate", "job_1", "-t", "acc>=1", "--junit", junit)
        assert (tmp_path / "gate.xml").read_bytes() == b"<testsuites/>"

    @pytest.mark.parametrize(
        "arguments", [(), ("job_1", "--treshold", "acc>=1"), ("job_1", "--interval", "cells"), ("a", "b")]
    )
    def test_wrong_usage_is_an_error_and_no_verdict(
        self, service: StubService, arguments: tuple[str, ...]
    ) -> None:
        result = assay(service, "gate", *arguments)
        assert result.exit_code == 3
        assert "Usage: " in result.stderr

    def test_what_is_wrong_is_named_as_it_was_typed(self, service: StubService) -> None:
        pointers = {"/query/threshold": "give one", "/query/threshold/1": "no such metric"}
        refusal = Answer(problem(422, "The thresholds cannot be used.", *pointers.items()), 422)
        service.on("GET /v1/jobs/job_1/gate?interval=personas", refusal)
        stderr = assay(service, "gate", "job_1").stderr
        assert "--threshold  give one" in stderr
        assert "--threshold #2  no such metric" in stderr
        assert "/query" not in stderr

    def test_a_service_that_refuses_is_an_error_and_no_verdict(self, service: StubService) -> None:
        result = assay(service, "gate", "job_1", "-t", "acc>=1")
        assert (result.exit_code, result.stdout) == (3, "")
