"""The life of a job."""

from enum import StrEnum


class JobStatus(StrEnum):
    """A job's status."""

    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    CANCELLING = "cancelling"
    FINALIZING = "finalizing"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_terminal(self) -> bool:
        """Whether the job is over; only a retry can take it up again."""
        return self in TERMINAL

    @property
    def may_call(self) -> bool:
        """Whether calls to providers may start."""
        return self in ACTIVE


TERMINAL = frozenset({JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED})
ACTIVE = frozenset({JobStatus.QUEUED, JobStatus.RUNNING})
ENDING = frozenset({JobStatus.CANCELLING, JobStatus.FINALIZING})
"""States of a job that is over and waits only for what is still on its way."""
STOPPED = frozenset(JobStatus) - ACTIVE - TERMINAL
"""States in which no call starts, while answers that have come are still read."""

TRANSITIONS: dict[JobStatus, frozenset[JobStatus]] = {
    JobStatus.QUEUED: frozenset(
        {JobStatus.RUNNING, JobStatus.PAUSED, JobStatus.CANCELLING, JobStatus.FINALIZING}
    ),
    JobStatus.RUNNING: frozenset({JobStatus.PAUSED, JobStatus.CANCELLING, JobStatus.FINALIZING}),
    JobStatus.PAUSED: frozenset({JobStatus.QUEUED, JobStatus.CANCELLING}),
    JobStatus.CANCELLING: frozenset({JobStatus.CANCELLED}),
    JobStatus.FINALIZING: frozenset({JobStatus.COMPLETED, JobStatus.FAILED}),
    JobStatus.COMPLETED: frozenset({JobStatus.QUEUED}),
    JobStatus.FAILED: frozenset({JobStatus.QUEUED}),
    JobStatus.CANCELLED: frozenset(),
}
"""What may follow what. The database's updates name the states that they leave, so no other step can happen. What has
ended is queued again only by a retry of what failed in it; a cancellation is final."""


def before(status: JobStatus) -> list[JobStatus]:
    """The states that a status may follow."""
    return [each for each, following in TRANSITIONS.items() if status in following]


RETRIABLE = frozenset(before(JobStatus.QUEUED))
"""States of a job of which what failed can be done again."""
RESUMABLE = RETRIABLE - TERMINAL
"""States of a job that goes on where it stopped once it is resumed."""
