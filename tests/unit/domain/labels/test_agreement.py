from collections import Counter
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given as drawing
from hypothesis import settings
from hypothesis import strategies as st

from app.domain.labels.agreement import Sampling, annotation_agreement
from app.domain.labels.annotation import Annotation, Answer, Kind, Place
from app.domain.labels.human_agreement import AgreementWithJudge, HumanAgreement, WeightedWithJudge
from app.domain.metrics.metric import Metric
from app.domain.statistics.agreement import quadratic_kappa
from app.domain.statistics.krippendorff import alpha, coincidences

TASKS = {0: "essay", 1: "toxicity_control"}


def sentence(n: int) -> Place:
    """Each a sentence of another response."""
    return Place(0, n, 0, 0)


def score(annotator: str, place: Place, value: int | None, dimension: str | None = "E") -> Annotation:
    answer = Answer.NOT_APPLICABLE if value is None else Answer.SCORED
    return Annotation(annotator, dimension, place, None, answer, value)


def choice(annotator: str, one: int, other: int, answer: Answer) -> Annotation:
    return Annotation(annotator, "E", sentence(one), sentence(other), answer, None).ordered()


def joint(found: AgreementWithJudge | WeightedWithJudge) -> dict[str, Metric]:
    """Those figures of the judge's score with each answer that are shown."""
    names = ("exact_agreement", "quadratic_kappa", "alpha_ordinal")
    return {name: getattr(found, name) for name in names if name in found.model_fields_set}


def only(*found: Annotation, judged: dict[int, float]) -> HumanAgreement:
    given: dict[tuple[str | None, Place], float] = {("E", sentence(n)): v for n, v in judged.items()}
    (group,) = annotation_agreement(found, TASKS, {"judge": given}, 0, Sampling())
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
        assert (group.annotators, group.n, group.answers) == (2, 6, 12)
        assert judge.kendall_tau.n == 6
        # Two annotators: they agree on sentences 1 and 3; shares 1 2 3 4 5 of 12 answers: 1, 3, 2, 3, 3.
        expected = (1 + 9 + 4 + 9 + 9) / 144
        assert group.fleiss_kappa.value == pytest.approx((2 / 6 - expected) / (1 - expected))

    def test_the_judge_is_compared_with_each_answer_and_a_sentence_counts_once(self) -> None:
        people: dict[int, tuple[int, ...]] = {0: (1, 2), 1: (2, 2), 2: (4,), 3: (5, 5), 4: (3, 4), 5: (5,)}
        judged: dict[int, float] = {0: 1, 1: 3, 2: 4, 3: 5, 4: 4, 5: 4}
        group = only(
            *[
                score("ab"[k], sentence(n), value)
                for n, given in people.items()
                for k, value in enumerate(given)
            ],
            judged=judged,
        )
        found = joint(group.judges[0])
        assert {name: each.n for name, each in found.items()} == dict.fromkeys(
            ("exact_agreement", "quadratic_kappa", "alpha_ordinal"), 6
        )
        assert found["exact_agreement"].value == pytest.approx((0.5 + 0 + 1 + 1 + 0.5 + 0) / 6)
        # One answer of two counts half: the same as each sentence twice, with both answers or the one again.
        pairs = [(int(judged[n]), given[k % len(given)]) for n, given in people.items() for k in range(2)]
        first, second = np.array(pairs, dtype=np.float64).T
        assert found["quadratic_kappa"].value == pytest.approx(quadratic_kappa(first, second).value)
        # α of these twelve: 1 − 23 · observed / expected; of six sentences 11 takes the place of 23 and the sums are halves.
        counts = np.ones(len(pairs), dtype=np.int64)
        table = coincidences(np.array(pairs), counts, 0 * counts, 6)
        twelve = float(alpha(table[0], ordinal=True))
        assert found["alpha_ordinal"].value == pytest.approx(1 - (1 - twelve) * (11 / 12) / (23 / 24))

    def test_means_of_sentences_scores_have_no_exact_agreement(self) -> None:
        whole = Place(0, 0, 0, None)
        (group,) = annotation_agreement(
            [score("a", whole, 3)], TASKS, {"judge": {("E", whole): 3.0}}, 0, Sampling()
        )
        assert joint(group.judges[0]) == joint(group.judges[0].weighted) == {}

    def test_what_has_no_number_on_one_side_is_left_out_and_counted(self) -> None:
        found = [score("a", sentence(n), n + 1) for n in range(4)]
        found += [score("a", sentence(4), None), score("b", sentence(4), None), score("b", sentence(3), None)]
        group = only(*found, judged={0: 1, 1: 2, 2: 3, 4: 5})
        (judge,) = group.judges
        assert (group.n, group.not_applicable) == (5, 1)
        assert (judge.kendall_tau.n, judge.left_out["without_score"]) == (3, 1)
        assert judge.kendall_tau.value == pytest.approx(1.0)

    def test_a_judge_without_any_score_has_a_reason_and_no_number(self) -> None:
        group = only(score("a", sentence(0), 3), judged={})
        (judge,) = group.judges
        assert judge.kendall_tau.value is None
        assert judge.left_out["without_score"] == 1


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
        assert (judge.left_out["same_score"], judge.left_out["without_score"], judge.kendall_tau.n) == (
            1,
            1,
            1,
        )

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
        assert group.kind == "pairs"
        assert group.fleiss_kappa.value == pytest.approx(1.0)
        assert group.judges[0].kendall_tau.value == 1.0


class TestGroups:
    def test_dimensions_and_rubrics_stand_apart(self) -> None:
        grade = Place(1, 0, 0, None)
        groups = annotation_agreement(
            [score("a", sentence(0), 3), score("a", sentence(0), 2, "N"), score("a", grade, 4, None)],
            TASKS,
            {"judge": {}},
            0,
            Sampling(),
        )
        assert [(each.kind, each.dimension, each.task) for each in groups] == [
            ("responses", None, "toxicity_control"),
            ("sentences", "E", None),
            ("sentences", "N", None),
        ]

    def test_nothing_is_nothing(self) -> None:
        assert annotation_agreement([], TASKS, {"judge": {}}, 0, Sampling()) == []


class TestWeighted:
    def drawn(self, sizes: dict[int, int], judged: dict[int, float]) -> Sampling:
        """Each sentence is drawn from those of its score, of which there are so many."""
        return Sampling(
            {("E", sentence(n), None): ("essay", (int(value),), "") for n, value in judged.items()},
            {(Kind.SENTENCES, "E"): {("essay", (value,), ""): size for value, size in sizes.items()}},
        )

    def group(
        self, people: Mapping[int, int], judged: dict[int, float], sizes: dict[int, int] | None
    ) -> HumanAgreement:
        found = [score(name, sentence(n), value) for n, value in people.items() for name in "ab"]
        given: dict[tuple[str | None, Place], float] = {("E", sentence(n)): v for n, v in judged.items()}
        drawn = Sampling() if sizes is None else self.drawn(sizes, judged)
        (group,) = annotation_agreement(found, TASKS, {"judge": given}, 0, drawn)
        return group

    @settings(max_examples=25)
    @drawing(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=3, max_size=12), st.data())
    def test_is_the_agreement_of_a_population_in_which_each_is_as_often_as_it_stands_for(
        self, scores: list[tuple[int, int]], data: st.DataObject
    ) -> None:
        from scipy import stats

        times = {value: data.draw(st.integers(1, 4)) for value in range(1, 6)}
        people = {n: person for n, (person, _) in enumerate(scores)}
        judged = {n: float(value) for n, (_, value) in enumerate(scores)}
        counts = Counter(judged.values())
        group = self.group(people, judged, {int(v): times[int(v)] * count for v, count in counts.items()})
        (judge,) = group.judges
        assert (
            group.weighted.population == group.weighted.covered == sum(times[int(v)] for v in judged.values())
        )
        if len(set(people.values())) > 1 and len(counts) > 1:
            repeated = [(p, v) for p, v in scores for _ in range(times[v])]
            first, second = zip(*repeated, strict=True)
            whole = self.group(dict(enumerate(first)), dict(enumerate(map(float, second))), None)
            for name, each in joint(whole.judges[0]).items():
                assert joint(judge.weighted)[name].value == pytest.approx(each.value)
            assert judge.weighted.spearman_rho is not None
            assert judge.weighted.kendall_tau.value == pytest.approx(
                stats.kendalltau(first, second).statistic
            )
            assert judge.weighted.spearman_rho.value == pytest.approx(
                stats.spearmanr(first, second).statistic
            )
        else:
            assert judge.weighted.kendall_tau.value is None

    def test_undoes_a_sample_that_is_balanced_by_score(self) -> None:
        # Of 100 sentences 90 have score 5, of which people agree; of the ten others, with 1 and 2, they say the opposite.
        people = {0: 5, 1: 5, 2: 2, 3: 2, 4: 1, 5: 1}
        judged: dict[int, float] = {0: 5, 1: 5, 2: 1, 3: 1, 4: 2, 5: 2}
        group = self.group(people, judged, {5: 90, 1: 5, 2: 5})
        (judge,) = group.judges
        # Pairs apart: 5 with 1 and 5 with 2 agree, 2 of 2 × 2; 1 with 2 not. (8 - 4) / 12; (900 - 25) / 925.
        assert judge.kendall_tau.value == pytest.approx(4 / 12)
        assert judge.weighted.kendall_tau.value == pytest.approx(875 / 925)
        assert (group.weighted.population, group.weighted.covered) == (100, 100)

    def test_is_missing_where_no_round_drew_anything(self) -> None:
        group = self.group({0: 1, 1: 2, 2: 3}, {0: 1, 1: 2, 2: 3}, None)
        (judge,) = group.judges
        assert (judge.weighted.kendall_tau.reason or "").startswith("not_drawn:")
        assert (group.weighted.fleiss_kappa.reason or "").startswith("not_drawn:")
        assert group.weighted.population == 0

    def test_a_stratum_without_an_answer_is_not_covered(self) -> None:
        judged: dict[int, float] = {0: 1, 1: 2, 2: 3, 3: 4}
        found = [score("a", sentence(n), n + 1) for n in range(3)]
        given: dict[tuple[str | None, Place], float] = {("E", sentence(n)): v for n, v in judged.items()}
        drawn = self.drawn({1: 10, 2: 20, 3: 30, 4: 40}, judged)
        (group,) = annotation_agreement(found, TASKS, {"judge": given}, 0, drawn)
        assert (group.weighted.population, group.weighted.covered) == (100, 60)

    def test_kappa_is_of_those_with_two_answers_who_stand_for_their_whole_stratum(self) -> None:
        # Of score 1 (50 sentences) two are answered, one of them twice; of score 5 (50) one, twice. So the two count the same:
        # one is agreed on and the other is not.
        judged: dict[int, float] = {0: 1, 1: 1, 2: 5}
        found = [
            *(score(name, sentence(0), 1) for name in "ab"),
            score("a", sentence(1), 1),
            score("a", sentence(2), 1),
            score("b", sentence(2), 5),
        ]
        given: dict[tuple[str | None, Place], float] = {("E", sentence(n)): v for n, v in judged.items()}
        (group,) = annotation_agreement(found, TASKS, {"judge": given}, 0, self.drawn({1: 50, 5: 50}, judged))
        # P = 1/2; of the answers 3/4 are 1 and 1/4 are 5: Pe = 10/16. (1/2 - 5/8) / (3/8)
        assert group.weighted.fleiss_kappa.value == pytest.approx(-1 / 3)

    def test_pairs_count_for_as_many_as_they_stand_for(self) -> None:
        found = [choice("a", 0, 1, Answer.SECOND), choice("a", 0, 2, Answer.FIRST)]
        given: dict[tuple[str | None, Place], float] = {
            ("E", sentence(n)): value for n, value in {0: 1.0, 1: 2.0, 2: 5.0}.items()
        }
        pairs = {1: ("essay", (1, 2), ""), 2: ("essay", (1, 5), "")}
        drawn = Sampling(
            {("E", sentence(0), sentence(n)): stratum for n, stratum in pairs.items()},
            {(Kind.PAIRS, "E"): {pairs[1]: 30, pairs[2]: 10}},
        )
        (group,) = annotation_agreement(found, TASKS, {"judge": given}, 0, drawn)
        (judge,) = group.judges
        # one agrees, one does not; 30 pairs are like the former, 10 like the latter
        assert judge.kendall_tau.value == 0
        assert judge.weighted.kendall_tau.value == pytest.approx((30 - 10) / 40)


class TestNotApplicable:
    def test_it_is_an_answer_of_its_own_beside_the_scores(self) -> None:
        # People: 4 of 12 sentences not applicable. The judge scores 3 of these, and agrees on 6 of the other 8.
        people = [None] * 4 + [1, 2, 3, 4, 5, 1, 2, 3]
        judged = {n: float(n + 1) for n in range(3)} | {
            n: float(score or 0) if n < 10 else 5.0 for n, score in enumerate(people) if n >= 4
        }
        given: dict[tuple[str | None, Place], float] = {("E", sentence(n)): v for n, v in judged.items()}
        (group,) = annotation_agreement(
            [score("a", sentence(n), value) for n, value in enumerate(people)],
            TASKS,
            {"judge": given},
            0,
            Sampling(),
            {"judge": {("E", sentence(3))}},
        )
        (found,) = group.judges
        assert found.exact_agreement is not None
        assert (found.exact_agreement.value, found.exact_agreement.n) == (6 / 8, 8)
        with_it = found.with_not_applicable
        assert with_it is not None
        assert with_it.exact_agreement.value == pytest.approx(7 / 12)
        assert with_it.exact_agreement.n == 12
        assert (with_it.judge_scored.value, with_it.judge_scored.n) == (3 / 4, 4)
        assert with_it.kappa.value is not None
        assert with_it.kappa.value < 7 / 12

    def test_nothing_is_said_of_it_where_nobody_gave_it(self) -> None:
        (found,) = only(score("a", sentence(0), 4), judged={0: 4.0}).judges
        assert found.with_not_applicable is not None
        assert found.with_not_applicable.judge_scored.value is None
