"""How a job ranks among the other jobs of its tenant."""

from enum import StrEnum


class Priority(StrEnum):
    """A job's priority."""

    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"

    @property
    def weight(self) -> int:
        """Turns at a model in the time in which a job of low priority has one."""
        return _WEIGHTS[self]


_WEIGHTS = {Priority.LOW: 1, Priority.NORMAL: 4, Priority.HIGH: 16}
