"""Jobs of every kind go to another installation as bundles; and bundles of former code, which lie beside this, for good."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.api.service import Json, Service
from tests.api.test_bundles import exported, files_of, imported, renamed, results_of
from tests.api.test_imported_verdicts import answered, graded_job, imported_job, scored
from tests.api.test_personagym import ASKED, gym_body
from tests.api.test_rubric_sets import DIARY, WIT
from tests.api.test_tus import jsonl, uploaded

FORMER = Path(__file__).parent / "bundles"
MODEL, JUDGE, NOISY = "simulated/sim-faithful", "simulated/sim-judge", "simulated/sim-judge-noisy"
ZOE: Json = {"id": "zoe", "description": "Zoë, 图书管理员 – “still”\u2028😀", "traits": {"E": "low"}}
BODY: Json = {
    "personas": [ZOE],
    "tasks": ["essay"],
    "models": [MODEL],
    "judges": [JUDGE],
    "instructions": [1],
    "iterations": 2,
}
TEXTS = [
    {
        "persona": "zoe",
        "task": "essay",
        "model": f"bot {n}",
        "text": f"我喜欢安静。 I read {n} books. 😀 Good.",
    }
    for n in range(3)
]


def brought(**changes: Any) -> Json:
    return {name: BODY[name] for name in ("personas", "tasks", "judges")} | {"responses": TEXTS} | changes


def ended(stack: Service, body: Json) -> Json:
    path = "/v1/persona-sets" if "generate" in body else "/v1/jobs"
    made = stack.post(path, body)
    assert made.status_code == 202, made.text
    return stack.wait(made.json()["id"], "completed", "failed")


def by_rubrics(stack: Service) -> Json:
    kept = stack.post(
        "/v1/rubric-sets", {"name": "wit & diary", "tasks": {"wit": WIT, "diary": DIARY}}
    ).json()
    tasks = [{"task": "wit", "questions": 2}, "toxicity_control", "diary"]
    return gym_body(tasks=tasks, personas=[ZOE], rubrics=kept["id"], instructions=[1], iterations=2)


def by_questions(stack: Service) -> Json:
    kept = stack.post("/v1/question-sets", {"name": "fragen: für Nonnen", "questions": ASKED}).json()
    return gym_body(tasks=["toxicity_control"], questions=kept["id"])


def on_uploaded(stack: Service) -> Json:
    return brought(responses={"upload": uploaded(stack, jsonl(TEXTS))["id"]})


def cancelled(stack: Service) -> Json:
    """A job of which some is missing."""
    job_id = stack.submit(BODY | {"personas": ["big-five"], "tasks": ["questionnaire"], "iterations": 60})[
        "id"
    ]
    while not stack.job(job_id)["progress"]["judging"]["succeeded"]:
        pass
    assert stack.post(f"/v1/jobs/{job_id}/cancel").is_success
    return stack.wait(job_id, "cancelled")


def on_another_jobs(stack: Service) -> Json:
    source = ended(stack, BODY)
    return {"judges": [NOISY], "responses": {"job": source["id"]}, "protocol": "hardened"}


BODIES: dict[str, Callable[[Service], Json]] = {
    "named": lambda _: BODY | {"name": "Zoës 工作 <b>", "tags": ["ü", "b c"], "metadata": {"ключ": "значение"}},
    "control arm": lambda _: BODY | {"control": True, "judges": [JUDGE, NOISY]},
    "grouped": lambda _: BODY | {"judging": {"sentences_per_call": 4}},
    "order check": lambda _: BODY | {"judging": {"order_check": {"share": 0.5}}},
    "reused replies": lambda _: BODY | {"reuse": {"judging": "in_job"}},
    "in batches": lambda _: BODY | {"execution": "batch"},
    "texts brought in": lambda _: brought(),
    "uploaded": on_uploaded,
    "judged again": on_another_jobs,
    "imported verdicts": lambda _: imported_job(scored([3, 4, 9]), scored([5, 4], "neither", run=2, text="Ja. ü!")),
    "imported grades": lambda _: graded_job(answered("A storm?", 4), answered("Feuer – was nun?", None)),
    "imported and called": lambda _: graded_job(
        answered("A storm?", 4), judges=[*graded_job()["judges"], JUDGE], reasoner="simulated/sim-reasoner"
    ),
    "rubric set": by_rubrics,
    "question set": by_questions,
    "questions made": lambda _: gym_body(personas=[ZOE]),
    "sloppy reasoner": lambda _: gym_body(reasoner="simulated/sim-reasoner-sloppy"),
    "personas made": lambda _: {"generate": {"count": 2, "reasoner": "simulated/sim-reasoner"}},
}  # fmt: skip


@pytest.mark.parametrize("kind", [*BODIES, "cancelled"])
def test_a_job_of_each_kind_comes_to_the_same_elsewhere(stack: Service, api: Service, kind: str) -> None:
    job = cancelled(stack) if kind == "cancelled" else ended(stack, BODIES[kind](stack))
    assert (job["status"] == "cancelled") == (kind == "cancelled")
    bundle = exported(stack, job["id"])
    answer = imported(api, bundle)
    assert answer.status_code == 201, answer.text
    copy = answer.json()["job"]["id"]
    ids = job["id"], copy
    assert results_of(api, copy) == renamed(results_of(stack, job["id"]), *ids)
    ours, theirs = renamed(files_of(bundle), *ids), files_of(exported(api, copy))
    del ours["bundle.json"], theirs["bundle.json"]
    for name, content in ours.items():
        assert theirs[name].splitlines() == content.splitlines(), name
    pages = [
        json.dumps(list(each.walk(f"/v1/jobs/{job_id}/responses", limit=200)))
        for each, job_id in zip((stack, api), ids, strict=True)
    ]
    assert renamed(pages[0], *ids) == pages[1]


@pytest.mark.parametrize("name", ["atomic", "personagym", "imported-verdicts"])
def test_a_bundle_of_former_code_is_read_with_its_results(api: Service, name: str) -> None:
    bundle = (FORMER / f"{name}.zip").read_bytes()
    files = files_of(bundle)
    answer = imported(api, bundle)
    assert answer.status_code == 201, answer.text
    results = json.loads(files["results.json"])
    copy = answer.json()["job"]["id"]
    found = json.loads(renamed(results_of(api, copy), copy, results["job"]))
    for document in (results, found):
        del document["manifest"]["deviations"]
    assert found == results
