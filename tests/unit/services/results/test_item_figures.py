"""Figures item by item, with the arithmetic, and what tells an item from another."""

from app.db.jobs.preparations import StoredStep
from app.db.results.result_queries import ScoreRow
from app.domain.jobs.plan import gym
from app.domain.judging.verdict import Verdict, VerdictStatus
from app.domain.personagym.scores import Grade
from app.domain.results.comparison import TASK_SCORE
from app.services.results.item_figures import ItemFigures, item_figures
from tests.unit.domain.jobs.test_personagym_resolve import resolved
from tests.unit.services.results.test_compute import CONTEXT

QUESTIONNAIRE = next(cell for cell in CONTEXT.cells if cell.persona.id == "E-high")


def row(item: int, run: int, *scores: int, judge: int = 0) -> ScoreRow:
    return ScoreRow(QUESTIONNAIRE.ordinal, 0, judge, run, run, list(scores), 0, 0, 0, 0, item)


def values(figures: ItemFigures, metric: str) -> dict[str, float | None]:
    return {place.item: figure.value for (name, place), figure in figures.items() if name == metric}


class TestAtomic:
    def test_an_items_metric_is_over_the_runs_and_judges_that_have_it(self) -> None:
        # Level high is 4 and 5. Item 0, judge 0: runs 1/2 and 1; judge 1: run 0 only, 0. So (3/4 + 0)/2.
        rows = [row(0, 0, 5, 1), row(0, 1, 4), row(0, 0, 3, judge=1), row(1, 0, 2)]
        found = item_figures([QUESTIONNAIRE], rows, [], {})
        first, second = (item.text for item in QUESTIONNAIRE.items[:2])  # type: ignore[attr-defined]  # an atomic cell
        assert values(found, "acc_atom") == {first: 0.375, second: 0.0}
        assert values(found, "rc_atom")[second] is None
        assert {place[:4] for _, place in found} == {("E-high", "questionnaire", "E", "high")}
        assert item_figures([QUESTIONNAIRE], rows[::-1], [], {}) == found

    def test_an_item_without_a_score_says_why(self) -> None:
        figures = item_figures([QUESTIONNAIRE], [row(0, 0)], [], {})
        assert {figure.reason for (name, _), figure in figures.items() if name == "mean"} == {
            "no_scored_unit: no unit of the cell has a score"
        }


class TestPersonaGym:
    def test_a_questions_score_is_over_its_runs_and_its_words_are_its_name(self) -> None:
        [cell] = gym(resolved().cells)[:1]
        step = StoredStep(
            cell.person, "questions", cell.task.id, 0, 1, "ready", ["Where to?", "And then?"], 0, None
        )

        def grade(question: int, run: int, score: int | None) -> Grade:
            status = VerdictStatus.UNPARSED if score is None else VerdictStatus.SCORED
            verdict = Verdict(status, score)
            return Grade("m", cell.persona.id, cell.task.id, str(question), run, "j", verdict)

        grades = [grade(0, 0, 4), grade(0, 1, 1), grade(1, 0, None)]
        found = item_figures([cell], [], grades, {(cell.person, cell.task.id): step})
        assert values(found, TASK_SCORE) == {"Where to?": 2.5, "And then?": None}
