"""Agreement by model and task and over personas, of people whose answers are known."""

from collections.abc import Mapping
from itertools import product

import numpy as np
import pytest

from app.domain.labels.annotation import Annotation, Answer, Place
from app.domain.labels.human_agreement import ModelAgreement
from app.domain.labels.human_study import RatedCell, Study

MODELS, PERSONAS, TASKS = ("one", "two"), 12, ("expected_action", "toxicity_control")
CELLS = [
    RatedCell(model, persona, task, graded=True)
    for persona, task, model in product(range(PERSONAS), TASKS, MODELS)
]
QUESTIONS = 2
Scores = dict[tuple[str | None, Place], float]


def grade(annotator: str, place: Place, score: int, dimension: str | None = None) -> Annotation:
    return Annotation(annotator, dimension, place, None, Answer.SCORED, score)


def places() -> list[Place]:
    return [Place(cell, 0, item, None) for cell in range(len(CELLS)) for item in range(QUESTIONS)]


@pytest.fixture(scope="module")
def judges() -> dict[str, Scores]:
    draws = np.random.default_rng(5)
    return {
        name: {(None, place): float(draws.integers(1, 6)) for place in places()}
        for name in ("mild", "strict")
    }


@pytest.fixture(scope="module")
def people(judges: dict[str, Scores]) -> list[Annotation]:
    """Two people who say about what the judge ``mild`` says."""
    draws = np.random.default_rng(6)

    def near(score: float) -> int:
        return int(np.clip(round(score + draws.normal(0, 1)), 1, 5))

    return [
        grade(name, place, near(judges["mild"][None, place]))
        for place in places()
        for name in ("anna", "ben")
    ]


def means(people: list[Annotation]) -> dict[Place, float]:
    found: dict[Place, list[int]] = {}
    for each in people:
        assert each.score is not None
        found.setdefault(each.place, []).append(each.score)
    return {place: float(np.mean(given)) for place, given in found.items()}


def rows(study: Study) -> dict[tuple[str | None, str | None, str | None], ModelAgreement]:
    return {(each.model, each.task, each.judge): each for each in study.agreement()}


class TestByModelAndTask:
    def test_each_judge_and_their_mean_is_scipys(
        self, people: list[Annotation], judges: dict[str, Scores]
    ) -> None:
        from scipy import stats

        found = rows(Study(people, CELLS, judges, 0))
        assert len(found) == len(MODELS) * (len(TASKS) + 1) * 3
        said = means(people)
        for model, task, judge in product(MODELS, TASKS, ("mild", "strict", None)):
            mine = [place for place in places() if CELLS[place.cell][::2] == (model, task)]
            asked = [judge] if judge else list(judges)
            judged = [np.mean([judges[each][None, place] for each in asked]) for place in mine]
            given = [said[place] for place in mine]
            row = found[model, task, judge]
            assert row.spearman_rho is not None
            assert row.kendall_tau.value == pytest.approx(stats.kendalltau(given, judged).statistic)
            assert row.spearman_rho.value == pytest.approx(stats.spearmanr(given, judged).statistic)
            assert (row.kendall_tau.n, row.personas, row.left_out) == (PERSONAS * QUESTIONS, PERSONAS, 0)
            assert row.kendall_tau.ci95 is not None

    def test_who_agrees_has_a_small_p_and_who_does_not_a_large_one(
        self, people: list[Annotation], judges: dict[str, Scores]
    ) -> None:
        found = rows(Study(people, CELLS, judges, 0))
        for model, task in product(MODELS, TASKS):
            mild, strict = found[model, task, "mild"], found[model, task, "strict"]
            assert mild.kendall_p is not None
            assert mild.kendall_p <= 0.01
            assert mild.spearman_p is not None
            assert mild.spearman_p <= 0.01
            assert strict.kendall_p is not None
            assert strict.kendall_p > 0.05

    def test_what_a_judge_has_not_scored_is_counted(
        self, people: list[Annotation], judges: dict[str, Scores]
    ) -> None:
        without = {place for place in places() if place.cell == 0}
        fewer = judges | {"mild": {key: v for key, v in judges["mild"].items() if key[1] not in without}}
        found = rows(Study(people, CELLS, fewer, 0))
        assert found["one", TASKS[0], "mild"].left_out == QUESTIONS
        assert found["one", TASKS[0], None].left_out == 0
        assert found["one", None, "mild"].left_out == 1
        assert found["one", None, "mild"].kendall_tau.n == PERSONAS - 1

    def test_the_order_of_annotations_does_not_matter(
        self, people: list[Annotation], judges: dict[str, Scores]
    ) -> None:
        one, other = Study(people, CELLS, judges, 0), Study(people[::-1], CELLS, judges, 0)
        assert one.agreement() == other.agreement()
        assert one.among_annotators() == other.among_annotators()


class TestPersonaScore:
    def test_is_the_mean_over_tasks_of_the_mean_over_questions_of_people_and_of_judges(
        self, people: list[Annotation], judges: dict[str, Scores]
    ) -> None:
        from scipy import stats

        found = rows(Study(people, CELLS, judges, 0))
        said = means(people)

        def score(given: Mapping[Place, float], model: str, persona: int) -> float:
            return float(
                np.mean(
                    [v for place, v in given.items() if CELLS[place.cell][:2] == (model, persona)]
                )  # as many questions to each task
            )

        for model, judge in product(MODELS, ("mild", "strict", None)):
            asked = [judge] if judge else list(judges)
            judged = {place: float(np.mean([judges[j][None, place] for j in asked])) for place in places()}
            one = [score(said, model, persona) for persona in range(PERSONAS)]
            other = [score(judged, model, persona) for persona in range(PERSONAS)]
            row = found[model, None, judge]
            assert row.spearman_rho is not None
            assert row.spearman_rho.value == pytest.approx(stats.spearmanr(one, other).statistic)
            assert row.kendall_tau.value == pytest.approx(stats.kendalltau(one, other).statistic)
            assert row.kendall_tau.n == PERSONAS

    def test_leaves_out_personas_whose_tasks_are_not_all_graded(
        self, people: list[Annotation], judges: dict[str, Scores]
    ) -> None:
        lost = [n for n, cell in enumerate(CELLS) if cell.persona < 5 and cell.task == TASKS[1]]
        fewer = [each for each in people if each.place.cell not in lost]
        row = rows(Study(fewer, CELLS, judges, 0))["one", None, None]
        assert (row.kendall_tau.n, row.left_out) == (PERSONAS - 5, 5)

    def test_a_task_with_more_answers_does_not_weigh_more(self) -> None:
        cells = [RatedCell("m", persona, task, graded=True) for persona in range(3) for task in TASKS]
        scores: Scores = {}
        said = []
        for persona in range(3):
            for item in range(5):  # five questions of the first task, one of the second
                place = Place(2 * persona, 0, item, None)
                scores[None, place] = 1.0
                said.append(grade("anna", place, persona + 1))
            place = Place(2 * persona + 1, 0, 0, None)
            scores[None, place] = (1.0, 5.0, 3.0)[persona]
            said.append(grade("anna", place, 5 - 2 * persona))
        # PersonaScores of people 3, 2.5 and 2, of the judge 1, 3 and 2; were all answers one mean, people's would rise.
        row = rows(Study(said, cells, {"judge": scores}, 0))["m", None, "judge"]
        assert row.kendall_tau.value == pytest.approx(-1 / 3)


class TestPairs:
    def pair(self, annotator: str, n: int, answer: Answer) -> Annotation:
        return Annotation(annotator, "E", Place(0, 2 * n, 0, 0), Place(0, 2 * n + 1, 0, 0), answer, None)

    def study(self, agreeing: int, against: int) -> ModelAgreement:
        judged: Scores = {}
        said = []
        for n in range(agreeing + against):
            judged["E", Place(0, 2 * n, 0, 0)] = 4.0
            judged["E", Place(0, 2 * n + 1, 0, 0)] = 2.0
            answer = Answer.FIRST if n < agreeing else Answer.SECOND
            said += [self.pair(f"person {k}", n, answer) for k in range(6)]
        cells = [RatedCell("m", 0, "essay", graded=False)]
        (row,) = Study(said, cells, {"judge": judged}, 0).agreement()
        return row

    def test_have_kendalls_tau_a_and_a_sign_test_over_pairs_not_over_answers(self) -> None:
        from scipy import stats

        row = self.study(20, 5)
        assert row.kendall_tau.value == pytest.approx(15 / 25)
        assert row.kendall_p == pytest.approx(stats.binomtest(5, 25).pvalue, abs=0.003)
        assert (row.model, row.task, row.spearman_rho, row.kendall_tau.n) == (None, None, None, 25)
        assert self.study(50, 0).kendall_p == 0.0005

    def test_no_relation_has_no_small_p(self) -> None:
        row = self.study(12, 13)
        assert row.kendall_p is not None
        assert row.kendall_p > 0.5


class TestAmongAnnotators:
    def test_alpha_and_kappa_of_two_who_agree_and_of_two_who_do_not(self, judges: dict[str, Scores]) -> None:
        draws = np.random.default_rng(1)
        said = [(place, int(draws.integers(1, 6))) for place in places()]
        same = [grade(name, place, score) for place, score in said for name in ("anna", "ben")]
        for group in Study(same, CELLS, judges, 0).among_annotators():
            assert group.alpha_ordinal is not None
            assert group.alpha_ordinal.value == pytest.approx(1.0)
            assert group.fleiss_kappa.value == pytest.approx(1.0)
            assert (group.annotators, group.n, group.answers) == (2, 48, 96)
        other = [grade("anna", place, score) for place, score in said]
        other += [grade("ben", place, int(draws.integers(1, 6))) for place in places()]
        groups = Study(other, CELLS, judges, 0).among_annotators()
        assert [group.task for group in groups] == list(TASKS)
        for group in groups:
            assert group.alpha_ordinal is not None
            assert group.alpha_ordinal.value == pytest.approx(0.0, abs=0.3)
            assert group.alpha_ordinal.ci95 is not None

    def test_order_of_scores_is_that_of_numbers(self) -> None:
        """2 and 10 are farther apart than 9 and 10; as words they would not be."""
        cells = [RatedCell("m", persona, "essay", graded=False) for persona in range(6)]

        def alpha(pairs: list[tuple[int, int]]) -> float:
            said = [
                grade(name, Place(n, 0, 0, 0), score, "E")
                for n, given in enumerate(pairs)
                for name, score in zip(("anna", "ben"), given, strict=True)
            ]
            (group,) = Study(said, cells, {}, 0).among_annotators()
            assert group.alpha_ordinal is not None
            assert group.alpha_ordinal.value is not None
            return group.alpha_ordinal.value

        rest = [(1, 1), (2, 2), (5, 5), (9, 9), (10, 10)]
        assert alpha([*rest, (9, 10)]) > alpha([*rest, (2, 10)])
