"""Judges whose servers allow only the options' numbers: no reply is lost, whatever the form and the way of calling."""

import json
import re
from collections.abc import Iterator

import pytest

from tests.e2e.stack import Json, Stack

NOISY = "simulated/sim-judge-noisy"
BODY: Json = {
    "personas": ["E-low", "A-high"],
    "tasks": ["essay"],
    "models": ["simulated/sim-drifting"],
    "judges": [NOISY],
    "instructions": [0],
    "iterations": 4,
}
OBJECT = re.compile(r'\{"score": [1-59]\}')


def verdicts(stack: Stack, job_id: str) -> Iterator[Json]:
    for response in stack.responses(job_id):
        for unit in response["units"]:
            yield from unit["verdicts"]


@pytest.mark.parametrize(
    ("reply", "raw", "changes"),
    [
        ("choice", re.compile(r"[1-59]"), {}),
        ("choice", re.compile(r"[1-59]"), {"execution": "batch"}),
        ("json_schema", OBJECT, {"reuse": {"judging": "in_job"}}),
        ("json_schema", OBJECT, {"judges": [NOISY, "simulated-anthropic/sim-judge-noisy"]}),
    ],
)
def test_every_sentence_has_a_score(stack: Stack, reply: str, raw: re.Pattern[str], changes: Json) -> None:
    job = stack.ended(stack.submit(BODY | changes | {"judging": {"reply": reply}}))
    found = list(verdicts(stack, job["id"]))
    assert {verdict["status"] for verdict in found} <= {"scored", "not_applicable"}
    assert all(raw.fullmatch(verdict["raw"]) for verdict in found)
    assert not any(verdict["unread"] for verdict in found)
    manifest = stack.results(job["id"])["manifest"]
    assert manifest["reply"] == reply
    assert any("constrained their replies" in line for line in manifest["deviations"])


def test_several_sentences_have_a_number_each(stack: Stack) -> None:
    judging = {"reply": "json_schema", "sentences_per_call": 6, "check": {"share": 0.1, "minimum": 1}}
    job = stack.ended(stack.submit(BODY | {"judging": judging}))
    found = list(verdicts(stack, job["id"]))
    assert max(verdict["group_size"] for verdict in found) == 6
    assert {verdict["status"] for verdict in found} <= {"scored", "not_applicable"}
    stages = {row["stage"]: row["calls"] for row in job["usage"]["by_model"]}
    assert "repairing" not in stages


def test_grades_are_numbers_from_1_to_5(stack: Stack) -> None:
    job = stack.ended(
        stack.submit(
            {
                "personas": ["gym-01"],
                "tasks": [{"task": "expected_action", "questions": 3}],
                "models": ["simulated/sim-faithful"],
                "judges": [NOISY],
                "reasoner": "simulated/sim-reasoner",
                "judging": {"reply": "choice"},
            }
        )
    )
    grades = [grade for response in stack.responses(job["id"]) for grade in response["grades"]]
    assert [grade["raw"] for grade in grades] == [str(grade["score"]) for grade in grades]
    assert len(grades) == 3
    assert all(1 <= grade["score"] <= 5 for grade in grades)


def test_what_was_sent_is_shown_with_the_prompt(stack: Stack) -> None:
    job = stack.ended(stack.submit(BODY | {"judging": {"reply": "choice"}, "iterations": 1}))
    response = next(iter(stack.responses(job["id"])))
    path = f"/v1/jobs/{job['id']}/responses/{response['id']}/judge-calls"
    (call,) = stack.api.get(path, params={"unit": 0}).json()["data"]
    schema = call["parameters"]["response_format"]["json_schema"]["schema"]
    assert schema == {"type": "integer", "enum": [1, 2, 3, 4, 5, 9]}
    assert json.loads(call["raw"]) in schema["enum"]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"judges": ["simulated-anthropic/sim-judge"]}, "use 'json_schema', 'text'"),
        ({"protocol": "hardened"}, "key word"),
        ({"judging": {"reply": "choice", "sentences_per_call": 4}}, "use 'json_schema'"),
    ],
)
def test_a_form_that_does_not_go_is_refused(stack: Stack, changes: Json, problem: str) -> None:
    answer = stack.api.post("/v1/jobs", json=BODY | {"judging": {"reply": "choice"}} | changes)
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["pointer"] == "/judging/reply"
    assert problem in error["message"]


def test_replies_of_another_form_are_not_reused(stack: Stack) -> None:
    text = {"persona": "E-low", "task": "essay", "text": "I stay at home and read my own books."}
    base: Json = {"personas": ["E-low"], "tasks": ["essay"], "responses": [text], "judges": [NOISY]}
    origins = []
    for reply in ("text", "choice", "json_schema", "choice"):
        asked = base | {"reuse": {"judging": "across_jobs"}, "judging": {"reply": reply}}
        job = stack.ended(stack.submit(asked))
        (verdict,) = verdicts(stack, job["id"])
        origins.append(verdict["reused"])
    assert origins == [None, None, None, "other_job"]
