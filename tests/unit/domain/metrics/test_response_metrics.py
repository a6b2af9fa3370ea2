"""MEAN, ACC, ACC_atom and IC_atom: metrics of single responses, averaged over responses and then over runs."""

import pytest

from app.domain.instruments.dimension import Scale
from app.domain.metrics.acc import acc
from app.domain.metrics.acc_atom import acc_atom
from app.domain.metrics.ic_atom import ic_atom
from app.domain.metrics.mean import mean
from tests.unit.domain.metrics.cells import cell

TWO_LEVELS = Scale(1, 7, ("low", "high"))
FIVE_LEVELS = Scale(1, 7, ("very low", "low", "neutral", "high", "very high"))


class TestMean:
    def test_averages_units_then_responses_then_runs(self) -> None:
        # Run 0: s = (1+2)/2 = 1.5 and s = 5/1 = 5, so 3.25. Run 1: s = 4. Cell: (3.25 + 4) / 2 = 3.625.
        # All units at once would give (1+2+5+4+4) / 5 = 3.2, all responses at once (1.5+5+4) / 3 = 3.5.
        metric = mean(cell([[[1, 2], [5]], [[4, 4]]]))
        assert (metric.value, metric.n) == (3.625, 2)

    def test_leaves_out_units_responses_and_runs_without_a_score(self) -> None:
        # Run 0: s = 4 (its second response has no scored unit). Run 1 has none at all.
        metric = mean(cell([[[4, 9], [9]], [[9, 9], []]]))
        assert (metric.value, metric.n) == (4.0, 1)


class TestAcc:
    def test_judges_a_response_by_its_mean_alone(self) -> None:
        # s = (1+5)/2 = 3 is neutral although no unit is.
        assert acc(cell([[[1, 5]]], "neutral")).value == 1.0
        assert acc_atom(cell([[[1, 5]]], "neutral")).value == 0.0

    def test_averages_responses_then_runs(self) -> None:
        # Run 0: s = 5 and s = 1, so 1/2 high. Run 1: s = 4, so 1. Cell: (0.5 + 1) / 2 = 0.75.
        metric = acc(cell([[[5], [1]], [[4]]]))
        assert (metric.value, metric.n) == (0.75, 2)

    @pytest.mark.parametrize(
        ("scores", "level"),
        [
            ([2, 2, 3], "neutral"),  # 7/3 exactly: the upper of the two levels
            ([2, 2, 3] * 33, "neutral"),
            ([3, 4, 4], "high"),  # 11/3 exactly
            ([3, 4, 4] * 33, "high"),
            ([2, 2, 2, 3], "low"),  # 9/4 < 7/3
            ([3, 3, 4, 4], "neutral"),  # 14/4 < 11/3
            ([1], "low"),
            ([5], "high"),
        ],
    )
    def test_a_mean_on_a_border_belongs_to_the_upper_level(self, scores: list[int], level: str) -> None:
        reached = [name for name in ("low", "neutral", "high") if acc(cell([[scores]], name)).value == 1.0]
        assert reached == [level]

    def test_two_levels_meet_in_the_middle(self) -> None:
        # 1–7 in two: low [1, 4), high [4, 7].
        assert acc(cell([[[3, 5]]], "high", scale=TWO_LEVELS)).value == 1.0
        assert acc(cell([[[3, 4]]], "low", scale=TWO_LEVELS)).value == 1.0

    def test_five_levels_are_a_fifth_each(self) -> None:
        # 1–7 in five: borders at 2.2, 3.4, 4.6, 5.8. Mean 11/5 = 2.2 is low, 17/5 = 3.4 neutral.
        assert acc(cell([[[2, 2, 2, 2, 3]]], "low", scale=FIVE_LEVELS)).value == 1.0
        assert acc(cell([[[3, 3, 3, 4, 4]]], "neutral", scale=FIVE_LEVELS)).value == 1.0


class TestAccAtom:
    def test_averages_shares_over_responses_then_runs(self) -> None:
        # Run 0: 1 of 2 and 1 of 1 units are high, so 0.75. Run 1: 1 of 4, so 0.25. Cell: 0.5.
        metric = acc_atom(cell([[[5, 1], [4]], [[4, 3, 3, 2]]]))
        assert (metric.value, metric.n) == (0.5, 2)

    def test_five_levels_of_seven_scores(self) -> None:
        # Borders at 2.2, 3.4, 4.6, 5.8: 1 and 2 are very low, 3 low, 4 neutral, 5 high, 6 and 7 very high.
        units = [[[1, 2, 3, 4, 5, 6, 7]]]
        shares = [acc_atom(cell(units, level, scale=FIVE_LEVELS)).value for level in FIVE_LEVELS.levels]
        assert shares == [2 / 7, 1 / 7, 1 / 7, 1 / 7, 2 / 7]


class TestIcAtom:
    def test_opposite_extremes_are_fully_inconsistent(self) -> None:
        # σ of 1 and 5 is 2: 1 − 2·2/4 = 0. On 1–7, σ of 1 and 7 is 3: 1 − 2·3/6 = 0.
        assert ic_atom(cell([[[1, 5]]])).value == 0.0
        assert ic_atom(cell([[[1, 7]]], scale=TWO_LEVELS)).value == 0.0

    def test_equal_scores_are_exactly_consistent(self) -> None:
        assert ic_atom(cell([[[4] * 49], [[2] * 7]])).value == 1.0

    def test_leaves_out_responses_with_one_scored_unit(self) -> None:
        # Run 0: σ(1, 3) = 1, so 1 − 2·1/4 = 0.5; its second response has one scored unit. Run 1 has no other kind.
        metric = ic_atom(cell([[[1, 3], [5]], [[4, 9]]]))
        assert (metric.value, metric.n) == (0.5, 1)

    def test_one_unit_has_no_internal_consistency(self) -> None:
        metric = ic_atom(cell([[[5]]]))
        assert (metric.value, metric.n) == (None, 0)
        assert metric.reason is not None
        assert metric.reason.startswith("fewer_than_two_scored_units:")
