"""Traces as OpenTelemetry's and Langfuse's SDKs make them, in OTLP's JSON encoding; run by the tools' own Python."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

from google.protobuf.json_format import MessageToJson
from langfuse import Langfuse
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

SYSTEM = "You are an extraverted person."
ASKED = "How was your weekend?"
SAID = "I love parties. I talk to everybody."


def by_the_conventions(tracer: trace.Tracer) -> None:
    def message(role: str, text: str) -> dict[str, object]:
        return {"role": role, "parts": [{"type": "text", "content": text}]}

    with tracer.start_as_current_span("chat gpt-5.6-luna") as span:
        span.set_attribute("gen_ai.operation.name", "chat")
        span.set_attribute("gen_ai.request.model", "gpt-5.6-luna")
        instructions = [{"type": "text", "content": SYSTEM}]
        span.set_attribute("gen_ai.system_instructions", json.dumps(instructions))
        span.set_attribute("gen_ai.input.messages", json.dumps([message("user", ASKED)]))
        span.set_attribute(
            "gen_ai.output.messages", json.dumps([message("assistant", SAID) | {"finish_reason": "stop"}])
        )
    with tracer.start_as_current_span("GET /") as span:
        span.set_attribute("http.request.method", "GET")


def by_events(tracer: trace.Tracer) -> None:
    """As up to version 1.36 of the conventions; an event's attribute holds no object."""
    with tracer.start_as_current_span("chat gpt-5.6-luna") as span:
        span.set_attribute("gen_ai.request.model", "gpt-5.6-luna")
        span.add_event("gen_ai.system.message", {"content": SYSTEM})
        span.add_event("gen_ai.user.message", {"content": ASKED})
        message = {"role": "assistant", "content": SAID}
        span.add_event("gen_ai.choice", {"index": 0, "message": json.dumps(message)})


def by_langfuse(provider: TracerProvider) -> None:
    client = Langfuse(
        public_key="pk-lf-1", secret_key="sk-lf-1", base_url="http://127.0.0.1:9", tracer_provider=provider
    )
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": ASKED}]
    with client.start_as_current_observation(
        as_type="generation", name="answer", model="gpt-5.6-luna", input=messages
    ) as observation:
        observation.update(output={"role": "assistant", "content": SAID})


def written(add: Callable[[TracerProvider], None]) -> str:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    add(provider)
    return str(MessageToJson(encode_spans(exporter.get_finished_spans())))


def main(directory: Path) -> None:
    spans = written(lambda provider: by_the_conventions(provider.get_tracer("bot")))
    (directory / "opentelemetry.json").write_text(spans)
    events = written(lambda provider: by_events(provider.get_tracer("bot")))
    (directory / "events.json").write_text(events)
    (directory / "langfuse.json").write_text(written(by_langfuse))


main(Path(sys.argv[1]))
