"""A metric's value, n and reason."""

import math

import numpy as np
import pytest

from app.domain.metrics.metric import Metric


class TestMetric:
    @pytest.mark.parametrize(
        ("value", "n", "reason"),
        [
            (math.nan, 1, None),
            (math.inf, 1, None),
            (0.5, 0, None),
            (0.5, 1, "why"),
            (None, 0, None),
            (None, 1, "why"),
        ],
    )
    def test_refuses_values_that_are_no_numbers_and_gaps_without_a_reason(
        self, value: float | None, n: int, reason: str | None
    ) -> None:
        with pytest.raises(ValueError, match="a metric"):
            Metric(value=value, n=n, reason=reason)

    def test_the_average_of_nothing_is_missing(self) -> None:
        assert Metric.average(np.array([]), "nothing: to average") == Metric.missing("nothing: to average")

    def test_the_average_counts_its_values(self) -> None:
        assert Metric.average(np.array([1.0, 2.0, 6.0]), "unused") == Metric.of(3.0, 3)
