"""What spans say, and what they do not."""

import logging
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from opentelemetry.propagate import inject
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, get_tracer
from structlog.testing import capture_logs

from app.db.execution.result_rows import CallRow
from app.telemetry.spans import Spans, _Told
from app.telemetry.tracing import Provider, Values

TRACE = "0af7651916cd43dd8448eb211c80319c"
CALLER = "b7ad6b7169203331"
SAMPLED, UNSAMPLED = f"00-{TRACE}-{CALLER}-01", f"00-{TRACE}-{CALLER}-00"
BEGAN = datetime(2026, 11, 23, 5, 0, 0, 125_000, tzinfo=UTC)
SECRETS = ("I never said that", "the prompt", "fp_secret", "req_secret")
"""What a row may hold of texts, and what only the provider's support needs."""
PARTS: Values = {"assay.tenant": "north", "assay.job.id": "job_1", "assay.shard.id": 7}


def row(**changes: Any) -> CallRow:
    """An answered call's."""
    answered = CallRow(
        id=UUID(int=1),
        tenant="north",
        job_id="job_1",
        shard_id=7,
        stage="judging",
        connection="house",
        model="gpt-4o",
        cell_id=1,
        run=0,
        item=0,
        unit=3,
        trait=0,
        judge=0,
        attempt=2,
        outcome="ok",
        code=None,
        http_status=200,
        input_tokens=431,
        output_tokens=5,
        cached_input_tokens=0,
        usd=0.0021,
        maybe_paid=True,
        latency_ms=1250.5,
        finish_reason="stop",
        model_snapshot="gpt-4o-2024-08-06",
        system_fingerprint="fp_secret",
        provider_request_id="req_secret",
        started_at=BEGAN,
    )
    return answered._replace(**changes)


@contextmanager
def kept_spans() -> Iterator[tuple[Spans, InMemorySpanExporter]]:
    """Spans of a process, and where they are sent."""
    kept = InMemorySpanExporter()
    spans = Spans("assay-worker", "1.2.3", {"house": Provider("openai", "api.openai.com")}.get, kept)
    try:
        yield spans, kept
    finally:
        spans.close()


def call_under_a_shard(call: CallRow, origin: str | None = SAMPLED) -> dict[str, ReadableSpan]:
    """The spans of a shard that makes one call, by name."""
    with kept_spans() as (spans, kept):
        with spans.shard(origin, 2.0, PARTS):
            spans.call(call)
        spans.close()
        return {span.name: span for span in kept.get_finished_spans()}


class TestCall:
    def test_says_what_the_conventions_for_generative_ai_name(self) -> None:
        call = call_under_a_shard(row())["chat gpt-4o"]
        assert call.kind is SpanKind.CLIENT
        assert dict(call.attributes or {}) == {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "openai",
            "server.address": "api.openai.com",
            "gen_ai.request.model": "gpt-4o",
            "gen_ai.response.model": "gpt-4o-2024-08-06",
            "gen_ai.response.finish_reasons": ("stop",),
            "gen_ai.usage.input_tokens": 431,
            "gen_ai.usage.output_tokens": 5,
            "http.response.status_code": 200,
            "assay.tenant": "north",
            "assay.job.id": "job_1",
            "assay.shard.id": 7,
            "assay.stage": "judging",
            "assay.connection": "house",
            "assay.attempt": 2,
            "assay.outcome": "ok",
            "assay.usd": 0.0021,
        }
        assert call.status.is_unset

    def test_lasts_from_the_sending_to_the_answer(self) -> None:
        call = call_under_a_shard(row())["chat gpt-4o"]
        assert call.start_time == int(BEGAN.timestamp()) * 10**9 + 125_000_000
        assert call.end_time == call.start_time + 1_250_500_000

    def test_of_a_failure_names_the_code_and_not_the_words(self) -> None:
        failed = row(
            outcome="retry",
            code="rate_limit_exceeded",
            http_status=429,
            detail="I never said that: the prompt",
            input_tokens=None,
            output_tokens=None,
            model_snapshot=None,
            finish_reason=None,
            usd=None,
        )
        call = call_under_a_shard(failed)["chat gpt-4o"]
        assert (call.attributes or {})["error.type"] == "rate_limit_exceeded"
        assert "gen_ai.usage.input_tokens" not in (call.attributes or {})
        assert not call.status.is_ok
        assert [secret for secret in SECRETS if secret in call.to_json()] == []

    @pytest.mark.parametrize("text", ["I never said that", "said\nthat", "s" * 129, "gesagt…", ""])
    def test_holds_no_text_that_a_server_gave_as_a_code_or_a_name(self, text: str) -> None:
        call = call_under_a_shard(row(code=text, model_snapshot=text))["chat gpt-4o"]
        assert (call.attributes or {})["error.type"] == "_OTHER"
        assert "gen_ai.response.model" not in (call.attributes or {})
        assert not text or text not in call.to_json()

    def test_to_a_connection_that_nobody_knows_any_more_has_no_provider(self) -> None:
        call = call_under_a_shard(row(connection="gone"))["chat gpt-4o"]
        assert "gen_ai.provider.name" not in (call.attributes or {})


class TestTree:
    def test_a_shard_goes_on_with_its_job_s_trace_and_its_calls_with_the_shard(self) -> None:
        spans = call_under_a_shard(row())
        work, call, queued = spans["run shard"], spans["chat gpt-4o"], spans["wait for a worker"]
        assert {span.context.trace_id for span in (work, call, queued)} == {int(TRACE, 16)}
        assert [span.parent and span.parent.span_id for span in (work, queued)] == [int(CALLER, 16)] * 2
        assert call.parent is not None
        assert call.parent.span_id == work.context.span_id
        assert queued.end_time is not None
        assert queued.start_time is not None
        assert queued.end_time - queued.start_time == 2_000_000_000
        assert queued.end_time == work.start_time

    def test_a_job_without_a_trace_has_one_of_its_own(self) -> None:
        spans = call_under_a_shard(row(), None)
        assert spans["run shard"].parent is None
        assert spans["chat gpt-4o"].context.trace_id == spans["run shard"].context.trace_id

    def test_nothing_is_made_of_a_job_whose_request_was_not_sampled(self) -> None:
        assert call_under_a_shard(row(), UNSAMPLED) == {}

    @pytest.mark.parametrize("nonsense", ["", "00-1-2-3", "\x00", f"00-{'0' * 32}-{CALLER}-01", "x" * 10_000])
    def test_a_header_that_is_none_begins_a_trace(self, nonsense: str) -> None:
        with kept_spans() as (spans, _), spans.request("POST", nonsense):
            made = spans.traceparent()
        assert made is not None
        assert TRACE not in made

    def test_a_request_hands_on_itself_only_while_it_is_answered(self) -> None:
        with kept_spans() as (spans, kept):
            assert spans.traceparent() is None
            with spans.request("POST", SAMPLED) as request:
                handed_on = spans.traceparent()
                request.answered("/v1/jobs", 202, "req_1")
            assert spans.traceparent() is None
            spans.close()
            (made,) = kept.get_finished_spans()
        assert made.name == "POST /v1/jobs"
        assert handed_on == f"00-{TRACE}-{made.context.span_id:016x}-01"
        assert dict(made.attributes or {}) == {
            "http.request.method": "POST",
            "http.route": "/v1/jobs",
            "http.response.status_code": 202,
            "assay.request.id": "req_1",
        }


class TestLibraries:
    """The SDKs of providers make spans, and name the trace in their requests, by what is global."""

    def test_find_no_trace_to_tell_a_provider_of_and_record_nothing(self) -> None:
        sent: dict[str, str] = {}
        with kept_spans() as (spans, kept):
            with spans.request("POST", SAMPLED), spans.shard(SAMPLED, 0, PARTS):
                inject(sent)
                with get_tracer("anthropic").start_as_current_span("chat") as theirs:
                    theirs.set_attribute("gen_ai.input.messages", "the prompt")
                    inject(sent)
            spans.close()
            assert [span.name for span in kept.get_finished_spans()] == [
                "wait for a worker",
                "run shard",
                "POST",
            ]
        assert sent == {}


class TestResource:
    def test_is_named_by_us_unless_the_operator_names_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert call_under_a_shard(row())["run shard"].resource.attributes["service.name"] == "assay-worker"
        monkeypatch.setenv("OTEL_SERVICE_NAME", "grading")
        assert call_under_a_shard(row())["run shard"].resource.attributes["service.name"] == "grading"


class _Full(InMemorySpanExporter):
    """Takes nothing while it has no room, and complains each time, as the SDK's exporter does, in other words."""

    room = False
    attempts = 0

    def export(self, spans: object) -> SpanExportResult:
        if self.room:
            return SpanExportResult.SUCCESS
        self.attempts += 1
        logging.getLogger("opentelemetry.exporter.otlp").error("no room %s %s", self.attempts, "x" * 1000)
        return SpanExportResult.FAILURE


def test_a_collector_that_takes_nothing_is_one_line_of_the_log_and_one_when_it_is_back() -> None:
    collector = _Full()
    told = _Told(collector)
    with capture_logs() as lines:
        for _ in range(5):
            told.export([])
        collector.room = True
        for _ in range(5):
            told.export([])
    assert [line["log_level"] for line in lines] == ["warning", "info"]
    assert lines[0]["part"] == "traces"
    assert lines[0]["state"].startswith("spans are lost: no room 1 xxx")
    assert len(lines[0]["state"]) < 300


WHAT_IS_IMPORTED = """
import sys, app.main, workers.celery_app, workers.context
from app.telemetry import tracing
with tracing.request_span("POST", None) as span, tracing.shard_span(None, 0, {}):
    assert span is None and tracing.traceparent() is None
tracing.stop()
print([name for name in sys.modules if name.startswith(("opentelemetry.sdk.trace", "opentelemetry.exporter"))])
"""


@pytest.mark.slow
def test_while_traces_are_off_nothing_is_imported_that_makes_or_sends_them() -> None:
    run = subprocess.run(
        [sys.executable, "-c", WHAT_IS_IMPORTED],
        env={"DATABASE_URL": "postgresql://unused", "REDIS_URL": "redis://unused"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout == "[]\n"
