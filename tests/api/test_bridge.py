"""The bridge from one judge to another, on jobs judged by real workers."""

import html
import json
import re
from statistics import fmean
from typing import Any

import pytest
from click.testing import CliRunner

from app.cli import app
from tests.api.service import Json, Service, job_body, pointers
from tests.api.test_judging_again import again, responses_of, results_of
from tests.api.test_pages import look
from tests.api.test_personagym import gym_body

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
        assert (found["unpaired"], found["design"], found["simulated"]) == (0, "all", True)
        assert [note.partition(":")[0] for note in found["notes"]] == ["simulated"]
        shown = look(stack, f"/bridge?old={by_old['id']}&new={by_new['id']}").text
        assert "bridged figures are its own" in shown
        assert "are estimates" not in shown
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
            for metric in ("acc_atom", "ic_atom", "rc_atom", "mean"):
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
        assert (found["anchors"], found["texts"], found["design"]) == (70, whole["texts"], "random")
        assert found["not_bridged"]["rc_atom"].startswith("needs_pairs_of_runs")
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


def test_anchors_in_whole_pairs_of_runs_bridge_rc_atom(stack: Service, by_old: Json, by_new: Json) -> None:
    job = again(stack, by_old, judges=[NEW], sample={"responses": 70, "seed": 3, "by": "run_pairs"})
    runs: dict[tuple[str, ...], set[int]] = {}
    for each in responses_of(stack, job):
        runs.setdefault((each["model"], each["persona"], each["task"]), set()).add(each["run"])
    assert 4 <= len(runs) < 12  # of the twelve cells, which have two runs each
    assert all(of_cell == {0, 1} for of_cell in runs.values())
    found = bridge(stack, {"job": by_old["id"]}, {"job": job["id"]})
    whole = bridge(stack, {"job": by_old["id"]}, {"job": by_new["id"]})
    one, truth = figure(found, "rc_atom"), figure(whole, "rc_atom")
    assert found["not_bridged"] == {}
    assert one["old"]["value"] == pytest.approx(truth["old"]["value"], abs=1e-12)
    assert one["bridged"]["value"] == pytest.approx(truth["bridged"]["value"], abs=0.2)
    assert one["bridged"]["ci95_reason"].endswith("pairs of runs; an interval needs 20")
    assert results_of(stack, job)["source"]["sample"] == {"responses": 70, "seed": 3, "by": "run_pairs"}


def test_texts_that_somebody_chose_are_told_not_to_be_random(
    stack: Service, finished: Json, by_old: Json
) -> None:
    fields = ("persona", "task", "run", "instruction", "text", "model")
    chosen = [
        {name: each[name] for name in fields}
        for each in responses_of(stack, by_old)
        if (each["persona"], each["task"], each["status"]) == ("E-low", "essay", "answered")
    ]
    body = {name: finished["spec"][name] for name in ("personas", "tasks")} | {"judges": [NEW]}
    job = stack.wait(stack.submit(body | {"responses": chosen})["id"], "completed", "failed")
    found = bridge(stack, {"job": by_old["id"]}, {"job": job["id"]})
    assert (found["anchors"], found["design"]) == (len(chosen), "not_random")
    assert [note.partition(":")[0] for note in found["notes"]] == ["simulated", "not_random"]
    assert found["recommendation"].startswith("The anchors were not drawn at random, so that this holds only")
    shown = look(stack, f"/bridge?old={by_old['id']}&new={job['id']}").text
    assert "If these anchors, which were not drawn at random, are like the other texts" in shown


def test_a_judge_that_was_imported_is_bridged_and_marked(stack: Service) -> None:
    """Every third of its scores is a point higher than the others."""
    texts = [
        "I love a crowd. I talk to all of them. Silence bores me.",
        "I met friends. We danced. It was loud.",
    ]
    responses = [
        {
            "persona": "loud",
            "task": "essay",
            "run": run,
            "text": texts[run % 2],
            "verdicts": [{"judge": "gpt-4o-2024-05-13", "scores": [4, 5, 4]}],
        }
        for run in range(24)
    ]
    body = {
        "personas": [{"id": "loud", "description": "a loud person", "traits": {"E": "high"}}],
        "tasks": ["essay"],
        "judges": [{"imported": "gpt-4o-2024-05-13", "provenance": {"source": "a paper"}}],
        "responses": responses,
    }
    old = stack.wait(stack.submit(body)["id"], "completed", "failed")
    new = again(stack, old, judges=[OLD], sample={"responses": 22, "by": "run_pairs"})
    found = bridge(stack, {"job": old["id"]}, {"job": new["id"]})
    assert (found["old"]["judge"], found["old"]["imported"]) == ("gpt-4o-2024-05-13", True)
    assert (found["new"]["imported"], found["anchors"], found["texts"]) == (False, 22, 24)
    one = figure(found, "mean")
    assert one["old"]["value"] == pytest.approx(13 / 3)
    assert one["bridged"]["value"] == pytest.approx(one["old"]["value"] + one["effect"]["value"])
    # All runs are alike by the old judge, so that it is 1.
    assert figure(found, "rc_atom")["old"]["value"] == 1


def test_a_judge_that_cannot_be_trusted_is_named_first(stack: Service, by_old: Json, by_new: Json) -> None:
    sides = {"job": by_old["id"]}, {"job": by_new["id"]}
    plain = bridge(stack, *sides, within=0.9)
    warning: Json = {"of": "sentences", "dimension": None, "value": 0.97, "n": 300, "limit": 0.9}
    warnings = [
        warning | {"code": "never_not_applicable", "message": f"{NEW} never.", "judges": [NEW]},
        warning | {"code": "one_score", "message": "other/judge.", "judges": ["other/judge"]},
        warning | {"code": "time_outs", "message": "late.", "judges": []},
    ]

    def bridged(job: Json) -> Json:
        """The bridge while a job has these warnings."""
        update = "UPDATE jobs SET warnings = %s::jsonb WHERE id = %s"
        stack.execute(update, json.dumps(warnings), job["id"])
        try:
            return bridge(stack, *sides, within=0.9)
        finally:
            stack.execute(update, json.dumps(job["warnings"]), job["id"])

    assert plain["interchangeable"] is True
    found = bridged(by_new)
    assert found["interchangeable"] is None
    assert [note.partition(":")[0] for note in found["notes"]] == ["never_not_applicable", "simulated"]
    assert found["recommendation"].startswith(f"Do not replace one judge by the other: {NEW} never. ")
    assert bridged(by_old) == plain  # its judge is another one


def test_grades_of_personagym_are_bridged_by_their_questions(stack: Service) -> None:
    lenient, harsh = (f"simulated/sim-judge-{kind}" for kind in ("lenient", "harsh"))
    tasks = [{"task": task, "questions": 5} for task in ("expected_action", "toxicity_control")]
    people = [{"id": id_, "description": f"a {id_}"} for id_ in ("nun", "vet", "cook")]
    both = stack.wait(stack.submit(gym_body(personas=people, tasks=tasks))["id"], "completed")
    truth = results_of(stack, both)["persona_scores"]
    by_judge = [
        [fmean(task["by_judge"][judge]["value"] for task in row["tasks"].values()) for row in truth]
        for judge in (lenient, harsh)
    ]
    within = bridge(stack, {"job": both["id"], "judge": lenient}, {"job": both["id"], "judge": harsh})
    one = figure(within, "persona_score")
    assert (one["anchors"], within["graded"]["responses"], within["agreement"]) == (30, 30, [])
    assert one["old"]["value"] == pytest.approx(fmean(by_judge[0]))
    assert one["bridged"]["value"] == pytest.approx(fmean(by_judge[1]))
    # The job of the sample numbers the questions that it has anew.
    some = again(stack, both, judges=[harsh], sample={"responses": 25, "seed": 1})
    sampled = bridge(stack, {"job": both["id"], "judge": lenient}, {"job": some["id"]})
    assert (sampled["anchors"], sampled["unpaired"], sampled["graded"]["responses"]) == (25, 0, 25)
    assert figure(sampled, "persona_score")["old"] == one["old"]
    low, high = figure(sampled, "persona_score")["bridged"]["ci95"]
    assert low - 0.2 < one["bridged"]["value"] < high + 0.2


def test_the_command_line_makes_the_anchors_waits_and_tells(stack: Service, by_old: Json) -> None:
    arguments = ["bridge", "--old", by_old["id"], "--new", NEW, "--sample", "40", "--yes"]
    result = CliRunner().invoke(app, arguments, env={"ASSAY_URL": str(stack.http.base_url), "COLUMNS": "150"})
    assert result.exit_code == 0, result.output
    # A table, or lines where it would be too wide.
    assert re.search(r"old +n +bridged|old 0\.\d{3} · n \d+", result.output)
    assert "run_pairs" not in result.output
    for words in ("ACC_atom", "bridged", "weighted kappa", "Bridged figures are estimates", "are simulated"):
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
    assert [note.partition(":")[0] for note in found["notes"]] == ["simulated", "part"]
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


class TestPage:
    def test_shows_totals_findings_and_what_is_not_bridged(
        self, stack: Service, by_old: Json, anchored: Json
    ) -> None:
        sides = {"old": by_old["id"], "new": anchored["id"]}
        shown = html.unescape(stack.get("/bridge", params=sides).text)
        found = bridge(stack, *({"job": job} for job in sides.values()))
        one = figure(found, "acc_atom")
        low, high = one["bridged"]["ci95"]
        assert found["recommendation"] in shown
        assert f"{one['bridged']['value']:.3f}<small>[{low:.3f}, {high:.3f}]</small>" in shown
        assert "RC_atom" in re.sub(r"<[^>]+>", "", shown).replace("RCatom", "RC_atom")
        assert "70 anchors" in shown
        assert "Models or judges are simulated" in shown

    def test_leads_to_anchors_for_a_judge_that_is_not_there_yet(self, stack: Service, by_old: Json) -> None:
        assert f'href="/bridge?old={by_old["id"]}"' in stack.get(f"/jobs/{by_old['id']}").text
        assert 'action="/new"' in stack.get("/bridge", params={"old": by_old["id"]}).text
        form = {"judge": by_old["id"], "anchors": 40, "by": "run_pairs"}
        shown = html.unescape(stack.get("/new", params=form).text)
        assert re.search(
            r'"sample":\s*{\s*"by":\s*"run_pairs",\s*"responses":\s*40|"responses":\s*40,\s*"seed":\s*0,\s*"by"',
            shown,
        )

    def test_names_what_is_wrong(self, stack: Service, by_old: Json) -> None:
        for new, status, words in ((by_old["id"], 422, "must differ from old"), ("nobody", 404, "nobody")):
            answer = look(stack, f"/bridge?old={by_old['id']}&new={new}")
            assert (answer.status_code, words in answer.text) == (status, True)
