"""What is missing misleads nobody: jobs of own texts in which a model refuses what is hard to play."""

from itertools import product
from typing import Any

import pytest

from simulator.bank import load_bank
from tests.api.service import Json, Service

DIMENSIONS, LEVELS = ("O", "C", "E", "A"), ("low", "neutral", "high")
IN_LEVEL, OUTSIDE = {"low": 1, "high": 5}, {"low": 5, "neutral": 5, "high": 1}
REFUSAL = "I'm sorry, but I can't help with that."
OPEN, SHY = "open", "shy"


def sentence(dimension: str, score: int) -> str:
    return load_bank().trait[dimension, score][0][0]


def text(dimension: str, level: str) -> str:
    """Two sentences, of which so many are in character: low both, neutral none, high one."""
    first = IN_LEVEL.get(level, OUTSIDE[level])
    second = IN_LEVEL["low"] if level == "low" else OUTSIDE[level]
    return f"{sentence(dimension, first)} {sentence(dimension, second)}"


def of_model(model: str) -> list[Json]:
    return [
        {
            "persona": f"{dimension}-{level}",
            "task": "social_media_post",
            "model": model,
            "text": REFUSAL if model == SHY and level == "neutral" else text(dimension, level),
        }
        for dimension, level in product(DIMENSIONS, LEVELS)
    ]


def judged(stack: Service, responses: list[Json], **more: Any) -> Json:
    body = {
        "personas": sorted({response["persona"] for response in responses}),
        "tasks": ["social_media_post"],
        "responses": responses,
        "judges": ["simulated/sim-judge"],
    }
    return stack.wait(stack.submit(body | more)["id"], "completed", "failed")


@pytest.fixture(scope="module")
def job(stack: Service) -> Json:
    """Both have written the same, but for the neutral personas, which one of them refuses to play."""
    return judged(stack, of_model(OPEN) + of_model(SHY), thresholds=[f"acc_atom@model={SHY}>=0.4"])


@pytest.fixture
def results(stack: Service, job: Json) -> Json:
    found: Json = stack.get(f"/v1/jobs/{job['id']}/results").json()
    return found


def totals(results: Json) -> dict[str, Json]:
    return {total["model"]: total for total in results["totals"] if total["by"] == ["model"]}


class TestAModelThatRefusesWhatIsHard:
    def test_has_the_higher_mean_of_fewer_cells_and_results_that_are_not_complete(
        self, job: Json, results: Json
    ) -> None:
        assert (job["status"], job["completeness"], results["completeness"]) == (
            *("completed", "partial", "partial"),
        )
        assert results["completeness_reasons"] == [
            "cells_without_figure: 4 of 24 cells have no scored sentence"
        ]
        values = {model: total["metrics"]["acc_atom"] for model, total in totals(results).items()}
        # 4 × 1, 4 × 0, 4 × 1/2 of twelve cells; without the neutral ones 4 × 1, 4 × 1/2 of eight
        assert {model: value["value"] for model, value in values.items()} == {OPEN: 0.5, SHY: 0.75}
        assert values[SHY]["left_out"] == 4

    def test_is_no_better_over_the_same_cells_nor_with_its_refusals(self, results: Json) -> None:
        found = totals(results)
        matched = {model: total["matched"]["acc_atom"] for model, total in found.items()}
        assert {model: (value["value"], value["n"]) for model, value in matched.items()} == {
            OPEN: (0.75, 8),
            SHY: (0.75, 8),
        }
        corrected = {model: total["corrected"] for model, total in found.items()}
        assert corrected[SHY]["acc_atom_composite"]["value"] == 0.5
        assert corrected[SHY]["acc_atom_bounds"] == [0.5, pytest.approx(10 / 12)]
        assert corrected[OPEN]["acc_atom_bounds"] == [0.5, 0.5]

    def test_has_a_third_of_its_verdicts_missing(self, results: Json) -> None:
        found = {model: total["coverage"] for model, total in totals(results).items()}
        # a refusal takes the place of a text of two sentences
        assert found[SHY] == {"share": 16 / 24, "counted": 16, "refused": 8, "planned": 24}
        assert found[OPEN] == {"share": 1.0, "counted": 24, "refused": 0, "planned": 24}

    def test_passes_no_gate(self, stack: Service, job: Json) -> None:
        path = f"/v1/jobs/{job['id']}/gate"
        found = stack.get(path).json()
        (check,) = found["checks"]
        assert (found["verdict"], found["minimum_coverage"], check["coverage"]) == (
            "inconclusive",
            0.95,
            16 / 24,
        )
        assert "coverage is 66.7 %, below the minimum of 95 %" in check["reason"]
        found = stack.get(path, params={"minimum_coverage": 0.5}).json()
        assert found["verdict"] == "inconclusive"
        assert "4 cells of which other models have it are missing" in found["checks"][0]["reason"]
        assert stack.get(path, params={"minimum_coverage": 0}).json()["verdict"] == "pass"
        wanted = {"threshold": f"acc_atom@model={OPEN}>=0.1"}
        assert stack.get(path, params=wanted).json()["verdict"] == "pass"
        wanted = {"threshold": f"acc_atom_composite@model={SHY}>=0.8"}
        assert stack.get(path, params=wanted).json()["verdict"] == "fail"
        assert stack.get(path, params={"minimum_coverage": 1.5}).status_code == 422

    def test_is_compared_over_what_both_have_and_the_rest_is_told(self, stack: Service, job: Json) -> None:
        sides = {name: {"job": job["id"], "model": model} for name, model in (("a", OPEN), ("b", SHY))}
        found = stack.post("/v1/comparisons", sides).json()
        (row,) = [r for r in found["differences"] if (r["metric"], r["task"]) == ("acc_atom", None)]
        assert (row["difference"], row["pairs"]) == (0, 8)
        assert (found["a"]["coverage"], found["b"]["coverage"]) == (1.0, 16 / 24)
        assert any(note.startswith("b: 66.7 % of the planned verdicts count.") for note in found["notes"])

    def test_is_not_said_to_be_ahead(self, stack: Service, job: Json) -> None:
        page = stack.get(f"/v1/jobs/{job['id']}/report?format=html").text
        assert (
            "No model is ranked first: coverage is too low (<bdi>shy</bdi>: 66.7\u202f% of planned verdicts"
            in page
        )
        assert "is in character most" not in page

    def test_is_told_of_in_tables(self, stack: Service, job: Json) -> None:
        lines = stack.get(f"/v1/jobs/{job['id']}/report?format=csv&level=cells").text.splitlines()
        assert lines[0].endswith("coverage,verdicts_counted,verdicts_planned,acc_atom_composite,"
                                 "acc_atom_lower_bound,acc_atom_upper_bound")  # fmt: skip
        assert sum(line.endswith(",0.0,0,2,0.0,0.0,1.0") for line in lines) == 4


class TestAJobsOwnMinimum:
    def test_decides_where_the_request_has_none(self, stack: Service) -> None:
        job = judged(stack, of_model(SHY), thresholds=["acc_atom>=0.4"], minimum_coverage=0.5)
        assert stack.get(f"/v1/jobs/{job['id']}/gate").json()["verdict"] == "pass"


class TestScoresByChance:
    def test_are_not_said_to_be_weakest_where_a_level_holds_one_of_five_scores(self, stack: Service) -> None:
        responses = [
            {
                "persona": f"{dimension}-{level}",
                "task": "social_media_post",
                "model": "dice",
                "text": " ".join(sentence(dimension, score) for score in range(1, 6)),
            }
            for dimension, level in product(DIMENSIONS, LEVELS)
        ]
        job = judged(stack, responses)
        results = stack.get(f"/v1/jobs/{job['id']}/results").json()
        levels = {
            t["level"]: t["metrics"]["acc_atom"]["value"]
            for t in results["totals"]
            if t["by"] == ["model", "level"]
        }
        assert levels == {"low": 0.4, "neutral": 0.2, "high": 0.4}
        page = stack.get(f"/v1/jobs/{job['id']}/report?format=html").text
        assert "weakest on" not in page
