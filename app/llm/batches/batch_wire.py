"""What both adapters of batch endpoints share: calling an SDK, and lines of JSON."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator

import aiohttp
import httpx2
from pydantic import SecretStr

from app.llm.formats import wire
from app.llm.replies import errors
from app.llm.transports.http1 import MAX_BODY_BYTES
from app.llm.transports.sdk import Faults
from app.ports import AnswersIncompleteError, FailureKind
from app.telemetry.redaction import traces_of

ASK_SECONDS = 60.0
UPLOAD_SECONDS = 1800.0
"""Longest upload of a batch."""


@contextlib.asynccontextmanager
async def asking(
    key: SecretStr | None, faults: Faults, *, seconds: float | None = ASK_SECONDS
) -> AsyncIterator[None]:
    """A request through an SDK, whose errors become ours.

    Args:
        key: The connection's key, kept out of the messages.
        faults: What the SDK raises.
        seconds: How long it may take; ``None`` where the block itself sees to that.

    Raises:
        ModelCallError: If it was not served within the time.
    """
    # Raised outside of the handlers: an SDK's exception holds the request, and with it the key.
    try:
        async with asyncio.timeout(seconds):
            yield
            return
    except TimeoutError:
        failure = errors.timed_out(seconds or ASK_SECONDS)
    except faults.status as error:
        failure = errors.refused(error.status_code, error.body, error.response.headers, key)
    except (faults.connection, aiohttp.ClientError, httpx2.HTTPError, OSError) as error:
        # The SDKs wrap what breaks a request off, but not what breaks off the reading of a streamed answer.
        failure = errors.not_connected(error, key)
    raise failure


def encoded(body: dict[str, object]) -> str:
    """A call's body as JSON text.

    Raises:
        ModelCallError: If no JSON can express it.
    """
    with contextlib.suppress(ValueError):  # raised in its place, ours would keep it, and it the text
        text = json.dumps(body, ensure_ascii=False, allow_nan=False)
        text.encode()
        return text
    raise errors.unencodable()


async def lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """The lines of a file, however long it takes as a whole.

    Only line feeds end them: JSON may hold all other characters that end lines in Python. One that is longer than a reply may be is
    left out, and no more of it kept than shows that: a tenant's own server may send one without end.

    Raises:
        TimeoutError: If nothing comes any more.
    """
    rest = b""
    while True:
        async with asyncio.timeout(ASK_SECONDS):
            piece = await anext(pieces, None)
        if piece is None:
            break
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            if len(line) <= MAX_BODY_BYTES:
                yield line.decode(errors="replace")
        rest = rest[: MAX_BODY_BYTES + 1]
    if len(rest) <= MAX_BODY_BYTES:
        yield rest.decode(errors="replace")


async def answers_in(line: str, key: SecretStr | None = None) -> list[tuple[str, str]]:
    """The custom id and the answer of a line, without a long key; nothing for one that has none."""
    if len(line) <= wire.LONG_BYTES:
        return list(_answers_in(line, key))
    return await asyncio.to_thread(lambda: list(_answers_in(line, key)))


def _answers_in(line: str, key: SecretStr | None) -> Iterator[tuple[str, str]]:
    with contextlib.suppress(ValueError, RecursionError):
        line = line.removeprefix("\ufeff")  # some servers begin files with it
        answer = wire.loads(line)
        if isinstance(answer, dict) and isinstance(answer.get("custom_id"), str):
            shown = line if key is None else traces_of(key.get_secret_value()).pieces_removed(line)
            yield answer["custom_id"], shown.replace("\0", "")


def check_whole(read: int, promised: int) -> None:
    """Checks that as many answers came as the provider counts.

    Raises:
        AnswersIncompleteError: If there were fewer.
    """
    if read < promised:
        raise AnswersIncompleteError(
            f"{read} of {promised} answers came",
            kind=FailureKind.RETRY,
            code="answers_incomplete",
            maybe_paid=True,
        )


def object_of(answer: str) -> dict[str, object]:
    """A stored answer as a JSON object; empty where the provider did not answer."""
    try:
        parsed = wire.loads(answer)
    except (ValueError, RecursionError):
        return {}
    return parsed if isinstance(parsed, dict) else {}
