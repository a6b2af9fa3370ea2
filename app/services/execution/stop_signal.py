"""The stop signal of a shard: waiting calls stop at once, calls in flight are awaited and recorded.

Nobody waits for ever: what is still on the wire some moments after a job is over, or when the worker's time to stop is
up, is given up.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from app import clock
from app.domain.providers.model import Delivery
from app.services.providers.connection_book import name_in

if TYPE_CHECKING:
    from app.services.execution.call_rows import CallKey

E = TypeVar("E", bound=Exception)

FRESH_SECONDS = 1.0
"""A call starts only if its job was seen to be active so shortly before."""

GRACE_SECONDS = 1.5
"""How long the calls on the wire of a job that is over are awaited."""


class StopReason(StrEnum):
    """Why a shard's work stops before its end."""

    JOB_INACTIVE = "job_inactive"
    """The job was paused, cancelled or deleted."""
    LEASE_LOST = "lease_lost"
    """Somebody else has the shard."""
    SHUTDOWN = "shutdown"
    """The worker is going down."""
    GIVING_WAY = "giving_way"
    """A newer job of which no shard is held gets the shard's place."""
    BATCH = "batch"
    """What is missing comes with batches."""


class StoppedError(Exception):
    """Raised in the place where a call would have waited or started."""


class AbandonedError(StoppedError):
    """Raised in the place where a call on the wire was awaited: whether it will be answered, and paid, is unknown."""


class StopSignal:
    """One shard's stop signal.

    Attributes:
        reason: Why it was given; ``None`` before.
        on_failure: Told of an error after which no call of the job can succeed.
        given_up: Whether calls on the wire are not awaited any longer.
        surplus_from: Connections whose servers sent bytes that no request was waiting for.
        holds_replies: Replies must be settled before they are used, because what is made of them can't be withdrawn.
    """

    def __init__(self) -> None:
        self.reason: StopReason | None = None
        self.on_failure: Callable[[Exception], None] | None = None
        self._waiting: set[asyncio.Task[object]] = set()
        self._flying: set[asyncio.Task[object]] = set()
        self._giving_up: asyncio.TimerHandle | None = None
        self.given_up = False
        self.holds_replies = False
        self._unsettled: list[tuple[Delivery, CallKey, str]] = []
        self._suspects: list[CallKey] = []
        self.surplus_from: set[str] = set()
        self._seen_active_at = float("inf")
        self._seen = asyncio.Event()

    def uses(self, delivery: Delivery, key: "CallKey", connection: str) -> bool:
        """Return whether a reply may be used at once; then :meth:`suspects` looks at it again."""
        if self.holds_replies or delivery.is_doubtful:
            return False
        self._unsettled.append((delivery, key, connection))
        return True

    async def accepts(self, delivery: Delivery, key: "CallKey", connection: str) -> bool:
        """Wait until a reply is settled; return whether it may be used."""
        if not await delivery.settled():
            self.surplus_from.add(name_in(connection))
            return False
        self._unsettled.append((delivery, key, connection))
        return True

    async def suspects(self) -> list["CallKey"]:
        """Return what the replies were for that were used, but may belong to other requests."""
        used, self._unsettled = self._unsettled, []
        for delivery, key, connection in used:
            if await delivery.settled():
                self._unsettled.append((delivery, key, connection))
            else:
                self._suspects.append(key)
                self.surplus_from.add(name_in(connection))
        return self._suspects

    def watch(self, tell: Callable[["CallKey", str], None]) -> None:
        """Tell of the call and connection of each used reply that becomes suspect after :meth:`suspects`."""
        for delivery, key, connection in self._unsettled:
            delivery.watch(partial(tell, key, name_in(connection)))

    def set(self, reason: StopReason) -> None:
        """Stops; the first reason counts."""
        if self.reason is not None:
            return
        self.reason = reason
        for task in self._waiting:
            task.cancel()

    def fail(self, error: E) -> E:
        """Stops because no call of the job can succeed, and says so at once, not when the calls on the wire have ended.

        Returns:
            The error, which the call ends with.
        """
        self.set(StopReason.JOB_INACTIVE)
        if self.on_failure is not None:
            self.on_failure(error)
        return error

    def give_up(self) -> None:
        """Stops; calls still on the wire after :data:`GRACE_SECONDS` are not awaited any longer."""
        self.set(StopReason.JOB_INACTIVE)
        if self._giving_up is None:
            self._giving_up = asyncio.get_running_loop().call_later(GRACE_SECONDS, self.cut)

    @property
    def flying(self) -> int:
        """Number of calls on the wire."""
        return len(self._flying)

    def cut(self) -> int:
        """Gives up the calls on the wire of a shard that was stopped; returns how many."""
        self.given_up = True
        for task in self._flying:
            task.cancel()
        return self.flying

    def seen_active(self, moment: float) -> None:
        """Notes that the job was active at a moment of the monotonic clock, or later."""
        self._seen_active_at = moment
        self._seen.set()

    @property
    def is_confirmed(self) -> bool:
        """Whether a call may start without waiting for anything."""
        return self.reason is None and clock.monotonic() - self._seen_active_at <= FRESH_SECONDS

    async def confirmed(self) -> None:
        """Waits until the job is known to have been active within the last :data:`FRESH_SECONDS`.

        However busy or cut off a worker is, no call of it starts later than that after a cancellation.

        Raises:
            StoppedError: If stopped before or meanwhile.
        """
        self.check()
        while not self.is_confirmed:
            self._seen.clear()
            await self._seen.wait()
            self.check()

    def check(self) -> None:
        """Raises if stopped.

        Raises:
            StoppedError: If stopped.
        """
        if self.reason is not None:
            raise StoppedError(self.reason)

    def interruptible(self, task: asyncio.Task[object] | None = None) -> AbstractContextManager[None]:
        """A stretch of waiting, before a call has started, that a stop ends at once.

        Args:
            task: Who waits; the current task, for which asyncio asks the kernel who is asking.

        Raises:
            StoppedError: If stopped before or during it. What was acquired in it is the caller's to release, so
                a stop that comes with its last step shows only at the next :meth:`check`.
        """
        return _Lease(self, self._waiting, task or current_task())

    def on_the_wire(self, task: asyncio.Task[object] | None = None) -> AbstractContextManager[None]:
        """A call that has started: a stop does not end it, giving up does.

        Args:
            task: Who waits for it, as above.

        Raises:
            AbandonedError: If it was given up.
        """
        return _Flight(self, self._flying, task or current_task())


class _Stay(ABC):
    """Keeps a task among those that are cancelled when it is time, and tells that cancellation from any other."""

    __slots__ = ("_signal", "_task", "_tasks")

    def __init__(
        self, signal: StopSignal, tasks: set[asyncio.Task[object]], task: asyncio.Task[object]
    ) -> None:
        self._signal = signal
        self._tasks = tasks
        self._task = task

    @abstractmethod
    def _ended(self) -> StoppedError | None:
        """What to raise in place of a cancellation, if it was ours."""

    def __enter__(self) -> None:
        self._tasks.add(self._task)

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        self._tasks.discard(self._task)
        if kind is not None and issubclass(kind, asyncio.CancelledError):
            ended = self._ended()
            if ended is not None:
                self._task.uncancel()
                raise ended from None


class _Lease(_Stay):
    """What ends by a stop."""

    __slots__ = ()

    def __enter__(self) -> None:
        self._signal.check()
        self._tasks.add(self._task)

    def _ended(self) -> StoppedError | None:
        reason = self._signal.reason
        return None if reason is None else StoppedError(reason)


class _Flight(_Stay):
    """What ends by giving up only."""

    __slots__ = ()

    def _ended(self) -> StoppedError | None:
        return AbandonedError(self._signal.reason) if self._signal.given_up else None


def current_task() -> asyncio.Task[object]:
    """The task that runs.

    Raises:
        RuntimeError: If none does.
    """
    task = asyncio.current_task()
    if task is None:
        raise RuntimeError("only a task can wait or call")
    return task
