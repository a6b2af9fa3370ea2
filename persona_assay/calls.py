"""A call of the service: what is sent and how the answer is read. Nothing here sends, so both clients share it."""

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any, Generic, TypedDict, TypeVar
from urllib.parse import quote

from persona_assay.errors import AssayError, ProblemError, ProblemField

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

SECONDS, CONNECT_SECONDS = 60.0, 5.0
"""How long an answer, and a connection, is waited for: the partial results of a large job take seconds."""
PLANNING_SECONDS = 300.0
"""The same of a plan, which of hundreds of thousands of existing texts takes minutes on a busy machine."""

Query = Mapping[str, str | Sequence[str]]


class Page(TypedDict, Generic[T]):
    """A part of a list; every list of the service has this form."""

    data: list[T]
    has_more: bool
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back.

    Attributes:
        url: What was asked.
        status: The HTTP status.
        headers: By name, in any case.
        content: The body.
    """

    url: str
    status: int
    headers: Mapping[str, str]
    content: bytes

    def json(self) -> Any:
        """The body, which is an object.

        Raises:
            AssayError: It is none, so something else than the service has answered.
        """
        found = self._object()
        if found is None:
            raise AssayError(f"{self.url} is not a Persona Assay service; check the URL")
        return found

    def problem(self) -> ProblemError:
        """The body of a refusal; one without a problem document comes from something in between."""
        found = self._object() or {}
        if "detail" not in found:
            phrase = next((known.phrase for known in HTTPStatus if known == self.status), "")
            return ProblemError(self.status, f"{self.url} answers {self.status} {phrase}".rstrip())
        fields = [ProblemField(e["pointer"], e["message"]) for e in found.get("errors", ())]
        return ProblemError(
            self.status, found["detail"], found.get("code", ""), fields, found.get("request_id", "")
        )

    def retry_after(self, default: float) -> float:
        """Seconds from ``Retry-After``; its other form, a date, is not one that this service uses."""
        value = self.headers.get("Retry-After", "")
        return float(value) if value.isdecimal() else default

    def _object(self) -> dict[str, Any] | None:
        try:
            found = json.loads(self.content)
        except ValueError:
            return None
        return found if isinstance(found, dict) else None


@dataclass(frozen=True, slots=True)
class Call(Generic[T_co]):
    """One call.

    Attributes:
        method: The HTTP method.
        route: The path, with the names of `names` in braces.
        read: What an answer that is no refusal says.
        names: What stands in the path; any characters.
        query: The query's parameters.
        body: The body, to be sent as JSON.
        content: The body as it is, instead.
        headers: Further headers.
        is_repeatable: Whether a second time changes nothing, so that it may be made again when its answer was lost.
        is_awaited: Whether it is made again while the answer is 202, which says that what it asks for takes long.
        seconds: How long the next bytes of the answer are waited for.
    """

    method: str
    route: str
    read: Callable[[Answer], T_co]
    names: Mapping[str, str] = field(default_factory=dict)
    query: Query = field(default_factory=dict)
    body: object = None
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    is_repeatable: bool = True
    is_awaited: bool = False
    seconds: float = SECONDS

    @property
    def path(self) -> str:
        """The path, whatever characters somebody typed as a name."""
        return self.route.format_map({name: quote(value, safe="") for name, value in self.names.items()})

    def request(self) -> dict[str, Any]:
        """What the HTTP library builds the request from.

        Raises:
            AssayError: The body holds what JSON cannot say.
        """
        content, headers = self.content, dict(self.headers)
        if self.body is not None:
            try:
                content = json.dumps(self.body, allow_nan=False, ensure_ascii=False).encode()
            except (TypeError, ValueError, RecursionError) as error:
                raise AssayError(f"the body cannot be sent as JSON: {error}") from error
            headers["Content-Type"] = "application/json"
        query = dict(self.query) or None
        return {
            "method": self.method,
            "url": self.path,
            "params": query,
            "content": content,
            "headers": headers,
            "timeout": (
                CONNECT_SECONDS,
                self.seconds,
                SECONDS,
                SECONDS,
            ),  # to connect, read, write, wait for a place
        }

    def after(self, cursor: str) -> "Call[T_co]":
        """The same list from where a page has ended."""
        return replace(self, query={**self.query, "after": cursor})


def given(**parameters: str | float | None) -> dict[str, str]:
    """The query's parameters that have a value."""
    return {name: str(value) for name, value in parameters.items() if value is not None}


def repetition_key(wanted: str | None) -> dict[str, str]:
    """The header by which a repeated call is known; a new key unless one is wanted."""
    return {"Idempotency-Key": wanted or uuid.uuid4().hex}


def read_json(answer: Answer) -> Any:
    """Reads an answer that is an object."""
    return answer.json()


def read_nothing(answer: Answer) -> None:
    """Reads an answer that is only a status."""
    del answer


def read_bytes(answer: Answer) -> bytes:
    """Reads an answer that is a file."""
    return answer.content


def read_whole(answer: Answer) -> Answer:
    """Leaves an answer to whoever asked."""
    return answer
