"""A 95 % confidence interval, or the reason why there is none."""

import math
from dataclasses import dataclass

Ends = tuple[float, float]

DIGITS = 6
"""Decimals of an interval's ends; far more than resampling can tell, few enough to read and to store."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A two-sided interval with nominal coverage of 95 %.

    Attributes:
        low: Its lower end; ``None`` where there is no interval, never NaN.
        high: Its upper end.
        reason: A stable code and an explanation, ``"code: words"``, where there is no interval, else ``None``.

    Raises:
        ValueError: If ends and reason contradict each other, or the ends are not finite and in order.
    """

    low: float | None
    high: float | None
    reason: str | None = None

    def __post_init__(self) -> None:
        if self.low is None or self.high is None:
            if not (self.low is None and self.high is None and self.reason):
                raise ValueError("a missing interval needs a reason and has no ends")
        elif not -math.inf < self.low <= self.high < math.inf or self.reason is not None:
            raise ValueError("an interval's ends must be finite and in order, without a reason")

    @classmethod
    def missing(cls, reason: str) -> "Interval":
        """An interval that does not exist, and why."""
        return cls(None, None, reason)

    @classmethod
    def around(cls, value: float, low: float, high: float, bounds: tuple[float, float]) -> "Interval":
        """The interval from ``low`` to ``high``, rounded outward, within ``bounds`` and never beside ``value``."""
        unit = 10**DIGITS
        least, most = bounds
        # Cut off before it is rounded: an end may be too far away to be multiplied.
        lowest, highest = max(least, min(low, value)), min(most, max(high, value))
        return cls(max(least, math.floor(lowest * unit) / unit), min(most, math.ceil(highest * unit) / unit))

    @property
    def ends(self) -> tuple[float, float] | None:
        """Both ends; ``None`` where there is no interval."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    def named(self, name: str) -> dict[str, object]:
        """The fields of a metric whose interval ``name`` this is."""
        return {name: self.ends} if self.ends is not None else {name: None, f"{name}_reason": self.reason}
