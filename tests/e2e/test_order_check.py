"""Judges that depend on the order of their options are found, with sign and size; others are not."""

import re
from collections import Counter
from collections.abc import Iterator
from statistics import fmean

import pytest

from app.domain.results.contract import Results
from tests.e2e.stack import Json, Stack, judged_path

BIAS = 0.3
BODY: Json = {
    "personas": ["E-low", "A-high", "O-neutral"],
    "tasks": ["essay", "questionnaire"],
    "models": ["simulated/sim-drifting"],
    "judges": ["simulated/sim-judge", "simulated/sim-judge-noisy"],
    "instructions": [0, 3],
    "iterations": 2,
}
CHECKED = BODY | {"judging": {"order_check": {"share": 0.4}}}
EXACT, NOISY = BODY["judges"]
COMPARED = ("completeness", "cells", "totals", "judges", "verdict_agreement")


@pytest.fixture(scope="module")
def unchecked(stack: Stack) -> Json:
    return stack.results(stack.ended(stack.submit(BODY))["id"])


@pytest.fixture(scope="module")
def unbiased(stack: Stack) -> Json:
    return stack.ended(stack.submit(CHECKED))


@pytest.fixture(scope="module")
def biased(stack: Stack) -> Json:
    """A finished job whose judges answer the option before the right one in so many of the cases."""
    stack.simulate(order_bias=BIAS)
    job = stack.ended(stack.submit(CHECKED))
    stack.simulate(order_bias=0.0)
    return job


def agreement(results: Json, judge: str, order: str, dimension: str | None = None) -> Json:
    (found,) = (
        row
        for row in results["order_check"]["agreement"]
        if (row["judge"], row["order"], row["dimension"]) == (judge, order, dimension)
    )
    assert isinstance(found, dict)
    return found


def judge_calls(stack: Stack, job_id: str) -> Iterator[tuple[str, str, int, Json]]:
    """(stage, place of the sentence, judge's number, the simulator's record) of every judge call."""
    for entry in stack.ledger(job_id):
        stage, *place = judged_path(entry["request_id"]).split("/")
        if stage != "generation":
            yield stage, "/".join(place[:-1]), int(place[-1]), entry


class TestUnbiasedJudges:
    def test_no_other_figure_changes(self, stack: Stack, unbiased: Json, unchecked: Json) -> None:
        found = stack.results(unbiased["id"])
        assert (unbiased["status"], found["completeness"]) == ("completed", "full")
        for part in COMPARED:
            assert found[part] == unchecked[part], part
        assert "order_check" not in unchecked

    def test_a_judge_without_error_says_the_same_in_every_order(self, stack: Stack, unbiased: Json) -> None:
        found = stack.results(unbiased["id"])
        for order in ("repeated", "reversed", "shuffled"):
            row = agreement(found, EXACT, order)
            assert row["exact_agreement"]["value"] == 1
            assert row["mean_difference"]["value"] == row["acc_difference"]["value"] == 0

    @pytest.mark.parametrize("order", ["reversed", "shuffled"])
    def test_the_interval_of_one_that_errs_at_random_holds_0(
        self, stack: Stack, unbiased: Json, order: str
    ) -> None:
        row = agreement(stack.results(unbiased["id"]), NOISY, order)
        assert row["exact_agreement"]["value"] < 1
        for name in ("mean_difference", "acc_difference"):
            low, high = row[name]["ci95"]
            assert low < 0 < high, (name, row[name])

    def test_every_drawn_sentence_is_asked_once_in_each_order_and_paid(
        self, stack: Stack, unbiased: Json
    ) -> None:
        calls = Counter(
            (stage, place, number) for stage, place, number, _ in judge_calls(stack, unbiased["id"])
        )
        assert set(calls.values()) == {1}
        numbers: dict[str, set[int]] = {}
        for stage, place, number in calls:
            if stage == "checking":
                numbers.setdefault(place, set()).add(number)
        assert all(found == {2, 3, 4, 5, 6, 7} for found in numbers.values())
        judged = sum(stage == "judging" for stage, _, _ in calls)
        assert 2 * len(numbers) / judged == pytest.approx(0.4, abs=0.05)
        usage = {row["stage"] for row in unbiased["usage"]["by_model"]}
        assert usage - {"repairing"} == {"generation", "judging", "checking"}
        progress = unbiased["progress"]["judging"]
        assert progress["succeeded"] == progress["total"] == judged + 6 * len(numbers)

    def test_plan_expects_what_it_takes(self, stack: Stack, unbiased: Json) -> None:
        planned = stack.api.post("/v1/jobs/plan", json=CHECKED).json()["stages"]
        expected = Counter[str]()
        for stage in planned:
            expected[stage["stage"]] += stage["calls"]
        # By its definition; the number of sentences of a text is an estimate.
        assert expected["checking"] == pytest.approx(3 * 0.4 * expected["judging"], rel=0.001)
        taken = Counter[str]()
        for row in unbiased["usage"]["by_model"]:
            taken[row["stage"]] += row["calls"]
        assert expected["checking"] == pytest.approx(taken["checking"], rel=0.5)


class TestBiasedJudges:
    def test_the_effect_is_found_with_its_sign_and_size(self, stack: Stack, biased: Json) -> None:
        """From 2 to 4 the option before the right one is one lower as asked and one higher reversed; at the ends one of the two stays."""
        row = agreement(stack.results(biased["id"]), EXACT, "reversed")
        truths = [
            entry["truth"]
            for stage, _, number, entry in judge_calls(stack, biased["id"])
            if (stage, number) == ("checking", 4) and entry["truth"] <= 5
        ]
        assert row["mean_difference"]["n"] == len(truths)
        expected = -BIAS * fmean(2 if 1 < truth < 5 else 1 for truth in truths)
        low, high = row["mean_difference"]["ci95"]
        assert low < expected < high < 0

    def test_it_is_not_the_judges_own_noise(self, stack: Stack, biased: Json) -> None:
        row = agreement(stack.results(biased["id"]), EXACT, "repeated")
        assert row["exact_agreement"]["value"] == 1

    def test_scores_of_shuffled_options_are_those_of_the_words(self, stack: Stack, biased: Json) -> None:
        """A judge that is right in 70 % of the cases and else takes the option before: on any other it would agree by chance."""
        row = agreement(stack.results(biased["id"]), EXACT, "shuffled")
        assert 0.4 < row["exact_agreement"]["value"] < 0.75

    def test_dimensions_have_rows_of_their_own_in_the_declared_form(self, stack: Stack, biased: Json) -> None:
        found = stack.api.get(f"/v1/jobs/{biased['id']}/results")
        check = Results.model_validate_json(found.content, strict=True).order_check
        assert check is not None
        rows = [row for row in check.agreement if row.judge == EXACT and row.order == "reversed"]
        assert [row.dimension for row in rows] == [None, "A", "E", "O"]
        assert sum(row.sentences for row in rows[1:]) == rows[0].sentences

    def test_report_console_and_export_tell_of_it(self, stack: Stack, biased: Json, unchecked: Json) -> None:
        report = f"/v1/jobs/{biased['id']}/report"
        pages = [
            stack.api.get(report, params={"format": "html"}).text,
            stack.api.get(f"/jobs/{biased['id']}").text,
        ]
        told = re.compile(rf"With the options reversed, <bdi>{EXACT}</bdi> scored 0\.\d\d higher \[0\.")
        assert all(told.search(" ".join(page.split())) for page in pages)
        assert "options reversed" not in stack.api.get(f"/jobs/{unchecked['job']}").text
        lines = stack.api.get(report, params={"format": "csv", "level": "order_check"}).text.splitlines()
        assert len(lines) == 1 + len(stack.results(biased["id"])["order_check"]["agreement"])


def test_no_reading_is_a_reply_used_again(stack: Stack, unbiased: Json) -> None:
    """A sentence asked once more in the same words is asked, also where replies are reused."""
    job = stack.ended(stack.submit(CHECKED | {"reuse": {"judging": "in_job"}}))
    assert stack.results(job["id"])["order_check"] == stack.results(unbiased["id"])["order_check"]
    calls = [
        sum(row["calls"] for row in one["usage"]["by_model"] if row["stage"] == "checking")
        for one in (job, unbiased)
    ]
    assert calls[0] == calls[1] > 0


def test_sentences_of_personagym_answers_are_checked_too(stack: Stack) -> None:
    body: Json = {
        "personas": ["gym-01"],
        "tasks": [{"task": "persona_consistency", "questions": 4, "atomic": True}],
        "models": ["simulated/sim-drifting"],
        "judges": [EXACT],
        "reasoner": "simulated/sim-reasoner",
        "judging": {"order_check": {"share": 1}},
    }
    job = stack.ended(stack.submit(body))
    results = stack.results(job["id"])
    assert results["completeness"] == "full"
    for order in ("repeated", "reversed", "shuffled"):
        row = agreement(results, EXACT, order)
        assert row["exact_agreement"]["value"] == 1
        assert row["sentences"] == sum(cell["units"]["total"] for cell in results["cells"])
