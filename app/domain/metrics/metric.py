"""A metric's value with what it was taken over, and the metrics that a cell or a total has."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, model_validator

from app.domain.metrics.interval import Ends, Interval

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


class Metric(BaseModel):
    """A value with its n; `null` with a reason if it does not exist."""

    # What nobody asked for, such as an interval, is not set, and left out of JSON.
    model_config = ConfigDict(frozen=True)

    value: float | None
    n: int
    reason: str | None = None
    ci95: Ends | None = Field(
        None,
        description="95 % confidence interval. Cell: over repeated runs with these wordings. Total: over "
        "personas like these, with these wordings.",
        examples=[[0.7, 0.85]],
    )
    ci95_reason: str | None = Field(None, description="Why there is no interval.")
    ci95_runs: Ends | None = Field(
        None, description="Total: 95 % interval over repeated runs, for these personas and wordings."
    )
    ci95_runs_reason: str | None = Field(None, description="Why there is no such interval.")
    ci95_wordings: Ends | None = Field(
        None, description="95 % interval over wordings like these, for these personas."
    )
    ci95_wordings_reason: str | None = Field(None, description="Why there is no such interval.")
    ci95_both: Ends | None = Field(
        None, description="Total: 95 % interval over personas and wordings like these."
    )
    ci95_both_reason: str | None = Field(None, description="Why there is no such interval.")
    left_out: int | None = Field(None, description="In totals: cells (or personas) without the metric.")

    @model_validator(mode="after")
    def _is_there_or_says_why_not(self) -> Self:
        if self.value is None:
            if self.n != 0 or not self.reason or self.ci95 is not None:
                raise ValueError("a metric without a value needs n = 0, a reason and no interval")
        elif not math.isfinite(self.value) or self.n < 1 or self.reason is not None:
            raise ValueError("a metric's value must be finite, with n of at least 1 and no reason")
        return self

    @classmethod
    def of(cls, value: float, n: int) -> Self:
        """A metric that exists, and how many things it was taken over."""
        return cls(value=value, n=n)

    def within(self, ci95: Interval, **others: Interval) -> Self:
        """This metric with its intervals, the others by the names of their fields; a missing one as it is."""
        if self.value is None:
            return self
        found: dict[str, object] = {}
        for name, interval in {"ci95": ci95, **others}.items():
            found |= interval.named(name)
        return self.model_copy(update=found)

    @classmethod
    def missing(cls, reason: str) -> Self:
        """A metric that does not exist, and why."""
        return cls(value=None, n=0, reason=reason)

    @classmethod
    def average(cls, values: FloatArray, reason: str) -> Self:
        """The mean of ``values``, of shape (n,); without any of them, missing for ``reason``."""
        return cls.of(float(values.mean()), len(values)) if len(values) else cls.missing(reason)

    def to_json(self) -> dict[str, Any]:
        """What is set of it."""
        return self.model_dump(exclude_unset=True)


INTERVALS = ("ci95", "ci95_runs", "ci95_wordings", "ci95_both")
"""The fields of a metric's intervals."""

MetricSet = Mapping[str, Metric]
"""The metrics of a cell, or their means over cells, and the metrics' parts, by name."""


NOT_COMPUTED = Metric.missing("not_counted: the results are from before it was computed")
"""A metric that results do not have, as they are older than it."""


def values_of(metrics: Sequence[Metric]) -> FloatArray:
    """The values that exist among ``metrics``, in their order; shape (m,), m up to ``len(metrics)``."""
    return np.array([metric.value for metric in metrics if metric.value is not None], dtype=np.float64)
