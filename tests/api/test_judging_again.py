"""Jobs on the texts of another job: judged by real workers, and refused by an API without any."""

import html
import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest
from click.testing import CliRunner

from app.cli import app
from tests.api.service import Json, Service, job_body, pointers
from tests.api.test_finished_jobs import RESPONSES
from tests.api.test_personagym import gym_body
from tests.api.test_tus import jsonl, uploaded
from tests.databases import libpq_url
from tests.observe import eventually
from tests.rubrics import OFFICIAL

JUDGES = ["simulated/sim-judge", "simulated/sim-judge-noisy"]


def again(service: Service, job: Json, **fields: Any) -> Json:
    """A job on another one's texts, when it has ended."""
    source = {name: fields.pop(name) for name in ("filter", "sample") if name in fields}
    body = {"judges": JUDGES, "responses": {"job": job["id"]} | source} | fields
    return service.wait(service.submit(body)["id"], "completed", "failed")


def results_of(service: Service, job: Json) -> Json:
    results: Json = service.get(f"/v1/jobs/{job['id']}/results").json()
    return results


def responses_of(service: Service, job: Json) -> list[Json]:
    return list(service.walk(f"/v1/jobs/{job['id']}/responses", limit=200))


@pytest.fixture(scope="module")
def judged_again(stack: Service, finished: Json) -> Json:
    return again(stack, finished, name="again")


def judging_calls(job: Json) -> int:
    """Return the number of a job's judging calls without follow-ups."""
    return sum(row["calls"] for row in job["usage"]["by_model"] if row["stage"] == "judging")


class TestTheSameJudges:
    def test_come_to_the_same_figures(self, stack: Service, finished: Json, judged_again: Json) -> None:
        ours, theirs = results_of(stack, judged_again), results_of(stack, finished)
        assert ours["cells"] == theirs["cells"]
        assert ours["totals"] == theirs["totals"]
        assert ours["personas"] == theirs["personas"]
        assert ours["completeness"] == "full"

    def test_are_asked_for_no_text(self, judged_again: Json) -> None:
        assert {row["stage"] for row in judged_again["usage"]["by_model"]} == {"judging", "repairing"}
        assert judged_again["progress"]["judging"]["failed"] == 0

    def test_see_the_same_texts_sentences_and_places(
        self, stack: Service, finished: Json, judged_again: Json
    ) -> None:
        kept = ("model", "persona", "task", "item", "run", "instruction", "status", "text", "thoughts")

        def shown(job: Json) -> list[Any]:
            return [
                [each.get(name) for name in kept] + [[unit["text"] for unit in each["units"]]]
                for each in responses_of(stack, job)
            ]

        assert shown(judged_again) == shown(finished)
        assert len(shown(finished)) == RESPONSES

    def test_leave_a_link_to_the_source(self, stack: Service, finished: Json, judged_again: Json) -> None:
        assert judged_again["links"]["source"] == f"/v1/jobs/{finished['id']}"
        assert judged_again["spec"]["responses"] == {"job": finished["id"]}
        results = results_of(stack, judged_again)
        assert results["source"] == {
            "job": finished["id"],
            "filter": {},
            "sample": None,
            "responses": RESPONSES,
            "left_out": 0,
            "attributes": {"shy": {"caution": "high"}},
            "other_personas": [],
        }
        assert any(finished["id"] in note for note in results["manifest"]["deviations"])

    def test_know_the_models_as_they_were(self, stack: Service, finished: Json, judged_again: Json) -> None:
        ours, theirs = (results_of(stack, job)["manifest"]["models"] for job in (judged_again, finished))
        assert ours == theirs
        groups = stack.get(f"/v1/jobs/{judged_again['id']}/groups").json()["groups"]
        assert {"attribute": "caution", "value": "high"}.items() <= groups[-1].items()


class TestBesideTheSource:
    """A job and its source have the same texts: what is compared is judges."""

    def test_the_same_judges_show_no_difference(
        self, stack: Service, finished: Json, judged_again: Json
    ) -> None:
        sides = [{"job": job["id"], "model": "shy"} for job in (judged_again, finished)]
        found = stack.post("/v1/comparisons", {"a": sides[0], "b": sides[1], "pairing": "items"}).json()
        differences = [row["difference"] for row in found["differences"] if row["pairs"]]
        assert differences == [0] * len(differences) != []
        assert not any("judges differ" in note for note in found["notes"])

    def test_other_judges_are_named_as_what_differs(self, stack: Service, finished: Json) -> None:
        job = again(stack, finished, judges=["simulated/sim-judge-noisy"])
        sides = [{"job": each["id"], "model": "shy"} for each in (job, finished)]
        notes = stack.post("/v1/comparisons", {"a": sides[0], "b": sides[1]}).json()["notes"]
        assert "The judges differ, which may explain a difference." in notes
        threshold = f"acc_atom not worse than {finished['id']}:shy by 0.3"
        gate = stack.get(f"/v1/jobs/{job['id']}/gate", params={"threshold": threshold}).json()
        assert gate["verdict"] == "inconclusive"
        assert all("the judges differ" in check["reason"] for check in gate["checks"])

    def test_a_gate_holds_it_to_its_source(self, stack: Service, finished: Json, judged_again: Json) -> None:
        threshold = f"acc_atom not worse than {finished['id']}:shy by 0.3"
        gate = stack.get(f"/v1/jobs/{judged_again['id']}/gate", params={"threshold": threshold}).json()
        (check,) = [each for each in gate["checks"] if each["of"]["model"] == "shy"]
        assert check["value"] == 0
        assert check["reason"].endswith("no interval: 2 personas; an interval needs 5")
        assert "judges differ" not in check["reason"]


class TestSubmission:
    def test_a_key_makes_one_job_of_the_same_request(self, stack: Service, finished: Json) -> None:
        body: Json = {"judges": JUDGES, "responses": {"job": finished["id"], "sample": {"responses": 4}}}
        key = {"Idempotency-Key": "judged-again"}
        first, second = (stack.post("/v1/jobs", body, headers=key) for _ in range(2))
        assert first.json()["id"] == second.json()["id"]
        body["responses"]["sample"]["seed"] = 1
        answer = stack.post("/v1/jobs", body, headers=key)
        assert (answer.status_code, answer.json()["code"]) == (422, "idempotency_conflict")

    def test_calls_are_confirmed_by_what_judging_takes(self, stack: Service, judged_again: Json) -> None:
        calls = judging_calls(judged_again)
        most = 2 * calls  # each reply may need a repair
        body = judged_again["spec"] | {"confirm_calls": most - 1}
        answer = stack.post("/v1/jobs", body)
        assert (answer.status_code, pointers(answer)) == (422, ["/confirm_calls"])
        message = answer.json()["errors"][0]["message"]
        assert (
            f"up to {most:,} calls, more than the {most - 1:,} that confirm_calls accepts (about {calls:,} "
            in message
        )
        assert stack.post("/v1/jobs", body | {"confirm_calls": most}).status_code == 202

    def test_a_budget_pauses_it_and_more_money_ends_it(
        self, stack: Service, finished: Json, judged_again: Json
    ) -> None:
        body = {"judges": JUDGES, "responses": {"job": finished["id"]}, "budget": {"calls": 9}}
        job = stack.wait(stack.submit(body)["id"], "paused")
        assert (job["error"]["code"], job["usage"]["calls"]) == ("budget_exhausted", 9)
        path = f"/v1/jobs/{job['id']}"
        assert stack.http.patch(path, json={"budget": {"calls": 100_000}}).status_code == 200
        assert stack.post(f"{path}/resume").status_code == 200
        job = stack.wait(job["id"], "completed")
        assert results_of(stack, job)["cells"] == results_of(stack, judged_again)["cells"]
        calls = [sum(row["calls"] for row in each["usage"]["by_model"]) for each in (job, judged_again)]
        assert calls[0] == calls[1], "none was made twice"

    def test_texts_that_are_deleted_meanwhile_leave_nothing(self, stack: Service) -> None:
        source = stack.wait(stack.submit(job_body())["id"], "completed")
        with (
            psycopg.connect(libpq_url(stack.database_url)) as other,
            ThreadPoolExecutor(1) as pool,
        ):
            other.execute("LOCK TABLE cells IN SHARE MODE")  # reading goes on, storing a job waits
            before = stack.rows()
            sent = pool.submit(stack.post, "/v1/jobs", {"responses": {"job": source["id"]}, "judges": JUDGES})
            waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'cells'::regclass"
            assert eventually(lambda: stack.count(waiting) == 1)
            texts = "DELETE FROM responses WHERE cell_id IN (SELECT id FROM cells WHERE job_id = %s)"
            gone = other.execute(texts, [source["id"]]).rowcount
            other.commit()
            answer = sent.result(60)
        assert (answer.status_code, pointers(answer)) == (422, ["/responses"])
        assert answer.json()["errors"][0]["message"] == "the texts were deleted meanwhile"
        after = stack.rows()
        assert before["responses"] - after["responses"] == gone == 2
        assert (before["jobs"], before["cells"]) == (after["jobs"], after["cells"])


def test_a_filter_and_other_personas_tasks_and_protocol_hold(stack: Service, finished: Json) -> None:
    job = again(
        stack,
        finished,
        filter={"tasks": ["essay"], "models": ["shy"], "status": ["answered", "refused"], "runs": [1]},
        protocol="hardened",
    )
    found = responses_of(stack, job)
    assert [(each["model"], each["task"], each["run"]) for each in found] == [("shy", "essay", 1)] * 3
    results = results_of(stack, job)
    assert {cell["model"] for cell in results["cells"]} == {"shy"}
    assert results["manifest"]["protocol"] == "hardened"
    assert results["source"]["responses"] == 3


def test_another_segmenter_splits_anew(stack: Service) -> None:
    text = "我喜歡待在家裡。我不喜歡聚會。 And I read."
    first = stack.wait(
        stack.submit(
            job_body(
                models=None,
                instructions=None,
                versions={"segmenter": "punkt-en-v1"},
                responses=[{"persona": "E-low", "task": "essay", "text": text}],
            )
        )["id"],
        "completed",
    )
    whole, cut = (
        responses_of(stack, again(stack, first, **more))[0]["units"]
        for more in ({}, {"versions": {"segmenter": "punkt-en-wide-v1"}})
    )
    assert [unit["text"] for unit in whole] == ["我喜歡待在家裡。我不喜歡聚會。 And I read."]
    assert [unit["text"] for unit in cut] == ["我喜歡待在家裡。", "我不喜歡聚會。", "And I read."]


def test_sentences_can_be_left_out(stack: Service) -> None:
    text = "I stay at home. I read. I stay at home! And then I would like to"
    sent = {"persona": "E-low", "task": "essay", "text": text}
    body = job_body(models=None, instructions=None, responses=[sent])
    both = {"leave_out": ["repeated_sentences", "cut_off"]}
    first = stack.wait(stack.submit(body | {"judging": both})["id"], "completed")
    (shown,) = responses_of(stack, first)
    assert [unit["text"] for unit in shown["units"]] == ["I stay at home.", "I read."]
    assert [(each["text"], each["reason"]) for each in shown["left_out"]] == [
        ("I stay at home!", "repeated_sentences"),
        ("And then I would like to", "cut_off"),
    ]
    results = results_of(stack, first)
    assert results["cells"][0]["generation"]["left_out"] == 2
    assert results["cells"][0]["coverage"]["share"] == 1
    assert results["manifest"]["instrument"]["leave_out"] == ["cut_off", "repeated_sentences"]
    assert "2 of 4 sentences of provided were left out of judging." in results["manifest"]["deviations"]

    choices: list[dict[str, list[str]]] = [{}, {"leave_out": ["cut_off"]}, {"leave_out": []}]
    kept, cut, none = (responses_of(stack, again(stack, first, judging=judging))[0] for judging in choices)
    assert [len(each["units"]) for each in (kept, cut, none)] == [2, 3, 4]
    assert [len(each["left_out"]) for each in (kept, cut, none)] == [2, 1, 0]

    upload = uploaded(stack, jsonl([sent]))
    job = stack.submit(body | {"judging": both, "responses": {"upload": upload["id"]}})
    (of_upload,) = responses_of(stack, stack.wait(job["id"], "completed"))
    assert [each["text"] for each in of_upload["units"]] == [each["text"] for each in shown["units"]]
    assert of_upload["left_out"] == shown["left_out"]


def test_sentences_of_imported_verdicts_cannot_be_left_out(api: Service) -> None:
    verdicts = [{"judge": "old", "dimension": "E", "scores": [1, 2]}]
    sent = {"persona": "E-low", "task": "essay", "text": "I stay. I stay.", "verdicts": verdicts}
    judges = [{"imported": "old", "provenance": {"source": "a file"}}]
    body = job_body(models=None, instructions=None, responses=[sent], judges=judges)
    refused = api.post("/v1/jobs", body | {"judging": {"leave_out": ["repeated_sentences"]}})
    assert "/judging/leave_out" in pointers(refused)


def test_other_traits_of_the_same_persona_can_be_judged(stack: Service, finished: Json) -> None:
    duo = {
        "id": "duo",
        "description": "a warm but anxious neighbour",
        "traits": {"A": "high", "N": "low", "C": "high"},
    }
    job = again(
        stack,
        finished,
        personas=[duo],
        filter={"personas": ["duo"], "tasks": ["social_media_post"]},
        tasks=["social_media_post"],
    )
    results = results_of(stack, job)
    assert {cell["dimension"] for cell in results["cells"]} == {"A", "N", "C"}
    assert results["source"]["other_personas"] == ["duo"]
    assert "That job has other words or traits for duo." in results["manifest"]["deviations"]


def test_a_sample_is_spread_and_drawn_by_its_seed(stack: Service, finished: Json) -> None:
    def drawn(seed: int) -> list[Any]:
        job = again(stack, finished, sample={"responses": 35, "seed": seed})
        found = responses_of(stack, job)
        assert len(found) == 35
        counts = [
            sum(each["model"] == model for each in found) for model in ("shy", "simulated/sim-faithful")
        ]
        assert abs(counts[0] - counts[1]) <= 1  # half of the texts are of each model
        return [(each["model"], each["persona"], each["task"], each["item"], each["run"]) for each in found]

    assert drawn(1) == drawn(1) != drawn(2)


def test_the_source_may_be_deleted_and_the_texts_judged_a_third_time(stack: Service) -> None:
    first = stack.wait(stack.submit(job_body())["id"], "completed")
    second = again(stack, first)
    before = results_of(stack, second)
    assert stack.http.delete(f"/v1/jobs/{first['id']}").status_code == 204
    assert results_of(stack, second) == before
    third = again(stack, second, judges=["simulated/sim-judge-noisy"])
    assert [each["text"] for each in responses_of(stack, third)] == [
        each["text"] for each in responses_of(stack, second)
    ]
    answer = stack.post("/v1/jobs", {"responses": {"job": first["id"]}})
    assert (answer.status_code, pointers(answer)) == (422, ["/responses/job"])


class TestRubrics:
    """Those of the source, unless the job names others."""

    def test_of_a_rubric_set_stay_and_so_do_the_exemplars(self, stack: Service) -> None:
        released = stack.post("/v1/rubric-sets", {"tasks": OFFICIAL}).json()["id"]
        tasks = [{"task": "toxicity_control", "questions": 2}]
        first = stack.wait(stack.submit(gym_body(tasks=tasks, rubrics=released))["id"], "completed")
        used = [
            results_of(stack, job)["manifest"]["personagym"]
            for job in (first, again(stack, first, judges=["simulated/sim-judge-harsh"]))
        ]
        assert used[0]["rubrics"] == used[1]["rubrics"]
        assert (used[0]["exemplars"]["made"], used[1]["exemplars"]["reused"]) == (2, 2)
        other = stack.post("/v1/rubric-sets", {"tasks": {"Toxicity": OFFICIAL["Toxicity.txt"] + "!"}}).json()
        job = again(stack, first, judges=["simulated/sim-judge-harsh"], rubrics=other["id"])
        changed = results_of(stack, job)["manifest"]
        assert (changed["rubric_set"], changed["personagym"]["exemplars"]["made"]) == (other["id"], 2)
        assert changed["personagym"]["rubrics"] != used[0]["rubrics"]

    def test_of_atomic_tasks_are_what_judges_are_asked_by(self, stack: Service) -> None:
        words = {"tasks": {"essay": {"scoring_prompt": "How shy is this? {atomic unit} {options}"}}}
        own = stack.post("/v1/rubric-sets", words).json()["id"]
        first = stack.wait(stack.submit(job_body())["id"], "completed")
        second = again(stack, first, rubrics=own)
        third = again(stack, second)
        for job, shy in ((first, False), (second, True), (third, True)):
            response = next(each for each in responses_of(stack, job) if each["units"])
            path = f"/v1/jobs/{job['id']}/responses/{response['id']}/judge-calls"
            calls = stack.get(path, params={"unit": 0}).json()["data"]
            assert {call["prompt"].startswith("How shy is this?") for call in calls} == {shy}


def test_the_command_line_judges_texts_of_a_file_and_then_those_of_the_job(
    stack: Service, tmp_path: Path
) -> None:
    def assay(*arguments: str) -> str:
        done = CliRunner().invoke(app, arguments, env={"ASSAY_URL": stack.url})
        assert done.exit_code == 0, done.output
        return done.stdout

    body = tmp_path / "job.yaml"
    body.write_text(
        """
personas: [{id: cowboy, description: a cowboy}]
tasks: [expected_action]
judges: [simulated/sim-judge-lenient]
reasoner: simulated/sim-reasoner
responses:
  - {persona: cowboy, task: expected_action, model: bot, question: "A storm?", text: I turn the herd., run: 0}
  - {persona: cowboy, task: expected_action, model: bot, question: "A storm?", text: I ride home., run: 1}
  - {persona: cowboy, task: expected_action, model: bot, question: "The cattle?", text: They stay., run: 1}
"""
    )
    assert "runs that lack an item or question that another run has: 1." in " ".join(
        assay("plan", str(body)).split()
    )
    first = assay("submit", str(body), "--wait", "--yes").strip()
    told = results_of(stack, {"id": first})["manifest"]["deviations"]
    assert any("another run of the same cell has: 1." in each for each in told)
    body.write_text(f"responses: {{job: {first}}}\njudges: [simulated/sim-judge-harsh]\n")
    report = tmp_path / "report.html"
    second = assay("submit", str(body), "--report", str(report), "--yes").strip()
    assert "PersonaScore" in assay("results", second)
    link = re.search(r'Judged texts: 3 of <a href="([^"]+)">', report.read_text())
    assert link is not None
    assert link[1].endswith(f"/jobs/{first}")
    table = tmp_path / "verdicts.csv"
    assay("report", second, "--format", "csv", "--output", str(table))
    assert table.read_text().count("simulated/sim-judge-harsh") == 3
    told = results_of(stack, {"id": second})["manifest"]["deviations"]
    assert any(f"those of job {first}" in each for each in told)


def test_a_clone_judges_the_same_texts_with_another_judge(stack: Service, judged_again: Json) -> None:
    answer = stack.post(
        f"/v1/jobs/{judged_again['id']}/clone", {"changes": {"judges": ["simulated/sim-judge-noisy"]}}
    )
    assert answer.status_code == 202
    job = stack.wait(answer.json()["id"], "completed")
    assert job["spec"]["responses"] == judged_again["spec"]["responses"]
    assert [judge["judge"] for judge in results_of(stack, job)["judges"]] == ["simulated/sim-judge-noisy"]


def test_the_console_leads_to_the_form_and_back_to_the_source(
    stack: Service, finished: Json, judged_again: Json
) -> None:
    def look(path: str) -> str:
        answer = stack.http.get(path)
        assert answer.status_code == 200, answer.text
        return html.unescape(answer.text)

    assert f'href="/new?judge={finished["id"]}"' in look(f"/jobs/{finished['id']}")
    assert json.dumps({"job": finished["id"]}, indent=2).replace("\n", "\n  ") in look(
        f"/new?judge={finished['id']}"
    )
    form = look(f"/new?judge={finished['id']}")
    assert "<h1>Judge again</h1>" in form
    assert f'name="judge_model_0" type="text" list="models" value="{finished["spec"]["judges"][0]}"' in form
    assert "Custom personas" not in form
    page = look(f"/jobs/{judged_again['id']}")
    assert f'href="/jobs/{finished["id"]}"' in page
    assert f"texts of {finished['id']}, judged again" in page
    called = f"{judged_again['id'][-6:]} · {judged_again['created_at'][:10]}</option>"
    assert re.search(rf'value="{judged_again["id"]}:shy"[^>]*>shy · [^<]* · {called}', look("/compare"))
    assert stack.http.get("/new", params={"judge": "odd"}).status_code == 404


def test_judges_of_the_form_replace_those_of_its_json(stack: Service, finished: Json) -> None:
    form = {"source": finished["id"], "json": json.dumps({"responses": {"job": finished["id"]}})}
    judged = form | {"judge_model_0": "simulated/sim-judge-noisy", "name": "again", "action": "plan"}
    answer = stack.http.post("/new", data=judged)
    assert answer.status_code == 200, answer.text
    shown = html.unescape(answer.text)
    assert '"judges": [\n    "simulated/sim-judge-noisy"\n  ]' in shown
    assert '"name": "again"' in shown
    sent = judged | {"judge_model_0": "simulated/nobody"}
    wrong = httpx2.post(f"{str(stack.http.base_url).rstrip('/')}/new", data=sent)
    assert wrong.status_code == 422
    assert 'href="#judge_model_0"' in wrong.text


def test_a_plan_knows_the_calls_exactly(stack: Service, judged_again: Json) -> None:
    plan = stack.post("/v1/jobs/plan", judged_again["spec"]).json()
    assert (plan["responses"], plan["estimated"]) == (RESPONSES, False)
    assert plan["calls"] == plan["most_repair_calls"] == judging_calls(judged_again)


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"filter": {"models": ["bold"]}}, "/responses/filter/models/0"),
        ({"filter": {"personas": ["E-low", "solo"]}}, "/responses/filter/personas/1"),
        ({"filter": {"tasks": ["essays"]}}, "/responses/filter/tasks/0"),
        ({"filter": {"items": ["Z-9"]}}, "/responses/filter/items/0"),
        ({"filter": {"runs": [0, 17]}}, "/responses/filter/runs/1"),
        ({"filter": {"instructions": [9, 0]}}, "/responses/filter/instructions/0"),
        ({"filter": {"status": ["filtered"]}}, "/responses/filter"),
        ({"judges": [{"imported": "old", "provenance": {"source": "x"}}]}, "/judges/0"),
        ({"filter": {"status": ["failed"]}}, "/responses/filter/status/0"),
        ({"filter": {"colour": ["red"]}}, "/responses/filter/colour"),
        ({"sample": {"responses": 0}}, "/responses/sample/responses"),
        ({"personas": ["E-high"]}, "/personas"),
        ({"tasks": ["essay"]}, "/tasks"),
        ({"tasks": ["expected_action"]}, "/reasoner"),
        ({"models": ["simulated/sim-faithful"]}, "/models"),
        ({"instructions": [1]}, "/instructions"),
        ({"control": True}, "/control"),
        ({"versions": {"segmenter": "none"}}, "/versions/segmenter"),
    ],
)
def test_what_is_wrong_is_named(stack: Service, finished: Json, fields: Json, wrong: str) -> None:
    source = {name: fields[name] for name in ("filter", "sample") if name in fields}
    others = {name: value for name, value in fields.items() if name not in source}
    answer = stack.post("/v1/jobs", {"responses": {"job": finished["id"]} | source} | others)
    assert (answer.status_code, pointers(answer)[:1]) == (422, [wrong]), answer.text


class TestOtherJobs:
    @pytest.mark.parametrize("job", ["job_01kxyz0abcdefghjkmnpqrstvw", "nothing"])
    def test_that_are_not_there_are_refused(self, api: Service, job: str) -> None:
        answer = api.post("/v1/jobs", {"responses": {"job": job}})
        assert (answer.status_code, pointers(answer)) == (422, ["/responses/job"])

    def test_that_have_not_ended_are_refused(self, api: Service) -> None:
        job = api.submit(job_body())
        answer = api.post("/v1/jobs", {"responses": {"job": job["id"]}})
        assert (answer.status_code, pointers(answer)) == (422, ["/responses/job"])
        assert "queued" in answer.json()["errors"][0]["message"]

    def test_without_texts_are_refused(self, api: Service) -> None:
        job = api.submit(job_body())
        api.post(f"/v1/jobs/{job['id']}/cancel")
        answer = api.post("/v1/jobs", {"responses": {"job": job["id"]}})
        assert (answer.status_code, pointers(answer)) == (422, ["/responses/job"])

    def test_personas_and_tasks_are_required_otherwise(self, api: Service) -> None:
        answer = api.post("/v1/jobs", job_body(personas=None, tasks=None))
        assert pointers(answer) == ["/personas", "/tasks"]
