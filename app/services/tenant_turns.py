"""Places for one kind of work in a process, shared fairly between tenants."""

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Generic, TypeVar

Key = TypeVar("Key")


class TenantTurns:
    """Gives a free place to the waiting tenant with the fewest places, and among several to the one that waited longest.

    A tenant without a place needs no free one, up to as many again as there are: long work of others does not delay its first.

    Args:
        places: Pieces of work under way at a time.
    """

    def __init__(self, places: int) -> None:
        self._places = places
        self._going: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @contextlib.asynccontextmanager
    async def of(self, tenant: str) -> AsyncIterator[None]:
        """Wait for a place and keep it within the block."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(tenant, deque()).append(turn)
        self._grant()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._end(tenant)
            raise
        try:
            yield
        finally:
            self._end(tenant)

    def _end(self, tenant: str) -> None:
        self._going[tenant] -= 1
        if not self._going[tenant]:
            del self._going[tenant]
        self._grant()

    def _grant(self) -> None:
        while self._waiting:
            tenant = min(self._waiting, key=self._going.__getitem__)
            if self._going.total() >= self._places * (1 if self._going[tenant] else 2):
                return
            turns = self._waiting.pop(tenant)
            turn = turns.popleft()
            if turns:
                self._waiting[tenant] = turns  # behind the others
            if not turn.done():  # else it was cancelled
                self._going[tenant] += 1
                turn.set_result(None)


class TurnedWork(Generic[Key]):
    """Work on items named by messages: tenants take turns, and each item is worked on by one task at a time.

    An item that is named again while it is worked on is worked on once more: its state may have changed since it was read.

    Args:
        turns: The places.
        tenant_of: Finds an item's tenant; ``None`` if there is nothing to do.
        work: Works on an item.
    """

    def __init__(
        self,
        turns: TenantTurns,
        tenant_of: Callable[[Key], Awaitable[str | None]],
        work: Callable[[Key], Awaitable[None]],
    ) -> None:
        self._turns = turns
        self._tenant_of = tenant_of
        self._work = work
        self._again: dict[Key, bool] = {}

    async def __call__(self, key: Key) -> None:
        """Work on an item when its tenant has its turn."""
        if key in self._again:
            self._again[key] = True
            return
        self._again[key] = True
        try:
            tenant = await self._tenant_of(key)
            if tenant is None:
                return
            async with self._turns.of(tenant):
                while self._again[key]:
                    self._again[key] = False
                    await self._work(key)
        finally:
            del self._again[key]
