"""Tells the calls of a shard to stop: those that wait stop at once, those on the wire are awaited and kept."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from enum import StrEnum


class StopReason(StrEnum):
    """Why a shard's work stops before its end."""

    JOB_INACTIVE = "job_inactive"
    """The job was paused, cancelled or deleted."""
    LEASE_LOST = "lease_lost"
    """Somebody else has the shard."""
    SHUTDOWN = "shutdown"
    """The worker is going down."""


class StoppedError(Exception):
    """Raised in the place where a call would have waited or started."""


class StopSignal:
    """One shard's stop signal.

    Attributes:
        reason: Why it was given; ``None`` before.
        on_failure: Told of an error after which no call of the job can succeed.
    """

    def __init__(self) -> None:
        self.reason: StopReason | None = None
        self.on_failure: Callable[[Exception], None] | None = None
        self._waiting: set[asyncio.Task[object]] = set()

    def set(self, reason: StopReason) -> None:
        """Stops; the first reason counts."""
        if self.reason is not None:
            return
        self.reason = reason
        for task in self._waiting:
            task.cancel()

    def fail(self, error: Exception) -> None:
        """Stops because no call of the job can succeed, and says so at once, not when the calls on the wire have ended."""
        self.set(StopReason.JOB_INACTIVE)
        if self.on_failure is not None:
            self.on_failure(error)

    def check(self) -> None:
        """Raises if stopped.

        Raises:
            StoppedError: If stopped.
        """
        if self.reason is not None:
            raise StoppedError(self.reason)

    @contextlib.contextmanager
    def interruptible(self) -> Iterator[None]:
        """A stretch of waiting, before a call has started, that a stop ends at once.

        Raises:
            StoppedError: If stopped before or during it. What was acquired in it is the caller's to release, so
                a stop that comes with its last step shows only at the next :meth:`check`.
        """
        self.check()
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("only a task can wait")
        self._waiting.add(task)
        try:
            yield
        except asyncio.CancelledError:
            if self.reason is None:
                raise
            task.uncancel()
            raise StoppedError(self.reason) from None
        finally:
            self._waiting.discard(task)
