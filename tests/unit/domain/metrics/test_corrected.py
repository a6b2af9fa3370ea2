"""The corrected metrics: free of chance, of the number of sentences and of the number of runs."""

from collections.abc import Callable
from itertools import combinations, permutations

import numpy as np
import pytest

from app.domain.instruments.dimension import Scale
from app.domain.metrics.acc_atom_corrected import acc_atom_corrected, chance_share
from app.domain.metrics.chance_distance import chance_distance
from app.domain.metrics.ic_atom_corrected import ic_atom_corrected
from app.domain.metrics.rarefied import rarefied_ic_atom, rarefied_rc_atom
from app.domain.metrics.rc_atom import rc_atom
from app.domain.metrics.rc_atom_corrected import rc_atom_corrected
from app.domain.metrics.rc_corrected import RC_CORRECTED, of_runs_like_these, rc_corrected, unbiased_divisor
from app.domain.metrics.scores import CellScores
from tests.unit.domain.metrics.cells import PAPER, cell

SHARES = np.array([0.05, 0.1, 0.15, 0.3, 0.4])
LENGTHS = (2, 4, 8, 12, 40)


def alike(sentences: int, cells: int = 60, runs: int = 30) -> list[CellScores]:
    """Cells all of whose runs' sentences come from one distribution."""
    random = np.random.default_rng(sentences)
    return [
        CellScores(
            scale=PAPER,
            level=2,
            runs=np.arange(runs),
            instructions=np.zeros(runs, dtype=np.int64),
            histograms=random.multinomial(sentences, SHARES, size=runs),
            excluded={},
        )
        for _ in range(cells)
    ]


def mean(of: Callable[[CellScores], float | None], cells: list[CellScores]) -> float:
    return float(np.mean([of(each) for each in cells]))


class TestAccAtom:
    def test_is_0_for_what_chance_gives_and_1_for_all(self) -> None:
        assert acc_atom_corrected(cell([[[1, 2, 3, 4, 5]]], "high")).value == pytest.approx(0)
        assert acc_atom_corrected(cell([[[1, 2, 3, 4, 5]]], "neutral")).value == pytest.approx(0)
        assert acc_atom_corrected(cell([[[3, 3]]], "neutral")).value == 1
        # (0 − 0.4) / 0.6
        assert acc_atom_corrected(cell([[[1, 3]]], "high")).value == pytest.approx(-2 / 3)

    def test_chance_is_the_share_of_the_scores_in_the_level(self) -> None:
        assert [float(chance_share(PAPER, level)) for level in range(3)] == [0.4, 0.2, 0.4]
        assert float(chance_share(Scale(1, 3, ("no", "yes")), 1)) == pytest.approx(2 / 3)

    def test_without_a_score_it_does_not_exist(self) -> None:
        assert acc_atom_corrected(cell([[[9]]])).value is None


class TestIcAtom:
    def test_pools_variances_before_the_root(self) -> None:
        # s² of 1, 5: 8; of 3, 3: 0; mean 4, so 1 − 2·2/4.
        assert ic_atom_corrected(cell([[[1, 5]], [[3, 3]]])).value == 0

    @pytest.mark.parametrize("sentences", LENGTHS)
    def test_is_the_same_at_every_length(self, sentences: int) -> None:
        scores = np.arange(1, 6)
        deviation = np.sqrt(SHARES @ scores**2 - (SHARES @ scores) ** 2)
        found = mean(lambda each: ic_atom_corrected(each).value, alike(sentences))
        assert found == pytest.approx(1 - 2 * deviation / 4, abs=0.02)

    def test_needs_two_sentences(self) -> None:
        assert ic_atom_corrected(cell([[[1]], [[5]]])).value is None


class TestRc:
    def test_has_the_denominator_n_minus_1_and_the_factor_c4(self) -> None:
        # Runs 2 and 4: s = √2, c₄(2) = √(2/π), so 1 − 2√π/4.
        assert rc_corrected(cell([[[1, 3]], [[3], [5]]])).value == pytest.approx(1 - np.pi**0.5 / 2)
        # Runs 1, 3 and 5: s = 2, c₄(3) = √π/2.
        assert rc_corrected(cell([[[1]], [[3]], [[5]]])).value == pytest.approx(1 - 2 / np.pi**0.5)

    @pytest.mark.parametrize(
        ("runs", "factor"), [(2, 0.797885), (5, 0.939986), (10, 0.972659), (30, 0.991418)]
    )
    def test_has_the_factors_of_the_tables(self, runs: int, factor: float) -> None:
        assert unbiased_divisor(runs) == pytest.approx((runs - 1) * factor**2, rel=1e-5)

    @pytest.mark.parametrize("runs", [2, 3, 5, 30])
    def test_is_unbiased_whatever_the_number_of_runs(self, runs: int) -> None:
        spreads = np.random.default_rng(runs).normal(3, 0.5, (20_000, runs)).std(axis=1)
        found = [of_runs_like_these(1 - 2 * each / 4, runs) for each in spreads]
        assert np.mean(found) == pytest.approx(1 - 2 * 0.5 / 4, abs=4 * np.std(found) / 20_000**0.5)

    def test_of_two_runs_at_opposite_ends_is_the_least(self) -> None:
        assert rc_corrected(cell([[[1]], [[5]]])).value == pytest.approx(min(RC_CORRECTED.range or ()))

    def test_of_one_run_does_not_exist(self) -> None:
        assert rc_corrected(cell([[[4, 4]]])).value is None


class TestChanceDistance:
    @pytest.mark.parametrize("runs", [[[1, 1], [5, 3]], [[1], [2, 5, 5]], [[1, 4], [4], [3, 5]]])
    def test_is_the_mean_over_all_ways_to_deal_the_units(self, runs: list[list[int]]) -> None:
        ends = np.cumsum([len(run) for run in runs])[:-1]
        dealt = [np.split(np.array(units), ends) for units in permutations([x for run in runs for x in run])]
        distances = [
            2 - 2 * (rc_atom(cell([[part.tolist()] for part in parts])).overall.value or 0) for parts in dealt
        ]
        found = chance_distance(cell([[run] for run in runs]).run_histograms)
        assert found == pytest.approx(np.mean(distances))

    def test_of_long_runs_follows_the_normal_distribution(self) -> None:
        sizes = [(499, 499), (501, 501)]
        exact, normal = (
            chance_distance(np.array([np.rint(SHARES * size) for size in pair]).astype(np.int64))
            for pair in sizes
        )
        assert exact * (499 / 501) ** 0.5 == pytest.approx(normal, rel=0.005)

    def test_beside_short_runs_it_hardly_matters_how_long_the_long_ones_are(self) -> None:
        short = [np.array([0, 0, 0, 1, 2])] * 2
        found = [
            chance_distance(np.array([*short, *(np.rint(SHARES * size) for size in sizes)]).astype(np.int64))
            for sizes in ((7_000, 14_000), (70_000, 140_000))
        ]
        assert found[0] == pytest.approx(found[1], rel=0.01)

    def test_many_sizes_cost_little_and_change_little(self) -> None:
        random = np.random.default_rng(0)
        histograms = np.array([random.multinomial(n, SHARES) for n in range(10, 90)])
        pooled = histograms.sum(axis=0) / histograms.sum()
        drawn = [
            rc_atom(cell_of(np.array([random.multinomial(n, pooled) for n in range(10, 90)]))).overall.value
            for _ in range(100)
        ]
        distances = 2 - 2 * np.array(drawn, dtype=np.float64)
        assert chance_distance(histograms) == pytest.approx(distances.mean(), rel=0.02)


def cell_of(histograms: np.ndarray) -> CellScores:
    runs = np.arange(len(histograms))
    return CellScores(PAPER, 2, runs, np.zeros_like(runs), histograms, {})


class TestRcAtom:
    @pytest.mark.parametrize(
        ("sentences", "least"), [(2, 0.80), (4, 0.88), (8, 0.91), (12, 0.92), (40, 0.94)]
    )
    def test_of_runs_that_are_alike_is_near_1_and_the_papers_is_at_its_ceiling(
        self, sentences: int, least: float
    ) -> None:
        cells = alike(sentences)
        assert mean(lambda each: rc_atom_corrected(each).corrected.value, cells) > least
        ceiling = mean(lambda each: rc_atom_corrected(each).ceiling.value, cells)
        assert ceiling == pytest.approx(mean(lambda each: rc_atom(each).overall.value, cells), abs=0.01)

    def test_of_runs_that_are_steady_in_themselves_is_the_papers(self) -> None:
        found = rc_atom_corrected(cell([[[1] * 200], [[5] * 200]]))
        assert found.corrected.value == pytest.approx(-1, abs=0.01)

    def test_runs_that_are_more_alike_than_chance_have_1(self) -> None:
        assert rc_atom_corrected(cell([[[1, 5]], [[1, 5]]])).corrected.value == 1

    def test_of_one_run_does_not_exist(self) -> None:
        assert rc_atom_corrected(cell([[[1, 5]]])).corrected.value is None


class TestRarefied:
    RUNS = ([[1, 5, 4]], [[2, 2, 5, 3]], [[4, 4, 4, 1, 3]])

    def test_rc_atom_is_the_mean_over_all_smaller_samples(self) -> None:
        means = [
            np.mean(
                [
                    rc_atom(cell([[list(a)], [list(b)]])).overall.value
                    for a in combinations(one[0], 2)
                    for b in combinations(other[0], 2)
                ]
            )
            for one, other in combinations(self.RUNS, 2)
        ]
        assert rarefied_rc_atom(cell(self.RUNS), 2) == pytest.approx(np.mean(means))

    def test_at_its_own_number_it_is_the_papers(self) -> None:
        runs = cell([[[1, 2, 3]], [[4, 5, 5]], [[2, 2, 5]]])
        assert rarefied_rc_atom(runs, 3) == pytest.approx(rc_atom(runs).overall.value)
        two = cell([[[1, 2, 3]], [[4, 5, 5]]])
        assert rarefied_rc_atom(two, 3) == pytest.approx(rc_atom(two).overall.value)

    def test_ic_atom_is_the_mean_over_all_pairs_of_sentences(self) -> None:
        # |1 − 5|, |1 − 4|, |5 − 4|: 8/3, so 1 − (8/3)/4.
        assert rarefied_ic_atom(cell([[[1, 5, 4]]])) == pytest.approx(1 / 3)

    def test_of_too_few_sentences_does_not_exist(self) -> None:
        assert rarefied_rc_atom(cell([[[1, 2]], [[3]]]), 2) is None
        assert rarefied_ic_atom(cell([[[1]], [[3]]])) is None

    def test_one_generator_at_4_and_at_40_sentences_has_the_same_values(self) -> None:
        short, long = alike(4), alike(40)
        for metric in (lambda each: rarefied_rc_atom(each, 4), rarefied_ic_atom):
            assert mean(metric, short) == pytest.approx(mean(metric, long), abs=0.015)
