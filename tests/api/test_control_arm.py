"""The control arm, through the API: what models are without a persona, and what their personas change."""

import csv
import json
import re
from collections import Counter
from io import BytesIO, StringIO
from statistics import fmean
from typing import Any

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from persona_assay.terminal.results_tables import results_view
from tests.api.service import Json, Service

FAITHFUL, INDIFFERENT = "simulated/sim-faithful", "simulated/sim-indifferent"
PERSONAS = ["E-high", "E-low", "A-high", "A-low", "N-high", "N-low"]
BODY: Json = {
    "personas": PERSONAS,
    "tasks": ["social_media_post"],
    "models": [FAITHFUL, INDIFFERENT],
    "judges": ["simulated/sim-judge"],
    "instructions": "all",
    "iterations": 2,
    "control": True,
}
RUNS = 12
IN_LEVEL = {"low": {1, 2}, "neutral": {3}, "high": {4, 5}}


@pytest.fixture(scope="module")
def job(stack: Service) -> Json:
    return stack.wait(stack.submit(BODY)["id"], "completed", "failed")


@pytest.fixture(scope="module")
def results(stack: Service, job: Json) -> Json:
    found: Json = stack.get(f"/v1/jobs/{job['id']}/results").json()
    return found


@pytest.fixture(scope="module")
def without_persona(stack: Service, job: Json) -> list[Json]:
    found: list[Json] = stack.get(f"/v1/jobs/{job['id']}/responses?arm=control&limit=500").json()["data"]
    return found


def gains_of(results: Json, model: str, *by: str) -> list[Json]:
    return [
        total
        for total in results["control"]["totals"]
        if total["by"] == ["model", *by] and total["model"] == model
    ]


def total_of(results: Json, model: str) -> Json:
    [found] = gains_of(results, model)
    return found


class TestAModelThatIgnoresItsPersona:
    """It looks consistent, and faithful wherever it happens to be on the persona's level."""

    def test_looks_consistent(self, results: Json) -> None:
        [total] = [t for t in results["totals"] if t["by"] == ["model"] and t["model"] == INDIFFERENT]
        assert total["metrics"]["rc_atom"]["value"] > 0.5
        assert total["metrics"]["ic_atom"]["value"] > 0.5

    @pytest.mark.parametrize("figure", ["acc_atom", "mean_toward_level"])
    def test_gains_nothing_by_it(self, results: Json, figure: str) -> None:
        gain = total_of(results, INDIFFERENT)[figure]["gain"]
        for interval in ("ci95", "ci95_runs", "ci95_wordings", "ci95_both"):
            low, high = gain[interval]
            assert low <= 0 <= high, interval  # the simulator writes the same for every such job

    @pytest.mark.parametrize("figure", ["acc_atom", "mean_toward_level"])
    def test_is_told_from_one_that_follows_it(self, results: Json, figure: str) -> None:
        gain = total_of(results, FAITHFUL)[figure]["gain"]
        assert gain["ci95_both"][0] > 0.1

    def test_seems_faithful_where_it_is_on_the_level_by_itself(self, results: Json) -> None:
        by_level = {total["level"]: total["acc_atom"] for total in gains_of(results, INDIFFERENT, "level")}
        assert by_level["high"]["with_persona"] > 0.75
        assert abs(by_level["high"]["gain"]["value"]) < 0.25
        assert by_level["low"]["without"] < 0.15


class TestFigures:
    def test_the_control_arm_is_asked_once_for_all_personas(
        self, job: Json, without_persona: list[Json]
    ) -> None:
        assert len(without_persona) == RUNS * 2
        assert job["progress"]["generation"]["total"] == RUNS * 2 * (len(PERSONAS) + 1)

    def test_its_share_on_a_level_is_that_of_the_texts_without_a_persona(
        self, results: Json, without_persona: list[Json]
    ) -> None:
        cells = {(cell["model"], cell["dimension"]): cell for cell in results["control"]["cells"]}
        assert set(cells) == {(model, each) for model in (FAITHFUL, INDIFFERENT) for each in "EAN"}
        for (model, dimension), cell in cells.items():
            texts = [
                scores(response, dimension) for response in without_persona if response["model"] == model
            ]
            for level, inside in IN_LEVEL.items():
                share = fmean(fmean(score in inside for score in text) for text in texts if text)
                assert cell["acc_atom"][level]["value"] == pytest.approx(share)
            assert cell["generation"]["answered"] == cell["runs"] == RUNS
            coverage = cell["coverage"]  # a text without a scored sentence on the dimension does not count
            assert 0.5 < coverage["share"] <= 1
            assert coverage["planned"] == cell["units"]["total"]

    def test_a_gain_is_the_difference_at_the_persona(self, results: Json) -> None:
        control = {(cell["model"], cell["dimension"]): cell for cell in results["control"]["cells"]}
        measured = {(cell["model"], cell["persona"]): cell for cell in results["cells"]}
        gains = results["control"]["gains"]
        assert len(gains) == len(measured) == 2 * len(PERSONAS)
        for gain in gains:
            without = control[gain["model"], gain["dimension"]]
            found = measured[gain["model"], gain["persona"]]["metrics"]
            share, mean = gain["acc_atom"], gain["mean_toward_level"]
            assert share["with_persona"] == found["acc_atom"]["value"]
            assert share["without"] == without["acc_atom"][gain["level"]]["value"]
            assert share["gain"]["value"] == pytest.approx(share["with_persona"] - share["without"])
            sign = 1 if gain["level"] == "high" else -1
            apart = found["mean"]["value"] - without["mean"]["value"]
            assert mean["gain"]["value"] == pytest.approx(sign * apart)

    def test_a_total_is_the_mean_of_its_cells(self, results: Json) -> None:
        own = [gain for gain in results["control"]["gains"] if gain["model"] == FAITHFUL]
        total = total_of(results, FAITHFUL)
        assert total["cells"] == len(own)
        for part in ("with_persona", "without"):
            expected = fmean(gain["acc_atom"][part] for gain in own)
            assert total["acc_atom"][part] == pytest.approx(expected)
        assert {tuple(t["by"]) for t in results["control"]["totals"]} >= {
            ("model", "persona", "dimension", "level")
        }

    def test_it_is_in_no_other_figure(self, stack: Service, job: Json, results: Json) -> None:
        assert {cell["persona"] for cell in results["cells"]} == set(PERSONAS)
        [total] = [t for t in results["totals"] if t["by"] == ["model"] and t["model"] == FAITHFUL]
        assert total["cells"] == len(PERSONAS)
        assert total["generation"]["planned"] == RUNS * len(PERSONAS)
        judged = sum(each["units"]["total"] for each in results["judges"])
        assert judged == sum(cell["units"]["total"] for cell in results["cells"])
        assert results["suspicion"]["verdicts"]["of"] == judged
        assert (results["completeness"], job["completeness"]) == ("full", "full")


def scores(response: Json, dimension: str) -> list[int]:
    return [
        verdict["score"]
        for unit in response["units"]
        for verdict in unit["verdicts"]
        if verdict["dimension"] == dimension and verdict["status"] == "scored"
    ]


class TestResponses:
    def test_without_a_persona_nothing_is_in_or_out_of_character(self, without_persona: list[Json]) -> None:
        for response in without_persona:
            assert (response["persona"], response["levels"], response["instruction"]) == ("", {}, None)
            assert (response["persona_description"], response["persona_traits"]) == ("", [])
            verdicts = [verdict for unit in response["units"] for verdict in unit["verdicts"]]
            assert {verdict["in_character"] for verdict in verdicts} == {None}
            assert {verdict["dimension"] for verdict in verdicts} == {"E", "A", "N"}

    def test_the_other_arm_is_listed_and_exported_alone(self, stack: Service, job: Json) -> None:
        listed = stack.get(f"/v1/jobs/{job['id']}/responses?limit=500").json()["data"]
        assert len(listed) == RUNS * 2 * len(PERSONAS)
        assert {response["persona"] for response in listed} == set(PERSONAS)
        lines = stack.get(f"/v1/jobs/{job['id']}/report?format=jsonl").text.splitlines()
        assert not any('"persona":""' in line.replace(": ", ":") for line in lines)

    def test_its_verdicts_are_an_export_of_their_own(
        self, stack: Service, job: Json, without_persona: list[Json]
    ) -> None:
        report = f"/v1/jobs/{job['id']}/report?level=control_verdicts&format="
        rows = [json.loads(line) for line in stack.get(report + "jsonl").text.splitlines()]
        listed = [
            (response["id"], unit["index"], verdict["dimension"], verdict["score"])
            for response in without_persona
            for unit in response["units"]
            for verdict in unit["verdicts"]
        ]
        said = [
            tuple(row[name] for name in ("response_id", "unit", "dimension", "score"))
            for row in rows
            if row["status"] is not None
        ]
        assert Counter(said) == Counter(listed)
        assert {(row["persona"], row["level"], row["in_character"], row["judged"]) for row in rows} == {
            ("", None, None, "sentence")
        }
        assert pq.read_table(BytesIO(stack.get(report + "parquet").content)).num_rows == len(rows)
        assert len(list(csv.DictReader(StringIO(stack.get(report + "csv").text)))) == len(rows)

    @pytest.mark.parametrize("mark", ["out_of_character", "judges_disagree", "suspicious"])
    def test_what_judges_mark_can_be_asked_for_there_too(self, stack: Service, job: Json, mark: str) -> None:
        found = stack.get(f"/v1/jobs/{job['id']}/responses?arm=control&{mark}=true").json()
        assert found["data"] == []

    def test_people_do_not_label_them(self, stack: Service, without_persona: list[Json]) -> None:
        label = {
            "annotator": "ann",
            "response": without_persona[0]["id"],
            "unit": 0,
            "dimension": "E",
            "score": 3,
        }
        answer = stack.http.post("/v1/annotations", json={"annotations": [label]})
        assert answer.status_code == 422
        [error] = answer.json()["errors"]
        assert error["pointer"] == "/annotations/0/response"
        assert "control arm" in error["message"]


class TestPlan:
    def test_its_price_is_shown_and_counted(self, stack: Service) -> None:
        plan = planned(stack)
        bare = planned(stack, control=False)
        assert bare["control"] is None
        assert plan["control"]["responses"] == plan["responses"] - bare["responses"] == RUNS * 2
        assert plan["control"]["calls"] == plan["calls"] - bare["calls"] > RUNS * 2
        assert plan["cells"] == bare["cells"]

    def test_a_job_without_one_says_nothing_of_it(self, stack: Service) -> None:
        body = BODY | {"control": False, "personas": ["E-low"], "instructions": [0], "iterations": 1}
        job = stack.wait(stack.submit(body)["id"], "completed", "failed")
        assert '"control"' not in stack.get(f"/v1/jobs/{job['id']}/results").text
        assert stack.get(f"/v1/jobs/{job['id']}/responses?arm=control").json()["data"] == []


class TestReport:
    def test_tells_what_the_persona_changes(self, stack: Service, job: Json, results: Json) -> None:
        page = stack.get(f"/v1/jobs/{job['id']}/report?format=html").text
        section = page.partition("With and without the persona</h2>")[2].partition("</section>")[0]
        words = " ".join(re.sub("<[^>]+>", " ", section).split())
        faithful = total_of(results, FAITHFUL)["acc_atom"]
        told = f"from {faithful['without']:.2f} to {faithful['with_persona']:.2f}"
        assert f"{FAITHFUL} : the persona raises the share of sentences in character {told}" in words
        assert f"{INDIFFERENT} : no effect of the persona is shown: " in words
        assert f"{faithful['gain']['value']:.2f}" in words
        assert section.count("<figure") == 1

    def test_has_a_figure(self, stack: Service, job: Json) -> None:
        figure = stack.get(f"/v1/jobs/{job['id']}/figures/control.svg")
        assert "without the persona" in figure.text

    def test_the_console_shows_it_too(self, stack: Service, job: Json) -> None:
        page = stack.get(f"/jobs/{job['id']}").text
        assert "With and without the persona" in page

    def test_so_does_the_terminal(self, results: Json) -> None:
        console = Console(width=100, record=True, file=StringIO())
        console.print(results_view(results, 100))
        shown = console.export_text()
        table = shown.partition("With the persona, and without it")[2]
        gain = total_of(results, INDIFFERENT)["acc_atom"]["gain"]
        low, high = gain["ci95"]
        assert f"{gain['value']:.2f} [{low:.2f}, {high:.2f}]" in table

    def test_a_job_without_one_has_no_figure(self, stack: Service, finished: Json) -> None:
        answer = stack.http.get(f"/v1/jobs/{finished['id']}/figures/control.svg")
        assert answer.status_code == 404
        assert "With and without" not in stack.get(f"/v1/jobs/{finished['id']}/report?format=html").text


class TestChecksOfJudges:
    @pytest.mark.parametrize(
        "judging", [{"sentences_per_call": 4, "check": {"share": 1}}, {"order_check": {"share": 1}}]
    )
    def test_are_of_sentences_written_as_a_persona(self, stack: Service, judging: Json) -> None:
        body = BODY | {"personas": ["E-low", "A-low"], "models": [INDIFFERENT], "iterations": 1}
        body |= {"instructions": [0, 1], "judging": judging}
        plans = [planned(stack, **body | {"control": control}) for control in (True, False)]
        checks = [[s["calls"] for s in plan["stages"] if s["stage"] == "checking"] for plan in plans]
        assert checks[0] == checks[1] > [0]
        job = stack.wait(stack.submit(body)["id"], "completed", "failed")
        assert (job["status"], job["completeness"], job["error"]) == ("completed", "full", None)
        listed = stack.get(f"/v1/jobs/{job['id']}/responses?limit=500").json()["data"]
        sentences = sum(len(response["units"]) for response in listed)
        again = sum(s["calls"] for s in job["usage"]["by_model"] if s["stage"] == "checking")
        assert again == sentences * (3 if "order_check" in judging else 1)
        assert stack.get(f"/v1/jobs/{job['id']}/results").json()["control"]["cells"]

    def test_tell_nothing_of_the_other_arm(self, stack: Service) -> None:
        body = BODY | {"personas": ["E-low", "A-low", "N-low"], "tasks": ["essay"], "models": [INDIFFERENT]}
        judging = {"sentences_per_call": 4, "check": {"share": 0.01}}
        body |= {"judges": ["simulated/sim-judge-noisy"], "judging": judging}
        jobs = [stack.submit(body | {"control": control}) for control in (True, False)]
        finished = [stack.wait(job["id"], "completed", "failed") for job in jobs]
        checks = [stack.get(f"/v1/jobs/{job['id']}/results").json()["judging_check"] for job in finished]
        assert checks[0] == checks[1]


class TestReuse:
    def test_an_equal_job_gets_its_texts_without_a_call(self, stack: Service) -> None:
        body = BODY | {"personas": ["O-low"], "models": [FAITHFUL], "iterations": 3, "instructions": [0, 4]}
        body |= {"reuse": {"judging": "across_jobs", "generation": "across_jobs"}}
        first, second = (stack.wait(stack.submit(body)["id"], "completed", "failed") for _ in range(2))
        found = [stack.get(f"/v1/jobs/{job['id']}/results").json()["control"] for job in (first, second)]
        assert found[0] == found[1]
        assert first["usage"]["calls"] > 12
        assert second["usage"]["calls"] == 0
        texts = stack.get(f"/v1/jobs/{second['id']}/responses?arm=control").json()["data"]
        assert len({response["text"] for response in texts}) == len(texts) == 6


def planned(stack: Service, **changes: Any) -> Json:
    found: Json = stack.http.post("/v1/jobs/plan", json=BODY | changes).json()
    return found


@pytest.fixture(scope="module")
def opposed(stack: Service) -> Json:
    body = BODY | {"personas": [*PERSONAS, "O-high", "C-neutral"], "control": {"opposite_persona": True}}
    job = stack.wait(stack.submit(body)["id"], "completed", "failed")
    assert job["progress"]["generation"]["total"] == RUNS * 2 * (len(PERSONAS) + 2)
    assert stack.get(f"/v1/jobs/{job['id']}").json()["spec"]["control"] == {"opposite_persona": True}
    found: Json = stack.get(f"/v1/jobs/{job['id']}/results").json()
    return found


class TestOppositePersonas:
    """The second control: personas of the same job on the other end of the dimension, with no further call."""

    @pytest.mark.parametrize("figure", ["acc_atom", "mean_toward_level"])
    def test_a_model_that_ignores_its_persona_gains_nothing_over_them(
        self, opposed: Json, figure: str
    ) -> None:
        by_model = {
            total["model"]: total for total in opposed["opposite"]["totals"] if total["by"] == ["model"]
        }
        gains = {model: total[figure]["gain"] for model, total in by_model.items()}
        for interval in ("ci95", "ci95_runs", "ci95_wordings", "ci95_both"):
            low, high = gains[INDIFFERENT][interval] or (0, 0)
            assert low <= 0 <= high, interval
        assert gains[FAITHFUL]["value"] > 0.6
        assert gains[FAITHFUL]["ci95_runs"][0] > 0.5
        assert by_model[FAITHFUL]["cells"] == len(PERSONAS)

    def test_a_gain_is_what_both_personas_texts_have_of_the_level(self, opposed: Json) -> None:
        cells = {(cell["model"], cell["persona"]): cell["metrics"] for cell in opposed["cells"]}
        found = {(gain["model"], gain["persona"]): gain for gain in opposed["opposite"]["gains"]}
        assert found.keys() == {(model, each) for model in (FAITHFUL, INDIFFERENT) for each in PERSONAS}
        for (model, persona), gain in found.items():
            dimension, level = persona.split("-")
            other = cells[model, f"{dimension}-{'low' if level == 'high' else 'high'}"]
            sign = 1 if level == "high" else -1
            apart = sign * (cells[model, persona]["mean"]["value"] - other["mean"]["value"])
            assert gain["mean_toward_level"]["gain"]["value"] == pytest.approx(apart)
            assert gain["acc_atom"]["with_persona"] == cells[model, persona]["acc_atom"]["value"]
            assert gain["acc_atom"]["without"] <= 1 - other["acc_atom"]["value"]

    def test_personas_without_one_are_named(self, opposed: Json) -> None:
        left_out = {each["persona"]: each["reason"] for each in opposed["opposite"]["left_out"]}
        assert left_out.keys() == {"O-high", "C-neutral"}
        assert left_out["O-high"].startswith("no_opposite: ")
        assert left_out["C-neutral"].startswith("middle_level: ")

    def test_nothing_is_asked_for_it(self, stack: Service, opposed: Json) -> None:
        assert "control" not in opposed
        bare = planned(stack, control=False)
        assert planned(stack, control={"opposite_persona": True}) == bare
        both = planned(stack, control={"opposite_persona": True, "without_persona": True})
        assert both == planned(stack) != bare

    def test_report_console_and_terminal_show_it(self, stack: Service, opposed: Json) -> None:
        pages = [f"/v1/jobs/{opposed['job']}/report?format=html", f"/jobs/{opposed['job']}"]
        for page in map(stack.get, pages):
            shown = page.text.partition("and with the opposite one")[2]
            words = " ".join(re.sub("<[^>]+>", " ", shown).split())
            assert f"{INDIFFERENT} :" in words
            assert "No opposite persona (the level is the middle of the scale): C-neutral" in words
        console = Console(width=100, record=True, file=StringIO())
        console.print(results_view(opposed, 100))
        assert "With the persona, and with the opposite one" in console.export_text()

    def test_existing_texts_can_be_compared_too(self, stack: Service) -> None:
        said = {
            "E-high": "I can't bear an evening alone when there are people out there to meet.",
            "E-low": "I tend to keep in the background at parties.",
        }
        responses = [{"persona": persona, "task": "essay", "text": text} for persona, text in said.items()]
        body: Json = {"personas": [*said], "tasks": ["essay"], "responses": responses}
        body |= {"judges": ["simulated/sim-judge"], "control": {"opposite_persona": True}}
        job = stack.wait(stack.submit(body)["id"], "completed", "failed")
        found = stack.get(f"/v1/jobs/{job['id']}/results").json()["opposite"]
        assert [gain["acc_atom"]["gain"]["value"] for gain in found["gains"]] == [1, 1]
        answer = stack.http.post("/v1/jobs", json=body | {"control": {"without_persona": True}})
        assert answer.status_code == 422
        assert [error["pointer"] for error in answer.json()["errors"]] == ["/control/without_persona"]

    @pytest.mark.parametrize(
        ("control", "pointer"),
        [
            ("yes", "/control"),
            (1, "/control"),
            ({"opposite_persona": 1}, "/control/opposite_persona"),
            ({"none": True}, "/control/none"),
        ],
    )
    def test_anything_else_is_refused_by_its_field(self, stack: Service, control: Any, pointer: str) -> None:
        answer = stack.http.post("/v1/jobs", json=BODY | {"control": control})
        assert answer.status_code == 422
        assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]


class TestRefusals:
    def test_of_existing_texts(self, stack: Service) -> None:
        text = {"persona": "E-high", "task": "essay", "text": "I am."}
        body = {"personas": ["E-high"], "tasks": ["essay"], "responses": [text], "control": True}
        answer = stack.http.post("/v1/jobs", json=body)
        assert answer.status_code == 422
        [error] = answer.json()["errors"]
        assert error["pointer"] == "/control"
        assert "models that the job asks" in error["message"]


GYM_PERSONAS = [{"id": f"p{n}", "description": f"a keeper of lighthouse {n}"} for n in range(5)]
GYM: Json = {
    "personas": GYM_PERSONAS,
    "tasks": [{"task": "expected_action", "questions": 3}, {"task": "persona_consistency", "questions": 3}],
    "models": [FAITHFUL, INDIFFERENT],
    "judges": ["simulated/sim-judge"],
    "reasoner": "simulated/sim-reasoner",
    "control": True,
}


@pytest.fixture(scope="module")
def graded(stack: Service) -> tuple[Json, Json]:
    job = stack.wait(stack.submit(GYM)["id"], "completed", "failed")
    return job, stack.get(f"/v1/jobs/{job['id']}/results").json()


class TestPersonaGym:
    def test_the_score_rises_for_whom_follows_the_persona(self, graded: tuple[Json, Json]) -> None:
        totals = {total["model"]: total for total in graded[1]["control"]["persona_score_totals"]}
        faithful, indifferent = totals[FAITHFUL], totals[INDIFFERENT]
        assert faithful["gain"]["ci95"][0] > 0
        assert indifferent["gain"]["ci95"][0] <= 0 <= indifferent["gain"]["ci95"][1]
        for total in totals.values():
            assert set(total["tasks"]) == {"expected_action", "persona_consistency"}
            assert (total["coverage"]["share"], total["coverage"]["planned"]) == (1, 5 * 2 * 3)

    def test_it_is_that_of_the_same_questions(self, stack: Service, graded: tuple[Json, Json]) -> None:
        job, results = graded
        told = {(row["model"], row["persona"]): row for row in results["control"]["persona_scores"]}
        assert len(told) == 2 * 5
        scores = {
            (row["model"], row["persona"]): row["persona_score"]["value"] for row in results["persona_scores"]
        }
        for key, row in told.items():
            assert row["with_persona"] == pytest.approx(scores[key])
            assert row["gain"]["value"] == pytest.approx(row["with_persona"] - row["without"])
        listed = stack.get(f"/v1/jobs/{job['id']}/responses?arm=control&limit=500").json()["data"]
        assert len(listed) == 2 * 5 * 2 * 3
        for (model, persona), row in told.items():
            own = [each for each in listed if (each["model"], each["persona"]) == (model, persona)]
            assert row["without"] == pytest.approx(fmean(each["score"] for each in own))
            assert {each["persona_description"] for each in own} == {""}

    def test_it_is_in_no_other_figure(self, stack: Service, graded: tuple[Json, Json]) -> None:
        job, results = graded
        assert (job["status"], results["completeness"]) == ("completed", "full")
        for total in results["persona_score_totals"]:
            assert total["responses"]["planned"] == 5 * 2 * 3
            assert total["grades"]["total"] == 5 * 2 * 3
        plans = [planned_of(stack, GYM | {"control": control}) for control in (True, False)]
        assert plans[0]["control"]["responses"] == plans[0]["responses"] - plans[1]["responses"] == 60
        assert plans[0]["control"]["calls"] == plans[0]["calls"] - plans[1]["calls"] == 120
        page = stack.get(f"/v1/jobs/{job['id']}/report?format=html").text
        gain = results["control"]["persona_score_totals"][0]["gain"]
        low, high = gain["ci95"]
        assert f"gain {gain['value']:.2f} [{low:.2f}, {high:.2f}].</li>" in page

    def test_sentences_of_answers_have_none(self, stack: Service) -> None:
        tasks = [{"task": "persona_consistency", "questions": 2, "atomic": True}]
        body = GYM | {"personas": GYM_PERSONAS[:1], "tasks": tasks, "models": [FAITHFUL]}
        job = stack.wait(stack.submit(body)["id"], "completed", "failed")
        assert (job["status"], job["completeness"]) == ("completed", "full")
        control = stack.get(f"/v1/jobs/{job['id']}/results").json()["control"]
        assert (control["cells"], control["gains"], control["totals"]) == ([], [], [])
        assert len(control["persona_scores"]) == 1


def planned_of(stack: Service, body: Json) -> Json:
    found: Json = stack.http.post("/v1/jobs/plan", json=body).json()
    return found
