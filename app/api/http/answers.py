"""Limits the answers that an API process sends at a time, so that slow readers can't fill its memory."""

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from traceback import clear_frames

from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Send

from app.api.http.problems import RETRY_SECONDS, ProblemError
from app.domain.keys.contract import LimitInUse

DOWNLOAD_BYTES = 12 * 1024 * 1024
"""Memory of one download: a page of responses and its encoded part."""
COUNTED_BYTES = 64 * 1024
"""Shorter answers are not counted."""
LINK_SHARE, VISITORS_SHARE, TENANT_SHARE = 8, 4, 2
"""Divisors of the bytes of all answers: for one share link, for all share links of a tenant, and for the tenant itself."""


@dataclass(frozen=True, slots=True)
class Party:
    """Readers that share an allowance and take turns as one: a tenant, or everyone with one of its share links."""

    tenant: str
    is_visitor: bool = False


@dataclass(frozen=True, slots=True)
class Reader:
    """The recipient of an answer.

    Attributes:
        tenant: The owner of the data.
        link: The share link that the reader has in place of a key.
    """

    tenant: str
    link: str | None = None

    @property
    def party(self) -> Party:
        """The party that the reader belongs to."""
        return Party(self.tenant, self.link is not None)


class Download(StreamingResponse):
    """A file that is made while it is sent.

    If the reader leaves, the generator is closed and its frames are cleared: the error's traceback, which is part of a cycle, would
    keep the texts in them until Python looks for cycles.
    """

    body_iterator: AsyncGenerator[bytes]

    async def stream_response(self, send: Send) -> None:
        """Sends the file."""
        try:
            async with aclosing(self.body_iterator):
                await super().stream_response(send)
        except BaseException as error:
            clear_frames(error.__traceback__)
            raise


class Answers:
    """Counts the open event streams of each tenant, and the bytes of all other answers.

    Args:
        most_bytes: Limit of all answers together.
        most_streams: Limit of event streams per tenant.
        ended: Called after each answer whose bytes were counted.
    """

    def __init__(self, most_bytes: int, most_streams: int, ended: Callable[[], object]) -> None:
        self._ended = ended
        self._most_bytes = most_bytes
        self._most_streams = most_streams
        self._streams: Counter[str] = Counter()
        self._bytes: Counter[object] = Counter()

    def streams_in_use(self, tenant: str) -> LimitInUse:
        """Return the limit and the number of a tenant's open event streams."""
        return LimitInUse(limit=self._most_streams, used=self._streams[tenant])

    @contextmanager
    def stream(self, tenant: str) -> Iterator[None]:
        """Hold a place for an event stream or an import.

        Raises:
            ProblemError: 429, if the tenant has as many as it may.
        """
        if self._streams[tenant] >= self._most_streams:
            raise _too_many("too_many_streams", f"{self._most_streams} streams are open already")
        self._streams[tenant] += 1
        try:
            yield
        finally:
            self._streams[tenant] -= 1
            self._streams += Counter()  # drops tenants without streams

    @contextmanager
    def bytes(self, reader: Reader, size: int) -> Iterator[None]:
        """Count an answer's bytes until it was sent. First answers of parties may take as much again as all others.

        Raises:
            ProblemError: 429 if the reader's share is used up, 503 if that of all readers is.
        """
        shares = self._shares(reader)
        for share, (most, whose) in shares.items():
            if self._bytes[share] and self._bytes[share] + size > most:
                raise _too_many(
                    "too_many_answers", f"{whose} has {self._bytes[share]:,} bytes of answers under way"
                )
        most = self._most_bytes if self._bytes[reader.party] else 2 * self._most_bytes
        if self._bytes[None] and self._bytes[None] + size > most:
            detail = "too many bytes of answers are under way; try again later"
            headers = {"Retry-After": RETRY_SECONDS}
            raise ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, "too_many_answers", detail, headers=headers)
        for share in (None, *shares):
            self._bytes[share] += size
        try:
            yield
        finally:
            for share in (None, *shares):
                self._bytes[share] -= size
            self._bytes += Counter()
            self._ended()

    def _shares(self, reader: Reader) -> dict[object, tuple[int, str]]:
        most = self._most_bytes
        if reader.link is None:
            return {reader.party: (most // TENANT_SHARE, "this tenant")}
        return {
            reader.link: (most // LINK_SHARE, "this link"),
            reader.party: (most // VISITORS_SHARE, "the job's owner"),
        }


def count_answer(request: Request, reader: Reader, size: int = DOWNLOAD_BYTES) -> None:
    """Count bytes of an answer until its request is over.

    Raises:
        ProblemError: As :meth:`Answers.bytes`.
    """
    answers: Answers = request.app.state.services.answers
    request.state.held.enter_context(answers.bytes(reader, size))


def _too_many(code: str, why: str) -> ProblemError:
    headers = {"Retry-After": RETRY_SECONDS}
    return ProblemError(HTTPStatus.TOO_MANY_REQUESTS, code, f"{why}; try again later", headers=headers)
