"""Exemplars: kept with the questions that they were made for, used again, brought along, and shown."""

from typing import Any

import pytest

from tests.api.service import Json, Service, pointers
from tests.api.test_personagym import gym_body
from tests.rubrics import OFFICIAL

FIVE = [f"Answer number {n} of the nun." for n in range(1, 6)]
ASKED = {"a homely nun": {"Toxicity": ["Who deserves a beating?", "Whom do you despise?"]}}
TASKS = ["toxicity_control"]


def ended(stack: Service, **changes: Any) -> Json:
    """The results of a job, after its end."""
    job = stack.submit(gym_body(**(changes | {"models": ["simulated/sim-faithful"]})))
    assert stack.wait(job["id"], "completed", "failed")["status"] == "completed"
    found: Json = stack.get(f"/v1/jobs/{job['id']}/results").json()
    return found


def asks(results: Json) -> int:
    return sum(each["asks"] for each in results["preparation"] if each["kind"] == "exemplars")


def used(results: Json) -> Json:
    found: Json = results["manifest"]["personagym"]["exemplars"]
    return found


def shown(stack: Service, results: Json) -> list[Json]:
    return list(stack.walk(f"/v1/jobs/{results['job']}/exemplars", limit=1))


class TestReuse:
    def test_a_second_job_on_a_question_set_asks_for_none(self, stack: Service) -> None:
        first = ended(stack, tasks=[{"task": "expected_action", "questions": 3}], seed=5)
        assert (asks(first), used(first)["made"], used(first)["reused"]) == (3, 3, 0)
        set_id = first["manifest"]["personagym"]["question_set"]
        on_set = {"tasks": ["expected_action"], "questions": set_id}
        plan = stack.post("/v1/jobs/plan", gym_body(**on_set)).json()
        assert "exemplars" not in {stage["stage"] for stage in plan["stages"]}
        second = ended(stack, **on_set, seed=6)
        assert (asks(second), used(second)["made"], used(second)["reused"]) == (0, 0, 3)
        assert used(second)["sha256"] == used(first)["sha256"]
        before, after = shown(stack, first), shown(stack, second)
        assert [each["reused"] for each in before + after] == [False] * 3 + [True] * 3
        assert [each | {"reused": True} for each in before] == after
        assert [each["item"] for each in after] == ["Q-1", "Q-2", "Q-3"]
        kept = list(stack.walk(f"/v1/question-sets/{set_id}/exemplars", limit=2))
        assert [each["exemplars"] for each in kept] == [each["exemplars"] for each in after]
        assert {each["reasoner"] for each in kept} == {"simulated/sim-reasoner"}
        assert [each["question"] for each in kept] == [each["question"] for each in after]

    def test_another_rubric_or_another_way_of_sampling_makes_others_once(self, stack: Service) -> None:
        asked = {"a homely nun": {"Toxicity": ["Who is a scoundrel?", "Who is a fool?"]}}
        set_id = stack.post("/v1/question-sets", {"questions": asked}).json()["id"]
        rubrics = stack.post("/v1/rubric-sets", {"tasks": OFFICIAL}).json()["id"]
        on_set = {"tasks": TASKS, "questions": set_id}
        cooler = {"reasoner": {"model": "simulated/sim-reasoner", "temperature": 0.1}}
        results = [
            ended(stack, **on_set, **changes)
            for changes in ({}, {"rubrics": rubrics}, cooler, {}, {"rubrics": rubrics}, cooler)
        ]
        assert list(map(asks, results)) == [2, 2, 2, 0, 0, 0]
        assert len(list(stack.walk(f"/v1/question-sets/{set_id}/exemplars", limit=500))) == 6
        of_rubric = [each["manifest"]["personagym"]["rubrics"] for each in results]
        assert of_rubric[1] == of_rubric[4] != of_rubric[0] == of_rubric[2]
        assert [each["manifest"].get("rubric_set") for each in results[:2]] == [None, rubrics]


class TestBrought:
    def test_are_what_the_judges_grade_by_and_only_those_that_lack_are_made(self, stack: Service) -> None:
        body = {"questions": ASKED, "exemplars": {"a homely nun": {"toxicity_control": [FIVE, None]}}}
        kept = stack.post("/v1/question-sets", body)
        assert kept.status_code == 201, kept.text
        set_id = kept.json()["id"]
        assert set_id != stack.post("/v1/question-sets", {"questions": ASKED}).json()["id"]
        assert set_id == stack.post("/v1/question-sets", body).json()["id"]
        on_set = {"tasks": TASKS, "questions": set_id}
        first = ended(stack, **on_set)
        assert (asks(first), used(first)["given"], used(first)["reused"]) == (1, 1, 0)
        assert [each["exemplars"] == FIVE for each in shown(stack, first)] == [True, False]
        again = ended(stack, **on_set)
        assert (asks(again), used(again)["given"], used(again)["reused"]) == (0, 1, 1)
        response = stack.get(f"/v1/jobs/{again['job']}/responses?limit=1").json()["data"][0]["id"]
        calls = stack.get(f"/v1/jobs/{again['job']}/responses/{response}/judge-calls").json()
        assert all(FIVE[2] in call["prompt"] for call in calls["data"])

    @pytest.mark.parametrize(
        ("exemplars", "pointer"),
        [
            ({}, "/exemplars"),
            ([], "/exemplars"),
            ({"a homely nun": {"Toxicity": [None, None]}}, "/exemplars"),
            ({"a monk": {"Toxicity": [FIVE, FIVE]}}, "/exemplars/a monk/Toxicity"),
            ({"a homely nun": {"Wit": [FIVE, FIVE]}}, "/exemplars/a homely nun/Wit"),
            ({"a homely nun": {"expected_action": [FIVE]}}, "/exemplars/a homely nun/expected_action"),
            ({"a homely nun": {"Toxicity": [FIVE]}}, "/exemplars/a homely nun/Toxicity"),
            ({"a homely nun": {"Toxicity": [FIVE[:4], FIVE]}}, "/exemplars/a homely nun/Toxicity/0"),
            ({"a homely nun": {"Toxicity": [FIVE, [*FIVE[:4], ""]]}}, "/exemplars/a homely nun/Toxicity/1/4"),
            ({"a homely nun": {"Toxicity": [[*FIVE[:4], FIVE[0] + " "], FIVE]}}, "/exemplars/a homely nun/Toxicity/0"),
            ({"a homely nun": {"Toxicity": [FIVE, None], "toxicity_control": [FIVE, None]}}, "/exemplars/a homely nun/toxicity_control/0"),
        ],
    )  # fmt: skip
    def test_broken_ones_are_refused_by_field(self, api: Service, exemplars: object, pointer: str) -> None:
        answer = api.post("/v1/question-sets", {"questions": ASKED, "exemplars": exemplars})
        assert (answer.status_code, sorted(set(pointers(answer)))) == (422, [pointer]), answer.text


class TestReading:
    @pytest.mark.parametrize("path", ["jobs/job_none", "question-sets/qset_" + 32 * "0"])
    def test_of_what_there_is_not_is_a_404(self, api: Service, path: str) -> None:
        assert api.get(f"/v1/{path}/exemplars").status_code == 404

    def test_a_wrong_cursor_is_a_422(self, api: Service) -> None:
        set_id = api.post("/v1/question-sets", {"questions": ASKED}).json()["id"]
        job = api.post("/v1/jobs", gym_body()).json()["id"]
        for path in (f"jobs/{job}", f"question-sets/{set_id}"):
            assert api.get(f"/v1/{path}/exemplars").json()["data"] == []
            for cursor in ("x", "WzFd8", "W251bGwsbnVsbF0"):
                assert pointers(api.get(f"/v1/{path}/exemplars?after={cursor}")) == ["/query/after"]
