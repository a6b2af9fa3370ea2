"""A metric's value with what it was taken over, and the metrics that a cell or a total has."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from app.domain.metrics.interval import Interval

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Metric:
    """A mean and what it was taken over, or the reason why there is none.

    Attributes:
        value: The metric; ``None`` where it does not exist, never NaN.
        n: How many things the value was taken over (the metric says which); 0 where there is no value.
        reason: A stable code and an explanation, ``"code: words"``, where there is no value, else ``None``.
        interval: Where the value lies with 95 % confidence; ``None`` where nobody asked, or there is no value.
        runs_interval: Of a mean over cells, where it lies for these very cells, if only their runs were repeated.

    Raises:
        ValueError: If value, n and reason contradict each other, or the value is not finite.
    """

    value: float | None
    n: int
    reason: str | None = None
    interval: Interval | None = None
    runs_interval: Interval | None = None

    def __post_init__(self) -> None:
        if self.value is None:
            if self.n != 0 or not self.reason or self.interval is not None:
                raise ValueError("a metric without a value needs n = 0, a reason and no interval")
        elif not math.isfinite(self.value) or self.n < 1 or self.reason is not None:
            raise ValueError("a metric's value must be finite, with n of at least 1 and no reason")

    def within(self, interval: Interval, runs_interval: Interval | None = None) -> "Metric":
        """This metric with its intervals; a missing one as it is."""
        if self.value is None:
            return self
        return replace(self, interval=interval, runs_interval=runs_interval)

    @classmethod
    def missing(cls, reason: str) -> "Metric":
        """A metric that does not exist, and why."""
        return cls(None, 0, reason)

    @classmethod
    def average(cls, values: FloatArray, reason: str) -> "Metric":
        """The mean of ``values``, of shape (n,); without any of them, missing for ``reason``."""
        return cls(float(values.mean()), len(values)) if len(values) else cls.missing(reason)


MetricSet = Mapping[str, Metric]
"""The metrics of a cell, or their means over cells, and the metrics' parts, by name."""


NOT_COMPUTED: Mapping[str, Any] = {
    "value": None,
    "n": 0,
    "reason": "not_counted: the results are from before it was computed",
}
"""A metric that results do not know yet, in their form."""


def metric_json(metric: Metric) -> dict[str, object]:
    """A metric in the HTTP contract's form, ``ci95`` included where an interval was asked for."""
    if metric.reason is not None:
        return {"value": None, "n": 0, "reason": metric.reason}
    return (
        {"value": metric.value, "n": metric.n}
        | interval_json("ci95", metric.interval)
        | interval_json("ci95_runs", metric.runs_interval)
    )


def interval_json(name: str, interval: Interval | None) -> dict[str, object]:
    """An interval under ``name``, ``None`` with ``<name>_reason`` where there is none; nothing where nobody asked."""
    if interval is None:
        return {}
    if interval.ends is None:
        return {name: None, f"{name}_reason": interval.reason}
    return {name: list(interval.ends)}


def values_of(metrics: Sequence[Metric]) -> FloatArray:
    """The values that exist among ``metrics``, in their order; shape (m,), m up to ``len(metrics)``."""
    return np.array([metric.value for metric in metrics if metric.value is not None], dtype=np.float64)
