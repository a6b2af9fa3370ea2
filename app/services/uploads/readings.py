"""Reads files beside the requests that ask for it."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from app import clock

T = TypeVar("T")

AT_ONCE = 2
"""Files that a process reads at a time: it holds some of each."""
TURN_SECONDS = 15.0
"""So long a file is read while others wait, from the first of it on that was read; what is found again of it may take as long."""

GiveWay = Callable[[], None]
"""Called by whoever reads a file when some of it is stored; raises :class:`TurnOverError` once it is others' turn."""


class TurnOverError(Exception):
    """A reading stops in its middle; it goes on after those that waited."""


class _File(NamedTuple):
    tenant: str
    id: str


class _Begun(NamedTuple, Generic[T]):
    how: Hashable
    task: asyncio.Task[T]


class Readings(Generic[T]):
    """Files that are being read, of a tenant one at a time; one a process, of one event loop.

    Args:
        kept_seconds: So long what was found is kept for a request that comes again.
        turn_seconds: So long a file is read while others wait.
    """

    def __init__(self, kept_seconds: float = 0.0, turn_seconds: float = TURN_SECONDS) -> None:
        self._kept_seconds, self._turn_seconds = kept_seconds, turn_seconds
        self._waiting = 0
        self._begun: dict[_File, _Begun[T]] = {}
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._turns_of: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def read(
        self,
        tenant: str,
        id_: str,
        how: Hashable,
        work: Callable[[GiveWay], Coroutine[Any, Any, T]],
        seconds: float,
    ) -> asyncio.Task[T] | None:
        """Sees to it that a file is read, and waits for that, but not for long.

        Args:
            tenant: Whose it is.
            id_: The file's id.
            how: Reads it anew, and not before it is read otherwise, if that differs.
            work: Reads it; called again, after a turn of others, if it lets :class:`TurnOverError` through.
            seconds: So long it is waited.

        Returns:
            The reading that has ended, once; ``None`` while it goes on.
        """
        file = _File(tenant, id_)
        begun = self._begun.get(file)
        if begun is not None and begun.how != how:
            await asyncio.wait({begun.task}, timeout=seconds)
            # Another request that waited may have begun meanwhile, in whatever way.
            begun = self._begun.get(file)
            if begun is not None and begun.how != how:
                if not begun.task.done():
                    return None
                begun = None
        if begun is None:
            begun = self._begun[file] = _Begun(how, asyncio.create_task(self._read(tenant, work)))
            begun.task.add_done_callback(partial(self._forget_later, file))
        await asyncio.wait({begun.task}, timeout=seconds)
        if not begun.task.done():
            return None
        self._forget(file, begun.task)
        return begun.task

    async def close(self) -> None:
        """Breaks off; others go on. Afterwards no connection is in use any more."""
        tasks = [begun.task for begun in self._begun.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(self, tenant: str, work: Callable[[GiveWay], Coroutine[Any, Any, T]]) -> T:
        async with self._turns_of.setdefault(tenant, asyncio.Lock()):
            while True:
                self._waiting += 1
                try:
                    await self._turns.acquire()
                finally:
                    self._waiting -= 1
                try:
                    return await work(self._turn())
                except TurnOverError:
                    continue
                finally:
                    self._turns.release()

    def _turn(self) -> GiveWay:
        begun: float | None = None

        def give_way() -> None:
            nonlocal begun
            now = clock.monotonic()
            begun = begun or now
            if self._waiting and now - begun >= self._turn_seconds:
                raise TurnOverError

        return give_way

    def _forget_later(self, file: _File, task: asyncio.Task[T]) -> None:
        asyncio.get_running_loop().call_later(self._kept_seconds, self._forget, file, task)

    def _forget(self, file: _File, task: asyncio.Task[T]) -> None:
        if file in self._begun and self._begun[file].task is task:
            del self._begun[file]
            if not task.cancelled():
                task.exception()  # else asyncio warns of an error that nobody asked for
