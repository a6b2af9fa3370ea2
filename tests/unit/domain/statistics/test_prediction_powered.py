from dataclasses import replace

import numpy as np
import pytest

from app.domain.metrics.interval import Interval
from app.domain.statistics.prediction_powered import (
    FEWEST_LABELS,
    Calibrated,
    Population,
    Sample,
    Stratum,
    beyond_texts,
    calibrated,
    combined,
)

# What people say of 24 sentences, what the judge says of them, and of 96 others.
PEOPLE = np.array([1, 0, 1, 1, 0, 0, 1, 0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 1, 0, 0, 1, 1, 0], dtype=np.float64)
JUDGE = np.array([1, 0, 1, 1, 1, 0, 1, 0, 0, 1, 0, 1, 0, 1, 1, 1, 1, 0, 1, 1, 0, 1, 0, 0], dtype=np.float64)
OTHERS = np.array([1] * 60 + [0] * 36, dtype=np.float64)


def one_stratum() -> tuple[Population, Sample]:
    predicted = np.concatenate([JUDGE, OTHERS])
    count = len(predicted)
    strata = np.zeros(count, dtype=np.int64)
    same = np.full(count, 1 / count)
    population = Population(strata, np.ones(count), same, predicted)
    return population, Sample(strata[:24], np.full(24, count / 24), same[:24], JUDGE, PEOPLE)


def found(population: Population, sample: Sample) -> Calibrated:
    made = calibrated(population, sample)
    assert made is not None
    return made


class TestEstimate:
    def test_is_that_of_ppi_python(self) -> None:
        # ppi_py 0.2.3: ppi_mean_pointestimate(PEOPLE, JUDGE, OTHERS, lam=λ · 96 / 120) is 0.56119048 at λ = 0.58571429, where
        # the labelled sentences' variance is least; the package's own λ takes that of all predictions: 0.56157380.
        made = found(*one_stratum())
        assert made.power == pytest.approx(np.cov(PEOPLE, JUDGE)[0, 1] / JUDGE.var(ddof=1))
        assert made.power == pytest.approx(0.58571429)
        assert made.value == pytest.approx(0.56119048)
        assert made.value == pytest.approx(0.56157380, abs=0.001)

    def test_its_variance_is_that_of_a_drawn_mean_of_what_is_left(self) -> None:
        made = found(*one_stratum())
        left = PEOPLE - made.power * JUDGE
        assert made.variance == pytest.approx(left.var(ddof=1) / 24 * (1 - 24 / 120))

    def test_a_judge_who_says_nothing_of_people_is_not_believed(self) -> None:
        population, sample = one_stratum()
        contrary = 1 - sample.said
        made = found(population, replace(sample, predicted=contrary))
        assert made.power == 0
        assert made.value == pytest.approx(PEOPLE.mean())

    def test_is_what_people_said_where_they_said_all_of_it(self) -> None:
        population, sample = one_stratum()
        same = np.full(24, 1 / 24)
        made = found(
            Population(population.strata[:24], population.counts[:24], same, JUDGE),
            replace(sample, weights=same, stands_for=np.ones(24)),
        )
        assert made.value == pytest.approx(PEOPLE.mean())
        ends = made.interval((0.0, 1.0)).ends
        assert ends is not None
        assert ends == pytest.approx((PEOPLE.mean(), PEOPLE.mean()), abs=1e-5)

    def test_undoes_a_sample_that_is_balanced_by_score(self) -> None:
        # 1,000 sentences with 5, of which people agree, 100 with 1, of which they say 3: 20 of each are labelled.
        strata = np.array([0, 1])
        population = Population(strata, np.array([100.0, 1000.0]), np.full(2, 1 / 1100), np.array([1.0, 5.0]))
        drawn = np.repeat(strata, 20)
        sample = Sample(
            drawn,
            np.array([5.0, 50.0])[drawn],
            np.full(40, 1 / 1100),
            np.array([1.0, 5.0])[drawn],
            np.array([3.0, 5.0])[drawn],
        )
        made = found(population, sample)
        assert made.judged == pytest.approx(5100 / 1100)
        assert made.value == pytest.approx(5300 / 1100)

    def test_what_people_find_not_applicable_is_in_neither_sum_nor_number(self) -> None:
        population, sample = one_stratum()
        said = sample.said.copy()
        said[:6] = np.nan
        made = found(population, replace(sample, predicted=0 * sample.predicted, said=said))
        plain = found(
            replace(population, predicted=0 * population.predicted),
            replace(sample, predicted=0 * JUDGE, said=said),
        )
        assert plain.value == pytest.approx(np.nanmean(said))
        assert made.labels == 24

    def test_nothing_follows_from_no_label(self) -> None:
        population, sample = one_stratum()
        nothing = np.empty(0)
        assert calibrated(population, Sample(np.empty(0, dtype=np.int64), *[nothing] * 4)) is None
        assert calibrated(population, replace(sample, said=np.full(24, np.nan))) is None


class TestInterval:
    def test_a_stratum_without_a_label_is_represented_by_the_next(self) -> None:
        population, sample = one_stratum()
        strata = np.concatenate([np.zeros(24, dtype=np.int64), np.repeat([0, 1], 48)])
        made = found(replace(population, strata=strata), sample)
        assert [each.labels for each in made.strata] == [24]
        assert sum(each.size for each in made.strata) == 120

    def test_few_labels_have_none(self) -> None:
        population, sample = one_stratum()
        few = FEWEST_LABELS - 1
        made = found(
            population,
            Sample(
                sample.strata[:few],
                sample.stands_for[:few],
                sample.weights[:few],
                sample.predicted[:few],
                sample.said[:few],
            ),
        )
        assert (made.interval((0.0, 1.0)).reason or "").startswith("too_few_labels:")

    def test_labels_that_all_agree_do_not_make_it_certain(self) -> None:
        population, sample = one_stratum()
        low, high = found(population, replace(sample, said=sample.predicted)).interval((0.0, 1.0)).ends or (
            0,
            0,
        )
        # 24 of 24: up to 11.7 % of the others may be anything.
        share = 1 - 0.05 ** (1 / 24)
        assert high - low == pytest.approx(share, abs=1e-5)

    def test_differences_have_both_groups_variance(self) -> None:
        made = found(*one_stratum())
        both = combined([(1, made), (-1, made)])
        assert (both.value, both.labels) == (0, 48)
        assert both.variance == pytest.approx(2 * made.variance)

    def test_a_mean_of_two_groups_has_half_the_variance(self) -> None:
        made = found(*one_stratum())
        both = combined([(0.5, made), (0.5, made)])
        assert both.value == pytest.approx(made.value)
        assert both.judged == pytest.approx(made.judged)
        assert both.variance == pytest.approx(made.variance / 2)

    def test_beyond_these_texts_both_errors_count(self) -> None:
        made = found(*one_stratum())
        low, high = made.interval((0.0, 1.0)).ends or (0, 0)
        judged = Interval(made.judged - 0.1, made.judged + 0.2)
        wider = beyond_texts(made, judged, (0.0, 1.0))
        assert wider.ends == pytest.approx(
            (
                made.value - np.hypot(made.value - low, 0.1),
                min(1.0, made.value + np.hypot(high - made.value, 0.2)),
            ),
            abs=1e-5,
        )
        reason = Interval.missing("too_few_personas: none")
        assert beyond_texts(made, reason, (0.0, 1.0)) == reason


BEYOND = (-10.0, 10.0)
"""Ends that no interval reaches."""


class TestFewThatDiffer:
    """Of 40 texts of very many, judged alike but for some."""

    @staticmethod
    def differing(*differences: float, of: int = 40) -> tuple[Calibrated, list[float]]:
        said = [*differences, *[0.0] * (of - len(differences))]
        strata = np.zeros(of, dtype=np.int64)
        population = Population(strata[:1], np.array([1e9]), np.array([1e-9]), np.zeros(1))
        sample = Sample(strata, np.full(of, 1e9 / of), np.full(of, 1e-9), np.zeros(of), np.array(said))
        return found(population, sample), said

    def test_ends_count_by_how_much_the_variance_may_be_wrong_and_one_more_where_they_lean(self) -> None:
        from scipy import stats

        made, said = self.differing(1, 0.5)
        second, third, fourth = (
            stats.kstat(said, order) / 40 ** (order - 1) for order in (2, 3, 4)
        )  # of the mean
        freedom = 2 * second**2 / (fourth + 2 * second**2 / 39)
        assert 1 < freedom < 4  # of 39, were they normally distributed
        middle, t = np.mean(said) + third / 6 / second, stats.t.ppf(0.975, freedom)
        more = second + fourth / second
        assert self.ends(made) == pytest.approx((middle - t * second**0.5, middle + t * more**0.5), abs=2e-6)
        low, high = self.ends(self.differing(-1, -0.5)[0])
        assert (-high, -low) == pytest.approx(self.ends(made), abs=2e-6)

    def test_the_side_to_which_they_lean_is_that_of_the_others_where_most_are_drawn(self) -> None:
        """Of 40 of 50 texts one differs: the sum of what was not drawn leans to the same side still."""
        (stratum,) = self.differing(1)[0].strata
        made = Calibrated(0.025, 0.0, 40, 1.0, (stratum._replace(size=50.0),))
        low, high = self.ends(made)
        assert high - made.value > made.value - low

    def test_many_that_differ_leave_them_as_they_are(self) -> None:
        made, _ = self.differing(*[1, -1] * 20)
        assert self.ends(made) == pytest.approx(made.interval(BEYOND).ends, abs=2e-6)

    def test_more_that_differ_are_less_uncertain_for_their_spread(self) -> None:
        few, several = (
            self.width(made) / 2 / made.half_width
            for made, _ in (self.differing(1), self.differing(*[1] * 8))
        )
        assert few > 1.5 > several > 1

    def test_a_sum_of_groups_scales_it(self) -> None:
        made, _ = self.differing(1, 0.5)
        assert self.width(combined([(3.0, made)])) == pytest.approx(3 * self.width(made), rel=1e-4)

    def test_with_more_labels_it_is_about_that_of_a_sample_with_each_of_them_again(self) -> None:
        once, thrice = self.differing(1, 0.5)[0], self.differing(*[1, 0.5] * 3, of=120)[0]
        assert self.width(once) > 2.5 * self.width(thrice)
        assert self.ends(once.with_labels(120)) == pytest.approx(self.ends(thrice), abs=0.002)

    @staticmethod
    def ends(made: Calibrated) -> tuple[float, float]:
        ends = made.interval_of_few(BEYOND).ends
        assert ends is not None
        return ends

    def width(self, made: Calibrated) -> float:
        low, high = self.ends(made)
        return high - low


class TestPlanning:
    def test_as_many_labels_as_are_said_to_be_needed_make_the_interval_that_narrow(self) -> None:
        strata = (Stratum(1000, 10, 0.3), Stratum(400, 10, 0.1))
        made = Calibrated(0.5, 0.5, 20, 1.0, strata)
        as_now, best = made.labels_for(0.05, (0.0, 1.0))
        assert best < as_now
        for labels, shares in ((as_now, (0.5, 0.5)), (best, (0.75, 0.25))):
            variance = sum(
                each.spread**2 * (1 / (labels * share) - 1 / each.size)
                for each, share in zip(strata, shares, strict=True)
            )
            assert 1.96 * variance**0.5 == pytest.approx(0.05, rel=0.02)

    @pytest.mark.parametrize("bounds", [(0.0, 1.0), (1.0, 5.0)])
    def test_labels_that_all_agree_are_counted_by_the_interval_that_they_give(
        self, bounds: tuple[float, float]
    ) -> None:
        """Their spread is 0, by which no labels at all would do."""

        def made(labels: int) -> Calibrated:
            return Calibrated(1.0, 1.0, labels, 1.0, (Stratum(2000, labels, 0.0),))

        needed, best = made(40).labels_for(0.04, bounds)
        assert needed == best
        for labels, wide in ((needed, False), (needed - 1, True)):
            low, high = made(labels).interval(bounds).ends or bounds
            assert (high - low > 2 * 0.04) is wide
        assert Calibrated(1.0, 1.0, 40, 1.0, (Stratum(45, 40, 0.0),)).labels_for(0.01, bounds) == (45, 45)

    def test_never_more_than_there_are_sentences(self) -> None:
        made = Calibrated(0.5, 0.5, 4, 1.0, (Stratum(10, 4, 3.0),))
        assert made.labels_for(0.0001, (0.0, 1.0)) == (10, 10)
