"""Traces of jobs: the request that submitted one, its shards' waits and work, its calls. Off unless the environment asks for them.

While they are off nothing of OpenTelemetry's is imported here and no span is made. Spans hold names, numbers and codes, and never a
text, a key or an error's words; and no request to a provider names a trace.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from app.telemetry.spans import Spans

Values = Mapping[str, str | int | float | None]
"""Attributes of a span; one that is ``None`` is left out."""


class Provider(NamedTuple):
    """Whom a connection leads to.

    Attributes:
        name: A well-known value of ``gen_ai.provider.name``, or the wire format.
        address: The host.
    """

    name: str
    address: str


class EndedCall(Protocol):
    """What a span says of an attempt at a call: parts of its row."""

    @property
    def tenant(self) -> str: ...  # noqa: D102
    @property
    def job_id(self) -> str: ...  # noqa: D102
    @property
    def shard_id(self) -> int: ...  # noqa: D102
    @property
    def stage(self) -> str: ...  # noqa: D102
    @property
    def connection(self) -> str: ...  # noqa: D102
    @property
    def model(self) -> str: ...  # noqa: D102
    @property
    def attempt(self) -> int: ...  # noqa: D102
    @property
    def outcome(self) -> str: ...  # noqa: D102
    @property
    def code(self) -> str | None: ...  # noqa: D102
    @property
    def http_status(self) -> int | None: ...  # noqa: D102
    @property
    def input_tokens(self) -> int | None: ...  # noqa: D102
    @property
    def output_tokens(self) -> int | None: ...  # noqa: D102
    @property
    def finish_reason(self) -> str | None: ...  # noqa: D102
    @property
    def model_snapshot(self) -> str | None: ...  # noqa: D102
    @property
    def usd(self) -> float | None: ...  # noqa: D102
    @property
    def latency_ms(self) -> float: ...  # noqa: D102
    @property
    def started_at(self) -> datetime: ...  # noqa: D102
    @property
    def batch_id(self) -> int | None: ...  # noqa: D102


_spans: "Spans | None" = None


def start(service: str, version: str, provider_of: Callable[[str], Provider | None] | None = None) -> None:
    """Has this process make spans, and send them as the standard variables say.

    Args:
        service: What it is called where ``OTEL_SERVICE_NAME`` is not set.
        version: Of the service.
        provider_of: Whom a connection leads to; of a process that makes calls.
    """
    global _spans  # noqa: PLW0603 - one a process, as its metrics
    from app.telemetry.spans import Spans  # noqa: PLC0415 - a fifth of a second, and only where traces are wanted

    _spans = Spans(service, version, provider_of)


def stop() -> None:
    """Sends what is left, for a moment, and makes no further spans. It may block for that moment."""
    global _spans
    spans, _spans = _spans, None
    if spans is not None:
        spans.close()


def request_span(method: str, traceparent: str | None) -> "AbstractContextManager[RequestSpan | None]":
    """A request's span, around it, which goes on with the caller's trace if it names one."""
    return nullcontext() if _spans is None else _spans.request(method, traceparent)


class RequestSpan(Protocol):
    """The span of a request that is being answered."""

    def answered(self, route: str | None, status: int, request_id: str) -> None:
        """Says what became of it.

        Args:
            route: The path's pattern; ``None`` where there is none like it.
            status: Of the answer.
            request_id: The id that the answer carries.
        """
        ...


def traceparent() -> str | None:
    """The trace that goes on with what this request starts, as the ``traceparent`` header writes it; none while traces are off."""
    return None if _spans is None else _spans.traceparent()


def shard_span(origin: str | None, queued_seconds: float, values: Values) -> AbstractContextManager[None]:
    """The span of a shard's work, around it, beside one of its wait in the queue.

    Args:
        origin: The ``traceparent`` of its job; ``None`` makes a trace of its own.
        queued_seconds: How long ago it was announced.
        values: What else to say.
    """
    return nullcontext() if _spans is None else _spans.shard(origin, queued_seconds, values)


def call_ended(call: EndedCall) -> None:
    """Makes the span of an attempt at a call that is over, under the shard that made it."""
    if _spans is not None:
        _spans.call(call)
