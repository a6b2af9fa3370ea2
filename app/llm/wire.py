"""What both adapters share between an SDK's client and a ``ChatReply``.

The calls go through the SDKs' own ``client.post``, documented for paths that have no method, with the plain response
as the result. That keeps their serialization, API version and error classes, and leaves out checking arguments and
building objects from a body of which five fields are read: a third of a call's CPU.
"""

import asyncio
import json
import re
from collections.abc import Mapping
from typing import Any

import aiohttp
import anthropic
import httpx2
import openai
from pydantic import SecretStr

from app.domain.model import ChatRequest, FinishReason, Usage
from app.llm import errors
from app.llm.texts import storable

CONNECTION_LIMITS = httpx2.Limits(
    max_connections=2000,  # never the bottleneck: concurrency is limited before a call gets here
    max_keepalive_connections=2000,
    keepalive_expiry=4.0,  # below the 5 s after which uvicorn (vLLM and others) closes an idle connection under us
)
TIMEOUT = httpx2.Timeout(None, connect=10.0)
"""Reading has no limit of its own: the call's deadline is one around everything."""

MOST_TOKENS = 2**31 - 1

PLACEHOLDER_KEY = "none"
"""The SDKs demand a key where they are built; what is sent is decided by ``http_client``."""

_UNSAFE_IN_HEADER = re.compile(r"[^\x21-\x7e]")


_SENT_HEADERS = frozenset(
    [
        *("host", "connection", "accept", "accept-encoding", "user-agent", "content-type", "content-length"),
        *("anthropic-version", "x-client-request-id"),
    ]
)


def http_client(key: SecretStr | None) -> httpx2.AsyncClient:
    """A transport that sends one connection's key, and that only to the connection's host.

    The SDKs add what environment variables hold for their vendor (``OPENAI_CUSTOM_HEADERS``, organizations,
    tokens) to the calls of every client, and on top of its key: only known headers go out, and redirects are errors.
    """

    async def keep_to_the_connection(request: httpx2.Request) -> None:
        kept = [(name, value) for name, value in request.headers.items() if name in _SENT_HEADERS]
        authorization = [("authorization", f"Bearer {key.get_secret_value()}")] if key else []
        request.headers = httpx2.Headers(kept + authorization)

    return openai.DefaultAioHttpClient(
        limits=CONNECTION_LIMITS,
        timeout=TIMEOUT,
        follow_redirects=False,
        event_hooks={"request": [keep_to_the_connection]},
    )


async def post(
    client: openai.AsyncOpenAI | anthropic.AsyncAnthropic,
    path: str,
    request: ChatRequest,
    body: dict[str, object],
    key: SecretStr | None,
) -> httpx2.Response:
    """The reply to one HTTP call within the request's deadline.

    Raises:
        ModelCallError: If there was none, or an error's.
    """
    # Raised outside of the handlers: an SDK's exception holds the request, and with it the key.
    try:
        async with asyncio.timeout(request.deadline_seconds):
            headers = request_headers(request.request_id)
            return await client.post(path, cast_to=httpx2.Response, body=body, options={"headers": headers})
    except TimeoutError:
        failure = errors.timed_out(request.deadline_seconds)
    except (openai.APIStatusError, anthropic.APIStatusError) as error:
        failure = errors.refused(error.status_code, error.body, error.response.headers, key)
    except (openai.APIConnectionError, anthropic.APIConnectionError, aiohttp.ClientError, OSError) as error:
        failure = errors.not_connected(error, key)
    except ValueError:
        failure = errors.unencodable()
    raise failure


def request_headers(request_id: str) -> dict[str, str]:
    """Headers that carry our id into the provider's logs: at most 512 ASCII characters, as OpenAI documents."""
    return {"X-Client-Request-Id": _UNSAFE_IN_HEADER.sub("_", request_id)[:512]}


def json_object(response: httpx2.Response) -> dict[str, Any]:
    """The JSON object of a reply.

    Raises:
        ModelCallError: If there is none, as when a proxy's page or half a reply came.
    """
    try:
        body = json.loads(response.content)
    except (ValueError, RecursionError):
        body = None
    if isinstance(body, dict):
        return body
    raise errors.malformed(
        f"the reply is no JSON object ({len(response.content)} bytes)", response.status_code
    )


def short_text(value: object) -> str | None:
    """An identifier from a reply or its headers, cut to 200 characters; ``None`` where there is no text."""
    return storable(value[:200]) if isinstance(value, str) and value else None


def finish_reason(value: object, known: Mapping[str, FinishReason]) -> FinishReason:
    """A provider's reason in our vocabulary; ``OTHER`` where it is missing or new."""
    return known.get(value, FinishReason.OTHER) if isinstance(value, str) else FinishReason.OTHER


def usage(input_tokens: object, output_tokens: object, cached_input_tokens: object) -> Usage | None:
    """Token counts of a reply; ``None`` unless input and output are both there."""
    spent, written, cached = count(input_tokens), count(output_tokens), count(cached_input_tokens)
    if spent is None or written is None:
        return None
    return Usage(spent, written, min(cached or 0, spent))


def count(value: object) -> int | None:
    """A number of tokens from a reply; ``None`` where it is none that a call can have."""
    plausible = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS
    return value if plausible and isinstance(value, int) else None
