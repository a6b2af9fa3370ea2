"""RC and RC_atom: metrics that compare runs."""

from itertools import combinations

import numpy as np
import pytest

from app.domain.instruments.dimension import Scale
from app.domain.metrics.rc import rc
from app.domain.metrics.rc_atom import rc_atom
from tests.unit.domain.metrics.cells import cell


class TestRc:
    def test_is_one_minus_the_spread_of_the_runs_scores(self) -> None:
        # Run scores 2, 4: σ = 1, so 1 − 2·1/4 = 0.5.
        metric = rc(cell([[[1, 3]], [[3], [5]]]))
        assert (metric.value, metric.n) == (0.5, 2)

    def test_opposite_extremes_are_fully_inconsistent(self) -> None:
        assert rc(cell([[[1]], [[5]]])).value == 0.0

    @pytest.mark.parametrize("runs", [[], [[[4, 4]]], [[[4, 4]], [[9]]]])
    def test_one_run_has_nothing_to_be_consistent_with(self, runs: list[list[list[int]]]) -> None:
        metric = rc(cell(runs))
        assert (metric.value, metric.n) == (None, 0)
        assert metric.reason is not None
        assert metric.reason.startswith("fewer_than_two_runs:")


class TestRcAtom:
    def test_merges_a_runs_responses_before_it_compares(self) -> None:
        # Both runs hold one 1 and one 5, in different responses: the distributions are equal.
        metric = rc_atom(cell([[[1], [5]], [[1, 5]]])).overall
        assert (metric.value, metric.n) == (1.0, 1)

    def test_averages_distances_over_all_pairs(self) -> None:
        # Distances 1–3: 2, 1–5: 4, 3–5: 2; mean 8/3; 2·(1 − (8/3)/4) − 1 = −1/3.
        metric = rc_atom(cell([[[1]], [[3]], [[5]]])).overall
        assert metric.value == pytest.approx(-1 / 3)
        assert metric.n == 3

    def test_ranges_from_minus_one_to_one(self) -> None:
        assert rc_atom(cell([[[1, 1]], [[5]]])).overall.value == -1.0
        assert rc_atom(cell([[[2, 4, 4]], [[4, 2, 4]], [[2, 4, 4] * 5]])).overall.value == 1.0

    def test_is_the_mean_wasserstein_distance_of_the_raw_scores(self) -> None:
        from scipy.stats import wasserstein_distance

        random = np.random.default_rng(7)
        for scale in (Scale(), Scale(0, 10, not_applicable=99), Scale(-3, 3)):
            runs = [
                random.integers(scale.minimum, scale.maximum, size=n, endpoint=True).tolist()
                for n in range(1, 9)
            ]
            distance = np.mean([wasserstein_distance(a, b) for a, b in combinations(runs, 2)])
            metric = rc_atom(cell([[run] for run in runs], scale=scale)).overall
            assert metric.value == pytest.approx((1 - distance / scale.width) * 2 - 1, abs=1e-12)
            assert metric.n == 28  # 8 · 7 / 2

    def test_tells_retest_from_wording(self) -> None:
        # Instruction 0 always gives 5, instruction 1 always gives 3. Within: 2 pairs at distance 0, so 1.
        # Across: 4 pairs at distance 2, so 2·(1 − 2/4) − 1 = 0. All 6 pairs: mean 8/6, 2·(1 − (8/6)/4) − 1 = 1/3.
        parts = rc_atom(cell([[[5]], [[5]], [[3]], [[3]]], instructions=[0, 0, 1, 1]))
        assert parts.overall.value == pytest.approx(1 / 3)
        assert (parts.within_instruction.value, parts.within_instruction.n) == (1.0, 2)
        assert (parts.across_instructions.value, parts.across_instructions.n) == (0.0, 4)

    def test_thirty_runs_have_60_pairs_within_and_375_across_instructions(self) -> None:
        # 6 instructions × 5 iterations: 6 · (5·4/2) = 60; 30·29/2 = 435; 435 − 60 = 375.
        parts = rc_atom(cell([[[4, 5]]] * 30, instructions=[n // 5 for n in range(30)]))
        assert [parts.overall.n, parts.within_instruction.n, parts.across_instructions.n] == [435, 60, 375]

    def test_runs_of_unknown_instruction_are_in_neither_part(self) -> None:
        parts = rc_atom(cell([[[5]], [[5]], [[3]]], instructions=[0, 0, -1]))
        assert parts.overall.n == 3
        assert parts.within_instruction.n == 1
        assert parts.across_instructions.value is None
        assert parts.across_instructions.reason is not None
        assert "the instruction of 1 runs is unknown" in parts.across_instructions.reason

    def test_leaves_out_runs_without_a_scored_unit(self) -> None:
        metric = rc_atom(cell([[[5]], [[9], []], [[3]]])).overall
        assert (metric.value, metric.n) == (0.0, 1)  # one pair at distance 2: 2·(1 − 2/4) − 1

    @pytest.mark.parametrize("runs", [[], [[[4, 4]]], [[[4, 4]], [[9]]]])
    def test_one_run_has_no_pair(self, runs: list[list[list[int]]]) -> None:
        parts = rc_atom(cell(runs, instructions=[0] * len(runs)))
        assert parts.overall.reason is not None
        assert parts.overall.reason.startswith("fewer_than_two_runs:")
        assert parts.within_instruction.value is None
        assert parts.across_instructions.value is None
