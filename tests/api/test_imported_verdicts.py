"""Verdicts that were given elsewhere: what is made of them, and what is refused."""

import csv
import functools
import io
import json
import random
from collections.abc import Callable, Iterator
from itertools import chain, combinations
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import pytest

from tests.api.service import Json, Service, pointers

OLD = "gpt-4o-2024-05-13"
GPT_4O: Json = {
    "imported": OLD,
    "provenance": {"source": "Table 17 of the atomic paper", "date": "2024-06", "note": "as printed"},
}


def imported_job(*responses: Json, judges: list[Any] | None = None, **fields: Any) -> Json:
    names = dict.fromkeys(response["persona"] for response in responses)
    personas = [{"id": name, "description": "x", "traits": {"N": LEVELS[name]}} for name in names]
    return {
        "personas": personas,
        "tasks": list(dict.fromkeys(response["task"] for response in responses)),
        "judges": [GPT_4O] if judges is None else judges,
        "responses": list(responses),
        **fields,
    }


LEVELS = {"stable": "high", "neither": "neutral"}


def scored(
    scores: Any, persona: str = "stable", task: str = "essay", judge: str = OLD, **fields: Any
) -> Json:
    given = {"scores": scores} if isinstance(scores, list) else {"score": scores}
    return {"persona": persona, "task": task, "verdicts": [{"judge": judge, **given}], **fields}


def finished(stack: Service, body: Json) -> Json:
    return stack.wait(stack.submit(body)["id"], "completed", "failed", "cancelled")


def results_of(stack: Service, job: Json) -> Json:
    found: Json = stack.get(f"/v1/jobs/{job['id']}/results").json()
    return found


SCORES = {
    ("stable", "essay", 0): [3, 4, 2, 1, 9, 4, 5, 4, 5, 4, 4, 9],
    ("neither", "social_media_post", 0): [5, 5, 5, 5, 3, 5, 4, 5, 5, 9],
    ("neither", "social_media_post", 1): [2, 2, 2, 4, 5, 2, 3, 3, 9, 4, 3, 4, 2, 4],
    ("neither", "questionnaire", 0): [1, 1, 1, 1, 1, 1, 5],
    ("neither", "questionnaire", 1): [5, 5, 5],
}
PRINTED = (
    (3.6, 0, 0.7, 0.4),
    (4.67, 0, 0.11, 0.67),
    (3.08, 1, 0.23, 0.5),
    (1.57, 0, 0.0, 0.3),  # ACC_atom is printed as .06, which no seven scores can give
    (5, 0, 0, 1),
)


@pytest.fixture(scope="module")
def job(stack: Service) -> Json:
    responses = [
        scored(scores, persona, task, run=run, **({"item": "N-1"} if task == "questionnaire" else {}))
        for (persona, task, run), scores in SCORES.items()
    ]
    return finished(stack, imported_job(*responses))


class TestTable17:
    """The atomic paper's worked examples: its scores give its figures."""

    def test_it_ends_without_a_call(self, stack: Service, job: Json) -> None:
        assert (job["status"], job["error"]) == ("completed", None)
        reason = "cells_without_figure: 3 of 6 cells have no scored sentence"
        assert results_of(stack, job)["completeness_reasons"] == [reason]
        assert job["usage"]["calls"] == 0
        assert job["progress"]["judging"]["succeeded"] == sum(map(len, SCORES.values()))
        assert job["started_at"] <= job["finished_at"]

    def test_its_figures_are_the_paper_s(self, stack: Service, job: Json) -> None:
        found = {
            (each["persona"], each["task"], each["run"]): each["figures"][0]
            for each in stack.walk(f"/v1/jobs/{job['id']}/responses")
        }
        for place, printed in zip(SCORES, PRINTED, strict=True):
            figures = [found[place][name] for name in ("mean", "acc", "acc_atom", "ic_atom")]
            assert figures == pytest.approx(printed, abs=0.0051), place
        cells = {(cell["persona"], cell["task"]): cell["metrics"] for cell in results_of(stack, job)["cells"]}
        post, interview = cells["neither", "social_media_post"], cells["neither", "questionnaire"]
        rc = [cell[name]["value"] for cell in (post, interview) for name in ("rc", "rc_atom")]
        assert rc == pytest.approx([0.60, 0.21, 0.14, -0.71], abs=0.0051)

    def test_the_judge_is_told_to_be_imported(self, stack: Service, job: Json) -> None:
        results = results_of(stack, job)
        (judge,) = results["judges"]
        assert judge["imported"] == GPT_4O["provenance"]
        assert results["manifest"]["judges"][0]["imported"] == GPT_4O["provenance"]
        deviations = results["manifest"]["deviations"]
        assert any("imported" in each and OLD in each for each in deviations)
        assert not any("read strictly" in each for each in deviations), "no judge was asked"

    def test_texts_are_not_given(self, stack: Service, job: Json) -> None:
        for each in stack.walk(f"/v1/jobs/{job['id']}/responses"):
            assert each["text"] is None
            assert [unit["span"] for unit in each["units"]] == [[0, 0]] * len(each["units"])

    def test_it_is_marked_wherever_it_shows(self, stack: Service, job: Json) -> None:
        path = f"/v1/jobs/{job['id']}"
        for page in (f"{path}/report?format=html", f"/jobs/{job['id']}"):
            assert "Table 17 of the atomic paper" in stack.get(page).text, page
        report = stack.get(f"{path}/report?format=html").text
        assert f"{OLD} (imported): 4" in report
        assert "sentence 3, not given" in report
        rows = list(csv.DictReader(io.StringIO(stack.get(f"{path}/report?format=csv").text)))
        assert {row["imported_judges"] for row in rows} == {OLD}
        first = next(stack.walk(f"{path}/responses"))
        assert first["imported_judges"] == [OLD]
        calls = stack.get(f"{path}/responses/{first['id']}/judge-calls", params={"unit": 0}).json()["data"]
        assert [(call["prompt"], call["notes"]) for call in calls] == [
            (None, ["the verdict was imported: Table 17 of the atomic paper"])
        ]

    def test_nobody_is_asked_to_read_texts_that_are_not_there(self, stack: Service, job: Json) -> None:
        again = {"responses": {"job": job["id"]}, "judges": ["simulated/sim-judge"]}
        assert pointers(stack.post("/v1/jobs", again)) == ["/responses/job"]
        drawn = stack.post(
            "/v1/labelling-rounds", {"job": job["id"], "kind": "sentences", "dimension": "N", "size": 5}
        )
        assert drawn.status_code == 422

    def test_another_installation_takes_it(self, stack: Service, api: Service, job: Json) -> None:
        bundle = stack.get(f"/v1/jobs/{job['id']}/exports/bundle").content
        answer = api.post("/v1/bundles", content=bundle, headers={"content-type": "application/zip"})
        assert answer.status_code == 201, answer.text
        assert results_of(api, answer.json()["job"])["judges"] == results_of(stack, job)["judges"]

    def test_nobody_learns_from_texts_that_are_not_there(self, stack: Service, job: Json) -> None:
        for form in ("preferences", "rewards"):
            for unit in ("response", "sentence"):
                path = f"/v1/jobs/{job['id']}/exports/{form}"
                answer = stack.get(path, params={"unit": unit} if form == "preferences" else {})
                assert (answer.status_code, answer.text) == (200, "")

    def test_it_can_be_held_to_a_gate(self, stack: Service, job: Json) -> None:
        found = stack.get(f"/v1/jobs/{job['id']}/gate", params={"threshold": "acc_atom<=0.9"}).json()
        assert found["checks"], found


class TestOtherForms:
    def test_own_sentences_are_found_in_the_text(self, stack: Service) -> None:
        text = "I\u2019m calm \u2014 always.  Mostly; at\nleast today! Bye"
        units = ["I'm calm -- always.", "Mostly;", "at least today!"]
        body = imported_job(scored([5, None, "not_applicable"], text=text, units=units))
        job = finished(stack, body)
        (response,) = stack.walk(f"/v1/jobs/{job['id']}/responses")
        assert response["text"] == text
        assert [" ".join(unit["text"].split()) for unit in response["units"]] == units
        said = [
            (each["status"], each["score"], each["error"])
            for unit in response["units"]
            for each in unit["verdicts"]
        ]
        missing = "not_given: the imported judge has no verdict on it"
        assert said == [("scored", 5, None), ("failed", None, missing), ("not_applicable", None, None)]
        assert (job["status"], job["completeness"]) == ("completed", "partial")
        assert results_of(stack, job)["manifest"]["given_units"] == "sentences"
        again = finished(stack, {"responses": {"job": job["id"]}, "judges": ["simulated/sim-judge"]})
        assert results_of(stack, again)["manifest"]["given_units"] == "sentences"
        (copied,) = stack.walk(f"/v1/jobs/{again['id']}/responses")
        assert [unit["span"] for unit in copied["units"]] == [unit["span"] for unit in response["units"]]
        assert copied["imported_judges"] == []

    def test_sentences_may_come_without_the_text(self, stack: Service) -> None:
        job = finished(stack, imported_job(scored([5, 4], units=["Calm.", " Very calm. "])))
        (response,) = stack.walk(f"/v1/jobs/{job['id']}/responses")
        assert response["text"] == "Calm. Very calm."
        assert [unit["text"] for unit in response["units"]] == ["Calm.", "Very calm."]

    def test_a_score_of_the_whole_response_is_one_unit(self, stack: Service) -> None:
        job = finished(stack, imported_job(scored(4, text=" Calm. Very. "), scored(2), scored(None)))
        (cell,) = results_of(stack, job)["cells"]
        values = {name: metric["value"] for name, metric in cell["metrics"].items()}
        assert (values["acc"], values["acc_atom"], values["mean"]) == (0.5, 0.5, 3)
        assert values["ic_atom"] is None
        assert (values["rc"], values["rc_atom"]) == (0.5, 0)
        first = next(stack.walk(f"/v1/jobs/{job['id']}/responses"))
        assert [unit["text"] for unit in first["units"]] == ["Calm. Very."]
        assert results_of(stack, job)["manifest"]["given_units"] == "responses"

    def test_a_retry_asks_nobody_for_what_is_missing(self, stack: Service) -> None:
        job = finished(stack, imported_job(scored([5, None, "unparsed"]), scored([4])))
        refused = stack.post(f"/v1/jobs/{job['id']}/retry")
        assert (refused.status_code, refused.json()["type"]) == (409, "urn:assay:problem:wrong_state")
        assert "nothing in this job can be retried" in refused.json()["detail"]
        assert "verdicts that imported judges did not give can't be asked for" in refused.json()["detail"]
        assert (stack.job(job["id"])["status"], job["completeness"]) == ("completed", "partial")
        assert "Retry failed parts" not in stack.get(f"/jobs/{job['id']}").text
        complete = finished(stack, imported_job(scored([5])))
        assert stack.post(f"/v1/jobs/{complete['id']}/retry").json()["status"] == "completed"

    def test_a_refusal_is_one_unless_the_judge_scored_it(self, stack: Service) -> None:
        refusal = "I'm sorry, but I can't help with that."
        body = imported_job(
            scored([4], text=refusal),
            scored([None], text=refusal),
            scored(["refused"], text="Calm."),
            scored(["refused"]),
            scored([5], text="Calm."),
        )
        job = finished(stack, body)
        found = list(stack.walk(f"/v1/jobs/{job['id']}/responses"))
        assert [each["status"] for each in found] == ["answered", "refused", "refused", "refused", "answered"]
        assert results_of(stack, job)["cells"][0]["units"]["refused"] == 3

    def test_beside_a_judge_that_is_called(self, stack: Service) -> None:
        texts = [f"I love number {n}. It is calm. Nothing worries me." for n in range(6)]
        body = imported_job(
            *(scored([5, 4, None], text=text) for text in texts), judges=[GPT_4O, "simulated/sim-judge"]
        )
        job = finished(stack, body)
        assert (job["status"], job["completeness"]) == ("completed", "partial")
        assert job["usage"]["calls"] == 18
        assert job["imported_judges"] == [OLD]
        results = results_of(stack, job)
        assert [judge.get("imported") is None for judge in results["judges"]] == [False, True]
        (everything, *_) = results["verdict_agreement"]
        assert everything["pairs"][0]["judges"] == [OLD, "simulated/sim-judge"]
        pair = everything["pairs"][0]
        assert pair["exact_agreement"]["n"] > 0
        assert pair["exact_agreement"]["n"] + pair["left_out"] >= 12
        plan = stack.post("/v1/jobs/plan", body).json()
        assert (plan["calls"], [stage["model"] for stage in plan["stages"]]) == (18, ["simulated/sim-judge"])


def answered(question: str, grade: int | None, **fields: Any) -> Json:
    return {
        "persona": "cow",
        "task": "expected_action",
        "question": question,
        "text": "I ride on. Rain is rain.",
        "grades": {OLD: grade},
        **fields,
    }


def graded_job(*responses: Json, **fields: Any) -> Json:
    return {
        "personas": [{"id": "cow", "description": "a cowboy"}],
        "tasks": ["expected_action", {"task": "persona_consistency", "atomic": True}],
        "judges": [GPT_4O],
        "responses": [
            *responses,
            answered(
                "Who are you?",
                5,
                task="persona_consistency",
                verdicts=[{"judge": OLD, "scores": [5, "not_applicable"]}],
            ),
        ],
        **fields,
    }


class TestGrades:
    def test_they_make_persona_scores_without_a_call(self, stack: Service) -> None:
        job = finished(stack, graded_job(answered("A storm comes up?", 4), answered("A fire?", 1)))
        assert (job["status"], job["completeness"], job["usage"]["calls"]) == ("completed", "full", 0)
        results = results_of(stack, job)
        (persona,) = results["persona_scores"]
        tasks = {task: score["value"] for task, score in persona["tasks"].items()}
        assert tasks == {"expected_action": 2.5, "persona_consistency": 5}
        assert persona["persona_score"]["value"] == 3.75
        (cell,) = results["cells"]
        assert cell["scores"]["5"] == 1
        assert [each["kind"] for each in results["preparation"] if each["asks"]] == []
        deviations = " ".join(results["manifest"]["deviations"])
        assert "by which rubrics and exemplars imported grades were given is not known" in deviations
        for untrue in ("graded in a call", "read strictly", "ours are used", "own prompt", " ran with "):
            assert untrue not in deviations
        found = {each["question"]: each for each in stack.walk(f"/v1/jobs/{job['id']}/responses")}
        (grade,) = found["A fire?"]["grades"]
        assert (grade["judge"], grade["status"], grade["score"]) == (OLD, "scored", 1)
        report = stack.get(f"/v1/jobs/{job['id']}/report?format=html").text
        assert f"{OLD} (imported)" in report
        again = {"responses": {"job": job["id"]}, "judges": ["simulated/sim-judge"]}
        assert pointers(stack.post("/v1/jobs", again)) == ["/reasoner"]

    def test_one_that_is_missing_is_no_number(self, stack: Service) -> None:
        job = finished(stack, graded_job(answered("A storm comes up?", 4), answered("A fire?", None)))
        assert (job["status"], job["completeness"]) == ("completed", "partial")
        (persona,) = results_of(stack, job)["persona_scores"]
        assert persona["tasks"]["expected_action"]["value"] == 4
        assert stack.post(f"/v1/jobs/{job['id']}/retry").status_code == 409

    def test_beside_a_judge_that_is_called(self, stack: Service) -> None:
        body = graded_job(
            *(answered(f"Question {n}?", 4) for n in range(5)),
            judges=[GPT_4O, "simulated/sim-judge"],
            reasoner="simulated/sim-reasoner",
        )
        job = finished(stack, body)
        assert (job["status"], job["completeness"]) == ("completed", "full")
        agreement = results_of(stack, job)["judge_agreement"]
        assert {tuple(each["judges"]) for each in agreement} == {(OLD, "simulated/sim-judge")}
        graded = [
            each
            for each in stack.walk(f"/v1/jobs/{job['id']}/responses")
            if each["task"] == "expected_action"
        ]
        assert [[grade["judge"] for grade in each["grades"]] for each in graded] == [
            [OLD, "simulated/sim-judge"]
        ] * 5
        calls = stack.get(f"/v1/jobs/{job['id']}/responses/{graded[0]['id']}/judge-calls").json()["data"]
        assert [call["prompt"] is None for call in calls] == [True, False]

    @pytest.mark.parametrize(
        ("response", "pointer"),
        [
            (answered("Why?", 6), f"/responses/0/grades/{OLD}"),
            (answered("Why?", 4) | {"grades": {"someone": 4}}, "/responses/0/grades/someone"),
            (answered("Why?", 4) | {"text": None}, "/responses/0/text"),
            (
                answered("Why?", 4, verdicts=[{"judge": OLD, "scores": [5, 5]}]),
                "/responses/0/verdicts/0/dimension",
            ),
        ],
    )
    def test_bad_ones_are_refused_by_field(
        self, api: Service, nothing_created: None, response: Json, pointer: str
    ) -> None:
        answer = api.post("/v1/jobs", graded_job(response))
        assert answer.status_code == 422
        assert pointers(answer)[0] == pointer, answer.text

    def test_atomic_tasks_have_none(self, api: Service, nothing_created: None) -> None:
        body = imported_job(scored([5], grades={OLD: 4}))
        assert pointers(api.post("/v1/jobs", body)) == ["/responses/0/grades"]


def test_verdicts_of_a_job_come_back_as_the_same_figures(stack: Service) -> None:
    """Its own verdicts, exported and imported into another job, give its metrics, totals and agreement."""
    original = finished(
        stack,
        {
            "personas": ["E-low", "N-high"],
            "tasks": ["essay", "questionnaire"],
            "models": ["simulated/sim-drifting", "simulated/sim-refusing"],
            "judges": ["simulated/sim-judge", "simulated/sim-judge-noisy"],
            "instructions": [0, 1],
            "iterations": 2,
        },
    )
    judges = {"simulated/sim-judge": "one", "simulated/sim-judge-noisy": "two"}
    responses = [
        {
            **{name: each[name] for name in ("persona", "task", "run", "instruction", "model", "text")},
            "item": each["item"]["id"],
            "units": [unit["text"] for unit in each["units"]],
            "verdicts": list(exported(each, judges)),
        }
        for each in stack.walk(f"/v1/jobs/{original['id']}/responses")
    ]
    imported = [{"imported": name, "provenance": {"source": original["id"]}} for name in judges.values()]
    again = finished(
        stack,
        {
            **{name: original["spec"][name] for name in ("personas", "tasks")},
            "judges": imported,
            "responses": responses,
        },
    )
    assert (again["status"], again["completeness"]) == ("completed", original["completeness"])
    assert again["usage"]["calls"] == 0
    ours, theirs = (results_of(stack, job) for job in (original, again))
    for name in ("cells", "totals", "verdict_agreement", "correlations", "length_effects"):
        assert comparable(theirs[name]) == comparable(renamed(ours[name], judges)), name
    assert stack.get(f"/v1/jobs/{again['id']}/report?format=html").status_code == 200


def exported(response: Json, judges: dict[str, str]) -> Iterator[Json]:
    said: dict[tuple[str, str], list[Any]] = {}
    for unit in response["units"]:
        for each in unit["verdicts"]:
            score = each["status"] if each["score"] is None else each["score"]
            said.setdefault((each["judge"], each["dimension"]), []).append(score)
    for (judge, dimension), scores in said.items():
        yield {"judge": judges[judge], "dimension": dimension, "scores": scores}


def renamed(found: Any, judges: dict[str, str]) -> Any:
    return json.loads(
        functools.reduce(
            lambda text, each: text.replace(*each),
            [(f'"{old}"', f'"{new}"') for old, new in sorted(judges.items(), reverse=True)],
            json.dumps(found),
        )
    )


def comparable(found: Any) -> Any:
    """Without what imported verdicts can't know: who was simulated, and how many runs were planned."""
    if isinstance(found, dict):
        return {
            key: comparable(value)
            for key, value in found.items()
            if key not in {"simulated", "wording_effects"}
        }
    return [comparable(each) for each in found] if isinstance(found, list) else found


ONE = {"judge": OLD, "scores": [5]}
TEXT = "Calm. Very calm."


@pytest.mark.parametrize(
    ("response", "pointer"),
    [
        ({"text": TEXT, "verdicts": [{"judge": OLD, "scores": [5]}]}, "verdicts/0/scores"),
        ({"text": TEXT, "verdicts": [{"judge": OLD, "scores": [5, 6]}]}, "verdicts/0/scores/1"),
        ({"text": TEXT, "verdicts": [{"judge": OLD, "scores": [5, 4.0]}]}, "verdicts/0/scores/1"),
        ({"text": TEXT, "verdicts": [{"judge": OLD, "scores": [5, True]}]}, "verdicts/0/scores/1"),
        ({"text": TEXT, "verdicts": [{"judge": OLD, "scores": [5, "failed"]}]}, "verdicts/0/scores/1"),
        ({"text": TEXT, "verdicts": [{"judge": OLD, "scores": [5, [4]]}]}, "verdicts/0/scores/1"),
        ({"text": TEXT, "verdicts": [{"judge": OLD, "score": 99}]}, "verdicts/0/score"),
        ({"text": TEXT, "verdicts": [{"judge": OLD, "score": 5, "scores": [5, 5]}]}, "verdicts/0"),
        ({"text": TEXT, "verdicts": [{"judge": OLD}]}, "verdicts/0"),
        ({"text": TEXT, "verdicts": [{"judge": "gpt-4o", "scores": [5, 5]}]}, "verdicts/0/judge"),
        (
            {"text": TEXT, "verdicts": [{"judge": OLD, "dimension": "E", "scores": [5, 5]}]},
            "verdicts/0/dimension",
        ),
        ({"verdicts": [ONE, ONE]}, "verdicts/1/judge"),
        ({"text": TEXT, "units": ["Very calm.", "Calm."], "verdicts": []}, "units/1"),
        ({"text": TEXT, "units": ["Calm.", " "], "verdicts": []}, "units/1"),
        ({"units": ["a", "b"], "verdicts": [ONE]}, "verdicts/0/scores"),
        ({"units": ["a"], "verdicts": [{"judge": OLD, "score": 5}]}, "units"),
        ({"verdicts": [ONE], "text": None, "unknown": 1}, "unknown"),
        ({}, "text"),
        ({"verdicts": [{"judge": OLD, "scores": [5] * 32_768}]}, "verdicts/0/scores"),
    ],
)
def test_bad_verdicts_are_refused_by_field(
    api: Service, nothing_created: None, response: Json, pointer: str
) -> None:
    answer = api.post("/v1/jobs", imported_job({"persona": "stable", "task": "essay", **response}))
    assert answer.status_code == 422
    assert pointers(answer)[0] == f"/responses/0/{pointer}", answer.text


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"judges": [GPT_4O, GPT_4O]}, "/judges/1"),
        ({"judges": [GPT_4O, "acme/acme-judge"]}, "/responses/0/text"),
        ({"judges": [{"imported": OLD}]}, "/judges/0/provenance"),
        ({"judges": [{"imported": OLD, "provenance": {}}]}, "/judges/0/provenance/source"),
        (
            {"judges": [{"imported": OLD, "provenance": {"source": "x", "date": "June"}}]},
            "/judges/0/provenance/date",
        ),
        (
            {"judges": [{"imported": OLD, "model": "acme/acme-1", "provenance": {"source": "x"}}]},
            "/judges/0/model",
        ),
        ({"judging": {"order_check": {"share": 0.5}}}, "/judging"),
        ({"protocol": "hardened"}, "/protocol"),
        ({"execution": "batch"}, "/execution"),
        ({"responses": None, "models": ["acme/acme-1"]}, "/judges/0"),
        ({"responses": [scored([5]), scored(5)]}, "/responses/1/verdicts/0/score"),
        (
            {
                "responses": [scored([5], judge="acme/acme-judge", text="x")],
                "judges": [GPT_4O, "acme/acme-judge"],
            },
            "/responses/0/verdicts/0/judge",
        ),
    ],
)
def test_bad_jobs_are_refused_by_field(
    api: Service, nothing_created: None, fields: Json, pointer: str
) -> None:
    answer = api.post("/v1/jobs", imported_job(scored([5])) | fields)
    assert answer.status_code == 422
    assert pointer in pointers(answer), answer.text


@pytest.mark.parametrize("task", ["essay", "questionnaire"])
def test_released_score_files_give_the_released_fidelity_scores(stack: Service, task: str) -> None:
    """Brought in as they are, each run and each item of them."""
    folder = Path(__file__).parents[1] / "golden" / "atomic_scores"
    cell = cell_of_scores(stack, (folder / f"{task}.txt").read_bytes(), task=task)
    released = json.loads((folder / f"{task}.json").read_bytes())
    assert {name: cell["metrics"][name]["value"] for name in released} == pytest.approx(released, abs=1e-12)
    assert (cell["task"], cell["dimension"], cell["level"], cell["runs"]) == (task, "O", "high", 6)


def test_score_files_with_refusals_and_unread_replies_give_the_figures_of_the_paper_s_code(
    stack: Service,
) -> None:
    """The codes 9, 99 and 999, which the released files lack: figures as by `calculate.py`, written out here."""
    made = random.Random(3)
    scores = [
        [[made.choice([1, 2, 3, 4, 5, 5, 9, 999]) for _ in range(made.randrange(1, 7))] for _ in range(10)]
        for _ in range(6)
    ]
    scores[2][4] = [99]
    cell = cell_of_scores(stack, str(scores).encode())
    found = {name: cell["metrics"][name]["value"] for name in ("mean", "acc_atom", "ic_atom", "rc_atom")}
    assert found == pytest.approx(figures_of_the_released_code(scores), abs=1e-12)
    assert cell["units"]["refused"] == 1


def cell_of_scores(stack: Service, file: bytes, **query: str) -> Json:
    """The only cell of a job on a file of scores."""
    answer = stack.http.post(
        "/v1/imports",
        params={"name": "atomic_scores.txt", "trait": "O=high", "model": "gpt-3.5-turbo-0125"} | query,
        content=file,
        headers={"content-type": "application/octet-stream"},
    )
    preview = answer.json()
    runs = json.loads(file)
    assert (preview["kind"], preview["found"]) == ("atomic_scores", sum(map(len, runs)))
    assert preview["refused"] == 0
    (cell,) = results_of(stack, finished(stack, preview["job"]))["cells"]
    return dict(cell)


def figures_of_the_released_code(runs: list[list[list[int]]]) -> dict[str, float]:
    valid = [[[score for score in scores if score <= 5] for scores in run] for run in runs]
    rc = [1 - 2 * distance([*chain(*one)], [*chain(*other)]) / 4 for one, other in combinations(valid, 2)]
    return {
        "mean": over_runs(valid, 1, fmean),
        "acc_atom": over_runs(valid, 1, lambda scores: fmean(score >= 11 / 3 for score in scores)),
        "ic_atom": over_runs(valid, 2, lambda scores: 1 - pstdev(scores) / 2),
        "rc_atom": fmean(rc),
    }


def over_runs(runs: list[list[list[int]]], least: int, figure: Callable[[list[int]], float]) -> float:
    """The mean over runs of the mean over responses with so many scores."""
    return fmean(fmean(figure(scores) for scores in run if len(scores) >= least) for run in runs)


def distance(one: list[int], other: list[int]) -> float:
    """Wasserstein's: the area between the two distribution functions."""
    return sum(
        abs(fmean(score <= end for score in one) - fmean(score <= end for score in other))
        for end in range(1, 5)
    )
