"""Sends the request that an SDK would send, byte for byte, at a fraction of the CPU time."""

import asyncio
from dataclasses import dataclass, field

import httpx2
from pydantic import SecretStr

from app.guard.targets import Guard
from app.llm.replies import errors
from app.llm.replies.error_bodies import parsed
from app.llm.replies.transport_reply import Reply, ReplyTooLongError
from app.llm.transports.body import Body, EmptyBody
from app.llm.transports.content import decoded
from app.llm.transports.pool import Pool, Server, Trust
from app.llm.transports.sdk import MakeClient, header_text, request_form
from app.ports import FailureKind, SuspectReplyError

MOST_IDLE_POOLS = 64
"""Tenants from which on those without a network connection are forgotten."""
_GOOD = range(200, 300)
_OF_REQUEST = frozenset({FailureKind.ITEM, FailureKind.FILTERED, FailureKind.JOB})
"""Failures that are final, so that they must belong to the request."""
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class _Line:
    """An open connection's way to a path.

    Attributes:
        head: Of a request, to be formatted with ``id`` and ``length``.
        server: Where it leads.
        trust: Whether the server's connections may be used again.
        pools: Each tenant's network connections to the server.
    """

    head: bytes
    server: Server
    trust: Trust
    pools: dict[str, Pool] = field(default_factory=dict)

    def pool(self, tenant: str) -> Pool:
        """Return a tenant's network connections."""
        pool = self.pools.get(tenant)
        if pool is None:
            if len(self.pools) >= MOST_IDLE_POOLS:
                for name in [name for name, one in self.pools.items() if one.is_empty]:
                    del self.pools[name]
            pool = self.pools[tenant] = Pool(self.server, self.trust)
        return pool


class LeanTransport:
    """Posts to one path of one connection; to be built on the loop that it runs on.

    The SDK configures the connection: at the first call it is asked once for the request that it would send. From then
    on only the id, the length and the body change.

    Args:
        make_client: Configures the SDK's client.
        path: Below the client's base URL.
        key: The key to send.
        guard: Says which addresses may be connected to; ``None`` for all.
        connection: The connection's name.
    """

    def __init__(
        self,
        make_client: MakeClient,
        path: str,
        key: SecretStr | None,
        guard: Guard | None = None,
        connection: str = "",
    ) -> None:
        self._connection = connection
        self._make_client = make_client
        self._path = path
        self._key = key
        self._guard = guard
        self._line: _Line | None = None
        self._opening = asyncio.Lock()
        self._loop = asyncio.get_running_loop()

    async def post(self, body: Body | EmptyBody, request_id: str, deadline_seconds: float) -> Reply:
        """The good reply to one HTTP call within the deadline.

        Raises:
            ModelCallError: If there was none.
        """
        # Raised outside of the handlers: an exception's context could hold the request, and with it the key.
        try:
            content = body.content
        except ValueError:
            content = b""
        if not content:
            raise errors.unencodable()
        try:
            until = self._loop.time() + deadline_seconds
            line = self._line or await self._open(until)
            head = line.head % {b"id": header_text(request_id).encode(), b"length": len(content)}
            reply = await decoded(await line.pool(body.tenant).exchange(head + content, until))
            if reply.status in _GOOD:
                return reply
            failure = errors.refused(reply.status, parsed(reply.body), reply.headers, self._key)
            if failure.kind in _OF_REQUEST and reply.delivery and not await reply.delivery.settled():
                failure = SuspectReplyError()
        except TimeoutError:
            failure = errors.timed_out(deadline_seconds)
        except ReplyTooLongError as error:
            failure = errors.malformed(str(error), None)
        except OSError as error:
            failure = errors.not_connected(error, self._key)
        raise failure

    async def close(self) -> None:
        """Closes all connections."""
        if self._line is not None:
            for pool in self._line.pools.values():
                await pool.close()

    async def _open(self, until: float) -> _Line:
        async with asyncio.timeout_at(until), self._opening:
            if self._line is None:
                request = await request_form(self._make_client, self._path, self._key)
                server = _server(request.url, self._guard, self._connection)
                self._line = _Line(_head(request), server, Trust(server))
            return self._line


def _head(request: httpx2.Request) -> bytes:
    changing = {b"x-client-request-id": b"%(id)s", b"content-length": b"%(length)d"}
    lines = [_literal(b"%s %s HTTP/1.1" % (request.method.encode(), request.url.raw_path))]
    for raw_name, value in request.headers.raw:
        name = raw_name.lower()
        lines.append(name + b": " + (changing.get(name) or _literal(value)))
    return b"\r\n".join(lines) + b"\r\n\r\n"


def _literal(text: bytes) -> bytes:
    return text.replace(b"%", b"%%")


def _server(url: httpx2.URL, guard: Guard | None, connection: str) -> Server:
    return Server(
        host=url.raw_host.decode("ascii"),
        port=url.port or _DEFAULT_PORTS[url.scheme],
        tls=httpx2.create_ssl_context() if url.scheme == "https" else None,  # as under the SDKs
        guard=guard,
        connection=connection,
    )
