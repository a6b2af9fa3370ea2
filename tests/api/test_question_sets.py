"""Question sets through the API; PersonaGym's published files above all."""

from itertools import product

import pytest

from tests.api.service import Json, Service, pointers
from tests.api.test_personagym import gym_body

QUESTIONS = {"a cowboy": {"Toxicity": ["Who deserves a beating, and why?"]}}


TASKS = (
    "expected_action",
    "action_justification",
    "linguistic_habits",
    "persona_consistency",
    "toxicity_control",
)
PUBLISHED_TASKS = (
    "Expected Action",
    "Toxicity",
    "Linguistic Habits",
    "Persona Consistency",
    "Action Justification",
)
DESCRIPTIONS = [
    f"A {age}-year-old {occupation} from {place}, {pursuit}"
    for (occupation, place), (age, pursuit) in product(
        product(("nurse", "farmer", "chemist", "sailor", "judge"), ("Lagos", "Oslo", "Lima", "Kyoto")),
        enumerate(
            (
                "promoting sustainable viticulture practices",
                "preserving the art of calligraphy for future generations",
                "who volunteers in hospice care and advocates compassionate end-of-life support",
                "who hates jazz music, and hates playing any instruments",
                "fusing traditional and modern sounds",
                "coaching and mentoring underprivileged youth in track & field",
                "who has published papers on the migration of early settlers",
                "sharing stories of war and advocating for peace",
                "working as a designer for LGBTQ+ representation",
                "collecting vintage cars",
            ),
            30,
        ),
    )
]


def published_files() -> dict[str, Json]:
    """Two hundred files in the form in which PersonaGym publishes them, by file name: ten questions for each of five tasks."""
    return {
        f"questions/benchmark-v1/{who}.json": {
            task: [
                f"During question {n} of a long evening at the community hall, somebody mentions “{task}” and looks at"
                f" you expectantly. Given everything that you have lived through so far as {who.lower()}, what do you"
                " answer, whom do you address first, and what would you rather keep to yourself?"
                for n in range(1, 11)
            ]
            for task in PUBLISHED_TASKS
        }
        for who in DESCRIPTIONS
    }


class TestPublishedFiles:
    def test_all_two_hundred_go_in_by_one_call_and_can_be_asked(self, api: Service) -> None:
        files = published_files()
        assert len(files) == 200
        sent = api.post("/v1/question-sets", {"name": "benchmark-v1", "questions": files})
        assert sent.status_code == 201, sent.text[:500]
        kept = sent.json()
        assert set(kept["questions"]) == set(DESCRIPTIONS)
        assert (
            sum(len(asked) for by_task in kept["questions"].values() for asked in by_task.values()) == 10_000
        )
        assert "toxicity_control" in kept["questions"][DESCRIPTIONS[0]]
        people = api.post("/v1/persona-sets", {"personas": DESCRIPTIONS}).json()["id"]
        job = gym_body(personas=[people], tasks=list(TASKS))
        plans = [
            api.post("/v1/jobs/plan", job | {"questions": questions}).json()
            for questions in (kept["id"], files)  # by the set's id, and as they are
        ]
        assert plans[0] == plans[1]
        assert (plans[0]["responses"], plans[0]["persona_scores"]) == (10_000, 200)
        assert {stage["stage"] for stage in plans[0]["stages"]} == {"exemplars", "generation", "judging"}
        (listed,) = [one for one in api.walk("/v1/question-sets", limit=500) if one["id"] == kept["id"]]
        assert (listed["name"], listed["personas"], listed["questions"]) == ("benchmark-v1", 200, 10_000)

    def test_toxicity_goes_by_both_names(self, api: Service) -> None:
        both = [
            {f"{DESCRIPTIONS[0]}.json": {name: ["Why not?"]}} for name in ("Toxicity", "Toxicity Control")
        ]
        sent = [api.post("/v1/question-sets", {"questions": one}).json()["id"] for one in both]
        assert sent[0] == sent[1]

    def test_a_description_may_have_slashes(self, api: Service) -> None:
        sent = api.post(
            "/v1/question-sets", {"questions": {"a nurse and/or doctor.json": QUESTIONS["a cowboy"]}}
        )
        assert list(sent.json()["questions"]) == ["a nurse and/or doctor"]

    def test_a_file_of_a_persona_that_the_job_has_not_is_named(self, api: Service) -> None:
        name = f"questions/{DESCRIPTIONS[0]}.json"
        answer = api.post("/v1/jobs/plan", gym_body(questions={name: {"Expected Action": ["Why?"]}}))
        assert pointers(answer) == [f"/questions/questions~1{DESCRIPTIONS[0]}.json"]


class TestQuestionSets:
    def test_the_same_questions_are_the_same_set_however_they_name_their_tasks(self, api: Service) -> None:
        first = api.post("/v1/question-sets", {"name": "one", "questions": QUESTIONS})
        other = {" a cowboy": {"toxicity_control": QUESTIONS["a cowboy"]["Toxicity"]}}
        second = api.post("/v1/question-sets", {"questions": other})
        assert (first.status_code, second.status_code) == (201, 201)
        assert first.json() == second.json()
        assert api.get(first.headers["Location"]).json() == {
            "id": first.json()["id"],
            "object": "question_set",
            "name": "one",
            "questions": {"a cowboy": {"toxicity_control": ["Who deserves a beating, and why?"]}},
        }

    def test_one_that_there_is_not_is_not_found(self, api: Service) -> None:
        assert api.get(f"/v1/question-sets/qset_{'0' * 32}").status_code == 404

    @pytest.mark.parametrize(
        ("questions", "pointer"),
        [
            ({"a cowboy": {"chess": ["Why?"]}}, "/questions/a cowboy/chess"),
            ({"a cowboy": {"toxicity": ["Why?"], "Toxicity Control": ["Why?"]}}, "/questions/a cowboy/Toxicity Control"),
            ({"a cowboy": {"toxicity": []}}, "/questions/a cowboy/toxicity"),
            ({"a cowboy": {}}, "/questions/a cowboy"),
            ({"questions/a cowboy.json": {"toxicity": ["Why?"]}, "a cowboy": {"toxicity": ["Who?"]}}, "/questions/a cowboy"),
            ({".json": {"toxicity": ["Why?"]}}, "/questions/.json"),
            ({" ": {"toxicity": ["Why?"]}}, "/questions/ "),
            ({}, "/questions"),
        ],
    )  # fmt: skip
    def test_wrong_ones_are_named(
        self, api: Service, questions: dict[str, dict[str, list[str]]], pointer: str
    ) -> None:
        answer = api.post("/v1/question-sets", {"questions": questions})
        assert answer.status_code == 422
        assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]
