"""An evaluator who gives every answer a point too much: PersonaScores calibrated by people's grades hold what people would give."""

from collections.abc import Iterator
from statistics import fmean

import psycopg
import pytest

from simulator.bank import load_bank
from simulator.grade import true_grade
from tests.api.service import Json, Service
from tests.databases import libpq_url

PERSONAS, QUESTIONS, LABELS = 14, 2, 80
TASKS = ("expected_action", "linguistic_habits")
MODELS = ("simulated/sim-drifting", "simulated/sim-refusing")


@pytest.fixture(scope="module")
def job(stack: Service) -> Json:
    body = {
        "personas": [f"gym-{n:02}" for n in range(1, PERSONAS + 1)],
        "tasks": [{"task": task, "questions": QUESTIONS} for task in TASKS],
        "models": list(MODELS),
        "reasoner": "simulated/sim-reasoner",
        "judges": ["simulated/sim-judge-lenient"],
    }
    return stack.wait(stack.submit(body)["id"], "completed")


@pytest.fixture(scope="module")
def answers(stack: Service, job: Json) -> list[Json]:
    """Those with a grade, each with what people give it."""
    bank = load_bank()
    return [
        each | {"people": true_grade(each["text"], bank)}
        for each in stack.walk(f"/v1/jobs/{job['id']}/responses", limit=100)
        if each["grades"][0]["score"] is not None
    ]


@pytest.fixture(scope="module")
def labelled(stack: Service, job: Json, answers: list[Json]) -> Iterator[Json]:
    """What a round drew is graded by two people; somebody graded another answer too, which stands for no other."""
    drawn = stack.post("/v1/labelling-rounds", {"job": job["id"], "kind": "responses", "size": LABELS}).json()
    with psycopg.connect(libpq_url(stack.database_url)) as connection:
        ((things,),) = connection.execute(
            "SELECT things FROM labelling_rounds WHERE id = %s", [drawn["id"]]
        ).fetchall()
    ids = [f"{job['id'].replace('job_', 'resp_')}-{cell}-{run}-{item}" for ((cell, run, item, _),) in things]
    people = {each["id"]: each["people"] for each in answers}
    stray = next(each["id"] for each in answers if each["id"] not in ids)
    rows = [
        {"annotator": name, "response": each, "score": people[each]}
        for name in ("anna", "ben")
        for each in ids
    ]
    rows.append({"annotator": "anna", "response": stray, "score": 1 if people[stray] > 2 else 5})
    assert stack.post("/v1/annotations", {"annotations": rows}).json()["created"] == 2 * LABELS + 1
    yield stack.get(f"/v1/jobs/{job['id']}/calibration").json()
    stack.empty("annotations", "labelling_rounds")


def truth(answers: list[Json], model: str, *tasks: str) -> float:
    """The mean over tasks, as every persona has as many answers to each."""
    return fmean(
        fmean(each["people"] for each in answers if (each["model"], each["task"]) == (model, task))
        for task in tasks or TASKS
    )


def figure(calibration: Json, kind: str, **keys: str) -> Json:
    found: Json
    (found,) = (
        each for each in calibration[kind] if (each["keys"], each["metric"]) == (keys, "persona_score")
    )
    return found


def holds(interval: list[float], value: float) -> bool:
    low, high = interval
    return low <= value <= high


@pytest.mark.parametrize("model", MODELS)
class TestAPersonaScore:
    def test_is_too_high_by_the_evaluator_and_holds_what_people_give_when_calibrated(
        self, stack: Service, job: Json, labelled: Json, answers: list[Json], model: str
    ) -> None:
        real = truth(answers, model)
        totals = stack.get(f"/v1/jobs/{job['id']}/results").json()["persona_score_totals"]
        (judged,) = (each["persona_score"] for each in totals if each["model"] == model)
        found = figure(labelled, "totals", model=model)
        assert found["judged"] == pytest.approx(judged["value"])
        assert found["judged"] > real + 0.3
        assert holds(found["ci95_texts"], real)
        assert found["calibrated"]["n"] == LABELS / 2
        assert abs(found["calibrated"]["value"] - real) < abs(found["judged"] - real) / 2
        low, high = found["calibrated"]["ci95"]
        assert low <= found["ci95_texts"][0] <= found["ci95_texts"][1] <= high
        assert (found["calibrated"]["ci95_runs"], found["labels_needed"] > 0) == (None, True)

    def test_in_each_task_too(self, labelled: Json, answers: list[Json], model: str) -> None:
        for task in TASKS:
            found = figure(labelled, "totals", model=model, task=task)
            assert holds(found["ci95_texts"], truth(answers, model, task))

    def test_fails_a_gate_that_the_evaluators_own_passes(
        self, stack: Service, job: Json, labelled: Json, answers: list[Json], model: str
    ) -> None:
        real, judged = truth(answers, model), figure(labelled, "totals", model=model)["judged"]
        limit = f"persona_score@model={model}>={(real + 2 * judged) / 3:.3f}"
        gate = stack.get(
            f"/v1/jobs/{job['id']}/gate", params={"threshold": [limit, f"{limit} calibrated"]}
        ).json()
        plain, calibrated = gate["checks"]
        assert plain["value"] == pytest.approx(judged)
        assert calibrated["value"] < plain["value"]
        assert calibrated["verdict"] in {"inconclusive", "fail"}
        assert holds(calibrated["ci95"], real)
        assert (calibrated["of"], calibrated["coverage"]) == ({"model": model}, plain["coverage"])


class TestADifference:
    def test_is_what_people_say_in_calibration_comparison_and_pages(
        self, stack: Service, job: Json, labelled: Json, answers: list[Json]
    ) -> None:
        real = truth(answers, MODELS[0]) - truth(answers, MODELS[1])
        found = figure(labelled, "differences", a=MODELS[0], b=MODELS[1])
        assert holds(found["ci95_texts"], real)
        sides = {side: {"job": job["id"], "model": each} for side, each in zip("ab", MODELS, strict=True)}
        compared = stack.post("/v1/comparisons", sides).json()
        assert figure({"all": compared["calibrated"]}, "all", a=MODELS[0], b=MODELS[1]) == found
        several = stack.post("/v1/comparisons", {"models": [{"job": job["id"]}]}).json()
        assert figure({"all": several["calibrated"]}, "all", a=MODELS[0], b=MODELS[1]) == found
        assert [(each["metric"], each["task"]) for each in several["in_tasks"]] == [
            ("task_score", task) for task in TASKS
        ]
        for each in several["in_tasks"]:
            assert {one["name"]: one["value"] for one in each["models"]} == {
                model: pytest.approx(figure(labelled, "totals", model=model, task=each["task"])["judged"])
                for model in MODELS
            }
        of_several = stack.get("/compare", params={"model": job["id"]})
        assert "Differences as people would give them" in of_several.text
        page = stack.get(
            "/compare", params={side: f"{job['id']}:{each['model']}" for side, each in sides.items()}
        )
        assert page.text.count(f"estimated from {LABELS} labels") == 1
        for path in (f"/jobs/{job['id']}/labels", f"/v1/jobs/{job['id']}/report?format=html"):
            assert "Human scores estimated for all texts" in stack.get(path).text
        assert (
            stack.get(
                f"/v1/jobs/{job['id']}/gate?threshold=persona_score@task=action_justification>=1 calibrated"
            )
            .json()["checks"][0]["reason"]
            .startswith("it has no calibrated figure: nothing of it")
        )
