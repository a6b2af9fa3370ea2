"""Clients whose connection was changed, until they can be closed."""

import asyncio
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

RETIRED_SECONDS = 600.0
"""How long a client whose connection was changed stays open for the calls that are on the wire."""


class _Client(Protocol):
    async def close(self) -> None: ...


C = TypeVar("C", bound=_Client)


class Retired(Generic[C]):
    """Closes clients some time after nobody gets them any more; belongs to one event loop.

    Args:
        is_used: Whether a client has calls on the wire even then; it is asked again as long as it has.
    """

    def __init__(self, is_used: Callable[[C], bool] = lambda _: False) -> None:
        self._is_used = is_used
        self._clients: list[C] = []
        self._ending: set[asyncio.Task[None]] = set()

    def add(self, client: C) -> None:
        """Has a client be closed later."""
        self._clients.append(client)
        self._wait(client)

    async def close(self) -> None:
        """Closes all that are still open."""
        clients, self._clients = self._clients, []
        for client in clients:
            await client.close()

    def _wait(self, client: C) -> None:
        asyncio.get_running_loop().call_later(RETIRED_SECONDS, self._end, client)

    def _end(self, client: C) -> None:
        if client not in self._clients:
            return
        if self._is_used(client):
            self._wait(client)
            return
        self._clients.remove(client)
        ending = asyncio.ensure_future(client.close())
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)
