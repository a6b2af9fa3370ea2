"""From grades to PersonaScore, with the arithmetic, and the paper's Table 1."""

import csv
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pytest

from app.domain.judging.verdict import REFUSED, UNPARSED, Verdict, VerdictStatus
from app.domain.metrics.cell import UnitCounts
from app.domain.metrics.metric import Metric
from app.domain.personagym.scores import (
    NO_GRADE,
    NO_PERSONA,
    Grade,
    GymResponses,
    GymTally,
    Spread,
    TaskScore,
    persona_results,
    persona_score,
)
from app.domain.results.personagym_results import PersonaScoreTotal, gym_results

PUBLISHED = Path(__file__).parents[3] / "golden" / "published_personagym.csv"
TASKS = (
    "expected_action",
    "action_justification",
    "linguistic_habits",
    "persona_consistency",
    "toxicity_control",
)
FAILED = Verdict(VerdictStatus.FAILED)


def published_rows() -> list[dict[str, str]]:
    with PUBLISHED.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def grade(
    score: int | Verdict,
    *,
    question: str = "1",
    judge: str = "a",
    run: int = 0,
    persona: str = "p",
    task: str = "t",
    model: str = "m",
) -> Grade:
    verdict = score if isinstance(score, Verdict) else Verdict(VerdictStatus.SCORED, score)
    return Grade(model, persona, task, question, run, judge, verdict)


def score_of(grades: list[Grade]) -> Metric:
    (result,) = persona_results(grades, ["t"])
    return metric_of(result.tasks["t"])


def metric_of(score: TaskScore | Spread) -> Metric:
    """The figure without what stands beside it."""
    return Metric(
        **{name: value for name, value in score.to_json().items() if name in ("value", "n", "reason")}
    )


def totals_of(grades: list[Grade], tasks: Sequence[str]) -> Sequence[PersonaScoreTotal]:
    return gym_results([], grades, tasks, 1).persona_score_totals


class TestPublishedTable1:
    @pytest.mark.parametrize("row", published_rows(), ids=lambda row: row["model"])
    def test_the_persona_score_follows_from_the_task_scores(self, row: dict[str, str]) -> None:
        score = persona_score({task: Metric.of(float(row[task]), 200) for task in TASKS})
        assert score.n == 5
        assert f"{score.value:.2f}" == row["persona_score"]

    @pytest.mark.parametrize("row", published_rows(), ids=lambda row: row["model"])
    def test_grades_with_the_printed_means_give_the_printed_row(self, row: dict[str, str]) -> None:
        # 100 questions a task, 20 for each of 5 personas; 3.96 is 96 grades of 4 and 4 of 3.
        grades = []
        for task in TASKS:
            low, above = divmod(round(float(row[task]) * 100), 100)
            grades += [
                grade(low + (n < above), question=str(n), persona=str(n % 5), task=task, model=row["model"])
                for n in range(100)
            ]
        (total,) = totals_of(grades, TASKS)
        assert [f"{total.tasks[task].value:.2f}" for task in TASKS] == [row[task] for task in TASKS]
        assert f"{total.persona_score.value:.2f}" == row["persona_score"]
        assert total.persona_score.n == 5


class TestTaskScore:
    def test_evaluators_are_averaged_before_questions(self) -> None:
        # Question 1: (4 + 5) / 2 = 4.5; question 2: 3 by one evaluator only; task (4.5 + 3) / 2 = 3.75.
        grades = [
            grade(4),
            grade(5, judge="b"),
            grade(3, question="2"),
            grade(UNPARSED, question="2", judge="b"),
        ]
        assert score_of(grades) == Metric.of(3.75, 2)

    def test_a_question_weighs_no_more_for_more_runs(self) -> None:
        # Question 1: (1 + 2 + 3) / 3 = 2; question 2: 4; task (2 + 4) / 2 = 3, not (1 + 2 + 3 + 4) / 4 = 2.5.
        grades = [grade(1), grade(2, run=1), grade(3, run=2), grade(4, question="2")]
        assert score_of(grades) == Metric.of(3.0, 2)

    def test_each_evaluator_has_a_score_of_its_own(self) -> None:
        grades = [
            grade(4),
            grade(5, judge="b"),
            grade(2, question="2"),
            grade(REFUSED, question="2", judge="b"),
        ]
        (result,) = persona_results(grades, ["t"])
        assert result.tasks["t"].by_judge == {"a": Metric.of(3.0, 2), "b": Metric.of(5.0, 1)}

    def test_grades_without_a_score_are_counted_by_status_and_in_no_mean(self) -> None:
        grades = [
            grade(5),
            grade(UNPARSED, question="2"),
            grade(REFUSED, question="3"),
            grade(FAILED, question="4"),
        ]
        (result,) = persona_results(grades, ["t"])
        assert metric_of(result.tasks["t"]) == Metric.of(5.0, 1)
        assert result.tasks["t"].questions == 4
        assert result.tasks["t"].grades == UnitCounts.of(scored=1, unparsed=1, refused=1, failed=1)

    def test_without_any_grade_it_is_missing_with_a_reason(self) -> None:
        assert score_of([grade(FAILED)]) == Metric.missing(NO_GRADE)


class TestPersonaScore:
    def test_is_the_mean_of_the_job_s_tasks(self) -> None:
        grades = [grade(2), grade(4, question="2"), grade(5, task="u")]
        (result,) = persona_results(grades, ["t", "u"])
        assert result.persona_score == Metric.of(4.0, 3)  # ((2 + 4) / 2 + 5) / 2, of three questions

    def test_is_missing_as_soon_as_one_task_is(self) -> None:
        (result,) = persona_results([grade(2), grade(FAILED, task="u")], ["t", "u", "v"])
        assert result.persona_score == Metric.missing("task_without_score: no score for u, v")
        assert list(result.tasks) == ["t", "u", "v"]

    def test_models_and_personas_are_sorted_and_kept_apart(self) -> None:
        grades = [grade(n, model=m, persona=p) for n, (m, p) in enumerate(product("yx", "qp"), 1)]
        assert [(r.model, r.persona, r.persona_score.value) for r in persona_results(grades, ["t"])] == [
            ("x", "p", 4.0),
            ("x", "q", 3.0),
            ("y", "p", 2.0),
            ("y", "q", 1.0),
        ]

    def test_a_grade_of_another_task_is_an_error(self) -> None:
        with pytest.raises(ValueError, match="not to u"):
            persona_results([grade(1, task="u")], ["t"])

    def test_two_grades_of_one_response_by_one_evaluator_are_an_error(self) -> None:
        with pytest.raises(ValueError, match="one entry"):
            persona_results([grade(1), grade(2)], ["t"])


class TestModelTotals:
    def test_mean_and_sample_standard_deviation_are_over_personas(self) -> None:
        # Personas' scores 2, 3 and 5: mean 10/3; squares of the distances 16/9 + 1/9 + 25/9 = 42/9, / (3 - 1) = 7/3.
        grades = [grade(score, persona=str(score)) for score in (2, 3, 5)]
        (total,) = totals_of(grades, ["t"])
        assert total.tasks["t"].value == pytest.approx(10 / 3)
        assert total.tasks["t"].n == 3
        assert total.tasks["t"].sd == pytest.approx((7 / 3) ** 0.5)
        assert total.persona_score.to_json() == total.tasks["t"].model_dump(
            exclude_unset=True, exclude={"coverage"}
        )

    def test_one_persona_has_no_spread_and_a_lost_one_is_left_out(self) -> None:
        (total,) = totals_of([grade(4, persona="p"), grade(FAILED, persona="q")], ["t"])
        assert total.persona_score == Spread(value=4.0, n=1, sd=None, left_out=1)
        assert total.grades == UnitCounts.of(scored=1, failed=1)

    def test_without_any_persona_s_score_it_is_missing(self) -> None:
        (total,) = totals_of([grade(FAILED)], ["t"])
        assert total.persona_score == Spread(value=None, n=0, reason=NO_PERSONA, sd=None, left_out=1)

    def test_no_grades_give_no_totals(self) -> None:
        assert totals_of([], ["t"]) == []


class TestResponses:
    def test_are_of_the_persona_and_of_each_task(self) -> None:
        tallies = [
            GymTally("m", "p", "t", GymResponses.of(planned=3, answered=2, refused=1)),
            GymTally("m", "p", "u", GymResponses.of(planned=2, failed=1)),
            GymTally("m", "q", "t", GymResponses.of(planned=9, answered=9)),
        ]
        (result,) = persona_results([grade(2), grade(5, task="u")], ["t", "u"], tallies=tallies)
        assert result.responses == GymResponses.of(planned=5, answered=2, refused=1, failed=1)
        assert [score.responses.planned for score in result.tasks.values()] == [3, 2]
