"""Jobs of own texts from whose figures a reader would conclude what is wrong: each gives the truth, or says why it can't be told."""

import csv
import random
import re
from itertools import product
from typing import Any

import pytest

from simulator.bank import load_bank
from tests.api.service import Json, Service

DIMENSIONS, LEVELS = ("O", "C", "E", "A"), ("low", "neutral", "high")
IN_LEVEL, OUTSIDE = {"low": 1, "high": 5}, {"low": 5, "neutral": 5, "high": 1}
REFUSAL = "I'm sorry, but I can't help with that."
OPEN, SHY = "open", "shy"
RUNS = 8
SHORT, LONG = 3, 24
"""Sentences of a text."""


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

    def test_is_placed_among_published_ones_over_what_every_model_has(
        self, stack: Service, job: Json
    ) -> None:
        page = stack.get(f"/v1/jobs/{job['id']}/report?format=html").text
        assert "the 8 of the paper’s 45 cells (persona × task) that this job shares" in page
        assert "Left out: 4 for which not every model of this job has a value." in page
        above = dict(re.findall(r"<bdi>(open|shy)</bdi>: (above all 12|below [^;,]+)", page))
        assert above[OPEN] == above[SHY]

    def test_is_told_of_in_tables(self, stack: Service, job: Json) -> None:
        text = stack.get(f"/v1/jobs/{job['id']}/report?format=csv&level=cells").text
        rows = list(csv.DictReader(text.removeprefix("\ufeff").splitlines()))
        told = ["coverage", "verdicts_counted", "verdicts_planned", "acc_atom_composite"]
        told += ["acc_atom_lower_bound", "acc_atom_upper_bound"]
        found = [tuple(row[name] for name in told) for row in rows]
        assert found.count(("0.0", "0", "2", "0.0", "0.0", "1.0")) == 4


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


def drawn(seed: int, sentences: int, runs: int) -> list[Json]:
    """A model whose sentences come from one generator, whatever their number, but for one that is not applicable."""
    draws = random.Random(seed)
    bank = load_bank()

    def write(dimension: str) -> str:
        scores = draws.choices((1, 2, 3, 4, 5), weights=(1, 2, 3, 6, 8), k=sentences)
        return " ".join(draws.choice(bank.trait[dimension, score])[0] for score in scores)

    responses: list[Json] = [
        {
            "persona": f"{dimension}-{level}",
            "task": "social_media_post",
            "model": "writer",
            "run": run,
            "text": write(dimension),
        }
        for dimension in DIMENSIONS
        for level in ("low", "high")
        for run in range(runs)
    ]
    responses[0]["text"] += f" {bank.neutral[0]}"
    return responses


def overall(stack: Service, a: Json, b: Json) -> dict[str, Json]:
    """Each metric's difference over all tasks."""
    found = stack.post("/v1/comparisons", {"a": a, "b": b}).json()
    return {row["metric"]: row for row in found["differences"] if row["task"] is None}


@pytest.fixture(scope="module")
def jobs(stack: Service) -> tuple[str, str]:
    """Few and many sentences a text."""
    return judged(stack, drawn(SHORT, SHORT, RUNS))["id"], judged(stack, drawn(LONG, LONG, RUNS))["id"]


class TestTextsOfDifferentLength:
    def test_are_not_called_different_in_what_depends_on_it(
        self, stack: Service, jobs: tuple[str, str]
    ) -> None:
        rows = overall(stack, {"job": jobs[0]}, {"job": jobs[1]})
        for name in ("acc", "rc", "ic_atom", "rc_atom"):
            assert rows[name]["p_value"] is rows[name]["ci95"] is None
            assert rows[name]["ci95_reason"].startswith("other_length: a has 3.")
        assert abs(rows["rc_atom"]["difference"]) > 0.1
        for name in ("rc_atom_rarefied", "ic_atom_rarefied"):
            assert abs(rows[name]["difference"]) < 0.06
            assert rows[name]["p_value_holm"] > 0.01
        assert rows["acc_atom"]["p_value"] is not None

    def test_nor_are_several_models(self, stack: Service, jobs: tuple[str, str]) -> None:
        found = stack.post("/v1/comparisons", {"models": [{"job": job} for job in jobs]}).json()
        rankings = {each["metric"]: each for each in found["rankings"]}
        for name in ("rc_atom", "ic_atom"):
            (pair,) = rankings[name]["differences"]
            assert pair["ci95_reason"].startswith("other_length: a has ")
            (pair,) = rankings[f"{name}_rarefied"]["differences"]
            assert pair["difference"] < 0.06
            assert pair["p_value"] > 0.01

    def test_are_not_called_different_from_published_ones(
        self, stack: Service, jobs: tuple[str, str]
    ) -> None:
        rows = overall(stack, {"job": jobs[0]}, {"baseline": "GPT-4o"})
        for name in ("acc", "rc", "ic_atom", "rc_atom"):
            assert rows[name]["p_value"] is None
            # Table 15: 23.7 sentences, of which 87.8 % have a score
            assert rows[name]["ci95_reason"].startswith("other_length: a has 3.")
            assert "b 20.8, on whose number" in rows[name]["ci95_reason"]
        assert rows["acc_atom"]["p_value"] is not None

    def test_are_corrected_in_the_results(self, stack: Service, jobs: tuple[str, str]) -> None:
        short, long = (stack.get(f"/v1/jobs/{job}/results").json()["totals"][0]["metrics"] for job in jobs)
        differences = {name: long[name]["value"] - short[name]["value"] for name in long}
        assert differences["rc_atom"] > 0.1
        assert differences["ic_atom"] < -0.05
        # A distance is never below 0, so few short runs that are alike seem a little apart (docs/metrics.md).
        assert abs(differences["rc_atom_corrected"]) < differences["rc_atom"] / 2
        assert abs(differences["ic_atom_corrected"]) < -differences["ic_atom"] / 2
        assert short["rc_atom_corrected"]["ceiling"] < long["rc_atom_corrected"]["ceiling"]

    def test_may_be_held_to_another_job(self, stack: Service, jobs: tuple[str, str]) -> None:
        threshold = [f"{metric} not worse than {jobs[0]} by 0.5" for metric in ("acc_atom", "rc_atom")]
        found = stack.get(f"/v1/jobs/{jobs[1]}/gate", params={"threshold": threshold}).json()
        assert [check["verdict"] for check in found["checks"]] == ["pass", "inconclusive"]
        assert found["checks"][0]["of"] == {"model": "writer", "than": "writer"}
        missing = f"acc_atom not worse than job_{'0' * 26} by 0.5"
        assert stack.get(f"/v1/jobs/{jobs[1]}/gate", params={"threshold": missing}).status_code == 404


class TestFewRuns:
    def test_do_not_make_a_model_more_consistent(self, stack: Service, jobs: tuple[str, str]) -> None:
        few = judged(stack, drawn(0, SHORT, 2))["id"]
        rows = overall(stack, {"job": few}, {"job": jobs[0]})
        assert rows["rc"]["difference"] > 0.03
        assert rows["rc"]["ci95"] is rows["rc"]["p_value"] is None
        assert rows["rc"]["ci95_reason"] == "other_runs: a has 2.0 runs, b 8.0, on whose number RC depends"
        assert rows["rc_atom"]["p_value"] > 0.05
        wanted = {"threshold": f"rc not worse than {few} by 0.01"}
        (check,) = stack.get(f"/v1/jobs/{jobs[0]}/gate", params=wanted).json()["checks"]
        assert check["verdict"] == "inconclusive"
        assert "a has 8.0 runs, b 2.0" in check["reason"]
        first, second = (
            stack.get(f"/v1/jobs/{job}/results").json()["totals"][0]["metrics"] for job in (few, jobs[0])
        )
        corrected = first["rc_corrected"]["value"] - second["rc_corrected"]["value"]
        assert abs(corrected) < rows["rc"]["difference"]


class TestConsistencyWithoutFidelity:
    def test_is_not_beyond_chance(self, stack: Service) -> None:
        """One writes every score once, the other always 3, whoever they are to be."""
        scores = {"dice": (1, 2, 3, 4, 5), "middle": (3, 3, 3)}
        responses = [
            {
                "persona": f"{dimension}-{level}",
                "task": "social_media_post",
                "model": model,
                "run": run,
                "text": " ".join(sentence(dimension, score) for score in written),
            }
            for model, written in scores.items()
            for dimension, level, run in product(DIMENSIONS, LEVELS, range(3))
        ]
        job = judged(stack, responses)
        found = totals(stack.get(f"/v1/jobs/{job['id']}/results").json())
        middle = {name: metric["value"] for name, metric in found["middle"]["metrics"].items()}
        assert middle["ic_atom"] == middle["rc_atom"] == 1
        # (1 + 2 × (−2/3)) / 3: neutral always, low and high never
        assert middle["acc_atom_corrected"] == pytest.approx(-1 / 9)
        assert found["dice"]["metrics"]["rc_atom"]["value"] == 1
        assert found["dice"]["metrics"]["acc_atom_corrected"]["value"] == pytest.approx(0)
        wanted = {"threshold": "acc_atom_corrected>=0.05"}
        checks = stack.get(f"/v1/jobs/{job['id']}/gate", params=wanted).json()["checks"]
        assert "pass" not in {check["verdict"] for check in checks}
        for page in (f"/v1/jobs/{job['id']}/report?format=html", f"/jobs/{job['id']}"):
            text = stack.get(page, headers={"Accept": "text/html"}).text
            assert "Corrected for chance, length and few runs" in text
            assert "ACC_atom on a scale from 0, chance, to 1" in text
        words = "are not shown to be in character more often than random scores would be."
        assert words in stack.get(f"/v1/jobs/{job['id']}/report?format=html").text


def test_a_finished_jobs_page_shows_its_warnings_before_its_state(stack: Service) -> None:
    same = {"task": "social_media_post", "model": OPEN}
    responses = [
        same | {"persona": f"{trait}-high", "text": " ".join([sentence(trait, 5)] * LONG)} for trait in "EA"
    ]
    job = judged(stack, responses)
    alike = [warning for warning in job["warnings"] if warning["code"] == "one_score"]
    assert [warning["dimension"] for warning in alike] == ["A", "E"]
    [line] = {warning["summary"] for warning in alike}
    page = stack.get(f"/jobs/{job['id']}").text
    assert page.index('class="doubts"') < page.index('id="state"')
    for shown in (page, stack.get(f"/v1/jobs/{job['id']}/report?format=html").text):
        assert shown.count(line) == 1
        assert all(warning["message"] not in shown for warning in alike)
