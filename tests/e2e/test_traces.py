"""A whole job's spans, as a collector receives them."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from embedded.valkey import EmbeddedValkey
from tests.conftest import scratch_directory
from tests.databases import Databases
from tests.e2e.stack import Stack, running_stack
from tests.observe import eventually

pytestmark = pytest.mark.slow

TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
KEY = "sk-secret-0123456789-collector"
PERSONA = "an outspoken lighthouse keeper"
JOB = {
    "personas": [{"id": "keeper", "description": PERSONA, "traits": {"E": "high"}}],
    "tasks": ["essay"],
    "instructions": [1],
    "iterations": 1,
    "models": ["simulated/sim-faithful"],
    "judges": ["simulated/sim-judge"],
}
SERVER, CONSUMER, CLIENT = Span.SPAN_KIND_SERVER, Span.SPAN_KIND_CONSUMER, Span.SPAN_KIND_CLIENT


class Collector(ThreadingHTTPServer):
    """Takes spans over OTLP."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Receiver)
        self.lock = Lock()
        self.spans: list[tuple[str, Span]] = []
        """With the service that sent each."""
        self.bodies: list[bytes] = []
        self.keys: set[str] = set()

    def received(self, trace: str) -> list[tuple[str, Span]]:
        with self.lock:
            return [(service, span) for service, span in self.spans if span.trace_id.hex() == trace]


class _Receiver(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        request = ExportTraceServiceRequest.FromString(body)
        with self.server.lock:
            self.server.bodies.append(body)
            self.server.keys.add(self.headers["api-key"])
            for part in request.resource_spans:
                service = attributes(part.resource)["service.name"]
                self.server.spans += [(service, span) for scope in part.scope_spans for span in scope.spans]
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the overridden method's name for it
        """Says nothing."""


def attributes(of: Any) -> dict[str, Any]:
    """A span's or resource's, without their types."""
    return {each.key: getattr(each.value, str(each.value.WhichOneof("value"))) for each in of.attributes}


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def submit(stack: Stack, **headers: str) -> str:
    answer = stack.api.post("/v1/jobs", json=JOB, headers=headers)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


def log_of(directory: Path) -> list[dict[str, Any]]:
    lines = "".join(file.read_text() for file in sorted((directory / "logs").glob("*.log"))).splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def test_a_job_is_one_tree_from_the_request_to_its_calls_and_holds_no_text(
    databases: Databases, template_database: str, valkey: EmbeddedValkey, collector: Collector
) -> None:
    environment = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_port}",
        "OTEL_EXPORTER_OTLP_HEADERS": f"api-key={KEY}",
        "OTEL_BSP_SCHEDULE_DELAY": "100",
        "ASSAY_LOG_LEVEL": "DEBUG",
        "ASSAY_LOG_FORMAT": "json",
    }
    with (
        databases.new("traces", template=template_database) as url,
        scratch_directory() as directory,
        running_stack(directory, database_url=url, redis_url=valkey.url(), environment=environment) as stack,
    ):
        job = submit(stack, traceparent=f"00-{TRACE}-{CALLER}-01", baggage=f"persona={PERSONA}")
        unsampled = submit(stack, traceparent=f"00-{'5' * 32}-{CALLER}-00")
        assert stack.ended(job)["status"] == stack.ended(unsampled)["status"] == "completed"
        ledger = stack.ledger(job)
        asked = {entry["request_id"] for entry in ledger}
        assert eventually(lambda: len(calls_of(collector)) == len(asked)), len(calls_of(collector))
        assert eventually(lambda: any(span.name == "run shard" for _, span in collector.received(TRACE)))
        log = (directory / "logs").glob("*.log")
        assert all(KEY not in file.read_text() for file in log)
    spans = collector.received(TRACE)
    (posted,) = [span for _, span in spans if span.kind == SERVER]
    shards = [span for _, span in spans if span.kind == CONSUMER]
    waits = [span for _, span in spans if span.name == "wait for a worker"]
    assert (posted.name, posted.parent_span_id.hex()) == ("POST /v1/jobs", CALLER)
    assert attributes(posted)["http.response.status_code"] == 202
    assert {span.parent_span_id for span in (*shards, *waits)} == {posted.span_id}
    assert {span.parent_span_id for span in calls_of(collector)} == {span.span_id for span in shards}
    assert {attributes(span)["assay.job.id"] for span in (*shards, *waits, *calls_of(collector))} == {job}
    told = [attributes(span) for span in calls_of(collector)]
    assert {call["assay.stage"] for call in told} == {"generation", "judging"}
    assert {call["gen_ai.operation.name"] for call in told} == {"chat"}
    assert {call["gen_ai.provider.name"] for call in told} == {"openai"}
    assert {call["gen_ai.request.model"] for call in told} == {"sim-faithful", "sim-judge"}
    assert all(call["gen_ai.usage.input_tokens"] > 0 for call in told)
    assert {(service, span.kind) for service, span in spans if span.kind in {SERVER, CLIENT}} == {
        ("assay-api", SERVER),
        ("assay-worker", CLIENT),
    }
    assert collector.keys == {KEY}
    assert collector.received("5" * 32) == []
    sent = b"".join(collector.bodies)
    texts = [str(entry["text"])[:30] for entry in ledger if entry["kind"] == "generation"]
    assert texts
    assert [text for text in (*texts, PERSONA, KEY) if text.encode() in sent] == []


def calls_of(collector: Collector) -> list[Span]:
    return [span for _, span in collector.received(TRACE) if span.kind == CLIENT]


def test_a_collector_that_is_away_costs_a_line_of_the_log_and_no_job(
    databases: Databases, template_database: str, valkey: EmbeddedValkey
) -> None:
    environment = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9",  # where nobody listens
        "OTEL_EXPORTER_OTLP_TIMEOUT": "1",
        "OTEL_BSP_SCHEDULE_DELAY": "100",
        "ASSAY_LOG_FORMAT": "json",
    }

    def lost(directory: Path) -> list[dict[str, Any]]:
        return [line for line in log_of(directory) if line.get("part") == "traces"]

    with (
        databases.new("traces", template=template_database) as url,
        scratch_directory() as directory,
        running_stack(directory, database_url=url, redis_url=valkey.url(), environment=environment) as stack,
    ):
        for _ in range(2):
            ended = stack.ended(submit(stack))
            assert ended["status"] == "completed"
        assert eventually(lambda: len(lost(directory)) == 2), log_of(
            directory
        )  # one of the API, one of the worker
        stack.ended(submit(stack))
        lines = lost(directory)
        assert len(lines) == 2
        assert all(line["state"].startswith("spans are lost") for line in lines)
        assert [line for line in log_of(directory) if "opentelemetry" in str(line.get("logger"))] == []
