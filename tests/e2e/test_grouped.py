"""Several sentences a judge call: the same verdicts for fewer calls, and what that changes is found."""

from collections import Counter
from collections.abc import Iterator
from statistics import fmean

import pytest

from app.domain.judging.judged_response import ResponseList
from app.domain.results.contract import Results
from tests.e2e.stack import Json, Stack, judged_path

SENTENCES = 6
BIAS = 0.8
BODY: Json = {
    "personas": ["E-low", "A-high", "O-neutral"],
    "tasks": ["essay", "questionnaire"],
    "models": ["simulated/sim-drifting"],
    "judges": ["simulated/sim-judge"],
    "instructions": [0, 3],
    "iterations": 2,
}
GROUPED = BODY | {"judging": {"sentences_per_call": SENTENCES, "check": {"share": 0.2, "minimum": 12}}}


@pytest.fixture(scope="module")
def one_by_one(stack: Stack) -> Json:
    return stack.results(stack.ended(stack.submit(BODY))["id"])


@pytest.fixture(scope="module")
def grouped(stack: Stack) -> Json:
    """A finished job, judged by a judge that does not mind the order."""
    return stack.ended(stack.submit(GROUPED))


@pytest.fixture(scope="module")
def biased(stack: Stack) -> Json:
    """A finished job, judged by one that scores later sentences too high."""
    stack.simulate(position_bias=BIAS)
    job = stack.ended(stack.submit(GROUPED))
    stack.simulate(position_bias=0.0)
    return job


def agreement(results: Json, task: str | None = None) -> Json:
    (found,) = (one for one in results["judging_check"]["agreement"] if one["task"] == task)
    assert isinstance(found, dict)
    return found


def succeeded(found: Json) -> dict[str, int]:
    """The calls of each stage that were answered, of a job or its results."""
    return {row["stage"]: row["calls"] - row["failed_calls"] for row in found["usage"]["by_model"]}


class TestGroupedJob:
    def test_has_the_metrics_of_the_same_job_judged_one_by_one(
        self, stack: Stack, grouped: Json, one_by_one: Json
    ) -> None:
        found = stack.results(grouped["id"])
        assert (grouped["status"], found["completeness"]) == ("completed", "full")
        assert found["cells"] == one_by_one["cells"]
        assert found["totals"] == one_by_one["totals"]

    def test_takes_fewer_judge_calls_and_says_which_were_for_the_check(
        self, stack: Stack, grouped: Json, one_by_one: Json
    ) -> None:
        asked = Counter(judged_path(entry["request_id"]) for entry in stack.ledger(grouped["id"]))
        assert asked.total() == len(asked)  # each call has an identity of its own
        calls = Counter(path.partition("/")[0] for path in asked)
        assert calls == succeeded(grouped)
        assert calls["judging"] < succeeded(one_by_one)["judging"] / (SENTENCES / 2)
        assert calls["checking"] == stack.results(grouped["id"])["judging_check"]["sentences"]

    def test_progress_counts_verdicts(self, grouped: Json, one_by_one: Json) -> None:
        judged = sum(cell["units"]["total"] for cell in one_by_one["cells"])
        assert grouped["progress"]["judging"]["succeeded"] == judged + succeeded(grouped)["checking"]

    def test_a_judge_without_bias_agrees_with_itself(self, stack: Stack, grouped: Json) -> None:
        found = agreement(stack.results(grouped["id"]))
        assert found["exact_agreement"]["value"] == 1.0
        assert found["quadratic_kappa"]["value"] == pytest.approx(1.0)
        assert found["mean_difference"]["value"] == found["acc_difference"]["value"] == 0.0

    def test_verdicts_say_how_they_came_about(self, stack: Stack, grouped: Json) -> None:
        verdicts = [
            (verdict, len(response["units"]))
            for response in stack.responses(grouped["id"])
            for unit in response["units"]
            for verdict in unit["verdicts"]
        ]
        assert {verdict["group_size"] for verdict, _ in verdicts} <= set(range(1, SENTENCES + 1))
        assert all(verdict["raw"].startswith("S") for verdict, _ in verdicts if verdict["group_size"] > 1)
        assert all((verdict["group_size"] == 1) == (units == 1) for verdict, units in verdicts)

    def test_plan_expects_what_it_takes(self, stack: Stack, grouped: Json) -> None:
        planned = {s["stage"]: s for s in stack.api.post("/v1/jobs/plan", json=GROUPED).json()["stages"]}
        calls = succeeded(grouped)
        assert planned.keys() == calls.keys()
        for stage, expected in planned.items():
            assert expected["calls"] == pytest.approx(calls[stage], rel=0.5)


class TestBiasedJudge:
    def test_the_check_finds_what_grouping_does(self, stack: Stack, biased: Json) -> None:
        results = stack.results(biased["id"])
        found = agreement(results)
        pairs = list(judged_both_ways(stack, biased["id"]))
        assert len(pairs) == found["sentences"]
        scored = [(g, a) for g, a in pairs if g != 9 and a != 9]
        assert found["exact_agreement"]["value"] == pytest.approx(fmean(g == a for g, a in pairs))
        assert found["mean_difference"]["value"] == pytest.approx(fmean(g - a for g, a in scored))
        assert found["mean_difference"]["value"] > 0.1
        low, high = found["mean_difference"]["ci95"]
        assert 0 < low < found["mean_difference"]["value"] < high
        assert found["acc_difference"]["value"] != 0
        assert found["quadratic_kappa"]["value"] < 1

    def test_the_metrics_are_those_of_the_grouped_verdicts(
        self, stack: Stack, biased: Json, one_by_one: Json
    ) -> None:
        results = stack.results(biased["id"])
        by_model = {total["model"]: total for total in results["totals"] if total["by"] == ["model"]}
        alone = {total["model"]: total for total in one_by_one["totals"] if total["by"] == ["model"]}
        (model,) = BODY["models"]
        assert by_model[model]["metrics"]["mean"]["value"] > alone[model]["metrics"]["mean"]["value"]
        assert by_model[model]["units"] == alone[model]["units"]

    def test_its_results_and_responses_have_the_declared_form(self, stack: Stack, biased: Json) -> None:
        found = stack.api.get(f"/v1/jobs/{biased['id']}/results")
        check = Results.model_validate_json(found.content, strict=True).judging_check
        assert check is not None
        assert check.agreement
        page = stack.api.get(f"/v1/jobs/{biased['id']}/responses")
        assert ResponseList.model_validate_json(page.content, strict=True).data

    def test_manifest_and_reports_tell_of_it(self, stack: Stack, biased: Json) -> None:
        results = stack.results(biased["id"])
        judging = results["manifest"]["judging"]
        assert (judging["sentences_per_call"], judging["instrument"]["version"]) == (SENTENCES, "v1")
        assert judging["check"] == results["judging_check"]
        assert any("sentences in one call" in words for words in results["manifest"]["deviations"])
        report = f"/v1/jobs/{biased['id']}/report"
        page = stack.api.get(report, params={"format": "html"}).text
        assert "Grouped judging: check" in page
        lines = stack.api.get(report, params={"format": "csv", "level": "judging_check"}).text.splitlines()
        assert len(lines) == 1 + len(results["judging_check"]["agreement"])


def judged_both_ways(stack: Stack, job_id: str) -> Iterator[tuple[int, int]]:
    """The grouped and the lone number of every sentence of the sample, as the simulator gave them."""
    grouped: dict[str, int] = {}
    alone: dict[str, int] = {}
    for entry in stack.ledger(job_id):
        stage, *place = judged_path(entry["request_id"]).split("/")
        if stage == "checking":
            alone["/".join(place)] = entry["given"]
        elif stage == "judging" and "sentences" in entry:
            cell, run, item, units, trait, judge = place
            for n, sentence in enumerate(entry["sentences"], int(units.partition("-")[0])):
                grouped["/".join((cell, run, item, str(n), trait, judge))] = sentence["given"]
    return ((grouped[place], number) for place, number in alone.items() if place in grouped)


class TestSentencesOfPersonaGymAnswers:
    def test_have_the_metrics_of_those_judged_one_by_one(self, stack: Stack) -> None:
        body: Json = {
            "personas": ["gym-01"],
            "tasks": [{"task": "persona_consistency", "questions": 4, "atomic": True}],
            "models": ["simulated/sim-drifting"],
            "judges": ["simulated/sim-judge"],
            "reasoner": "simulated/sim-reasoner",
        }
        several = body | {"judging": {"sentences_per_call": SENTENCES, "check": {"minimum": 2}}}
        alone, grouped = (stack.results(stack.ended(stack.submit(job))["id"]) for job in (body, several))
        assert grouped["completeness"] == "full"
        assert grouped["cells"] == alone["cells"]
        assert grouped["persona_scores"] == alone["persona_scores"]
        assert agreement(grouped)["exact_agreement"]["value"] == 1.0
        assert succeeded(grouped)["judging"] < succeeded(alone)["judging"]
