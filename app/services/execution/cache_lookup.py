"""Looks up replies in the response cache and claims the requests for those that are missing.

While one transaction is on its way, the wishes that come meanwhile gather for the next. What somebody else is asking
for, in whatever process, is waited for; if he is stopped or dies, the next one asks.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field

import structlog
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.execution import response_cache
from app.db.execution.response_cache import KeptReply, Wish
from app.db.health import is_away
from app.db.reasons import reason
from app.telemetry.vital import start_vital

log = structlog.get_logger(__name__)

WAITING_SECONDS = 0.1
"""How often it is looked whether others, in other processes, have been answered."""

AWAY_SECONDS = 0.5
"""How often a database that is away is asked again."""


@dataclass(slots=True, eq=False)
class _Pending:
    """Somebody who waits for a reply, or for leave to ask for it."""

    wish: Wish
    answer: asyncio.Future[KeptReply | None] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class ReplyDesk:
    """One a process. Nobody may come with a wish whose name somebody before him has come with and not yet released."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._waiting: list[_Pending] = []
        self._released: list[Wish] = []
        self._came = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """On leaving, what nobody asks for any more has been released, if the database can be reached."""
        try:
            yield
        finally:
            if self._task is not None:
                await asyncio.wait({self._task}, timeout=2 * AWAY_SECONDS)
                self._task.cancel()

    async def look_up(self, wish: Wish) -> KeptReply | None:
        """The reply, once there is one; ``None`` if it is now the caller's to ask for.

        Who has been told to ask, and has not been answered, says so by :meth:`release`.
        """
        visitor = _Pending(wish)
        self._waiting.append(visitor)
        self._serve()
        try:
            return await visitor.answer
        except asyncio.CancelledError:
            # With the last step of it, he may have been told to ask all the same.
            self.release(wish)
            raise

    def release(self, wish: Wish) -> None:
        """Somebody else may ask."""
        self._released.append(wish)
        self._serve()

    def _serve(self) -> None:
        self._came.set()
        if self._task is None:
            self._task = start_vital("reply desk", self._serve_all(), may_return=True)

    async def _serve_all(self) -> None:
        try:
            while self._waiting or self._released:
                self._came.clear()
                try:
                    await self._serve_those_here()
                except Exception as error:
                    if is_away(error):  # a claim that was committed all the same is found to be ours
                        log.warning("replies not reached; trying again", reason=reason(error))
                    else:
                        _fail_all(self._waiting, error)
                        log.exception("replies not looked up")
                    await asyncio.sleep(AWAY_SECONDS)
                self._waiting = [visitor for visitor in self._waiting if not visitor.answer.done()]
                if self._waiting and not self._came.is_set():
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(WAITING_SECONDS):
                            await self._came.wait()
        finally:
            self._task = None
            for visitor in self._waiting:
                visitor.answer.cancel()

    async def _serve_those_here(self) -> None:
        here, released = [v for v in self._waiting if not v.answer.done()], list(self._released)
        if released:
            async with self._engine.begin() as connection:
                await response_cache.release(connection, released)
            del self._released[: len(released)]
        if not here:
            return
        async with self._engine.connect() as connection:
            kept, taken = await response_cache.find(connection, [visitor.wish for visitor in here])
        free = [v.wish for v in here if v.wish.name not in kept and v.wish.name not in taken]
        claimed: set[tuple[str, bytes]] = set()
        if free:
            async with self._engine.begin() as connection:
                claimed = await response_cache.claim(connection, free)
        for visitor in here:
            name = visitor.wish.name
            if not visitor.answer.done() and (name in kept or name in claimed):
                visitor.answer.set_result(kept.get(name))


def _fail_all(visitors: Iterable[_Pending], error: Exception) -> None:
    """Tells those who wait of an error that asking again would not mend."""
    for visitor in visitors:
        if not visitor.answer.done():
            visitor.answer.set_exception(error)
