"""What both clients do with a call besides sending it and waiting: settings, repetition, errors, following a job."""

import json
import logging
import os
import random
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Generic, TypeVar

import httpx2

from persona_assay.calls import Answer, Call, read_whole
from persona_assay.errors import AssayError, UnreachableError
from persona_assay.operations import JOB
from persona_assay.types import JobDetail

T = TypeVar("T")

log = logging.getLogger("persona_assay")

DEFAULT_URL = "http://127.0.0.1:8321"
TERMINAL = frozenset({"completed", "failed", "cancelled"})

RETRY_SECONDS = 60.0
FOLLOWING_RETRY_SECONDS = 600.0
"""How long a service may be away from somebody who only waits."""

FIRST_CONTACT_SECONDS = 1.0
"""A service that has never answered is more likely not there than away."""

FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 5.0
TOLD_AFTER_SECONDS = 2.0
POLL_SECONDS = 1.0

NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout)
BROKEN = (httpx2.NetworkError, httpx2.TimeoutException, httpx2.RemoteProtocolError)
AWAY = frozenset(
    {
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    }
)


class Core:
    """Where the service is, who asks, and how patiently.

    Args:
        url: The service's URL; ``ASSAY_URL`` or this machine unless given.
        api_key: The key to ask with; ``ASSAY_API_KEY`` unless given, none if that is empty.
        retry_seconds: For how many seconds a call is repeated while the service is away.
        clock: Seconds of a monotonic clock.

    Raises:
        AssayError: The key holds characters that no header can.
    """

    def __init__(
        self,
        url: str | None,
        api_key: str | None,
        retry_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.url = (url or os.environ.get("ASSAY_URL") or DEFAULT_URL).rstrip("/")
        key = (os.environ.get("ASSAY_API_KEY", "") if api_key is None else api_key).strip()
        if not (key.isascii() and key.isprintable()):
            raise AssayError("the API key contains invalid characters; check ASSAY_API_KEY")
        self.headers = {"Authorization": f"Bearer {key}"} if key else {}
        self.retry_seconds = retry_seconds
        self.clock = clock
        self.has_answered = False

    def settings(self) -> dict[str, Any]:
        """What the HTTP library's client is made from."""
        return {"base_url": self.url, "headers": self.headers}

    def explained(self, error: Exception) -> AssayError:
        """What went wrong, as whoever made the call can act on it."""
        reason = _reason(error)
        if isinstance(error, httpx2.InvalidURL | httpx2.UnsupportedProtocol):
            return AssayError(f"{self.url!r} is not an http:// or https:// URL: {reason}")
        if isinstance(error, httpx2.SSEError):
            return AssayError(f"{self.url} is not a Persona Assay service; check the URL")
        if isinstance(error, httpx2.TimeoutException) and not isinstance(error, httpx2.ConnectTimeout):
            return UnreachableError(f"{self.url} does not answer in time: {reason}")
        hint = "Is the service running? Start it with `assay up`, or set ASSAY_URL to its address."
        return UnreachableError(f"cannot reach {self.url}: {reason}\n{hint}")


def _reason(error: Exception) -> str:
    """Return an HTTP library's words, which are missing for some lost connections."""
    late = isinstance(error, httpx2.TimeoutException)
    return str(error) or ("no answer in time" if late else "the connection was lost")


class Exchange(Generic[T]):
    """One call, from its first try to its answer.

    Args:
        core: The client's.
        call: The call.
        retry_seconds: In place of the client's.
    """

    def __init__(self, core: Core, call: Call[T], retry_seconds: float | None = None) -> None:
        self._core, self._call = core, call
        self._began = core.clock()
        self._retry_seconds = max(core.retry_seconds, retry_seconds or 0.0)
        self._pause = FIRST_PAUSE_SECONDS
        self._lost = self._told = False

    def after_loss(self, error: httpx2.RequestError) -> float:
        """Seconds until the call is made again, after a try that brought no answer.

        Raises:
            AssayError: It is not made again.
        """
        self._lost = True
        retry_seconds = (
            self._retry_seconds
            if self._core.has_answered
            else min(self._retry_seconds, FIRST_CONTACT_SECONDS)
        )
        may_repeat = isinstance(error, BROKEN if self._call.is_repeatable else NOT_SENT)
        pause = self._next_pause(retry_seconds) if may_repeat else None
        if pause is None:
            raise self._core.explained(error) from error
        self._tell(_reason(error))
        return pause

    def after_answer(self, answer: httpx2.Response) -> float | None:
        """Seconds until the call is made again, if the answer says that the service is away, or not done; ``None`` to take it."""
        self._core.has_answered = True
        if self._call.is_awaited and answer.status_code == HTTPStatus.ACCEPTED:
            return answer_of(answer, b"").retry_after(1.0)
        if answer.status_code not in AWAY or not self._call.is_repeatable:
            return None
        asked = answer_of(answer, b"").retry_after(0.0)
        pause = self._next_pause(self._retry_seconds, at_least=asked)
        if pause is not None:
            self._tell(f"{answer.status_code} {answer.reason_phrase}")
        return pause

    def result(self, response: httpx2.Response) -> T:
        """What the answer, whose body has been read, says.

        Raises:
            ProblemError: The service refused.
            AssayError: It is no answer of the service.
        """
        answer = answer_of(response, response.content)
        if self._call.method == "DELETE" and self._lost and answer.status == HTTPStatus.NOT_FOUND:
            return self._call.read(answer)  # an earlier try, whose answer was lost, has done it
        if response.is_error:
            raise answer.problem()
        return self._call.read(answer)

    def _next_pause(self, retry_seconds: float, at_least: float = 0.0) -> float | None:
        """How long to wait, if there is time for it; spread, so that many callers do not come back at once."""
        pause = max(at_least, self._pause * random.uniform(0.5, 1.0))  # noqa: S311 - no secret
        if self._core.clock() + pause > self._began + retry_seconds:
            return None
        self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)
        return pause

    def _tell(self, reason: str) -> None:
        if not self._told and self._core.clock() - self._began >= TOLD_AFTER_SECONDS:
            self._told = True
            log.warning(
                "%s is away (%s); trying again for up to %.0f s", self._core.url, reason, self._retry_seconds
            )


class Watch:
    """A job that is asked for again and again until it is over.

    Args:
        job_id: The job.
        timeout: Seconds after which to give up; ``None`` for never.
        clock: Seconds of a monotonic clock.
    """

    def __init__(self, job_id: str, timeout: float | None, clock: Callable[[], float]) -> None:
        self._job_id, self._clock = job_id, clock
        self._until = None if timeout is None else clock() + timeout
        self._tag = ""
        self._job: JobDetail | None = None
        self._pause = POLL_SECONDS

    def call(self) -> Call[Answer]:
        """Asks for the job, unless it is still as it was."""
        headers = {"If-None-Match": self._tag} if self._tag else {}
        return Call("GET", JOB, read_whole, {"job_id": self._job_id}, headers=headers)

    def take(self, answer: Answer) -> JobDetail:
        """The job's state now."""
        self._pause = answer.retry_after(POLL_SECONDS)
        if answer.status != HTTPStatus.NOT_MODIFIED or self._job is None:
            self._job = answer.json()
            self._tag = answer.headers.get("ETag", "")
        return self._job

    def pause(self) -> float | None:
        """Seconds until it is worth asking again; ``None`` if the job is over.

        Raises:
            TimeoutError: There is no time left.
        """
        if self._job is not None and self._job["status"] in TERMINAL:
            return None
        if self._until is None:
            return self._pause
        left = self._until - self._clock()
        if left <= 0:
            raise TimeoutError(f"{self._job_id} has not ended yet; it keeps running")
        return min(self._pause, left)


class Listener:
    """A job's events, over as many connections as it takes.

    Args:
        job_id: The job.
    """

    def __init__(self, job_id: str) -> None:
        self._job_id = job_id
        self._last_id = ""
        self.is_over = False
        self.pause = POLL_SECONDS

    def call(self) -> Call[Answer]:
        """Asks for the events after the last one that came."""
        headers = {"Accept": "text/event-stream"} | (
            {"Last-Event-ID": self._last_id} if self._last_id else {}
        )
        return Call("GET", f"{JOB}/events", read_whole, {"job_id": self._job_id}, headers=headers)

    def take(self, event: httpx2.ServerSentEvent) -> JobDetail | None:
        """The state that an event tells, if it tells one."""
        if event.retry is not None:
            self.pause = event.retry / 1000
        if event.event != "job":
            return None
        self._last_id = event.id
        job: JobDetail = json.loads(event.data)
        self.is_over = job["status"] in TERMINAL
        return job

    def begun(self, response: httpx2.Response) -> None:
        """Takes in how the service answers: with a status alone if there is nothing more to tell."""
        self.is_over = response.status_code == HTTPStatus.NO_CONTENT


def answer_of(response: httpx2.Response, content: bytes) -> Answer:
    """An answer of the HTTP library."""
    return Answer(str(response.request.url), response.status_code, response.headers, content)
