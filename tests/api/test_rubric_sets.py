"""Rubric sets through the API."""

from typing import Any

import pytest

from tests.api.service import Json, Service, job_body, pointers
from tests.api.test_personagym import gym_body
from tests.rubrics import OFFICIAL, TASK_OF

FIVE = ["One.", "Two.", "Three.", "Four.", "Five."]
WHOLE = "{persona} {question} {response} {score_example}"
WIT = {"title": "Wit", "description": "Witty.", "guidelines": FIVE, "question_criteria": "Invite jokes."}
DIARY = {
    "title": "Diary",
    "items": "essay_context",
    "prompt": "Write about {context}",
    "scoring_prompt": "{atomic unit} {options}",
}
GYM, ESSAY = "toxicity_control", "essay"


class TestRubricSets:
    def test_the_released_files_go_in_unchanged_and_come_back_by_task(self, api: Service) -> None:
        sent = api.post("/v1/rubric-sets", {"name": "released", "tasks": OFFICIAL})
        assert sent.status_code == 201, sent.text[:500]
        kept = sent.json()
        assert {id_: words["rubric"] for id_, words in kept["tasks"].items()} == {
            TASK_OF[name]: text for name, text in OFFICIAL.items()
        }
        assert api.get(sent.headers["Location"]).json() == kept
        again = api.post(
            "/v1/rubric-sets", {"tasks": {TASK_OF[n]: {"rubric": t} for n, t in OFFICIAL.items()}}
        )
        assert again.json() == kept  # also the name, which the first to send it gave
        (listed,) = [one for one in api.walk("/v1/rubric-sets", limit=500) if one["id"] == kept["id"]]
        assert (listed["name"], listed["tasks"]) == ("released", 5)

    def test_a_job_plans_with_the_sets_tasks_and_words(self, api: Service) -> None:
        kept = api.post("/v1/rubric-sets", {"tasks": {"wit": WIT, "diary": DIARY}}).json()["id"]
        of_gym = gym_body(tasks=[{"task": "wit", "questions": 3}], rubrics=kept)
        plan = api.post("/v1/jobs/plan", of_gym)
        assert plan.status_code == 200, plan.text
        assert plan.json()["responses"] == 3
        assert pointers(api.post("/v1/jobs/plan", of_gym | {"rubrics": None}))[0] == "/tasks/0/task"
        diary = api.post("/v1/jobs/plan", job_body(tasks=["diary"], rubrics=kept))
        assert diary.status_code == 200, diary.text

    def test_questions_of_its_tasks_make_a_set_that_other_jobs_take_the_rest_of(self, api: Service) -> None:
        rubrics = api.post("/v1/rubric-sets", {"tasks": {"wit": WIT}}).json()["id"]
        asked = {"a homely nun": {"Wit": ["Knock?"], "Toxicity": ["Why?"]}}
        assert pointers(api.post("/v1/question-sets", {"questions": asked})) == [
            "/questions/a homely nun/Wit"
        ]
        kept = api.post("/v1/question-sets", {"questions": asked, "rubrics": rubrics})
        assert kept.status_code == 201, kept.text
        body = gym_body(tasks=["toxicity_control"], questions=kept.json()["id"])
        assert api.post("/v1/jobs/plan", body).json()["responses"] == 1
        both = body | {"tasks": ["toxicity_control", "wit"], "rubrics": rubrics}
        assert api.post("/v1/jobs/plan", both).json()["responses"] == 2
        unknown = {"questions": asked, "rubrics": "rset_" + 32 * "0"}
        assert pointers(api.post("/v1/question-sets", unknown)) == ["/rubrics"]


def of_task(name: str, words: Any) -> Json:
    return {"tasks": {name: words}}


def without(words: Json, name: str) -> Json:
    return {key: value for key, value in words.items() if key != name}


class TestBadInput:
    @pytest.mark.parametrize(
        ("body", "wrong"),
        [
            ({}, [""]),
            ({"name": "empty"}, [""]),
            ({"tasks": {}}, [""]),
            ({"tasks": []}, ["/tasks"]),
            ({"tasks": "Toxicity"}, ["/tasks"]),
            ({"rubrics": {}}, ["/rubrics"]),
            ({"name": "two\nlines", "rubric": WHOLE}, ["/name"]),
            ({"rubric": ""}, ["/rubric"]),
            ({"rubric": 5}, ["/rubric"]),
            ({"rubric": WHOLE}, ["/rubric"]),
            ({"rubric": WHOLE + "{task}{task_description}{guidelines}{judge}"}, ["/rubric"]),
            ({"rubric": "x" * 20_001}, ["/rubric"]),
            ({"score_examples": "{persona} {question}"}, ["/score_examples"]),
            ({"score_examples": "{persona} {question} {rubric} {score}"}, ["/score_examples"]),
            (of_task(GYM, None), [f"/tasks/{GYM}"]),
            (of_task(GYM, 5), [f"/tasks/{GYM}"]),
            (of_task(GYM, []), [f"/tasks/{GYM}"]),
            (of_task(GYM, {}), [f"/tasks/{GYM}"]),
            (of_task(GYM, " \n"), [f"/tasks/{GYM}"]),
            (of_task(GYM, "{persona} {question} {response}"), [f"/tasks/{GYM}"]),
            (of_task(GYM, WHOLE + "{Response}"), [f"/tasks/{GYM}"]),
            (of_task(GYM, {"rubric": "{persona}"}), [f"/tasks/{GYM}/rubric"]),
            (of_task(GYM, {"rubric": WHOLE, "description": "x"}), [f"/tasks/{GYM}/description"]),
            (of_task(GYM, {"rubric": WHOLE, "guidelines": FIVE}), [f"/tasks/{GYM}/guidelines"]),
            (of_task(GYM, {"guidelines": FIVE[:4]}), [f"/tasks/{GYM}/guidelines"]),
            (of_task(GYM, {"guidelines": [*FIVE, "Six."]}), [f"/tasks/{GYM}/guidelines"]),
            (of_task(GYM, {"guidelines": [*FIVE[:4], ""]}), [f"/tasks/{GYM}/guidelines/4"]),
            (of_task(GYM, {"guidelines": "One."}), [f"/tasks/{GYM}/guidelines"]),
            (of_task(GYM, {"guideline": FIVE}), [f"/tasks/{GYM}/guideline"]),
            (of_task(GYM, {"question_criteria": 1}), [f"/tasks/{GYM}/question_criteria"]),
            (of_task(GYM, {"prompt": "x"}), [f"/tasks/{GYM}/prompt"]),
            (of_task(GYM, {"title": "a\u0000b"}), [f"/tasks/{GYM}/title"]),
            ({"tasks": {GYM: WHOLE, "Toxicity": WHOLE}}, ["/tasks/Toxicity"]),
            (of_task("no such file.txt", WHOLE), ["/tasks/no such file.txt"]),
            (of_task("new", WHOLE), ["/tasks/new"]),
            (of_task("a task", WIT), ["/tasks/a task"]),
            (of_task("a/b", WIT), ["/tasks/a~1b"]),
            (of_task("x" * 101, WIT), ["/tasks/" + "x" * 101]),
            *((of_task("wit", without(WIT, name)), [f"/tasks/wit/{name}"]) for name in WIT),
            (of_task("wit", {"rubric": WHOLE}), ["/tasks/wit/title", "/tasks/wit/question_criteria"]),
            *((of_task("diary", without(DIARY, name)), [f"/tasks/diary/{name}"]) for name in DIARY),
            (of_task("diary", DIARY | {"guidelines": FIVE}), ["/tasks/diary/guidelines"]),
            (of_task("diary", DIARY | {"items": "poems"}), ["/tasks/diary/items"]),
            (of_task("diary", DIARY | {"prompt": "Write."}), ["/tasks/diary/prompt"]),
            (of_task(ESSAY, {"items": "common"}), ["/tasks/essay/items"]),
            (of_task(ESSAY, {"prompt": "{question}"}), ["/tasks/essay/prompt", "/tasks/essay/prompt"]),
            (of_task(ESSAY, {"scoring_prompt": "{atomic unit}"}), ["/tasks/essay/scoring_prompt"]),
            (of_task(ESSAY, {"scoring_prompt": "{atomic unit}{options}{question}"}), ["/tasks/essay/scoring_prompt"]),
            (of_task(ESSAY, "Judge {atomic unit}"), [f"/tasks/{ESSAY}"]),
            ({"tasks": {f"t{n}": WIT for n in range(51)}}, ["/tasks"]),
        ],
    )  # fmt: skip
    def test_is_a_422_that_names_the_field(self, api: Service, body: Json, wrong: list[str]) -> None:
        before = len(list(api.walk("/v1/rubric-sets", limit=500)))
        answer = api.post("/v1/rubric-sets", body)
        assert (answer.status_code, sorted(set(pointers(answer)))) == (422, sorted(set(wrong))), answer.text
        assert all(len(error["message"]) > 5 for error in answer.json()["errors"])
        assert len(list(api.walk("/v1/rubric-sets", limit=500))) == before

    @pytest.mark.parametrize("id_", ["rset_1", "rset_" + 32 * "g", "qset_" + 32 * "0"])
    def test_a_set_that_there_is_not_is_a_404_or_a_422(self, api: Service, id_: str) -> None:
        assert api.get(f"/v1/rubric-sets/{id_}").status_code in {404, 422}
        assert pointers(api.post("/v1/jobs/plan", gym_body(rubrics=id_))) == ["/rubrics"]
