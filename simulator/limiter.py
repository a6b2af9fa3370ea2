"""The provider's rate limits: a token bucket for each model, and the strict windows of a provider profile."""

from collections import deque
from dataclasses import dataclass, field
from math import inf


@dataclass(slots=True)
class Bucket:
    """Permits that refill continuously.

    Attributes:
        level: Permits in the bucket.
        at: When `level` was true, in seconds of a monotonic clock.
    """

    level: float
    at: float

    def take(self, now: float, *, per_minute: int, capacity: int) -> float:
        """Takes one permit.

        Args:
            now: Seconds of the same clock as `at`.
            per_minute: Permits that flow in.
            capacity: Permits that fit.

        Returns:
            0 if the permit was granted, otherwise the seconds until there is one.
        """
        self.level = min(capacity, self.level + (now - self.at) * per_minute / 60)
        self.at = now
        if self.level < 1:
            return (1 - self.level) * 60 / per_minute
        self.level -= 1
        return 0.0


@dataclass(slots=True)
class SlidingWindow:
    """A limit that holds in every window of its length, wherever the window begins.

    Attributes:
        limit: The most that may be taken in one window.
        seconds: Length of the window.
        used: What was taken in the window that ends at the last time asked for.
    """

    limit: int
    seconds: float
    used: int = 0
    _taken: deque[tuple[float, int]] = field(default_factory=deque)

    def wait(self, now: float, amount: int) -> float:
        """Seconds until `amount` fits; 0 if it fits now, infinity if it is more than the whole limit.

        Args:
            now: Seconds of a monotonic clock, never less than in the call before.
            amount: What is to be taken.
        """
        while self._taken and self._taken[0][0] <= now - self.seconds:
            self.used -= self._taken.popleft()[1]
        excess = self.used + amount - self.limit
        if excess <= 0:
            return 0.0
        for at, taken in self._taken:
            excess -= taken
            if excess <= 0:
                return at + self.seconds - now
        return inf

    def take(self, now: float, amount: int) -> None:
        """Takes `amount`, which fits."""
        self._taken.append((now, amount))
        self.used += amount

    @property
    def remaining(self) -> int:
        """What is left in the window."""
        return self.limit - self.used

    @property
    def reset(self) -> float:
        """Seconds until all of the limit is there again, as a provider says it that refills evenly."""
        return self.used * self.seconds / self.limit
