"""Phoenix's spans by OpenInference's conventions: rows of its data frames, its JSON, and attributes in OTLP."""

import re
from collections.abc import Iterator
from typing import Any

from app.importers.calls import NO_CALL, call_texts, reply_messages, request_messages
from app.importers.messages import Message
from app.importers.records import Record, WrongRecordError, optional, text_or_none

PREFIX = "llm."
KIND = "openinference.span.kind"
INPUT, OUTPUT = "llm.input_messages", "llm.output_messages"
_INDEXED = re.compile(r"(\d{1,4})\.message\.(?:role|content|contents\.(\d{1,4})\.message_content\.text)")


def is_openinference(attributes: dict[str, Any]) -> bool:
    """Whether flat attributes are of a span by these conventions."""
    return KIND in attributes or any(key.startswith((f"{INPUT}.", f"{OUTPUT}.")) for key in attributes)


def is_span(first: dict[str, Any]) -> bool:
    """Whether a record is a span of Phoenix: a row of a data frame, or an object of its API."""
    listed = first.get("data")
    if isinstance(listed, list) and listed and isinstance(listed[0], dict) and "data" not in listed[0]:
        return is_span(listed[0])
    return ("context.trace_id" in first or isinstance(first.get("context"), dict)) and "span_kind" in first


def read_spans(place: str, record: dict[str, Any]) -> Iterator[Record]:
    """The texts of a span, or of each span of a page."""
    if isinstance(record.get("data"), list):
        for n, each in enumerate(record["data"]):
            if not isinstance(each, dict):
                raise WrongRecordError(f"/data/{n}", "must be an object")
            yield from _read_span(f"{place}/data/{n}", each)
        return
    yield from _read_span(place, record)


def _read_span(place: str, record: dict[str, Any]) -> Iterator[Record]:
    own = record.get("attributes")
    flat = own if isinstance(own, dict) else record
    attributes = {key.removeprefix("attributes."): value for key, value in flat.items() if value is not None}
    attributes.setdefault(KIND, record.get("span_kind"))
    return read_openinference(place, attributes)


def read_openinference(place: str, attributes: dict[str, Any]) -> Iterator[Record]:
    """The texts of a span's attributes.

    Raises:
        WrongRecordError: If it is no call of a model, or has no text.
    """
    nested = optional(attributes, "llm")
    if str(attributes.get(KIND, "LLM")).upper() != "LLM":
        raise WrongRecordError(f"/{KIND}", NO_CALL)
    asked = _messages(attributes, INPUT) or request_messages(
        optional(nested, "input_messages")
        or attributes.get("input.value")
        or optional(attributes, "input", "value")
    )
    said = _messages(attributes, OUTPUT) or reply_messages(
        optional(nested, "output_messages")
        or attributes.get("output.value")
        or optional(attributes, "output", "value")
    )
    model = text_or_none(attributes.get("llm.model_name")) or text_or_none(optional(nested, "model_name"))
    return call_texts(place, asked, said, model)


def _messages(attributes: dict[str, Any], name: str) -> list[Message]:
    """Messages under a name: a list, or an attribute for each of their members."""
    if name in attributes:
        listed = attributes[name]
        return request_messages(listed) if name == INPUT else reply_messages(listed)
    found: dict[int, dict[str, str]] = {}
    for key, value in attributes.items():
        indexed = _INDEXED.fullmatch(key.removeprefix(f"{name}.")) if key.startswith(f"{name}.") else None
        if indexed is None or not isinstance(value, str):
            continue
        message = found.setdefault(int(indexed[1]), {})
        if key.endswith(".role"):
            message["role"] = value
        else:
            message["content"] = "\n".join(filter(None, (message.get("content"), value)))
    ordered = [found[n] for n in sorted(found)]
    return request_messages(ordered) if name == INPUT else reply_messages(ordered)
