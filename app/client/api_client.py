"""The HTTP client: one method for each thing that the command line asks of the service."""

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Literal, Self
from urllib.parse import quote

import httpx2

from app.client.errors import ClientError, ProblemError, ProblemField, UnreachableError

Json = dict[str, Any]
Action = Literal["cancel", "pause", "resume", "retry"]

TERMINAL = frozenset({"completed", "failed", "cancelled"})
TRY_LATER = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})

TIMEOUT = httpx2.Timeout(60.0, connect=5.0)  # the partial results of a large job take seconds
PATIENCE_SECONDS = 1.0
FOLLOWING_PATIENCE_SECONDS = 60.0
FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 2.0
POLL_SECONDS = 1.0


class ApiClient:
    """A service's client; a context manager that holds the connection.

    Every request may safely be sent twice (submitting carries an ``Idempotency-Key``), so each is repeated when its
    connection breaks or the service says that it is away for a moment.

    Args:
        url: The service's URL.
        transport: How requests are sent; HTTP by default.

    Raises:
        ClientError: ``url`` is none.
    """

    def __init__(self, url: str, transport: httpx2.BaseTransport | None = None) -> None:
        self.url = url.rstrip("/")
        try:
            self._http = httpx2.Client(base_url=self.url, timeout=TIMEOUT, transport=transport)
        except httpx2.InvalidURL as error:
            raise ClientError(f"{url!r} is not a URL: {error}") from error
        self._known: dict[str, tuple[str, Json]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def submit(self, job: Mapping[str, Any]) -> Json:
        """Submits a job, once, however often the request has to be repeated.

        Returns:
            The accepted job.
        """
        return self._json("POST", "/v1/jobs", job, headers={"Idempotency-Key": uuid.uuid4().hex})

    def plan(self, job: Mapping[str, Any]) -> Json:
        """What a job would take; nothing is spent."""
        return self._json("POST", "/v1/jobs/plan", job)

    def jobs(self, *, limit: int, status: str | None = None) -> Json:
        """The newest jobs, as a page ``{data, has_more, next_cursor}``."""
        query = {"limit": str(limit)} | ({} if status is None else {"status": status})
        return self._json("GET", "/v1/jobs", query=query)

    def job(self, job_id: str) -> Json:
        """A job with its progress."""
        return self._poll(job_id, PATIENCE_SECONDS)[0]

    def follow(self, job_id: str) -> Iterator[Json]:
        """A job's states until it has ended, the last one included; the service says how often to ask.

        Outlasts a restart of the service of up to a minute.
        """
        job, pause = self._poll(job_id, PATIENCE_SECONDS)
        yield job
        while job["status"] not in TERMINAL:
            time.sleep(pause)
            job, pause = self._poll(job_id, FOLLOWING_PATIENCE_SECONDS)
            yield job

    def act(self, job_id: str, action: Action) -> Json:
        """Cancels, pauses, resumes or retries a job.

        Returns:
            The job afterwards.
        """
        return self._json("POST", f"{_job_path(job_id)}/{action}")

    def change(self, job_id: str, change: Mapping[str, Any]) -> Json:
        """Changes a job's budget.

        Returns:
            The job afterwards.
        """
        return self._json("PATCH", _job_path(job_id), change)

    def results(self, job_id: str) -> Json:
        """A job's results as they stand."""
        return self._json("GET", f"{_job_path(job_id)}/results")

    def compare(self, a: Mapping[str, str], b: Mapping[str, str]) -> Json:
        """Paired differences of two sides, each ``{job, model}`` or ``{baseline}``."""
        return self._json("POST", "/v1/comparisons", {"a": dict(a), "b": dict(b)})

    def gate(self, job_id: str, thresholds: Sequence[str], interval: str) -> Json:
        """A job's results held to thresholds; to the job's own if none are given."""
        query: dict[str, str | list[str]] = {"threshold": list(thresholds), "interval": interval}
        return self._json("GET", f"{_job_path(job_id)}/gate", query=query)

    def save_report(self, job_id: str, query: Mapping[str, str], file: BinaryIO) -> int:
        """Streams a report into a file.

        Args:
            job_id: The job.
            query: ``format``, and ``level`` for tables.
            file: Where to; on an error it holds a part.

        Returns:
            The report's length in bytes.
        """
        request = self._http.build_request("GET", f"{_job_path(job_id)}/report", params=dict(query))
        length = 0
        with self._answer(request, PATIENCE_SECONDS) as response:
            for chunk in response.iter_bytes():
                length += file.write(chunk)
        return length

    def _poll(self, job_id: str, patience: float) -> tuple[Json, float]:
        """A job, and after how many seconds it is worth asking again."""
        tag, known = self._known.get(job_id, (None, None))
        headers = {} if tag is None else {"If-None-Match": tag}
        request = self._http.build_request("GET", _job_path(job_id), headers=headers)
        with self._answer(request, patience) as response:
            pause = _retry_after(response, POLL_SECONDS)
            if response.status_code == HTTPStatus.NOT_MODIFIED and known is not None:
                return known, pause
            job = _parsed(response)
            if "ETag" in response.headers:
                self._known[job_id] = (response.headers["ETag"], job)
            return job, pause

    def _json(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, str | list[str]] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Json:
        request = self._http.build_request(method, path, json=body, params=query, headers=headers)
        with self._answer(request, PATIENCE_SECONDS) as response:
            return _parsed(response)

    @contextmanager
    def _answer(self, request: httpx2.Request, patience: float) -> Iterator[httpx2.Response]:
        """The answer to a request, its body not yet read.

        Raises:
            UnreachableError: Nothing answered within ``patience`` seconds, or the answer broke off.
            ProblemError: The service refused.
        """
        deadline = time.monotonic() + patience
        try:
            response = self._send(request, deadline)
            try:
                if response.is_error:
                    response.read()
                    raise _problem(response)
                yield response
            finally:
                response.close()
        except httpx2.TimeoutException as error:
            raise UnreachableError(f"{self.url} does not answer in time: {_reason(error)}") from error
        except httpx2.UnsupportedProtocol as error:
            raise ClientError(f"{self.url!r} is not an http:// or https:// URL") from error
        except httpx2.RequestError as error:
            hint = "Is the service running? Start it with `assay up`, or say with --url or ASSAY_URL where it is."
            raise UnreachableError(f"cannot reach {self.url}: {_reason(error)}\n{hint}") from error

    def _send(self, request: httpx2.Request, deadline: float) -> httpx2.Response:
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                response = self._http.send(request, stream=True)
            except (httpx2.NetworkError, httpx2.ConnectTimeout, httpx2.RemoteProtocolError):
                if time.monotonic() + pause > deadline:
                    raise
            else:
                wait = _retry_after(response, pause)
                if response.status_code not in TRY_LATER or time.monotonic() + wait > deadline:
                    return response
                response.close()
                pause = wait
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)


def write_report(client: ApiClient, job_id: str, query: Mapping[str, str], path: Path) -> int:
    """Saves a report as a file that appears only once it is whole.

    Returns:
        Its length in bytes.

    Raises:
        ClientError: The file cannot be written.
    """
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        with draft.open("wb") as file:
            length = client.save_report(job_id, query, file)
        draft.replace(path)
    except OSError as error:
        raise ClientError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        draft.unlink(missing_ok=True)
    return length


def _job_path(job_id: str) -> str:
    """The path of a job, whatever characters somebody typed as its id."""
    return f"/v1/jobs/{quote(job_id, safe='')}"


def _parsed(response: httpx2.Response) -> Json:
    response.read()
    try:
        content = response.json()
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise ClientError(f"{response.request.url} answers, but not as this service does; is the URL right?")
    return content


def _problem(response: httpx2.Response) -> ProblemError:
    """An error answer; one without a problem document comes from something in between."""
    try:
        content = response.json()
    except ValueError:
        content = {}
    if not isinstance(content, dict) or "detail" not in content:
        status = f"{response.status_code} {response.reason_phrase}".strip()
        return ProblemError(response.status_code, f"{response.request.url} answers {status}")
    fields = [ProblemField(e["pointer"], e["message"]) for e in content.get("errors", [])]
    return ProblemError(response.status_code, content["detail"], fields, content.get("request_id", ""))


def _retry_after(response: httpx2.Response, default: float) -> float:
    """Seconds from ``Retry-After``; its other form, a date, is not one that this service uses."""
    value = response.headers.get("Retry-After", "")
    return float(value) if value.isdecimal() else default


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__
