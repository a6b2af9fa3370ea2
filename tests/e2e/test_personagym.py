"""A whole PersonaGym job against the simulator's record of it, computed without the service's code."""

from collections import Counter, defaultdict
from statistics import fmean, stdev
from typing import Any

import pytest

from tests.e2e.stack import Json, Stack, judged_path
from tests.e2e.truth import Scale, Text, assert_agrees, cell_truth, over_judges

PERSONAS = tuple(f"gym-{n:02}" for n in range(1, 21))
TASKS = (
    "expected_action",
    "action_justification",
    "linguistic_habits",
    "persona_consistency",
    "toxicity_control",
)
ATOMIC, RUNS = "persona_consistency", 2
QUESTIONS = 2
MODELS = ("simulated/sim-drifting", "simulated-anthropic/sim-refusing")
JUDGES = ("simulated/sim-judge-lenient", "simulated-anthropic/sim-judge-harsh")
BIAS = (1, -1)
JOB: Json = {
    "personas": list(PERSONAS),
    "tasks": [
        *({"task": task, "questions": QUESTIONS} for task in TASKS if task != ATOMIC),
        {"task": ATOMIC, "questions": QUESTIONS, "atomic": True, "runs": RUNS},
    ],
    "models": list(MODELS),
    "judges": list(JUDGES),
    "reasoner": "simulated/sim-reasoner",
}
ORDER = (*(task for task in TASKS if task != ATOMIC), ATOMIC)
"""The order of the cells: persona, task, model."""

Answers = dict[tuple[str, str, str], dict[tuple[int, int], list[int]]]
"""By model, persona and task: the true grade, with each judge's bias, by question and run."""


def place_of(cell: int) -> tuple[str, str, str]:
    """Model, persona and task of a cell."""
    return (
        MODELS[cell % len(MODELS)],
        PERSONAS[cell // (len(MODELS) * len(ORDER))],
        ORDER[cell // len(MODELS) % len(ORDER)],
    )


@pytest.fixture(scope="module")
def job(stack: Stack) -> Json:
    return stack.ended(stack.submit(JOB))


@pytest.fixture(scope="module")
def results(stack: Stack, job: Json) -> Json:
    return stack.results(job["id"])


@pytest.fixture(scope="module")
def ledger(stack: Stack, job: Json) -> list[Json]:
    return stack.ledger(job["id"])


@pytest.fixture(scope="module")
def answers(ledger: list[Json]) -> Answers:
    found: Answers = defaultdict(dict)
    for entry in ledger:
        if entry["kind"] == "grade":
            _, cell, run, item, judge = map(str, judged_path(entry["request_id"]).split("/"))
            grades = found[place_of(int(cell))].setdefault((int(item), int(run)), [0, 0])
            grades[int(judge)] = min(max(entry["truth"] + BIAS[int(judge)], 1), 5)
    return found


def task_score(answers: dict[tuple[int, int], list[int]]) -> float:
    """The mean over questions of the mean over runs of the mean over judges."""
    by_question: dict[int, list[float]] = defaultdict(list)
    for (item, _), grades in answers.items():
        by_question[item].append(fmean(grades))
    return fmean(fmean(runs) for runs in by_question.values())


class TestWholeJob:
    def test_is_completed_in_full(self, job: Json) -> None:
        assert (job["status"], job["completeness"]) == ("completed", "full")

    def test_is_called_simulated(self, results: Json) -> None:
        assert results["simulated"] is True

    def test_prepares_each_persona_once_and_not_once_for_each_model(self, ledger: list[Json]) -> None:
        questions = len(PERSONAS) * len(TASKS) * QUESTIONS
        answered = questions // len(TASKS) * (len(TASKS) - 1 + RUNS) * len(MODELS)
        kinds = Counter(entry["kind"] for entry in ledger)
        assert kinds["environments"] == 20
        assert kinds["questions"] == 20 * 5
        assert kinds["exemplars"] == questions == 200
        assert kinds["generation"] == answered == 480
        assert kinds["grade"] == answered * len(JUDGES)
        asked = Counter(judged_path(entry["request_id"]) for entry in ledger)
        assert set(asked.values()) == {1}

    def test_its_stages_add_up(self, job: Json, ledger: list[Json]) -> None:
        kinds = Counter(entry["kind"] for entry in ledger)
        progress: dict[str, Any] = job["progress"]
        assert list(progress) == ["environments", "questions", "exemplars", "generation", "judging"]
        for stage in ("environments", "questions", "exemplars", "generation"):
            assert progress[stage] == {
                "total": kinds[stage],
                "pending": 0,
                "running": 0,
                "succeeded": kinds[stage],
                "failed": 0,
                "estimated": False,
            }
        assert progress["judging"]["succeeded"] == progress["judging"]["total"]
        assert job["usage"]["calls"] == len(ledger)
        by_stage: Counter[str] = Counter()
        for usage in job["usage"]["by_model"]:
            by_stage[usage["stage"]] += usage["calls"]
        assert by_stage["judging"] == kinds["grade"] + kinds["judge"]
        assert [by_stage[s] for s in ("environments", "questions", "exemplars")] == [20, 100, 200]

    def test_every_persona_score_is_the_ground_truths(self, results: Json, answers: Answers) -> None:
        truth = []
        for model in sorted(MODELS):
            for persona in PERSONAS:
                tasks = {task: task_score(answers[model, persona, task]) for task in TASKS}
                truth.append(
                    {
                        "model": model,
                        "persona": persona,
                        "persona_score": {"value": fmean(tasks.values()), "n": QUESTIONS * len(TASKS)},
                        "tasks": {t: {"value": score, "n": QUESTIONS} for t, score in tasks.items()},
                    }
                )
        assert_agrees(results["persona_scores"], truth)

    def test_every_models_score_is_the_mean_over_personas(self, results: Json, answers: Answers) -> None:
        for total in results["persona_score_totals"]:
            scores = {
                task: [task_score(answers[total["model"], persona, task]) for persona in PERSONAS]
                for task in TASKS
            }
            means = [fmean(of_persona) for of_persona in zip(*scores.values(), strict=True)]
            assert_agrees(
                total,
                {
                    "persona_score": {"value": fmean(means), "sd": stdev(means), "n": 20, "left_out": 0},
                    "tasks": {t: {"value": fmean(v), "sd": stdev(v), "n": 20} for t, v in scores.items()},
                },
            )

    def test_refusals_are_a_rate_of_the_model_and_graded_all_the_same(
        self, results: Json, ledger: list[Json]
    ) -> None:
        written: Counter[tuple[str, bool]] = Counter(
            (entry["model"], bool(entry["refusal"])) for entry in ledger if entry["kind"] == "generation"
        )
        rates = {t["model"]: t["refusal_rate"]["value"] for t in results["persona_score_totals"]}
        assert rates["simulated/sim-drifting"] == 0
        refused = written["sim-refusing", True]
        assert refused > 0
        assert rates["simulated-anthropic/sim-refusing"] == pytest.approx(refused / 240)
        graded = {t["model"]: t["grades"]["scored"] for t in results["persona_score_totals"]}
        assert graded["simulated-anthropic/sim-refusing"] == 240 * len(JUDGES)

    def test_judges_agreement_shows_their_bias(self, results: Json, answers: Answers) -> None:
        for agreement in results["judge_agreement"]:
            pairs = [
                grades
                for (_, _, task), found in answers.items()
                if task == agreement["task"]
                for grades in found.values()
            ]
            assert agreement["n"] == len(pairs)
            assert agreement["mean_absolute_difference"]["value"] == pytest.approx(
                fmean(abs(first - second) for first, second in pairs)
            )
            assert agreement["spearman"]["value"] > 0.5

    def test_sentences_of_the_atomic_task_are_judged_as_those_of_the_atomic_framework(
        self, results: Json, ledger: list[Json], answers: Answers
    ) -> None:
        given: dict[tuple[int, int, int], dict[tuple[int, int], int]] = defaultdict(dict)
        for entry in ledger:
            if entry["kind"] == "judge":
                _, cell, run, item, unit, _, judge = judged_path(entry["request_id"]).split("/")
                given[int(cell), int(run), int(judge)][int(item), int(unit)] = entry["given"]
        atomic = {(c["model"], c["persona"]): c for c in results["cells"]}
        assert len(atomic) == len(results["cells"]) == 40
        for ordinal in {ordinal for ordinal, _, _ in given}:
            model, persona, task = place_of(ordinal)
            assert task == ATOMIC
            if "refusing" in model:
                continue  # its refusals' sentences count without being sent
            truth = over_judges(
                [
                    cell_truth(
                        [text for run in range(RUNS) for text in texts_of(given[ordinal, run, judge], run)],
                        Scale(1, 5, 3, target=2),
                    )
                    for judge in range(2)
                ]
            )
            assert_agrees(atomic[model, persona], {"dimension": "persona_consistency", **truth})

    def test_responses_show_question_grades_and_score(
        self, stack: Stack, job: Json, answers: Answers
    ) -> None:
        shown = list(stack.responses(job["id"]))
        assert len(shown) == 480
        for response in shown:
            item = int(response["item"]["id"].removeprefix("Q-")) - 1
            place = response["model"], response["persona"], response["task"]
            grades = answers[place][item, response["run"]]
            assert response["question"] == response["item"]["text"] != ""
            assert [grade["score"] for grade in response["grades"]] == grades
            assert response["score"] == fmean(grades)
            judged = [v for unit in response["units"] for v in unit["verdicts"]]
            assert bool(judged) == (response["task"] == ATOMIC and response["text"] != "")

    def test_judges_disagree_where_their_grades_are_two_points_apart(self, stack: Stack, job: Json) -> None:
        task = "linguistic_habits"
        shown = [response for response in stack.responses(job["id"]) if response["task"] == task]
        grades = {r["id"]: [g["score"] for g in r["grades"]] for r in shown}
        expected = [id_ for id_, scores in grades.items() if max(scores) - min(scores) >= 2]
        wanted = {"task": task, "judges_disagree": "true", "limit": "500"}
        found = stack.api.get(f"/v1/jobs/{job['id']}/responses", params=wanted).json()["data"]
        assert [response["id"] for response in found] == expected
        assert 0 < len(expected) < len(shown)


class TestFrozenQuestions:
    def test_a_job_that_names_the_set_asks_the_same_and_uses_its_exemplars(
        self, stack: Stack, job: Json, results: Json
    ) -> None:
        set_id = results["manifest"]["personagym"]["question_set"]
        body = JOB | {
            "personas": list(PERSONAS[:2]),
            "models": ["simulated/sim-faithful"],
            "questions": set_id,
        }
        body["tasks"] = ["expected_action"]
        again = stack.ended(stack.submit(body))
        assert (again["status"], again["completeness"]) == ("completed", "full")
        kinds = Counter(entry["kind"] for entry in stack.ledger(again["id"]))
        assert kinds == {"generation": 4, "grade": 8}
        asked = {(r["persona"], r["item"]["id"]): r["question"] for r in stack.responses(again["id"])}
        before = {
            (r["persona"], r["item"]["id"]): r["question"]
            for r in stack.responses(job["id"])
            if r["task"] == "expected_action"
        }
        assert asked.items() <= before.items()


def texts_of(given: dict[tuple[int, int], int], run: int) -> list[Text]:
    """One judge's scores of a run's answers."""
    by_item: dict[int, list[int]] = defaultdict(list)
    for (item, _), score in given.items():
        by_item[item].append(score)
    return [
        Text(run, 0, [s for s in scores if s != 9], Counter(not_applicable=scores.count(9)))
        for scores in by_item.values()
    ]
