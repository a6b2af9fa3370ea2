"""An event loop whose time passes only while all tasks wait for timers, and a Redis whose scripts read that time.

A test that takes minutes by this clock ends in milliseconds, and a busy machine changes nothing: time stands still while code runs
and while Redis has a command to answer.
"""

import asyncio
import selectors
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from redis.asyncio import Redis
from redis.asyncio.connection import AbstractConnection, Connection, UnixDomainSocketConnection
from redis.commands.core import AsyncScript

HANG_SECONDS = 120.0
"""Real seconds without an event after which a wait for Redis counts as a hang."""

_REDIS_CLOCK = "redis.call('TIME')"
_LOOP_CLOCK = "{string.match(table.remove(ARGV), '(%d+) (%d+)')}"


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop that jumps to the next timer instead of waiting for it.

    Attributes:
        commands: Redis commands that wait for their answer; while there are any, time stands still.
    """

    def __init__(self) -> None:
        self._now = time.time()
        self.commands = 0
        super().__init__(_JumpingSelector(self))
        self._clock_resolution = 1e-6  # a float of today's date resolves no less; a due timer would never run

    def time(self) -> float:
        return self._now

    def stall(self, seconds: float) -> None:
        """Lets time pass during which no task runs, as code that blocks the loop does."""
        self._now += seconds


class _JumpingSelector(selectors.DefaultSelector):
    def __init__(self, loop: VirtualTimeLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events = super().select(0)
        if events or timeout == 0:
            return events
        if timeout is not None and not self._loop.commands:
            self._loop.stall(timeout)
            return []
        events = super().select(HANG_SECONDS)
        assert events, f"no event within {HANG_SECONDS:g} s"
        return events


@contextmanager
def redis_in_virtual_time() -> Iterator[None]:
    """Lets the scripts of Redis clients on a :class:`VirtualTimeLoop` read the loop's time instead of the server's."""
    register, call = Redis.register_script, AsyncScript.__call__
    read = AbstractConnection.read_response

    def register_virtual(client: Redis, script: str) -> AsyncScript:
        return register(client, script.replace(_REDIS_CLOCK, _LOOP_CLOCK))

    async def call_virtual(
        script: AsyncScript, keys: Any = None, args: Any = None, client: Any = None
    ) -> Any:
        seconds, microseconds = divmod(round(asyncio.get_running_loop().time() * 1e6), 1_000_000)
        return await call(script, keys, [*(args or ()), f"{seconds} {microseconds}"], client)

    async def read_counted(connection: AbstractConnection, *args: Any, **options: Any) -> Any:
        with _counted():
            return await read(connection, *args, **options)

    def counted(connect: Callable[[Any], Awaitable[None]]) -> Callable[[Any], Awaitable[None]]:
        async def connect_counted(connection: Any) -> None:
            with _counted():
                await connect(connection)

        return connect_counted

    patches: list[tuple[type, str, object]] = [
        (Redis, "register_script", register_virtual),
        (AsyncScript, "__call__", call_virtual),
        (AbstractConnection, "read_response", read_counted),
        (Connection, "_connect", counted(Connection._connect)),
        (UnixDomainSocketConnection, "_connect", counted(UnixDomainSocketConnection._connect)),
    ]
    with ExitStack() as stack:
        for owner, name, replacement in patches:
            stack.enter_context(mock.patch.object(owner, name, replacement))
        yield


@contextmanager
def _counted() -> Iterator[None]:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    loop.commands += 1
    try:
        yield
    finally:
        loop.commands -= 1
