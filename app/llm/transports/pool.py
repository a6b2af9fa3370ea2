"""Keep-alive connections to one server."""

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohappyeyeballs
import structlog

from app.guard.targets import AddressInfo, Guard, Target, TargetRefusedError
from app.llm.replies.transport_reply import NotConnectedError, Reply, words_of
from app.llm.transports.http1 import HttpConnection
from app.telemetry.metrics import SURPLUS_REPLIES

CONNECT_SECONDS = 10.0
"""For a name's resolution, all attempts at its addresses and the TLS handshake together."""
MAX_CONNECTIONS = 2000
"""Never the bottleneck: concurrency is limited before a call gets here."""
KEEPALIVE_SECONDS = 4.0
"""Below the 5 s after which uvicorn (vLLM and others) closes an idle connection under us."""
RESOLUTION_SECONDS = 10.0
"""How long a name's addresses are believed: a thousand connections that open at once ask once."""
NEXT_ADDRESS_SECONDS = 0.25
"""Head start of an address before the next one is tried beside it (RFC 8305)."""
WATCH_SECONDS = 0.1
"""How late a deadline may be noticed: one look at all calls on the wire is cheaper than a timer for each."""
REST_SECONDS = 0.25
"""How long a connection rests after a reply before its next request: a second reply that comes late meets no other request."""
MOST_RESTING = 256
LINGER_SECONDS = 30.0
"""Time that a retired connection stays open after its last reply, without further requests: a second reply may still come."""
MOST_LINGERING = 256
SHORTEST_LINGER_SECONDS = 3.0
"""Least time that a retired connection to a server that is not trusted stays open: new ones wait for it."""
DISTRUST_SECONDS = 600.0
"""How long no connection to a server is used again after it sent bytes that no request was waiting for."""

log = structlog.get_logger(__name__)


@asynccontextmanager
async def unsent_after(until: float) -> AsyncIterator[None]:
    """Limit what precedes a request's first byte.

    Args:
        until: The moment of the loop's clock at which it is given up.

    Raises:
        NotConnectedError: If that moment comes.
    """
    try:
        async with asyncio.timeout_at(until):
            yield
    except TimeoutError:
        raise NotConnectedError("no connection before the call's deadline") from None


@dataclass(frozen=True, slots=True)
class Server:
    """Where connections lead.

    Attributes:
        host: Name or address, in ASCII.
        port: Port.
        tls: Certificates to trust; ``None`` for plain HTTP. The host's name is always checked against the certificate.
        guard: Says which of the host's addresses may be connected to; ``None`` for all.
        connection: The connection's name, for the operator.
    """

    host: str
    port: int
    tls: ssl.SSLContext | None = None
    guard: Guard | None = None
    connection: str = ""


class Trust:
    """Whether connections to a server may be used again; shared by all pools of connections to it.

    Attributes:
        lost_until: Moment of the loop's clock until which they may not.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self.lost_until = float("-inf")

    def exists(self, now: float) -> bool:
        """Return whether the server has kept to HTTP lately."""
        return now >= self.lost_until

    def lose(self, replies: int) -> None:
        """Take note of a connection with suspect replies; the first one is logged for the operator."""
        server, now = self._server, asyncio.get_running_loop().time()
        SURPLUS_REPLIES.labels(server.connection).inc()
        if self.exists(now):
            log.error(
                "a server sent bytes that no request was waiting for; the connection's replies are asked for again,"
                " and for a while no network connection to the server is used twice",
                connection=server.connection,
                server=f"{server.host}:{server.port}",
                replies=replies,
            )
        self.lost_until = now + DISTRUST_SECONDS


class Pool:
    """Connections to one server, each with at most one request on it; belongs to one loop.

    Of the connections that have rested the one used last is taken first, so that those that a burst has opened can end.
    """

    def __init__(self, server: Server, trust: Trust | None = None) -> None:
        self._server = server
        self._trust = trust or Trust(server)
        self._loop = asyncio.get_running_loop()
        self._taken = 0
        self._room = asyncio.Event()
        self._resting: deque[HttpConnection] = deque()
        self._idle: dict[HttpConnection, None] = {}
        self._lingering: deque[HttpConnection] = deque()
        self._busy: dict[HttpConnection, float] = {}
        self._expiry: asyncio.TimerHandle | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._resolving = asyncio.Lock()
        self._addresses: list[aiohappyeyeballs.AddrInfoType] = []
        self._resolved_at = float("-inf")

    async def exchange(self, message: bytes, until: float) -> Reply:
        """The reply to a whole request. It is sent once: no failure after the first byte is tried again.

        Args:
            message: The request.
            until: The moment of the loop's clock at which it is given up.

        Raises:
            NotConnectedError: If nothing could be sent.
            TargetRefusedError: If nothing may be sent to any of the server's addresses.
            LostConnectionError: If the connection broke afterwards.
            ReplyTooLongError: If the reply is longer than an answer can be.
            TimeoutError: If there was no whole reply in time.
        """
        while self._taken >= MAX_CONNECTIONS:
            self._room.clear()
            async with unsent_after(until):
                await self._room.wait()
        self._taken += 1
        try:
            connection = self._reusable()
            if connection is None:
                async with unsent_after(until):
                    await self._make_room()
                    connection = await self._connect()
            self._busy[connection] = until
            if self._watch is None:
                self._watch = self._loop.call_later(WATCH_SECONDS, self._look)
            try:
                reply = await connection.exchange(message)
            finally:
                del self._busy[connection]
            self._keep(connection)
            return reply
        finally:
            self._taken -= 1
            self._room.set()

    def _look(self) -> None:
        """Gives up what is late."""
        now = self._loop.time()
        for connection, until in self._busy.items():
            if until <= now:
                connection.give_up()
        self._watch = self._loop.call_later(WATCH_SECONDS, self._look) if self._busy else None

    async def close(self) -> None:
        """Closes all connections; calls on them fail."""
        for timer in (self._expiry, self._watch):
            if timer is not None:
                timer.cancel()
        self._expiry = self._watch = None
        for connection in (*self._resting, *self._idle, *self._lingering, *self._busy):
            connection.abort()
        self._resting.clear()
        self._idle.clear()
        self._lingering.clear()
        await asyncio.sleep(0)  # an aborted transport lets go of its socket in the loop's next round

    @property
    def is_empty(self) -> bool:
        """Whether it has no connection."""
        return not (self._taken or self._resting or self._idle or self._lingering)

    def _reusable(self) -> HttpConnection | None:
        now = self._loop.time()
        self._end_rests(now)
        while self._idle:
            connection, _ = self._idle.popitem()
            fresh = now - connection.released_at < KEEPALIVE_SECONDS
            if fresh and connection.reusable and connection.quiet:
                return connection
            self._retire(connection)
        return None

    def _keep(self, connection: HttpConnection) -> None:
        if not connection.is_open:
            connection.abort()
            return
        connection.released_at = self._loop.time()
        self._resting.append(connection)
        if self._expiry is None:
            self._expiry = self._loop.call_later(REST_SECONDS, self._expire)

    def _end_rests(self, now: float) -> None:
        """Move the connections that have rested to those that may be used again; retire all if the server is not trusted."""
        resting = self._resting
        while resting and (resting[0].released_at + REST_SECONDS <= now or len(resting) > MOST_RESTING):
            self._idle[resting.popleft()] = None
        if now < self._trust.lost_until:
            for connection in self._idle:
                self._retire(connection)
            self._idle.clear()

    def _retire(self, connection: HttpConnection) -> None:
        """Send no further request over a connection, but see for a while what still comes."""
        self._lingering.append(connection)
        if len(self._lingering) > MOST_LINGERING and self._trust.exists(self._loop.time()):
            self._lingering.popleft().abort()

    async def _make_room(self) -> None:
        """Wait while a server that is not trusted has more than :data:`MOST_LINGERING` connections that must stay open, now or soon."""
        lingering = self._lingering
        while lingering and len(lingering) + self._taken > MOST_LINGERING:
            now = self._loop.time()
            if self._trust.exists(now):
                return
            seconds = lingering[0].released_at + SHORTEST_LINGER_SECONDS - now
            if lingering[0].is_open and seconds > 0:
                await asyncio.sleep(seconds)
            else:
                lingering.popleft().abort()

    def _expire(self) -> None:
        """Retire the connections that have idled too long, then close them: those released first stand first."""
        now, lingering = self._loop.time(), self._lingering
        self._end_rests(now)
        while self._idle and (connection := next(iter(self._idle))).released_at <= now - KEEPALIVE_SECONDS:
            del self._idle[connection]
            self._retire(connection)
        while lingering and (not lingering[0].is_open or lingering[0].released_at <= now - LINGER_SECONDS):
            lingering.popleft().abort()
        waits = bool(self._resting or self._idle or lingering)
        self._expiry = self._loop.call_later(REST_SECONDS, self._expire) if waits else None

    async def _connect(self) -> HttpConnection:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                sock = await aiohappyeyeballs.start_connection(
                    await self._resolve(), happy_eyeballs_delay=NEXT_ADDRESS_SECONDS, interleave=1
                )
                return await self._wrap(sock)
        except TargetRefusedError:
            raise
        except TimeoutError as error:
            reason = str(error) or f"no connection to {self._server.host} within {CONNECT_SECONDS:g} s"
        except (OSError, RuntimeError, UnicodeError) as error:
            # The second from uvloop where an address can't be reached, the third for what can be no host's name.
            reason = _words(error, self._server)
        self._resolved_at = float("-inf")  # the name may lead elsewhere by now
        raise NotConnectedError(reason)

    async def _wrap(self, sock: socket.socket) -> HttpConnection:
        """The connection over a socket, after the TLS handshake if there is one to make."""
        tls = self._server.tls
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            creating = self._loop.create_connection(
                lambda: HttpConnection(sock, self._trust.lose, self._trust.exists),
                sock=sock,
                ssl=tls,
                server_hostname=self._server.host if tls else None,
            )
            _, connection = await creating
        except BaseException:
            sock.close()
            raise
        return connection

    async def _resolve(self) -> list[aiohappyeyeballs.AddrInfoType]:
        async with self._resolving:
            if self._loop.time() - self._resolved_at > RESOLUTION_SECONDS:
                self._addresses = [
                    (family, kind, protocol, name, address)
                    for family, kind, protocol, name, address in await self._look_up()
                ]
                self._resolved_at = self._loop.time()
            return self._addresses

    async def _look_up(self) -> list[AddressInfo]:
        server = self._server
        if server.guard is None:
            return [*await self._loop.getaddrinfo(server.host, server.port, type=socket.SOCK_STREAM)]
        return await server.guard.resolve(Target("https" if server.tls else "http", server.host, server.port))


def _words(error: Exception, server: Server) -> str:
    """Why no connection could be made, in words."""
    if isinstance(error, socket.gaierror):
        return f"{server.host} can't be resolved"
    if isinstance(error, ConnectionRefusedError):
        return f"nothing listens at {server.host}:{server.port}"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate of {server.host} is not accepted: {error.verify_message}"
    return f"no connection to {server.host}:{server.port}: {words_of(error)}"
