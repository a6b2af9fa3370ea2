"""The spans of :mod:`app.telemetry.tracing`, by OpenTelemetry's SDK. It is only imported where they are wanted.

The provider of spans and what is current are our own and not the library's global ones, which the SDKs of providers use: they would
put prompts into spans of theirs, and send ``traceparent`` along.
"""

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Thread

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import INVALID_SPAN, Span, SpanKind, Status, StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from app import clock
from app.telemetry.states import OK, StateLog
from app.telemetry.tracing import EndedCall, Provider, Values

CLOSING_SECONDS = 3.0
"""How long a process that stops waits for a collector to take its last spans."""
WORDS = 200
"""Characters of what the exporter says that are logged."""

_NAME = re.compile(r"[\w.:/@+-]{1,128}", re.ASCII)
"""What a code or a model's name looks like. A server may answer with a text of the job in the place of one."""
_FIELD = "traceparent"
_HEADERS = TraceContextTextMapPropagator()
_current: ContextVar[Span] = ContextVar("assay_span", default=INVALID_SPAN)


class Spans:
    """Makes the spans of a process and sends them in the background.

    Args:
        service: See :func:`app.telemetry.tracing.start`, as for the others.
        version: Of the service.
        provider_of: Whom a connection leads to.
        exporter: Sends them; OTLP over HTTP unless a test gives another.
    """

    def __init__(
        self,
        service: str,
        version: str,
        provider_of: Callable[[str], Provider | None] | None = None,
        exporter: SpanExporter | None = None,
    ) -> None:
        ours = Resource({"service.name": service, "service.version": version})
        resource = Resource.create().merge(ours).merge(OTELResourceDetector().detect())
        self._exporter = _Told(exporter or OTLPSpanExporter())
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(self._exporter))
        self._tracer = self._provider.get_tracer("persona-assay", version)
        self._provider_of = provider_of or (lambda _: None)

    def close(self) -> None:
        """Sends what is left; what is not taken soon is lost."""
        closing = Thread(target=self._provider.shutdown, name="traces", daemon=True)
        closing.start()
        closing.join(CLOSING_SECONDS)

    @contextmanager
    def request(self, method: str, origin: str | None) -> "Iterator[_RequestSpan]":
        """See :func:`app.telemetry.tracing.request_span`."""
        span = self._tracer.start_span(
            method, _parent(origin), SpanKind.SERVER, {"http.request.method": method}
        )
        token = _current.set(span)
        try:
            yield _RequestSpan(span, method)
        finally:
            _current.reset(token)
            span.end()

    def traceparent(self) -> str | None:
        """See :func:`app.telemetry.tracing.traceparent`."""
        carrier: dict[str, str] = {}
        _HEADERS.inject(carrier, set_span_in_context(_current.get(), Context()))
        return carrier.get(_FIELD)

    @contextmanager
    def shard(self, origin: str | None, queued_seconds: float, values: Values) -> Iterator[None]:
        """See :func:`app.telemetry.tracing.shard_span`."""
        parent, attributes, now = _parent(origin), _attributes(values), clock.time_ns()
        announced = now - round(queued_seconds * 1e9)
        queued = self._tracer.start_span(
            "wait for a worker", parent, attributes=attributes, start_time=announced
        )
        queued.end(now)
        span = self._tracer.start_span("run shard", parent, SpanKind.CONSUMER, attributes, start_time=now)
        token = _current.set(span)
        try:
            yield
        finally:
            _current.reset(token)
            span.end()

    def call(self, call: EndedCall) -> None:
        """See :func:`app.telemetry.tracing.call_ended`."""
        parent = _current.get()
        if not parent.is_recording():  # not sampled, and then its calls are not either
            return
        began = round(call.started_at.timestamp() * 1e6) * 1000
        span = self._tracer.start_span(
            f"chat {call.model}",
            set_span_in_context(parent, Context()),
            SpanKind.CLIENT,
            _of_call(call, self._provider_of(call.connection)),
            start_time=began,
        )
        if call.code is not None:
            span.set_attribute("error.type", _name(call.code) or "_OTHER")
            span.set_status(Status(StatusCode.ERROR))
        span.end(began + round(call.latency_ms * 1e6))


class _RequestSpan:
    """See :class:`app.telemetry.tracing.RequestSpan`."""

    def __init__(self, span: Span, method: str) -> None:
        self._span, self._method = span, method

    def answered(self, route: str | None, status: int, request_id: str) -> None:
        """See :meth:`app.telemetry.tracing.RequestSpan.answered`."""
        if route is not None:
            self._span.update_name(f"{self._method} {route}")
        self._span.set_attributes(
            _attributes(
                {"http.route": route, "http.response.status_code": status, "assay.request.id": request_id}
            )
        )
        if status >= 500:  # noqa: PLR2004 - by the semantic conventions of HTTP servers
            self._span.set_attribute("error.type", str(status))
            self._span.set_status(Status(StatusCode.ERROR))


class _Told(SpanExporter):
    """Logs when spans are taken no more, or again, and not each attempt, as OpenTelemetry's own exporter does."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._states, self._state = StateLog(), OK
        self._words = _LastWords()
        for name in ("opentelemetry.exporter", "opentelemetry.sdk._shared_internal"):
            library = logging.getLogger(name)
            library.handlers, library.propagate = [self._words], False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Sends spans; those that the collector does not take are lost."""
        result = self._exporter.export(spans)
        if result is SpanExportResult.SUCCESS:
            self._state = OK
        elif self._state == OK:  # further words, such as other seconds, are no news
            self._state = f"spans are lost: {self._words.said[:WORDS]}"
        self._states.note({"traces": self._state})
        return result

    def shutdown(self) -> None:
        """Ends it."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Nothing is kept here."""
        return self._exporter.force_flush(timeout_millis)


class _LastWords(logging.Handler):
    """Keeps what a library logged last."""

    said = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps it."""
        self.said = record.getMessage()


def _parent(origin: str | None) -> Context:
    """The context of a header's trace; an empty one where it names none."""
    return _HEADERS.extract({} if origin is None else {_FIELD: origin}, Context())


def _of_call(call: EndedCall, provider: Provider | None) -> Mapping[str, str | int | float | Sequence[str]]:
    """By https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/; without any text that was sent or received."""
    found: dict[str, str | int | float | Sequence[str]] = _attributes(
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": None if provider is None else provider.name,
            "server.address": None if provider is None else provider.address,
            "gen_ai.request.model": call.model,
            "gen_ai.response.model": _name(call.model_snapshot),
            "gen_ai.usage.input_tokens": call.input_tokens,
            "gen_ai.usage.output_tokens": call.output_tokens,
            "http.response.status_code": call.http_status,
            "assay.tenant": call.tenant,
            "assay.job.id": call.job_id,
            "assay.shard.id": call.shard_id,
            "assay.stage": call.stage,
            "assay.connection": call.connection,
            "assay.attempt": call.attempt,
            "assay.outcome": call.outcome,
            "assay.usd": call.usd,
            "assay.batch.id": call.batch_id,
        }
    )
    if call.finish_reason is not None:
        found["gen_ai.response.finish_reasons"] = [call.finish_reason]
    return found


def _name(given: str | None) -> str | None:
    """What a provider gave as a name, if it looks like one."""
    return given if given is not None and _NAME.fullmatch(given) else None


def _attributes(values: Values) -> dict[str, str | int | float | Sequence[str]]:
    return {name: value for name, value in values.items() if value is not None}
