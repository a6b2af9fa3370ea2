"""What a cell's scores must look like."""

from typing import Any

import numpy as np
import pytest

from app.domain.instruments.dimension import Scale
from app.domain.judging.verdict import VerdictStatus
from app.domain.metrics.levels import level_indices
from app.domain.metrics.scores import CellScores


def fields(**changes: Any) -> dict[str, Any]:
    return {
        "scale": Scale(),
        "level": 2,
        "runs": np.array([0, 0]),
        "instructions": np.array([1, 1]),
        "histograms": np.array([[0, 0, 0, 1, 2], [0, 0, 0, 0, 0]]),
        "excluded": {},
    } | changes


class TestCellScores:
    def test_counts_by_response(self) -> None:
        scores = CellScores(**fields())
        assert scores.counts.tolist() == [3, 0]
        assert scores.totals.tolist() == [14, 0]  # 4 + 5 + 5
        assert scores.scored.tolist() == [True, False]

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"histograms": np.zeros((2, 4), dtype=np.int64)}, r"histograms must have the shape \(2, 5\)"),
            ({"histograms": np.full((2, 5), -1)}, "must not be negative"),
            ({"excluded": {VerdictStatus.FAILED: -1}}, "must not be negative"),
            ({"excluded": {VerdictStatus.SCORED: 1}}, "excluded counts units without a score"),
            ({"instructions": np.array([1])}, "one entry for each response"),
            ({"instructions": np.array([1, 2])}, "same for all responses of a run"),
            ({"level": 3}, "level must index one of 3 levels"),
        ],
    )
    def test_refuses_what_contradicts_itself(self, changes: dict[str, Any], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            CellScores(**fields(**changes))


class TestLevelIndices:
    @pytest.mark.parametrize(
        "scale",
        [
            Scale(),
            Scale(1, 7, ("low", "high")),
            Scale(1, 7, ("a", "b", "c", "d", "e")),
            Scale(-3, 3, not_applicable=9),
        ],
    )
    def test_agrees_with_the_scale_for_every_sum_of_up_to_twelve_scores(self, scale: Scale) -> None:
        sums = [(t, n) for n in range(1, 13) for t in range(n * scale.minimum, n * scale.maximum + 1)]
        totals, counts = np.array(sums, dtype=np.int64).T
        assert level_indices(scale, totals, counts).tolist() == [scale.level_index(t, n) for t, n in sums]
