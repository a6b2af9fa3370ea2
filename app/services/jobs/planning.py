"""The planning pool: two threads, one plan per tenant and kind at a time, cancelled when the client has gone."""

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar
from weakref import WeakValueDictionary

from app.services.errors import AbandonedError, BusyError

T = TypeVar("T")

Gone = Callable[[], Awaitable[bool]]
"""Whether who asked for a plan waits for it no more."""
Check = Callable[[], None]
"""Raises :class:`app.services.errors.AbandonedError` once nobody waits for the plan."""

THREADS = 2
MOST_WAITING = 32
"""Plans of one tenant and kind, the one under way included."""
LOOK_SECONDS = 0.1
"""How often it is asked whether the client is still there."""


class PlanningPool:
    """One a process; of one event loop."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, "planning")
        self._turns: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
        self._asked: Counter[tuple[str, str]] = Counter()

    async def run(self, tenant: str, kind: str, work: Callable[[Check], T], gone: Gone | None = None) -> T:
        """What a function plans.

        Args:
            tenant: Who asks for it.
            kind: What for: plans and submissions of a tenant do not wait for each other.
            work: CPU only; calls what it is given between its parts.
            gone: Whether who asked has gone; never if not given.

        Raises:
            BusyError: If as many of the tenant's wait already.
            AbandonedError: If who asked has gone.
        """
        whose = (tenant, kind)
        if self._asked[whose] >= MOST_WAITING:
            raise BusyError(f"{MOST_WAITING} jobs of this tenant are already being planned; try again later")
        self._asked[whose] += 1
        abandoned = threading.Event()

        def check() -> None:
            if abandoned.is_set():
                raise AbandonedError

        planning = asyncio.create_task(self._in_turn(whose, work, check))
        try:
            while not (await asyncio.wait({planning}, timeout=LOOK_SECONDS))[0]:
                if gone is not None and await gone():
                    raise AbandonedError
            return planning.result()
        finally:
            abandoned.set()
            planning.cancel()
            self._asked[whose] -= 1
            self._asked += Counter()  # forgets who asks for nothing

    def close(self) -> None:
        """Drops what has not begun."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _in_turn(self, whose: tuple[str, str], work: Callable[[Check], T], check: Check) -> T:
        def begin() -> T:
            check()
            return work(check)

        turn = self._turns.get(whose)
        if turn is None:
            turn = self._turns[whose] = asyncio.Lock()
        async with turn:
            planned = asyncio.get_running_loop().run_in_executor(self._threads, begin)
            try:
                return await asyncio.shield(planned)
            finally:
                # The turn ends with the work, which hears of its end at its next check.
                while not planned.done():
                    await asyncio.wait({planned})
                planned.exception()  # seen: it is not reported as never retrieved
