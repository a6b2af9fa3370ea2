"""How many calls one worker process has under way at once."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext


class InFlight:
    """One semaphore for each connection and model that has a limit.

    Args:
        limit_of: The limit of a connection and model; ``None`` for no limit.
    """

    def __init__(self, limit_of: Callable[[str, str], int | None]) -> None:
        self._limit_of = limit_of
        self._slots: dict[tuple[str, str], AbstractAsyncContextManager[None]] = {}

    def slot(self, connection: str, model: str) -> AbstractAsyncContextManager[None]:
        """A place among the calls under way, awaited by ``async with`` and given back at its end."""
        found = self._slots.get((connection, model))
        if found is None:
            limit = self._limit_of(connection, model)
            found = nullcontext() if limit is None else asyncio.Semaphore(limit)
            self._slots[connection, model] = found
        return found
