"""How many calls may be in flight at once, over all workers: each process leases a share of them from Redis.

A share lasts some seconds and is renewed meanwhile, so that the share of a process that died comes back by itself.
"""

import asyncio
import contextlib
from collections import deque

from redis.asyncio import Redis
from redis.exceptions import RedisError

from app.limits.scripts import SHARE
from app.ports import LimiterUnavailableError

LASTING_SECONDS = 15.0
"""How long a share lasts that is not renewed."""
_MARGIN_SECONDS = 1.0
"""So much earlier than Redis does its holder regard a share as lapsed."""
_RENEWAL_SECONDS = 1.0
_STARVED_SECONDS = 0.1
"""How often a process asks for more while calls wait."""


class SharedSlots:
    """The slots of one connection's model, as one process sees them; belongs to one event loop.

    Args:
        redis: Where the shares are.
        key: Of the shares.
        epoch: Key of the epoch; see :mod:`app.limits.scripts`.
        limit: Calls in flight at once, of all processes together.
        owner: This process, unlike all others.
    """

    def __init__(self, redis: Redis, *, key: str, epoch: str, limit: int, owner: str) -> None:
        self._script = redis.register_script(SHARE)
        self._keys = [key, epoch]
        self._limit = limit
        self._owner = owner
        self._share = 0
        self._lapses = 0.0
        self._in_use = 0
        self._peak = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._keeper: asyncio.Task[None] | None = None
        self._hungry = asyncio.Event()

    async def enter(self) -> None:
        """Waits for a slot; the caller must :meth:`leave` it.

        Raises:
            LimiterUnavailableError: If Redis cannot be reached.
        """
        if not self._waiting and self._free():
            self._take()
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        self._hungry.set()
        if self._keeper is None:
            self._keeper = asyncio.create_task(self._keep(), name="shared-slots")
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self.leave()
            raise

    def leave(self) -> None:
        """Gives a slot back."""
        self._in_use -= 1
        self._hand_out()

    async def close(self) -> None:
        """Ends all waiting, and gives the share back if Redis can be reached."""
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait([self._keeper])
            self._keeper = None
        self._fail("it was closed")
        with contextlib.suppress(RedisError, OSError):
            await self._ask(0)

    def _free(self) -> bool:
        return self._in_use < self._share and asyncio.get_running_loop().time() < self._lapses

    def _take(self) -> None:
        self._in_use += 1
        self._peak = max(self._peak, self._in_use)

    def _hand_out(self) -> None:
        while self._waiting and self._free():
            waiter = self._waiting.popleft()
            if not waiter.done():
                self._take()
                waiter.set_result(None)

    async def _keep(self) -> None:
        """Renews the share, or asks for more, for as long as there are calls; gives it back after the last."""
        try:
            while True:
                self._waiting = deque(waiter for waiter in self._waiting if not waiter.done())
                want, self._peak = max(self._peak, self._in_use + len(self._waiting)), self._in_use
                idle = not (self._waiting or self._in_use)
                try:
                    await self._ask(0 if idle else min(want, self._limit))
                except (RedisError, OSError) as error:
                    self._fail(f"{type(error).__name__}: {error}")
                self._hand_out()
                if idle and not (self._waiting or self._in_use):
                    return
                await self._rest()
        finally:
            self._keeper = None
            self._fail("it was closed")

    async def _rest(self) -> None:
        await asyncio.sleep(_STARVED_SECONDS)
        if not self._waiting:
            self._hungry.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_RENEWAL_SECONDS - _STARVED_SECONDS):
                    await self._hungry.wait()

    async def _ask(self, want: int) -> None:
        now = asyncio.get_running_loop().time()
        held = self._share if now < self._lapses else self._in_use
        arguments = (self._owner, self._limit, self._in_use, held, want, round(LASTING_SECONDS * 1e6))
        # Until Redis has said how much is ours, and if it never does, no call starts but in the place of one that ended.
        self._share = self._in_use
        self._share = int(await self._script(keys=self._keys, args=arguments))
        self._lapses = now + LASTING_SECONDS - _MARGIN_SECONDS

    def _fail(self, reason: str) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_exception(
                    LimiterUnavailableError(
                        f"the shared limit of calls in flight cannot be reached: {reason}"
                    )
                )
