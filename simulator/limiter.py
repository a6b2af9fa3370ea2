"""The provider's rate limit: a token bucket for each model."""

from dataclasses import dataclass


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
