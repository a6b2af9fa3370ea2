"""One clock that a test moves: an event loop's, and with it Python's, Postgres' and Redis' as the service reads them.

Time passes only while all tasks wait for timers. It stands still while code runs and while something outside the loop's own tasks is at
work: a query, a Redis command, a thread, another process, bytes on their way between two sockets. A test that takes minutes by this
clock ends in milliseconds, and a busy machine changes nothing.
"""

import asyncio
import os
import selectors
import socket
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager, nullcontext
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, TypeVarTuple, Unpack
from unittest import mock

import anyio.to_thread
import psycopg
from psycopg import sql
from redis.asyncio import Redis
from redis.asyncio.connection import AbstractConnection, Connection, UnixDomainSocketConnection
from redis.commands.core import AsyncScript

from app import clock
from app.readers import pool

_T = TypeVar("_T")
_Arguments = TypeVarTuple("_Arguments")

HANG_SECONDS = 300.0
"""Real seconds without an event after which a wait for something outside of the loop counts as a hang."""

_REDIS_CLOCK = "redis.call('TIME')"
_LOOP_CLOCK = "{string.match(table.remove(ARGV), '(%d+) (%d+)')}"


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop that jumps to the next timer instead of waiting for it.

    Attributes:
        moved: Called with the new time, in seconds since 1970, whenever it changes.
    """

    def __init__(self) -> None:
        self._now = time.time()
        self._outside = Counter[str]()
        self.moved: Callable[[float], None] = _unmoved
        selector = _JumpingSelector(self)
        self._traffic = Traffic(selector)
        super().__init__(selector)
        self._clock_resolution = 1e-6  # a float of today's date resolves no less; a due timer would never run

    def time(self) -> float:
        return self._now

    def stall(self, seconds: float) -> None:
        """Lets time pass during which no task runs, as code that blocks the loop does."""
        self._now += seconds
        self.moved(self._now)

    @contextmanager
    def outside(self, what: str) -> Iterator[None]:
        """Keeps time from passing while something outside of the loop is at work."""
        self._outside[what] += 1
        try:
            yield
        finally:
            self._outside[what] -= 1

    def at_work(self) -> list[str]:
        """What keeps time from passing now."""
        return [what for what, number in self._outside.items() if number] + self._traffic.on_their_way()

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[_Arguments]], _T], *args: *_Arguments
    ) -> asyncio.Future[_T]:
        future = super().run_in_executor(executor, func, *args)
        self._outside["a thread"] += 1
        future.add_done_callback(lambda _: self._outside.subtract({"a thread": 1}))
        return future

    async def sock_connect(self, sock: socket.socket, address: Any) -> None:
        with self.outside("a connection that opens"):
            await super().sock_connect(sock, address)

    # asyncio's own names, so that each TCP connection is counted
    def _make_socket_transport(
        self, sock: socket.socket, protocol: Any, waiter: Any = None, *, extra: Any = None, server: Any = None
    ) -> Any:
        counted = sock
        if sock.family == socket.AF_INET:
            counted = CountedSocket(sock, self._traffic, accepted=server is not None)  # type: ignore[assignment]
        return super()._make_socket_transport(counted, protocol, waiter, extra=extra, server=server)  # type: ignore[misc]

    def _start_serving(self, protocol_factory: Any, sock: socket.socket, *args: Any, **options: Any) -> Any:
        if sock.family == socket.AF_INET:
            self._traffic.listening.add(sock.getsockname())
        return super()._start_serving(protocol_factory, sock, *args, **options)  # type: ignore[misc]


class _JumpingSelector(selectors.DefaultSelector):
    def __init__(self, loop: VirtualTimeLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events = super().select(0)
        if events or timeout == 0:
            return events
        at_work = self._loop.at_work()
        if timeout is not None and not at_work:
            self._loop.stall(timeout)
            return []
        events = super().select(HANG_SECONDS)
        assert events, f"no event within {HANG_SECONDS:g} s; at work: {at_work or 'nothing, and no timer'}"
        return events


Address = tuple[str, int]
Way = tuple[Address, Address]
"""From one socket to another."""


class Traffic:
    """Bytes between two sockets of one loop that were sent and not received yet.

    Args:
        selector: The loop's selector.

    Attributes:
        listening: Addresses at which the loop accepts connections.
    """

    def __init__(self, selector: selectors.BaseSelector) -> None:
        self._selector = selector
        self._sent = Counter[Way]()
        self._receivers: dict[Way, int] = {}
        self._closed = set[Way]()
        self.listening = set[Address]()

    def renew(self, way: Way) -> None:
        """Forget a former connection between the same addresses."""
        self._sent.pop(way, None)
        self._closed.discard(way)

    def begin(self, way: Way, receiver: int) -> None:
        """Note which socket receives what is sent on a way."""
        self._receivers[way] = receiver

    def end(self, way: Way) -> None:
        """Forget what was sent on a way whose receiver has closed."""
        self._closed.add(way)
        self._receivers.pop(way, None)

    def sent(self, way: Way, size: int) -> None:
        self._sent[way] += size

    def received(self, way: Way, size: int) -> None:
        self._sent[way] -= size

    def on_their_way(self) -> list[str]:
        """What is sent to a socket that is read, or not accepted yet; others receive nothing until somebody reads them again."""
        return [
            f"{size} bytes to {way[1]}" for way, size in self._sent.items() if size and self._is_read(way)
        ]

    def _is_read(self, way: Way) -> bool:
        if way not in self._receivers:
            return way[1] in self.listening and way not in self._closed
        key = self._selector.get_map().get(self._receivers[way])
        return key is not None and bool(key.events & selectors.EVENT_READ)


class CountedSocket:
    """A TCP socket whose bytes are counted. The end of what it sends counts as a byte."""

    def __init__(self, sock: socket.socket, traffic: Traffic, *, accepted: bool) -> None:
        self._socket, self._traffic = sock, traffic
        us, them = sock.getsockname(), sock.getpeername()
        self._out, self._in = (us, them), (them, us)
        self._ended = False
        if not accepted:  # it has sent nothing yet, and so gets no answer
            traffic.renew(self._out)
            traffic.renew(self._in)
        traffic.begin(self._in, sock.fileno())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._socket, name)

    def send(self, data: Any) -> int:
        size = self._socket.send(data)
        self._traffic.sent(self._out, size)
        return size

    def sendmsg(self, buffers: Any) -> int:
        size = self._socket.sendmsg(buffers)
        self._traffic.sent(self._out, size)
        return size

    def recv(self, most: int) -> bytes:
        data = self._socket.recv(most)
        self._traffic.received(self._in, len(data) or 1)
        return data

    def recv_into(self, buffer: Any) -> int:
        size = self._socket.recv_into(buffer)
        self._traffic.received(self._in, size or 1)
        return size

    def shutdown(self, how: int) -> None:
        self._socket.shutdown(how)
        self._end()

    def close(self) -> None:
        self._end()
        self._traffic.end(self._in)
        self._socket.close()

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            self._traffic.sent(self._out, 1)


def _outside(what: str, work: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def counted(*args: Any, **options: Any) -> Any:
        loop = asyncio.get_running_loop()
        with loop.outside(what) if isinstance(loop, VirtualTimeLoop) else nullcontext():
            return await work(*args, **options)

    return counted


@contextmanager
def _patched(*patches: tuple[Any, str, object]) -> Iterator[None]:
    with ExitStack() as stack:
        for owner, name, replacement in patches:
            stack.enter_context(mock.patch.object(owner, name, replacement))
        yield


@contextmanager
def redis_in_virtual_time() -> Iterator[None]:
    """Lets Redis clients on a :class:`VirtualTimeLoop`, and their scripts, read the loop's time instead of the server's."""
    register, call = Redis.register_script, AsyncScript.__call__

    def now() -> tuple[int, int]:
        return divmod(round(asyncio.get_running_loop().time() * 1e6), 1_000_000)

    def register_virtual(client: Redis, script: str) -> AsyncScript:
        return register(client, script.replace(_REDIS_CLOCK, _LOOP_CLOCK))

    async def call_virtual(
        script: AsyncScript, keys: Any = None, args: Any = None, client: Any = None
    ) -> Any:
        seconds, microseconds = now()
        return await call(script, keys, [*(args or ()), f"{seconds} {microseconds}"], client)

    async def time_virtual(_client: Redis) -> tuple[int, int]:
        return now()

    with _patched(
        (Redis, "register_script", register_virtual),
        (Redis, "time", time_virtual),
        (AsyncScript, "__call__", call_virtual),
        (AbstractConnection, "read_response", _outside("Redis", AbstractConnection.read_response)),
        (Connection, "_connect", _outside("Redis", Connection._connect)),
        (UnixDomainSocketConnection, "_connect", _outside("Redis", UnixDomainSocketConnection._connect)),
    ):
        yield


@contextmanager
def python_in_virtual_time(loop: VirtualTimeLoop) -> Iterator[None]:
    """Lets :mod:`app.clock` read the loop's time, which stands still while threads and reading processes work."""
    with _patched(
        (clock, "now", lambda: datetime.fromtimestamp(loop.time(), UTC)),
        (clock, "monotonic", loop.time),
        (clock, "time_ns", lambda: round(loop.time() * 1e6) * 1000),
        (anyio.to_thread, "run_sync", _outside("a thread", anyio.to_thread.run_sync)),
        (pool._Child, "receive", _outside("a reading process", pool._Child.receive)),
        (pool._Origin, "copy", _outside("a reading process", pool._Origin.copy)),
    ):
        yield


@contextmanager
def postgres_in_virtual_time(loop: VirtualTimeLoop, file: Path) -> Iterator[None]:
    """Lets databases with :func:`own_clock` read the loop's time; it stands still during a query.

    Args:
        loop: The loop.
        file: Where those databases read their time.
    """
    connect = psycopg.AsyncConnection.connect.__func__  # type: ignore[attr-defined]
    descriptor = os.open(file, os.O_WRONLY)
    loop.moved = partial(_write_time, descriptor)
    loop.moved(loop.time())
    try:
        with _patched(
            (psycopg.AsyncConnection, "wait", _outside("Postgres", psycopg.AsyncConnection.wait)),
            (psycopg.AsyncConnection, "connect", classmethod(_outside("Postgres", connect))),
        ):
            yield
    finally:
        loop.moved = _unmoved
        os.close(descriptor)


def _unmoved(_now: float) -> None:
    """Nobody else needs to know the time."""


def _write_time(descriptor: int, now: float) -> None:
    os.pwrite(descriptor, b"%017.6f" % now, 0)


def own_clock(connection: psycopg.Connection, database: str, file: Path) -> None:
    """Give a database functions that read the time from a file, before those of Postgres in the path of names.

    Args:
        connection: A superuser's, to the database.
        database: Its name.
        file: Holds the seconds since 1970.
    """
    _write_time(descriptor := os.open(file, os.O_WRONLY | os.O_CREAT), time.time())
    os.close(descriptor)
    read = sql.SQL("SELECT to_timestamp(pg_read_file({})::float8)").format(sql.Literal(str(file)))
    connection.execute("CREATE SCHEMA test_clock; GRANT USAGE ON SCHEMA test_clock TO PUBLIC")
    for name, kind in [
        ("now", "STABLE"),
        ("transaction_timestamp", "STABLE"),
        ("statement_timestamp", "STABLE"),
        ("clock_timestamp", "VOLATILE"),
    ]:
        connection.execute(
            sql.SQL(
                "CREATE FUNCTION test_clock.{}() RETURNS timestamptz LANGUAGE sql {} SECURITY DEFINER AS {}"
            ).format(sql.Identifier(name), sql.SQL(kind), sql.Literal(read.as_string(connection)))
        )
    # Whoever compares the server's own times with the clock compares them with the server's clock.
    connection.execute(
        "CREATE VIEW test_clock.pg_stat_activity AS SELECT datname, pid, usename, application_name, wait_event,"
        " xact_start, state, test_clock.clock_timestamp() - (clock_timestamp() - state_change) AS state_change"
        " FROM pg_stat_activity; GRANT SELECT ON test_clock.pg_stat_activity TO PUBLIC"
    )
    use_own_clock(connection, database)


def use_own_clock(connection: psycopg.Connection, database: str) -> None:
    """Put the functions of :func:`own_clock` before Postgres' own; a copy of a database has them, and not this setting."""
    connection.execute(
        sql.SQL("ALTER DATABASE {} SET search_path = public, test_clock, pg_catalog").format(
            sql.Identifier(database)
        )
    )


async def shorten_lives(redis: Redis, seconds: float) -> None:
    """Let Redis' keys expire as they would have after a time."""
    async for key in redis.scan_iter():
        left = await redis.pttl(key)
        if left >= 0:
            await redis.pexpire(key, max(0, left - round(seconds * 1000)))
