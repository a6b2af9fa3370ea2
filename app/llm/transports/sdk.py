"""Calls through an official SDK, which also says what a lean call has to look like.

They go through the SDKs' own ``client.post``, documented for paths that have no method, with the plain response
as the result. That keeps their serialization, API version and error classes, and leaves out checking arguments and
building objects from a body of which five fields are read.
"""

import asyncio
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Union

import aiohttp
import httpx2
import openai
from pydantic import SecretStr

from app.guard.targets import Guard
from app.guard.transport import PinnedTransport
from app.llm.replies import errors
from app.llm.replies.error_bodies import parsed
from app.llm.replies.transport_reply import Reply, ReplyTooLongError
from app.llm.transports.body import Body, EmptyBody
from app.llm.transports.bounded import bound
from app.llm.transports.pool import CONNECT_SECONDS, MAX_CONNECTIONS

if TYPE_CHECKING:
    import anthropic  # takes more than a second: only its own adapter imports it

Client = Union[openai.AsyncOpenAI, "anthropic.AsyncAnthropic"]
MakeClient = Callable[[httpx2.AsyncClient], Client]
"""Configures an SDK's client on top of an HTTP client."""


class Faults(NamedTuple):
    """An SDK's errors.

    Attributes:
        status: A reply whose status is none of success.
        connection: No reply.
    """

    status: "type[openai.APIStatusError | anthropic.APIStatusError]"
    connection: "type[openai.APIConnectionError | anthropic.APIConnectionError]"


PLACEHOLDER_KEY = "none"
"""The SDKs demand a key where they are built; what is sent is decided by ``http_client``."""

_LIMITS = httpx2.Limits(max_connections=MAX_CONNECTIONS, max_keepalive_connections=0, keepalive_expiry=0)
"""No connection is used twice: the libraries don't notice a second reply that comes late."""
_TIMEOUT = httpx2.Timeout(None, connect=CONNECT_SECONDS)
"""Reading has no limit of its own: the call's deadline is one around everything."""

_UNSAFE_IN_HEADER = re.compile(r"[^\x21-\x7e]")
_SENT_HEADERS = frozenset(
    [
        *("host", "connection", "accept", "accept-encoding", "user-agent", "content-type", "content-length"),
        *("anthropic-version", "x-client-request-id"),
    ]
)


class SdkTransport:
    """Posts to one path of one connection; to be built on the loop that it runs on.

    Args:
        make_client: Configures the SDK's client.
        path: Below the client's base URL.
        key: The key to send.
        faults: What the SDK raises.
        guard: Says which addresses may be connected to; ``None`` for all.
    """

    def __init__(
        self,
        make_client: MakeClient,
        path: str,
        key: SecretStr | None,
        faults: Faults,
        guard: Guard | None = None,
    ) -> None:
        self._faults = faults
        self._client = make_client(http_client(key, guarded(guard)))
        self._path = path
        self._key = key

    async def post(self, body: Body | EmptyBody, request_id: str, deadline_seconds: float) -> Reply:
        """The good reply to one HTTP call within the deadline.

        Raises:
            ModelCallError: If there was none.
        """
        # Raised outside of the handlers: an SDK's exception holds the request, and with it the key.
        try:
            async with asyncio.timeout(deadline_seconds):
                response = await post(self._client, self._path, body.fields, request_id)
                return Reply(response.status_code, response.headers, response.content)
        except TimeoutError:
            failure = errors.timed_out(deadline_seconds)
        except self._faults.status as error:
            failure = errors.refused(
                error.status_code, parsed(error.response.content), error.response.headers, self._key
            )
        except (self._faults.connection, aiohttp.ClientError, OSError, ReplyTooLongError) as error:
            failure = errors.not_connected(error, self._key)
        except ValueError:
            failure = errors.unencodable()
        raise failure

    async def close(self) -> None:
        """Closes all connections."""
        await self._client.close()


async def request_form(make_client: MakeClient, path: str, key: SecretStr | None) -> httpx2.Request:
    """The request that the SDK sends for an empty body and the id ``form``, without sending it."""
    made: list[httpx2.Request] = []

    def keep(request: httpx2.Request) -> httpx2.Response:
        made.append(request)
        return httpx2.Response(200, json={})

    client = make_client(http_client(key, httpx2.MockTransport(keep)))
    await post(client, path, {}, "form")
    await client.close()
    return made[0]


async def post(client: Client, path: str, body: dict[str, object], request_id: str) -> httpx2.Response:
    """The SDK's own way of posting; raises what the SDK raises."""
    headers = {"X-Client-Request-Id": header_text(request_id)}
    return await client.post(path, cast_to=httpx2.Response, body=body, options={"headers": headers})


def header_text(request_id: str) -> str:
    """Our id as it gets into the provider's logs: at most 512 ASCII characters, as OpenAI documents."""
    return _UNSAFE_IN_HEADER.sub("_", request_id)[:512]


def guarded(guard: Guard | None) -> httpx2.AsyncBaseTransport | None:
    """What sends only to the addresses that a guard has checked; ``None``, the SDKs' own, where there is no guard."""
    return None if guard is None else PinnedTransport(guard, _LIMITS)


def http_client(
    key: SecretStr | None, transport: httpx2.AsyncBaseTransport | None = None, *, bounded: bool = True
) -> httpx2.AsyncClient:
    """An HTTP client that sends one connection's key, and that only to the connection's host.

    The SDKs add what environment variables hold for their vendor (``OPENAI_CUSTOM_HEADERS``, organizations,
    tokens) to the calls of every client, and on top of its key: only known headers go out, and redirects are errors.

    Args:
        key: The key to send.
        transport: What to send with; the SDKs' aiohttp by default.
        bounded: Whether no reply is longer than that to one call.
    """

    async def keep_to_the_connection(request: httpx2.Request) -> None:
        kept = [(name, value) for name, value in request.headers.items() if name in _SENT_HEADERS]
        authorization = [("authorization", f"Bearer {key.get_secret_value()}")] if key else []
        request.headers = httpx2.Headers(kept + authorization)

    return openai.DefaultAioHttpClient(
        limits=_LIMITS,
        timeout=_TIMEOUT,
        follow_redirects=False,
        event_hooks={"request": [keep_to_the_connection], "response": [bound] if bounded else []},
        transport=transport,
    )
