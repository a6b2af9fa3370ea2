"""Answers to PersonaGym's questions that exist already are graded as if the service had had them written."""

import json
from collections import Counter
from statistics import fmean
from typing import Any

import pytest

from tests.e2e.stack import Json, Stack

ATOMIC = "persona_consistency"
JUDGES = ["simulated/sim-judge-lenient", "simulated-anthropic/sim-judge-harsh"]
MODELS = ("simulated/sim-drifting", "simulated/sim-refusing")
WRITTEN: Json = {
    "personas": ["gym-05", "gym-13"],
    "tasks": [
        {"task": "expected_action", "questions": 3},
        {"task": "action_justification", "questions": 2},
        {"task": "linguistic_habits", "questions": 2},
        {"task": "toxicity_control", "questions": 2},
        {"task": ATOMIC, "questions": 3, "atomic": True, "runs": 2},
    ],
    "models": list(MODELS),
    "judges": JUDGES,
    "reasoner": "simulated/sim-reasoner",
}
TASKS = [
    {"task": each["task"], "atomic": True} if each["task"] == ATOMIC else each["task"]
    for each in WRITTEN["tasks"]
]
NOT_OF_EXISTING_TEXTS = {"planned", "simulated"}
FIGURES = ("cells", "totals", "persona_scores", "persona_score_totals", "judge_agreement")


def without_counts(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: without_counts(member)
            for name, member in value.items()
            if name not in NOT_OF_EXISTING_TEXTS
        }
    return list(map(without_counts, value)) if isinstance(value, list) else value


def brought(response: Json) -> Json:
    """A response of a job as a text of another one."""
    fields = ("model", "persona", "task", "question", "run", "instruction", "text")
    return {name: response[name] for name in fields}


@pytest.fixture(scope="module")
def written(stack: Stack) -> Json:
    """A job whose answers the service had written, with them."""
    job = stack.ended(stack.submit(WRITTEN))
    return {"results": stack.results(job["id"]), "responses": list(stack.responses(job["id"]))}


@pytest.fixture(scope="module")
def body(written: Json) -> Json:
    answers = [brought(each) for each in written["responses"]]
    return {
        "personas": WRITTEN["personas"],
        "tasks": TASKS,
        "responses": answers,
        "judges": JUDGES,
        "reasoner": WRITTEN["reasoner"],
    }


@pytest.fixture(scope="module")
def graded(stack: Stack, body: Json) -> Json:
    return stack.ended(stack.submit(body))


class TestFigures:
    def test_are_those_of_the_job_that_had_the_answers_written(
        self, stack: Stack, written: Json, graded: Json
    ) -> None:
        assert (graded["status"], graded["completeness"]) == ("completed", "full")
        found = stack.results(graded["id"])
        for part in FIGURES:
            assert without_counts(found[part]) == without_counts(written["results"][part]), part
        assert any(score["persona_score"]["value"] for score in found["persona_scores"])

    def test_nobody_writes_a_question_or_an_answer_again(
        self, stack: Stack, written: Json, graded: Json
    ) -> None:
        asked = Counter(entry["kind"] for entry in stack.ledger(graded["id"]))
        assert set(asked) == {"grade", "judge"}  # the exemplars are those of the job that wrote them
        used = stack.results(graded["id"])["manifest"]["personagym"]["exemplars"]
        questions = {(each["persona"], each["task"], each["question"]) for each in written["responses"]}
        assert (used["made"], used["reused"], used["given"]) == (0, len(questions), 0)

    def test_other_questions_rubrics_or_reasoners_take_exemplars_of_their_own(
        self, stack: Stack, body: Json, graded: Json
    ) -> None:
        other = [dict(each) for each in body["responses"]]
        place = ("persona", "task", "question")
        changed = [other[0][name] for name in place]
        for each in other:
            if [each[name] for name in place] == changed:
                each["question"] = "What did nobody ask you before?"
        cooler = {"reasoner": {"model": WRITTEN["reasoner"], "temperature": 0.1}}
        questions = {(each["persona"], each["task"], each["question"]) for each in other}
        for changes, calls in (({}, 0), ({"responses": other}, 1), (cooler, len(questions))):
            plan = stack.api.post("/v1/jobs/plan", json=body | changes).json()
            found = {stage["stage"]: stage["calls"] for stage in plan["stages"]}
            assert found.get("exemplars", 0) == calls, changes

    def test_refusals_stay_refusals(self, stack: Stack, written: Json, graded: Json) -> None:
        def statuses(responses: Any) -> dict[tuple[str, ...], str]:
            return {
                (one["model"], one["persona"], one["question"], str(one["run"])): one["status"]
                for one in responses
            }

        found = statuses(stack.responses(graded["id"]))
        assert found == statuses(written["responses"])
        assert set(found.values()) == {"answered", "refused"}

    def test_manifest_says_that_questions_and_answers_were_brought(self, stack: Stack, graded: Json) -> None:
        manifest = stack.results(graded["id"])["manifest"]
        assert manifest["existing_texts"]
        assert set(manifest["personagym"]) == {
            "instrument",
            "reasoner",
            "question_set",
            "given_questions",
            "tasks",
            "rubrics",
            "exemplars",
        }
        told = " ".join(manifest["deviations"])
        assert "questions and answers were not generated by this service" in told
        assert "pool of environments" not in told
        assert "question criteria" not in told
        assert "PersonaGym: not 10 generated questions" not in told

    def test_questions_are_kept_as_a_set(self, stack: Stack, written: Json, graded: Json) -> None:
        manifest = stack.results(graded["id"])["manifest"]["personagym"]
        assert manifest["question_set"] == written["results"]["manifest"]["personagym"]["question_set"]


class TestMissingAnswer:
    def test_is_counted_and_told(self, stack: Stack, body: Json) -> None:
        of_task = [each for each in body["responses"] if each["task"] == "expected_action"]
        left_out = next(each for each in of_task if each["model"] == MODELS[0])
        fewer = body | {
            "tasks": ["expected_action"],
            "responses": [each for each in of_task if each is not left_out],
        }
        plan = stack.api.post("/v1/jobs/plan", json=fewer).json()
        assert any("1 questions are not answered by all models" in each for each in plan["warnings"])
        job = stack.ended(stack.submit(fewer))
        assert (job["status"], job["completeness"]) == ("completed", "partial")
        missing = [each for each in stack.responses(job["id"]) if each["status"] == "no_answer"]
        assert [(each["model"], each["question"], each["error"]) for each in missing] == [
            (MODELS[0], left_out["question"], "no answer to this question was given")
        ]
        scores = stack.results(job["id"])["persona_scores"]
        (score,) = (
            one for one in scores if (one["model"], one["persona"]) == (MODELS[0], left_out["persona"])
        )
        assert (score["responses"]["no_answer"], score["responses"]["answered"]) == (1, 2)
        assert score["persona_score"]["value"] is not None


class TestChecks:
    @pytest.mark.parametrize(
        "judging",
        [
            {"sentences_per_call": 4, "check": {"share": 0.3, "minimum": 2}},
            {"order_check": {"share": 0.3}},
        ],
    )
    def test_of_sentences_are_planned_beside_grades_and_texts_of_atomic_tasks(
        self, stack: Stack, body: Json, judging: Json
    ) -> None:
        essay = {"persona": "E-low", "task": "essay", "model": MODELS[0]}
        mixed = body | {
            "personas": [*body["personas"], "E-low"],
            "tasks": [*body["tasks"], "essay"],
            "responses": [*body["responses"], essay | {"text": "I stay in. I read. Nobody calls."}],
            "judging": judging,
        }
        plan = stack.api.post("/v1/jobs/plan", json=mixed).json()
        job = stack.ended(stack.submit(mixed))
        assert job["status"] == "completed"
        judged = job["progress"]["judging"]
        assert (judged["total"], judged["failed"]) == (judged["succeeded"], 0), job["progress"]
        asked = Counter(each["kind"] for each in stack.ledger(job["id"]))
        planned = {stage["stage"]: stage["calls"] for stage in plan["stages"]}
        assert asked["exemplars"] == planned.get("exemplars", 0)
        if "order_check" in judging:  # a group whose reply can't be read is asked about one by one
            assert sum(asked.values()) == plan["calls"]


TITLES = {
    "expected_action": "Expected Action",
    "action_justification": "Action Justification",
    "linguistic_habits": "Linguistic Habits",
    "persona_consistency": "Persona Consistency",
    "toxicity_control": "Toxicity",
}
"""As the released code names its tasks."""


def saved_responses(task_to_qa: dict[str, list[tuple[str, str]]]) -> str:
    """What `save_responses` of PersonaGym's released `code/run.py` writes (MIT licence)."""
    return json.dumps(task_to_qa, indent=4)


def released_score(graded: dict[str, list[list[int]]]) -> float:
    """PersonaScore as the released code adds up grades: two evaluators, five questions at a time.

    Args:
        graded: By task the two evaluators' grades of each question.
    """
    by_task = []
    for grades in graded.values():
        groups = [grades[start : start + 5] for start in range(0, len(grades), 5)]
        by_task.append(
            fmean(
                fmean([fmean(first for first, _ in group), fmean(second for _, second in group)])
                for group in groups
            )
        )
    return fmean(by_task)


class TestReleasedFiles:
    @pytest.fixture
    def asked(self, stack: Stack) -> Json:
        """Five answers of one model for each of all five tasks, as the released code saves them."""
        job = stack.ended(
            stack.submit(
                WRITTEN
                | {"models": [MODELS[0]], "tasks": [{"task": task, "questions": 5} for task in TITLES]}
            )
        )
        files: dict[str, dict[str, list[tuple[str, str]]]] = {}
        for each in stack.responses(job["id"]):
            of_persona = files.setdefault(each["persona_description"], {})
            of_persona.setdefault(TITLES[each["task"]], []).append((each["question"], each["text"]))
        return {
            f"results/gpt-3.5/{persona}_qa.json": json.loads(saved_responses(file))
            for persona, file in files.items()
        }

    def test_are_taken_as_they_are_and_scored_as_the_released_code_scores(
        self, stack: Stack, asked: Json
    ) -> None:
        body = {
            "personas": WRITTEN["personas"],
            "tasks": list(TITLES),
            "responses": {"qa": {"gpt-3.5": asked}},
            "judges": JUDGES,
            "reasoner": WRITTEN["reasoner"],
        }
        job = stack.ended(stack.submit(body))
        assert (job["status"], job["completeness"]) == ("completed", "full")
        grades: dict[str, dict[str, list[list[int]]]] = {}
        texts: dict[str, dict[str, list[list[str]]]] = {}
        for each in stack.responses(job["id"]):
            given = {grade["judge"]: grade["score"] for grade in each["grades"]}
            of_task = grades.setdefault(each["persona"], {}).setdefault(each["task"], [])
            of_task.append([given[judge] for judge in JUDGES])
            file = texts.setdefault(f"results/gpt-3.5/{each['persona_description']}_qa.json", {})
            file.setdefault(TITLES[each["task"]], []).append([each["question"], each["text"]])
        assert texts == asked
        scores = {each["persona"]: each for each in stack.results(job["id"])["persona_scores"]}
        assert scores.keys() == grades.keys() == set(WRITTEN["personas"])
        for persona, score in scores.items():
            assert score["model"] == "gpt-3.5"
            assert score["persona_score"]["value"] == pytest.approx(
                released_score(grades[persona]), abs=1e-12
            )


class TestAnswersOfAJob:
    def test_are_graded_again_as_they_were(self, stack: Stack, written: Json) -> None:
        source = written["results"]["job"]
        plan = stack.api.post("/v1/jobs/plan", json={"responses": {"job": source}, "judges": JUDGES}).json()
        job = stack.ended(stack.submit({"responses": {"job": source}, "judges": JUDGES}))
        assert (job["status"], job["completeness"]) == ("completed", "full")
        found = stack.results(job["id"])
        for part in FIGURES:
            assert without_counts(found[part]) == without_counts(written["results"][part]), part
        asked = Counter(entry["kind"] for entry in stack.ledger(job["id"]))
        assert set(asked) == {"grade", "judge"}  # the exemplars are those of the source
        assert sum(asked.values()) == plan["calls"]
        assert found["source"]["responses"] == len(written["responses"])
        told = found["manifest"]["personagym"]
        assert told["question_set"] == written["results"]["manifest"]["personagym"]["question_set"]

    def test_of_one_model_and_task_are_graded_by_other_judges(self, stack: Stack, written: Json) -> None:
        chosen = {"models": [MODELS[1]], "tasks": [ATOMIC]}
        body = {
            "responses": {"job": written["results"]["job"], "filter": chosen},
            "tasks": [ATOMIC],
            "judges": ["simulated/sim-judge"],
        }
        job = stack.ended(stack.submit(body))
        assert (job["status"], job["completeness"]) == ("completed", "full")

        def shown(responses: Any) -> list[Any]:
            kept = ("model", "persona", "task", "question", "run", "instruction", "status", "text")
            return sorted([each[name] for name in kept] for each in responses)

        of_source = [
            each for each in written["responses"] if (each["model"], each["task"]) == (MODELS[1], ATOMIC)
        ]
        assert shown(stack.responses(job["id"])) == shown(of_source)
        assert not stack.results(job["id"])[
            "cells"
        ]  # their sentences are not judged unless that is asked for

    def test_a_sample_makes_no_response_missing(self, stack: Stack, written: Json) -> None:
        body = {
            "responses": {"job": written["results"]["job"], "sample": {"responses": 10}},
            "judges": ["simulated/sim-judge"],
        }
        job = stack.ended(stack.submit(body))
        generated = job["progress"]["generation"]
        assert (generated["total"], generated["failed"], job["status"]) == (10, 0, "completed")

    def test_what_does_not_fit_is_told(self, stack: Stack, written: Json) -> None:
        source = {"responses": {"job": written["results"]["job"]}, "judges": JUDGES}
        for changes, pointer in (
            ({"tasks": ["expected_action"]}, "/tasks"),
            ({"personas": ["gym-05"]}, "/personas"),
            ({"environments": ["Inn"]}, "/environments"),
            ({"tasks": [{"task": "expected_action", "runs": 3}]}, "/tasks/0/runs"),
        ):
            answer = stack.api.post("/v1/jobs", json=source | changes)
            assert answer.status_code == 422, changes
            assert pointer in [each["pointer"] for each in answer.json()["errors"]], answer.text
