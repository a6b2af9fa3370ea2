import numpy as np
import pytest

from app.domain.metrics.metric import FloatArray
from app.domain.statistics.rank import PERMUTATIONS, kendall_tau, permutation_test, spearman_rho
from app.domain.statistics.resampling import chance, cluster_weights


def apart(count: int) -> tuple[np.ndarray, FloatArray]:
    """Each item a cluster of its own."""
    return np.arange(count), cluster_weights(0, ("test",), count)


class TestAgainstScipy:
    @pytest.mark.parametrize("seed", range(5))
    def test_both_are_scipys_with_ties_in_both_series(self, seed: int) -> None:
        from scipy import stats

        draws = np.random.default_rng(seed)
        judge = draws.integers(1, 6, 60).astype(float)
        human = np.round(judge + draws.normal(0, 1, 60) * 2) / 2
        tau = kendall_tau(human, judge, *apart(60))
        rho = spearman_rho(human, judge, *apart(60))
        assert tau.value == pytest.approx(stats.kendalltau(human, judge).statistic, abs=1e-12)
        assert rho.value == pytest.approx(stats.spearmanr(human, judge).statistic, abs=1e-12)
        assert tau.n == rho.n == 60

    def test_they_are_also_without_ties(self) -> None:
        from scipy import stats

        draws = np.random.default_rng(7)
        one, other = draws.normal(size=40), draws.normal(size=40)
        assert kendall_tau(one, other, *apart(40)).value == pytest.approx(
            stats.kendalltau(one, other).statistic
        )
        assert spearman_rho(one, other, *apart(40)).value == pytest.approx(
            stats.spearmanr(one, other).statistic
        )


class TestByHand:
    def test_one_discordant_of_six_pairs(self) -> None:
        one, other = np.array([1.0, 2, 3, 4]), np.array([1.0, 2, 4, 3])
        assert kendall_tau(one, other, *apart(4)).value == pytest.approx((5 - 1) / 6)
        assert spearman_rho(one, other, *apart(4)).value == pytest.approx(1 - 6 * 2 / (4 * 15))

    def test_what_can_have_no_correlation_says_why(self) -> None:
        flat = np.ones(5)
        for coefficient in (kendall_tau, spearman_rho):
            assert str(coefficient(flat, np.arange(5.0), *apart(5)).reason).startswith("no_variation")
            assert str(coefficient(flat[:2], flat[:2], *apart(2)).reason).startswith("too_few_items: 2")


class TestIntervals:
    def test_sentences_of_one_response_are_drawn_together(self) -> None:
        draws = np.random.default_rng(3)
        judge = draws.integers(1, 6, 20).astype(float)
        human = judge + draws.normal(size=20)
        lone = kendall_tau(human, judge, *apart(20))
        # The same response four times over tells no more than once, so the interval is no narrower.
        places = np.tile(np.arange(20), 4)
        fourfold = kendall_tau(np.tile(human, 4), np.tile(judge, 4), places, apart(20)[1])
        assert lone.ci95 is not None
        assert fourfold.ci95 is not None
        widths = [high - low for low, high in (lone.ci95, fourfold.ci95)]
        assert widths[1] == pytest.approx(widths[0], rel=0.15)

    @pytest.mark.long
    def test_intervals_cover_the_truth(self) -> None:
        # Normal series with correlation r: τ = 2/π · arcsin r (Greiner), ρ = 6/π · arcsin(r / 2).
        r, covered = 0.7, {"tau": 0, "rho": 0}
        truth = {"tau": 2 / np.pi * np.arcsin(r), "rho": 6 / np.pi * np.arcsin(r / 2)}
        draws = np.random.default_rng(11)
        for trial in range(200):
            one = draws.normal(size=50)
            other = r * one + np.sqrt(1 - r * r) * draws.normal(size=50)
            one, other = np.round(one * 20), np.round(other * 20)
            weights = cluster_weights(trial, ("test",), 50)[:, :250]
            for name, coefficient in (("tau", kendall_tau), ("rho", spearman_rho)):
                ends = coefficient(one, other, np.arange(50), weights).ci95
                assert ends is not None
                covered[name] += ends[0] <= truth[name] <= ends[1]
        assert all(count >= 182 for count in covered.values()), (
            covered
        )  # 190 expected, 3 standard errors are 9


class TestPermutations:
    def p(
        self, one: FloatArray, other: FloatArray, clusters: np.ndarray, seed: int = 0
    ) -> tuple[float, float]:
        tau, rho = permutation_test(one, other, clusters, chance(seed, ("test",)))
        assert tau is not None
        assert rho is not None
        return tau, rho

    @pytest.mark.parametrize("slope", [0.0, 0.2, 0.4])
    def test_p_is_scipys_within_chance(self, slope: float) -> None:
        from scipy import stats

        draws = np.random.default_rng(3)
        judge = draws.integers(1, 6, 80).astype(float)
        human = np.round(slope * judge + draws.normal(0, 1, 80))
        tau, rho = self.p(human, judge, np.arange(80))
        assert tau == pytest.approx(stats.kendalltau(human, judge).pvalue, abs=0.035)
        assert rho == pytest.approx(stats.spearmanr(human, judge).pvalue, abs=0.035)

    def test_all_arrangements_of_four_items_are_counted_as_often_as_there_are(self) -> None:
        tau, rho = self.p(np.arange(4.0), np.arange(4.0), np.arange(4))  # 2 of 24 are as far from 0
        assert (tau, rho) == pytest.approx((2 / 24, 2 / 24), abs=0.02)

    def test_the_smallest_is_one_of_all_arrangements(self) -> None:
        one = np.arange(40.0)
        assert self.p(one, one, np.arange(40)) == (1 / (1 + PERMUTATIONS),) * 2

    def test_items_of_one_cluster_are_no_evidence_of_their_own(self) -> None:
        """Ten personas with eight responses each, every persona with levels of its own: 5 % alarms, where items apart give half."""
        draws = np.random.default_rng(11)
        clusters = np.repeat(np.arange(10), 8)
        alarms = np.zeros(2)
        for n in range(200):
            one, other = (
                np.round(draws.normal(0, 1.5, 10)[clusters] + draws.normal(0, 0.5, 80)) for _ in range(2)
            )
            alarms += [self.p(one, other, of, n)[1] <= 0.05 for of in (clusters, np.arange(80))]
        assert alarms[0] / 200 <= 0.09
        assert alarms[1] / 200 >= 0.3

    def test_clusters_of_other_sizes_stay_apart(self) -> None:
        clusters = np.array([0, 1, 1, 2, 2, 2])  # nothing can be exchanged
        one = np.array([1.0, 2, 3, 4, 5, 6])
        assert self.p(one, one, clusters) == (1.0, 1.0)

    @pytest.mark.parametrize("one", [[1.0, 2.0], [3.0, 3.0, 3.0]])
    def test_there_is_none_without_a_coefficient(self, one: list[float]) -> None:
        found = permutation_test(
            np.array(one), np.arange(float(len(one))), np.arange(len(one)), chance(0, ())
        )
        assert found == (None, None)
