import numpy as np
import pytest

from app.domain.metrics.metric import FloatArray, Metric
from app.domain.statistics.fleiss import fleiss_kappa
from app.domain.statistics.resampling import cluster_weights

TEXTBOOK = [
    *([0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1]),
    *([7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7]),
]
"""Ten items, fourteen raters, five answers: the worked example by which κ is commonly taught; κ = 0.210."""


def kappa(counts: list[list[int]]) -> Metric:
    table: FloatArray = np.array(counts, dtype=np.float64)
    return fleiss_kappa(table, cluster_weights(0, ("test",), len(table)))


class TestFleissKappa:
    def test_the_worked_example(self) -> None:
        found = kappa(TEXTBOOK)
        assert found.value == pytest.approx(0.210, abs=0.0005)
        assert found.n == 10

    def test_by_hand(self) -> None:
        # Three raters; pairs that agree: 3/3, 1/3, 3/3, 1/3; shares of the answers 7/12 and 5/12.
        observed, expected = (1 + 1 / 3 + 1 + 1 / 3) / 4, (7**2 + 5**2) / 12**2
        found = kappa([[3, 0], [2, 1], [0, 3], [2, 1]])
        assert found.value == pytest.approx((observed - expected) / (1 - expected))

    def test_full_agreement_is_one_and_none_is_below_chance(self) -> None:
        assert kappa([[3, 0], [0, 3], [3, 0], [0, 3], [3, 0]]).value == pytest.approx(1.0)
        assert kappa([[1, 1], [1, 1], [1, 1], [1, 1], [1, 1]]).value == pytest.approx(-1.0)

    def test_items_with_one_answer_are_left_out(self) -> None:
        both = kappa([[2, 0], [1, 1], [0, 2]])
        assert kappa([[2, 0], [1, 0], [1, 1], [0, 1], [0, 2]]) == both
        assert both.n == 3

    def test_where_there_is_none_it_says_why(self) -> None:
        assert str(kappa([[1, 0], [0, 1]]).reason).startswith("no_joint_item")
        assert str(kappa([[2, 0], [3, 0]]).reason).startswith("no_variation")

    def test_its_interval_is_around_it(self) -> None:
        ends = kappa(TEXTBOOK).ci95
        assert ends is not None
        assert ends[0] < 0.210 < ends[1]
