"""Agreement of two evaluators, with the arithmetic."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.judging.verdict import UNPARSED
from app.domain.metrics.metric import FloatArray, Metric
from app.domain.personagym.agreement import (
    NO_VARIATION,
    agreements,
    mean_absolute_difference,
    spearman,
)
from app.domain.statistics.agreement import NO_DISAGREEMENT, NO_JOINT, quadratic_kappa
from app.domain.statistics.groups import PersonaSample
from tests.unit.domain.personagym.test_scores import grade

NOTHING = np.array([], dtype=np.float64)


def scores(*values: int) -> FloatArray:
    return np.array(values, dtype=np.float64)


class TestQuadraticKappa:
    def test_a_hand_computed_example(self) -> None:
        # Observed: (0 + 1 + 0 + 4) / 4 = 1.25. Expected over the 16 pairs of 1 2 3 5 and 1 3 3 3:
        # 1: 0 + 4 + 4 + 4 = 12; 2: 1 + 1 + 1 + 1 = 4; 3: 4 + 0 + 0 + 0 = 4; 5: 16 + 4 + 4 + 4 = 28; 48 / 16 = 3.
        found = quadratic_kappa(scores(1, 2, 3, 5), scores(1, 3, 3, 3))
        assert found.value == pytest.approx(1 - 1.25 / 3)
        assert found.n == 4

    def test_perfect_agreement_is_one_and_perfect_opposition_minus_one(self) -> None:
        assert quadratic_kappa(scores(1, 2, 5), scores(1, 2, 5)).value == 1.0
        # 1 5 against 5 1: observed 16, expected (0 + 16 + 16 + 0) / 4 = 8.
        assert quadratic_kappa(scores(1, 5), scores(5, 1)).value == -1.0

    def test_a_constant_bias_lowers_it(self) -> None:
        # 2 3 4 against 3 4 5: observed 1; expected 2/3 + 2/3 + 1 = 7/3.
        assert quadratic_kappa(scores(2, 3, 4), scores(3, 4, 5)).value == pytest.approx(1 - 3 / 7)

    @given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=2, max_size=30))
    def test_is_the_usual_formula_over_the_table_of_counts(self, pairs: list[tuple[int, int]]) -> None:
        first, second = (scores(*column) for column in zip(*pairs, strict=True))
        observed = np.zeros((5, 5))
        for one, other in pairs:
            observed[one - 1, other - 1] += 1
        weights = np.subtract.outer(np.arange(5), np.arange(5)) ** 2
        expected = np.outer(observed.sum(1), observed.sum(0)) / len(pairs)
        denominator = (weights * expected).sum()
        value = quadratic_kappa(first, second).value
        if denominator:
            assert value == pytest.approx(1 - (weights * observed).sum() / denominator)
        else:
            assert value is None

    def test_does_not_exist_without_responses_or_expected_disagreement(self) -> None:
        assert quadratic_kappa(NOTHING, NOTHING) == Metric.missing(NO_JOINT)
        assert quadratic_kappa(scores(4, 4), scores(4, 4)) == Metric.missing(NO_DISAGREEMENT)
        assert quadratic_kappa(scores(4, 4), scores(5, 5)).value == 0.0


class TestSpearman:
    def test_a_hand_computed_example_with_a_tie(self) -> None:
        # Ranks of 1 2 3 5: 1 2 3 4; of 1 3 3 4: 1 2.5 2.5 4. Deviations from 2.5: -1.5 -0.5 0.5 1.5 and -1.5 0 0 1.5:
        # products 2.25 + 0 + 0 + 2.25 = 4.5; squares 5 and 4.5; 4.5 / sqrt(5 * 4.5).
        found = spearman(scores(1, 2, 3, 5), scores(1, 3, 3, 4))
        assert found.value == pytest.approx(4.5 / 22.5**0.5)
        assert found.n == 4

    def test_does_not_exist_where_an_evaluator_never_varies(self) -> None:
        assert spearman(scores(1, 2, 3), scores(4, 4, 4)) == Metric.missing(NO_VARIATION)
        assert spearman(NOTHING, NOTHING) == Metric.missing(NO_JOINT)

    def test_is_the_correlation_of_ranks(self) -> None:
        from scipy import stats

        first, second = scores(1, 5, 2, 2, 4, 3), scores(2, 4, 2, 1, 5, 5)
        ranks = np.corrcoef(stats.rankdata(first), stats.rankdata(second))[0, 1]
        assert spearman(first, second).value == pytest.approx(ranks)


class TestMeanAbsoluteDifference:
    def test_is_the_mean_distance(self) -> None:
        assert mean_absolute_difference(scores(1, 2, 5), scores(3, 2, 4)) == Metric.of(
            1.0, 3
        )  # (2 + 0 + 1) / 3

    def test_does_not_exist_without_responses(self) -> None:
        assert mean_absolute_difference(NOTHING, NOTHING) == Metric.missing(NO_JOINT)


class TestAgreements:
    def test_only_responses_that_both_graded_count_and_orders_do_not_matter(self) -> None:
        grades = [
            grade(2, judge="b", question="2"),
            grade(1, judge="a", question="1"),
            grade(UNPARSED, judge="b", question="3"),
            grade(3, judge="a", question="2"),
            grade(1, judge="b", question="1"),
            grade(5, judge="a", question="3"),
        ]
        (found,) = agreements(grades, ["t"])
        assert (found.task, found.judges, found.n) == ("t", ("a", "b"), 2)
        assert found.mean_absolute_difference == Metric.of(0.5, 2)  # (|1 - 1| + |3 - 2|) / 2

    def test_the_same_question_of_other_personas_models_and_runs_is_another_response(self) -> None:
        grades = [
            grade(4, judge=judge, persona=persona, model=model, run=run)
            for judge in "ab"
            for persona in "pq"
            for model in "mn"
            for run in (0, 1)
        ]
        (found,) = agreements(grades, ["t"])
        assert found.n == 8

    def test_every_pair_in_every_task_is_there(self) -> None:
        grades = [grade(4, judge=judge) for judge in "cab"]
        assert [(found.task, found.judges) for found in agreements(grades, ["t", "u"])] == [
            (task, pair) for task in "tu" for pair in (("a", "b"), ("a", "c"), ("b", "c"))
        ]

    def test_one_evaluator_agrees_with_nobody(self) -> None:
        assert agreements([grade(4)], ["t"]) == ()


class TestIntervals:
    def test_every_figure_lies_in_its_interval_over_personas(self) -> None:
        draw = np.random.default_rng(4)
        grades = []
        for persona in range(12):
            for question in "12345":
                score = int(draw.integers(1, 6))
                other = int(np.clip(score + draw.integers(-1, 2), 1, 5))
                grades += [
                    grade(score, persona=f"p{persona}", question=question, judge="a"),
                    grade(other, persona=f"p{persona}", question=question, judge="b"),
                ]
        sample = PersonaSample([g.persona for g in grades], 0)
        (found,) = agreements(grades, ["t"], sample)
        for metric in (found.quadratic_kappa, found.spearman, found.mean_absolute_difference):
            assert metric.ci95 is not None
            low, high = metric.ci95
            assert low < (metric.value or 0.0) < high < low + 0.5
        assert agreements(grades[::-1], ["t"], sample) == (found,)

    def test_two_personas_have_none(self) -> None:
        grades = [grade(n + 1, persona=f"p{n}", judge=judge) for n in range(2) for judge in "ab"]
        (found,) = agreements(grades, ["t"], PersonaSample(["p0", "p1"], 0))
        assert found.spearman.ci95_reason == "too_few_personas: 2 personas; an interval needs 5"
