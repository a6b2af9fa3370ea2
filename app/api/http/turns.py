"""Shares the few places in which an API process prepares large answers."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

from app.api.http.answers import Party
from app.services.errors import BusyError


class _Waiter(NamedTuple):
    party: Party
    place: asyncio.Future[None]


class Turns:
    """Gives free places to the party with the fewest places, and among equals to the one served longest ago.

    Args:
        places: Number of places.
        each: Places that one party may have at a time.
        waiting: Requests of one party that may wait.
        seconds: Longest time that a request waits.
    """

    def __init__(self, places: int, each: int, *, waiting: int = 16, seconds: float = 60.0) -> None:
        self._free = places
        self._each = each
        self._most_waiting = waiting
        self._seconds = seconds
        self._taken: Counter[Party] = Counter()
        self._waiting: list[_Waiter] = []
        self._turn = 0
        self._served: dict[Party, int] = {}

    @asynccontextmanager
    async def place(self, party: Party) -> AsyncIterator[None]:
        """Wait for a place and hold it.

        Raises:
            BusyError: If too many of the party wait already, or no place becomes free in time.
        """
        waiter = _Waiter(party, asyncio.get_running_loop().create_future())
        if sum(each.party == party for each in self._waiting) >= self._most_waiting:
            raise BusyError("too many large answers are waiting; try again in a few seconds")
        self._waiting.append(waiter)
        self._assign()
        try:
            try:
                async with asyncio.timeout(self._seconds):
                    await waiter.place
            except TimeoutError as error:
                raise BusyError("other large answers take all places; try again in a few seconds") from error
            yield
        finally:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
            else:
                self._free += 1
                self._taken[party] -= 1
                self._taken += Counter()  # drops parties without places
                self._assign()

    def _assign(self) -> None:
        while self._free:
            able = [each for each in self._waiting if self._taken[each.party] < self._each]
            if not able:
                break
            waiter = min(able, key=lambda each: (self._taken[each.party], self._served.get(each.party, 0)))
            self._waiting.remove(waiter)
            self._turn += 1
            self._served[waiter.party] = self._turn
            self._free -= 1
            self._taken[waiter.party] += 1
            if not waiter.place.done():
                waiter.place.set_result(None)
        if not self._taken:
            self._served.clear()
