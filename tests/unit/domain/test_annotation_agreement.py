import pytest

from app.domain.annotation import Annotation, Answer, Kind, Place
from app.domain.annotation_agreement import AnnotatorAgreement, annotation_agreement

TASKS = {0: "essay", 1: "toxicity_control"}


def sentence(n: int) -> Place:
    """Each a sentence of another response."""
    return Place(0, n, 0, 0)


def score(annotator: str, place: Place, value: int | None, dimension: str | None = "E") -> Annotation:
    answer = Answer.NOT_APPLICABLE if value is None else Answer.SCORED
    return Annotation(annotator, dimension, place, None, answer, value)


def choice(annotator: str, one: int, other: int, answer: Answer) -> Annotation:
    return Annotation(annotator, "E", sentence(one), sentence(other), answer, None).ordered()


def only(*found: Annotation, judged: dict[int, float]) -> AnnotatorAgreement:
    given: dict[tuple[str | None, Place], float] = {("E", sentence(n)): v for n, v in judged.items()}
    (group,) = annotation_agreement(found, TASKS, {"judge": given}, seed=0)
    return group


class TestScores:
    def test_the_judge_is_compared_with_the_mean_of_the_annotators(self) -> None:
        from scipy import stats

        people = {0: (1, 2), 1: (2, 2), 2: (4, 3), 3: (5, 5), 4: (3, 4), 5: (5, 4)}
        judged: dict[int, float] = {0: 1, 1: 3, 2: 3, 3: 5, 4: 4, 5: 4}
        group = only(
            *[
                score(name, sentence(n), given[k])
                for n, given in people.items()
                for k, name in enumerate("ab")
            ],
            judged=judged,
        )
        means = [sum(given) / 2 for given in people.values()]
        (judge,) = group.judges
        assert judge.kendall_tau.value == pytest.approx(
            stats.kendalltau(means, list(judged.values())).statistic
        )
        assert judge.spearman_rho is not None
        assert judge.spearman_rho.value == pytest.approx(
            stats.spearmanr(means, list(judged.values())).statistic
        )
        assert (group.annotators, group.things, group.answers) == (2, 6, 12)
        assert judge.kendall_tau.n == 6
        # Two annotators: they agree on sentences 1 and 3; shares 1 2 3 4 5 of 12 answers: 1, 3, 2, 3, 3.
        expected = (1 + 9 + 4 + 9 + 9) / 144
        assert group.fleiss_kappa.value == pytest.approx((2 / 6 - expected) / (1 - expected))

    def test_what_has_no_number_on_one_side_is_left_out_and_counted(self) -> None:
        found = [score("a", sentence(n), n + 1) for n in range(4)]
        found += [score("a", sentence(4), None), score("b", sentence(4), None), score("b", sentence(3), None)]
        group = only(*found, judged={0: 1, 1: 2, 2: 3, 4: 5})
        (judge,) = group.judges
        assert (group.things, group.not_applicable) == (5, 1)
        assert (judge.kendall_tau.n, judge.without_score) == (3, 1)
        assert judge.kendall_tau.value == pytest.approx(1.0)

    def test_a_judge_without_any_score_has_a_reason_and_no_number(self) -> None:
        group = only(score("a", sentence(0), 3), judged={})
        (judge,) = group.judges
        assert judge.kendall_tau.value is None
        assert judge.without_score == 1


class TestPairs:
    def test_answers_for_less_answers_against_the_judges_order_by_all_answers(self) -> None:
        # Judge: 0 above 1, 2 below 3. For: two; against: one; undecided: one. τ_A = (2 − 1) / 4.
        group = only(
            choice("a", 0, 1, Answer.FIRST),
            choice("b", 0, 1, Answer.EQUAL),
            choice("a", 2, 3, Answer.FIRST),
            choice("b", 2, 3, Answer.SECOND),
            judged={0: 5, 1: 2, 2: 1, 3: 4},
        )
        (judge,) = group.judges
        assert judge.kendall_tau.value == pytest.approx(0.25)
        assert judge.kendall_tau.n == 2
        assert judge.spearman_rho is None

    def test_the_order_in_which_a_pair_was_shown_does_not_matter(self) -> None:
        one, other = choice("a", 0, 1, Answer.FIRST), choice("a", 1, 0, Answer.SECOND)
        assert one == other
        assert choice("a", 1, 0, Answer.EQUAL) == choice("a", 0, 1, Answer.EQUAL)

    def test_pairs_that_the_judge_does_not_tell_apart_are_counted(self) -> None:
        group = only(
            choice("a", 0, 1, Answer.FIRST),
            choice("a", 2, 3, Answer.FIRST),
            choice("a", 0, 4, Answer.FIRST),
            judged={0: 4, 1: 4, 2: 1, 4: 2},
        )
        (judge,) = group.judges
        assert (judge.same_score, judge.without_score, judge.kendall_tau.n) == (1, 1, 1)

    def test_full_agreement_of_judge_and_annotators(self) -> None:
        # As in Table 3, six annotators; where all choose alike in half the pairs each way, κ is 1.
        found = [
            choice(name, 2 * n, 2 * n + 1, (Answer.FIRST, Answer.SECOND)[n % 2])
            for n in range(10)
            for name in "abcdef"
        ]
        judged: dict[int, float] = {}
        for n in range(10):
            judged |= {2 * n: (5, 1)[n % 2], 2 * n + 1: (1, 5)[n % 2]}
        group = only(*found, judged=judged)
        assert group.kind is Kind.PAIRS
        assert group.fleiss_kappa.value == pytest.approx(1.0)
        assert group.judges[0].kendall_tau.value == 1.0


class TestGroups:
    def test_dimensions_and_rubrics_stand_apart(self) -> None:
        grade = Place(1, 0, 0, None)
        groups = annotation_agreement(
            [score("a", sentence(0), 3), score("a", sentence(0), 2, "N"), score("a", grade, 4, None)],
            TASKS,
            {"judge": {}},
            seed=0,
        )
        assert [(each.kind.value, each.dimension, each.task) for each in groups] == [
            ("responses", None, "toxicity_control"),
            ("sentences", "E", None),
            ("sentences", "N", None),
        ]

    def test_nothing_is_nothing(self) -> None:
        assert annotation_agreement([], TASKS, {"judge": {}}, seed=0) == []
