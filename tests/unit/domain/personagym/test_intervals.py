"""Intervals of PersonaScores: questions for a persona, personas for a model; never the order of grades."""

import random
from typing import Any

import pytest

from app.domain.personagym.scores import Grade, GymResponses, GymTally
from app.domain.results.personagym_results import gym_results
from tests.unit.domain.personagym.test_scores import grade
from tests.unit.gym_sample import document_of

PERSONAS = [f"p{n}" for n in range(6)]


def grades_of(questions: int) -> list[Grade]:
    draw = random.Random(2)
    return [
        grade(draw.randint(1, 5), persona=persona, task=task, question=str(question), judge=judge)
        for persona in PERSONAS
        for task in ("t", "u")
        for question in range(questions)
        for judge in "ab"
    ]


def found(grades: list[Grade]) -> dict[str, Any]:
    tallies = [
        GymTally("m", persona, task, GymResponses.of(planned=6, answered=5, refused=n % 2))
        for n, persona in enumerate(PERSONAS)
        for task in ("t", "u")
    ]
    return document_of(gym_results(tallies, grades, ["t", "u"], 2, 0))


class TestCoverage:
    def test_a_judge_that_has_graded_nothing_is_missing_too(self) -> None:
        grades = [each for each in grades_of(6) if each.judge == "a"]
        (total,) = found(grades)["persona_score_totals"]
        # 6 personas × 2 tasks × 6 responses × 2 judges are planned
        assert total["coverage"] == {"share": 0.5, "counted": 72, "refused": 0, "planned": 144}
        low, high = total["corrected"]["persona_score_bounds"]
        assert low == pytest.approx((total["persona_score"]["value"] + 1) / 2)
        assert high == pytest.approx((total["persona_score"]["value"] + 5) / 2)


class TestIntervals:
    def test_every_figure_lies_in_its_interval(self) -> None:
        document = found(grades_of(6))
        (total,) = document["persona_score_totals"]
        figures = [total["persona_score"], total["refusal_rate"], *total["tasks"].values()]
        for row in document["persona_scores"]:
            figures += [row["persona_score"], *row["tasks"].values(), row["tasks"]["t"]["by_judge"]["a"]]
        assert len(figures) == 4 + 6 * 4
        for figure in figures:
            low, high = figure["ci95"]
            assert low <= figure["value"] <= high
            assert low < high

    def test_the_order_of_grades_changes_no_byte(self) -> None:
        grades = grades_of(6)
        assert found(random.Random(1).sample(grades, len(grades))) == found(grades)

    def test_a_persona_score_adds_up_its_tasks_variances(self) -> None:
        # Questions 1, 3 in t (s² = 2) and 2, 4, 4 in u (s² = 4/3): error √(2/2 + (4/3)/3) / 2 = 0.6009, value 8/3.
        # Degrees by Welch and Satterthwaite: (1 + 4/9)² / (1²/1 + (4/9)²/2) = 1.899, so 1: t = 12.7062.
        scores = [("t", 1), ("t", 3), ("u", 2), ("u", 4), ("u", 4)]
        grades = [
            grade(score, persona="p0", task=task, question=str(n)) for n, (task, score) in enumerate(scores)
        ]
        row = found(grades)["persona_scores"][0]
        assert row["persona_score"]["value"] == pytest.approx((2 + 10 / 3) / 2)
        assert row["persona_score"]["ci95"] == [1.0, 5.0]  # 2.67 ± 7.6, within the scale
        assert row["tasks"]["t"]["ci95_reason"] == "too_few_questions: 2 questions; an interval needs 5"

    def test_one_question_a_task_tells_no_spread(self) -> None:
        row = found(grades_of(1))["persona_scores"][0]
        assert row["persona_score"]["ci95_reason"].startswith("single_questions:")
