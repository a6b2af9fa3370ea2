"""Paired differences: the permutation test, Holm's correction and the smallest detectable effect, with arithmetic."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from app.domain.statistics.groups import PersonaSample
from app.domain.statistics.paired import PairedDifference, holm, paired_difference, sign_flip_p_value


def difference(*values: float) -> PairedDifference:
    names = [f"p{n}" for n in range(len(values))]
    return paired_difference(list(zip(names, values, strict=True)), 1.0, PersonaSample(names, 0), 0)


class TestSignFlips:
    def test_all_patterns_are_tried_for_few_personas(self) -> None:
        # Of the 8 patterns of 1, 2, 3 only +++ and −−− reach |6|: 2/8.
        assert sign_flip_p_value(np.array([1.0, 2.0, 3.0]), 0) == 0.25
        values = [0.3, -0.1, 0.4, 0.25, 0.05]
        reached = [abs(sum(np.multiply(s, values))) >= sum(values) - 1e-9 for s in product((1, -1), repeat=5)]
        assert sign_flip_p_value(np.array(values), 0) == np.mean(reached)

    def test_is_scipys_permutation_test(self) -> None:
        values = np.array([0.3, -0.1, 0.4, 0.25, 0.05, -0.2, 0.15])
        found = stats.permutation_test(
            (values,), np.sum, permutation_type="samples", n_resamples=np.inf, alternative="two-sided"
        )
        assert sign_flip_p_value(values, 0) == pytest.approx(found.pvalue)

    def test_many_personas_are_sampled_and_repeat(self) -> None:
        values = np.random.default_rng(0).normal(0.2, 1, 30)
        assert sign_flip_p_value(values, 0) == sign_flip_p_value(values, 0)
        expected = stats.ttest_1samp(values, 0).pvalue
        assert sign_flip_p_value(values, 0) == pytest.approx(expected, abs=0.03)

    def test_without_a_difference_at_most_one_in_twenty_alarms(self) -> None:
        draws = np.random.default_rng(3)
        alarms = [sign_flip_p_value(draws.normal(0, 1, 10), 0) <= 0.05 for _ in range(1000)]
        assert np.mean(alarms) < 0.065  # 0.05 + 2 standard errors of 0.0069


class TestHolm:
    def test_multiplies_by_the_hypotheses_that_are_left(self) -> None:
        # 0.01 · 3, 0.02 · 2, 0.5 · 1, in order and never falling.
        assert holm([0.5, 0.01, 0.02]) == [0.5, 0.03, 0.04]
        assert holm([0.04, 0.03, None]) == [0.06, 0.06, None]
        assert holm([0.9, 0.8]) == [1.0, 1.0]


class TestPairedDifference:
    def test_is_the_mean_over_pairs_with_its_interval(self) -> None:
        found = difference(0.1, 0.2, 0.3, 0.2, 0.15, 0.25)
        assert (round(found.value, 10), found.pairs, found.clusters) == (0.2, 6, 6)
        assert found.interval.ends is not None
        assert 0.1 < found.interval.ends[0] < 0.2 < found.interval.ends[1] < 0.3
        assert found.p_value == found.smallest_p_value == 2 / 64

    def test_the_smallest_detectable_difference_is_so_many_standard_errors(self) -> None:
        # s = √(Σ (x − 0.2)² / 5) = √(0.025 / 5) = 0.07071; error 0.07071/√6 = 0.02887; 5.22 · 0.02887
        found = difference(0.1, 0.2, 0.3, 0.2, 0.15, 0.25)
        assert found.detectable == pytest.approx(0.1507, abs=1e-4)

    @pytest.mark.parametrize("personas", [6, 8, 10, 15, 30])
    def test_what_one_comparison_calls_detectable_another_finds_in_four_of_five(self, personas: int) -> None:
        draws, found, repetitions = np.random.default_rng(personas), 0, 400
        for _ in range(repetitions):
            stated = difference(*draws.normal(0, 0.01, personas)).detectable
            assert stated is not None
            other = draws.normal(stated, 0.01, personas)
            found += (
                stats.ttest_1samp(other, 0).pvalue <= 0.05
                if personas > 12
                else sign_flip_p_value(other, 0) <= 0.05
            )
        assert abs(found / repetitions - 0.8) < 0.03 + 2 * (0.8 * 0.2 / repetitions) ** 0.5

    def test_where_no_difference_could_be_shown_none_is_called_detectable(self) -> None:
        # Five clusters' smallest p is 2/32 = 0.0625, whatever the differences.
        few = difference(0.1, 0.2, 0.3, 0.2, 0.15)
        assert (few.detectable, few.smallest_p_value) == (None, 0.0625)
        assert few.detectable_reason == (
            "too_few_personas: the test finds no difference, however great, with fewer than 6 personas"
        )
        # s = √(6/5) = 1.0954; error 1.0954/√6 = 0.4472; 5.22 · 0.4472 = 2.33 on a scale of width 1.
        wide = difference(1.0, -1.0, 1.0, -1.0, 1.0, -1.0)
        assert wide.detectable is None
        assert (wide.detectable_reason or "").startswith("beyond_scale: ")
        assert (
            difference(*[0.1] * 6).detectable_reason
            == "no_spread: the difference is the same in all personas"
        )

    def test_one_persona_allows_no_test(self) -> None:
        found = difference(0.4)
        assert (found.p_value, found.smallest_p_value, found.detectable) == (None, None, None)
        assert found.interval.reason == "too_few_personas: 1 persona; an interval needs 5"

    def test_no_difference_at_all_is_no_alarm(self) -> None:
        found = difference(*[0.0] * 8)
        assert (found.value, found.p_value, found.detectable) == (0.0, 1.0, None)
        assert found.interval.ends is not None
        assert found.interval.ends[0] < 0 < found.interval.ends[1]

    def test_the_order_of_pairs_changes_nothing(self) -> None:
        pairs = [(f"p{n % 6}", n / 10) for n in range(18)]
        sample = PersonaSample([name for name, _ in pairs], 0)
        assert paired_difference(pairs, 1.0, sample, 0) == paired_difference(pairs[::-1], 1.0, sample, 0)
