"""The bridge from one judge to another, on jobs judged by real workers."""

import json
from typing import Any

import pytest
from click.testing import CliRunner

from app.cli import app
from tests.api.service import Json, Service, job_body, pointers
from tests.api.test_judging_again import again, results_of

OLD, NEW = "simulated/sim-judge", "simulated/sim-judge-noisy"


def bridge(service: Service, old: Json, new: Json, **more: Any) -> Json:
    answer = service.post("/v1/bridges", {"old": old, "new": new} | more)
    assert answer.status_code == 200, answer.text
    found: Json = answer.json()
    return found


def figure(bridged: Json, metric: str, **group: str) -> Json:
    found: Json
    (found,) = [one for one in bridged["figures"] if one["metric"] == metric and one["group"] == group]
    return found


@pytest.fixture(scope="module")
def by_old(stack: Service, finished: Json) -> Json:
    """All texts, by the old judge alone."""
    return again(stack, finished, judges=[OLD])


@pytest.fixture(scope="module")
def by_new(stack: Service, by_old: Json) -> Json:
    """The same, by the new one."""
    return again(stack, by_old, judges=[NEW])


@pytest.fixture(scope="module")
def anchored(stack: Service, by_old: Json) -> Json:
    """A sample of them, by the new one."""
    return again(
        stack, by_old, judges=[NEW], filter={"status": ["answered"]}, sample={"responses": 70, "seed": 3}
    )


class TestAllTexts:
    def test_bridged_totals_are_those_that_the_new_judge_gave(
        self, stack: Service, by_old: Json, by_new: Json
    ) -> None:
        found = bridge(stack, {"job": by_old["id"]}, {"job": by_new["id"]})
        assert found["unpaired"] == 0
        by_model = [
            {
                total["model"]: total["metrics"]
                for total in results_of(stack, job)["totals"]
                if total["by"] == ["model"]
            }
            for job in (by_old, by_new)
        ]
        assert [len(totals) for totals in by_model] == [2, 2]
        for model in by_model[0]:
            for metric in ("acc_atom", "ic_atom", "mean"):
                one = figure(found, metric, model=model)
                old, new = (totals[model][metric]["value"] for totals in by_model)
                assert one["old"]["value"] == pytest.approx(old, abs=1e-12)
                # By a mean over responses that both scored, where a few are scored by one of the two alone.
                assert one["bridged"]["value"] == pytest.approx(new, abs=0.02)

    def test_agreement_is_that_of_two_judges_in_one_job(
        self, stack: Service, finished: Json, by_old: Json, by_new: Json
    ) -> None:
        apart = bridge(stack, {"job": by_old["id"]}, {"job": by_new["id"]})
        within = bridge(stack, {"job": finished["id"], "judge": OLD}, {"job": finished["id"], "judge": NEW})
        assert [one["dimension"] for one in apart["agreement"]] == [None, "A", "E", "N"]
        for one, other in zip(apart["agreement"], within["agreement"], strict=True):
            assert one["quadratic_kappa"]["value"] == other["quadratic_kappa"]["value"]
            assert one["shift"]["value"] == other["shift"]["value"]

    def test_a_judge_agrees_with_itself(self, stack: Service, finished: Json, by_old: Json) -> None:
        found = bridge(stack, {"job": finished["id"], "judge": OLD}, {"job": by_old["id"]})
        assert found["interchangeable"] is True
        assert found["recommendation"].startswith("Interchangeable within ± 5 %")
        assert found["agreement"][0]["exact_agreement"]["value"] == 1
        assert all(abs(one["effect"]["value"]) < 1e-12 for one in found["figures"])


class TestAnchors:
    def test_intervals_hold_what_the_new_judge_gives_all_texts(
        self, stack: Service, by_old: Json, by_new: Json, anchored: Json
    ) -> None:
        found = bridge(stack, {"job": by_old["id"]}, {"job": anchored["id"]})
        whole = bridge(stack, {"job": by_old["id"]}, {"job": by_new["id"]})
        assert (found["anchors"], found["texts"]) == (70, whole["texts"])
        one, truth = figure(found, "acc_atom"), figure(whole, "acc_atom")
        assert one["old"] == truth["old"]
        low, high = one["bridged"]["ci95"]
        assert low < high
        # 95 % of such intervals hold it; this one, by its seeds, and twice its width any.
        middle, width = (low + high) / 2, high - low
        assert abs(truth["bridged"]["value"] - middle) < width
        assert one["anchors"] <= 70

    def test_few_anchors_of_a_group_have_no_interval(self, stack: Service, by_old: Json) -> None:
        few = again(stack, by_old, judges=[NEW], sample={"responses": 10})
        one = figure(bridge(stack, {"job": by_old["id"]}, {"job": few["id"]}), "acc_atom")
        assert one["bridged"]["ci95"] is None
        assert one["bridged"]["ci95_reason"].startswith("too_few_anchors")
        assert (one["finding"], one["anchors_needed"]) == (None, None)

    def test_the_margin_decides(self, stack: Service, by_old: Json, anchored: Json) -> None:
        sides = {"job": by_old["id"]}, {"job": anchored["id"]}
        assert figure(bridge(stack, *sides, within=0.9), "acc_atom")["finding"] == "interchangeable"
        assert bridge(stack, *sides, within=0.9)["interchangeable"] is True
        assert bridge(stack, *sides, within=0.0001)["interchangeable"] is not True


def test_the_command_line_makes_the_anchors_waits_and_tells(stack: Service, by_old: Json) -> None:
    arguments = ["bridge", "--old", by_old["id"], "--new", NEW, "--sample", "40", "--yes"]
    result = CliRunner().invoke(app, arguments, env={"ASSAY_URL": str(stack.http.base_url), "COLUMNS": "150"})
    assert result.exit_code == 0, result.output
    for words in ("ACC_atom", "bridged", "weighted kappa", "Bridged figures are estimates"):
        assert words in result.output
    (job,) = stack.get("/v1/jobs", params={"name": f"anchors of {by_old['id']}"}).json()["data"]
    assert job["spec"]["responses"]["sample"] == {"responses": 40, "seed": 0}
    again_ = ["bridge", "--old", by_old["id"], "--new", job["id"], "--json"]
    told = CliRunner().invoke(app, again_, env={"ASSAY_URL": str(stack.http.base_url)})
    assert json.loads(told.stdout)["anchors"] == 40


def test_totals_are_of_the_texts_among_which_the_anchors_were_chosen(stack: Service, by_old: Json) -> None:
    of_run = again(stack, by_old, judges=[NEW], filter={"runs": [1], "tasks": ["questionnaire"]})
    found = bridge(stack, {"job": by_old["id"]}, {"job": of_run["id"]})
    # Of some texts neither judge scored a sentence.
    assert 0 < found["texts"] <= found["anchors"]
    low, high = figure(found, "acc_atom")["bridged"]["ci95"]
    assert high - low < 3e-6  # all of them were judged; ends are rounded outward
    assert {str(each["group"]) for each in found["figures"] if "task" in each["group"]} == {
        str({"task": "questionnaire"})
    }


class TestRefusals:
    @pytest.mark.parametrize(
        ("old", "new", "wrong"),
        [
            ({}, {}, "/old/judge"),
            ({"judge": "nobody"}, {"judge": NEW}, "/old/judge"),
            ({"judge": OLD}, {"judge": OLD}, "/new"),
        ],
    )
    def test_name_the_field(self, stack: Service, finished: Json, old: Json, new: Json, wrong: str) -> None:
        sides = {name: {"job": finished["id"]} | side for name, side in (("old", old), ("new", new))}
        answer = stack.post("/v1/bridges", sides)
        assert (answer.status_code, pointers(answer)[0]) == (422, wrong)

    def test_jobs_of_other_texts_have_nothing_in_common(self, stack: Service, finished: Json) -> None:
        other = stack.wait(stack.submit(job_body())["id"], "completed")
        answer = stack.post(
            "/v1/bridges", {"old": {"job": finished["id"], "judge": OLD}, "new": {"job": other["id"]}}
        )
        assert (answer.status_code, pointers(answer)) == (422, ["/new"])

    def test_anchors_chosen_by_instruction(self, stack: Service, by_old: Json) -> None:
        of_wording = again(stack, by_old, judges=[NEW], filter={"instructions": [0], "tasks": ["essay"]})
        answer = stack.post("/v1/bridges", {"old": {"job": by_old["id"]}, "new": {"job": of_wording["id"]}})
        assert (answer.status_code, pointers(answer)) == (422, ["/new"])

    def test_unknown_jobs_and_margins(self, stack: Service, finished: Json) -> None:
        gone = {"old": {"job": "job_01kxyz0abcdefghjkmnpqrstvw"}, "new": {"job": finished["id"]}}
        assert stack.post("/v1/bridges", gone).status_code == 404
        sides = {name: {"job": finished["id"]} for name in ("old", "new")}
        assert pointers(stack.post("/v1/bridges", sides | {"within": 0}))[0] == "/within"

    def test_jobs_that_run(self, api: Service) -> None:
        job = api.submit(job_body())
        answer = api.post("/v1/bridges", {"old": {"job": job["id"]}, "new": {"job": job["id"]}})
        assert (answer.status_code, answer.json()["code"]) == (409, "wrong_state")
