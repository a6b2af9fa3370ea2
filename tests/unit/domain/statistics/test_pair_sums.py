import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.instruments.dimension import Scale
from app.domain.metrics.metric import FloatArray, IntArray
from app.domain.metrics.rc_atom import run_distances
from app.domain.metrics.scores import CellScores
from app.domain.statistics import cells, pair_sums
from app.domain.statistics.cells import estimate_cell
from app.domain.statistics.pair_sums import all_pairs, distance_sums, half_square_sums, pairs_among, with_unit
from app.domain.statistics.resampling import cluster_counts, cluster_weights
from app.instruments.loader import load_atomic

SCALE: Scale = load_atomic().dimensions["E"].scale
COUNTS = st.lists(
    st.lists(st.integers(0, 3), min_size=SCALE.size, max_size=SCALE.size).filter(any), min_size=1, max_size=12
)


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few runs are summed like many."""
    monkeypatch.setattr(pair_sums, "FEW_RUNS", 0)


def cdfs_of(counts: list[list[int]]) -> FloatArray:
    histograms = np.array(counts)
    return np.asarray(histograms.cumsum(axis=1)[:, :-1] / histograms.sum(axis=1, keepdims=True))


def a_cell(runs: int, instructions: IntArray) -> CellScores:
    histograms = np.random.default_rng(runs).integers(0, 4, (runs, SCALE.size))
    return CellScores(SCALE, 0, np.arange(runs), instructions, histograms, {})


class TestSums:
    @settings(max_examples=60)
    @given(counts=COUNTS, seed=st.integers(0, 2**32 - 1))
    def test_many_runs_are_summed_as_few_are(self, counts: list[list[int]], seed: int) -> None:
        cdfs = cdfs_of(counts)
        weights = np.random.default_rng(seed).poisson(1.0, (len(cdfs), 5)).astype(float)
        values = cdfs.sum(axis=1)
        few = distance_sums(cdfs, weights), half_square_sums(values, weights)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pair_sums, "FEW_RUNS", 0)
            summed = distance_sums(cdfs, weights), half_square_sums(values, weights)
        np.testing.assert_allclose(summed[0], few[0], atol=1e-12)
        np.testing.assert_allclose(summed[1], few[1], atol=1e-12)

    @pytest.mark.usefixtures("many")
    def test_runs_that_are_alike_are_nothing_apart(self) -> None:
        cdfs = np.tile([0.1, 0.3, 1 / 3, 0.9], (50, 1))
        weights = np.ones((50, 3))
        assert not distance_sums(cdfs, weights).any()
        assert not half_square_sums(cdfs.sum(axis=1), weights).any()

    @pytest.mark.usefixtures("many")
    def test_the_least_difference_that_scores_can_make_is_none_of_rounding(self) -> None:
        values = np.full(32_767, 3.7)
        values[0] += 1 / 2000
        sums = half_square_sums(values, np.ones((len(values), 1)))
        assert sums[1:] == pytest.approx(0.5 / 2000**2, rel=1e-3)

    def test_runs_of_unknown_instruction_are_in_no_pair_among_the_known(self) -> None:
        cdfs = cdfs_of([[1, 0, 2, 0, 1], [0, 3, 0, 0, 1], [2, 2, 2, 2, 2], [0, 0, 0, 0, 3]])
        some = np.array([True, False, True, True])
        weights = with_unit(np.arange(8.0).reshape(4, 2))
        among, alone = pairs_among(some, cdfs, weights), run_distances(cdfs[some])
        own = all_pairs(alone @ weights[some], weights[some])
        np.testing.assert_allclose(among.apart[some], own.apart)
        np.testing.assert_allclose(among.reach[some], own.reach)
        assert not among.apart[1].any()
        assert not among.reach[1].any()


class TestManyRuns:
    def test_some_resamples_at_a_time_give_the_same_intervals(self, monkeypatch: pytest.MonkeyPatch) -> None:
        cell, runs = a_cell(40, np.arange(40) % 3 - 1), np.arange(40)
        whole = estimate_cell({"j": cell, "k": cell}, runs, 7, ("m", "p", "t"))
        monkeypatch.setattr(cells, "VALUES_AT_ONCE", 40 * 70)
        assert estimate_cell({"j": cell, "k": cell}, runs, 7, ("m", "p", "t")).metrics == whole.metrics

    @pytest.mark.slow
    def test_take_memory_in_proportion_to_their_number_and_not_to_that_of_their_pairs(self) -> None:
        def peak(runs: int) -> int:
            cell = a_cell(runs, np.full(runs, -1))
            tracemalloc.start()
            estimate_cell({"j": cell}, np.arange(runs), 7, ("m", "p", "t"))
            most = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            return most

        assert (
            peak(6000) < 1.5 * peak(3000) < 90 * 2**20
        )  # their distances alone would be 69 MiB, and four times as many

    def test_are_counted_as_they_are_weighed(self) -> None:
        counts, weights = (made(3, ("a", "b"), 2500) for made in (cluster_counts, cluster_weights))
        np.testing.assert_array_equal(counts, weights)
        np.testing.assert_array_equal(counts[:7], cluster_counts(3, ("a", "b"), 7))
