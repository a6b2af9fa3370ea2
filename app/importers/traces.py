"""Calls of models in traces: OpenTelemetry's conventions for generative AI (OTLP in JSON), and Langfuse's exports."""

from collections.abc import Iterator
from typing import Any

from app.importers.content import parse_json
from app.importers.messages import SPEAKERS, Message, last_question, persona_of, read_messages, text_of
from app.importers.records import (
    Record,
    Refused,
    Said,
    WrongRecordError,
    member,
    number_or_none,
    optional,
    text_or_none,
)

MOST_INDEXED = 1_000
"""Messages of one span, where each has attributes of its own."""
CALLS = ("generation", "embedding")
LANGFUSE_MODELS = ("model", "providedModelName", "provided_model_name", "modelName")
NO_CALL = "is no call of a model"
NO_CONTENT = "the texts were not recorded"


def is_otlp(first: dict[str, Any]) -> bool:
    """Whether a record is a request of spans in OTLP's JSON encoding."""
    return isinstance(first.get("resourceSpans"), list) or isinstance(first.get("resource_spans"), list)


def read_otlp(place: str, request: dict[str, Any]) -> Iterator[Record]:
    """The text of each span; of one that is no call of a model, that it is none."""
    for path, span in _spans(place, request):
        try:
            yield _read_span(path, _attributes(span))
        except WrongRecordError as error:
            yield Refused(f"{path}{error.field}", error.reason)


def _spans(place: str, request: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    name = "resourceSpans" if "resourceSpans" in request else "resource_spans"
    for n, resource in enumerate(member(request, name, list)):
        scopes = optional(resource, "scopeSpans") or optional(resource, "scope_spans")
        if not isinstance(scopes, list):
            raise WrongRecordError(f"/{name}/{n}", "has no scopeSpans")
        for m, scope in enumerate(scopes):
            spans = optional(scope, "spans")
            if not isinstance(spans, list):
                raise WrongRecordError(f"/{name}/{n}/scopeSpans/{m}", "has no spans")
            yield from (
                (f"{place}/{name}/{n}/scopeSpans/{m}/spans/{k}", span) for k, span in enumerate(spans)
            )


def _attributes(span: Any) -> dict[str, Any]:
    """The attributes of a span and of its events."""
    found: dict[str, Any] = {}
    events = optional(span, "events")
    for holder in (span, *(events if isinstance(events, list) else ())):
        listed = optional(holder, "attributes")
        for each in listed if isinstance(listed, list) else ():
            key, value = optional(each, "key"), optional(each, "value")
            if isinstance(key, str) and isinstance(value, dict):
                found[key] = next(iter(value.values()), None)
    return found


def _read_span(place: str, attributes: dict[str, Any]) -> Record:
    model = next(
        (
            name
            for key in ("gen_ai.request.model", "gen_ai.response.model", "langfuse.observation.model.name")
            if (name := text_or_none(attributes.get(key)))
        ),
        None,
    )
    kind = attributes.get("langfuse.observation.type")
    if "langfuse.observation.output" in attributes and kind in CALLS:
        asked = _messages(attributes.get("langfuse.observation.input"), "user")
        said = _messages(attributes.get("langfuse.observation.output"), "assistant")
    elif any(key.startswith("gen_ai.") for key in attributes):
        asked, said = _by_the_conventions(attributes)
    else:
        raise WrongRecordError("", NO_CALL)
    return _said(place, asked, said, model, {})


def _by_the_conventions(attributes: dict[str, Any]) -> tuple[list[Message], list[Message]]:
    """What was asked and said: as lists of messages, or with attributes for each message as before these."""
    system = _messages(attributes.get("gen_ai.system_instructions"), "system")
    asked = _messages(attributes.get("gen_ai.input.messages"), "user")
    said = _messages(attributes.get("gen_ai.output.messages"), "assistant")
    return (
        [*system, *(asked or _indexed(attributes, "gen_ai.prompt", "user"))],
        said or _indexed(attributes, "gen_ai.completion", "assistant"),
    )


def _indexed(attributes: dict[str, Any], prefix: str, speaker: str) -> list[Message]:
    found = []
    for n in range(MOST_INDEXED):
        content = text_or_none(attributes.get(f"{prefix}.{n}.content"))
        if f"{prefix}.{n}.role" not in attributes and content is None:
            break
        role = attributes.get(f"{prefix}.{n}.role")
        found.append(Message("", SPEAKERS.get(role, speaker) if isinstance(role, str) else speaker, content))
    return found


def _messages(value: Any, speaker: str) -> list[Message]:
    """The messages of a value: a list, one, a text, or any of these as JSON; without a role, the speaker's."""
    if isinstance(value, str):
        try:
            value = parse_json(value)
        except ValueError:
            return [Message("", speaker, text_or_none(value))]
    if isinstance(value, dict) and isinstance(value.get("messages"), list):
        value = value["messages"]
    if isinstance(value, dict) and isinstance(value.get("choices"), list):
        value = [optional(each, "message") for each in value["choices"][:1]]
    listed = value if isinstance(value, list) else [value]
    if any(isinstance(each, dict) and "role" in each for each in listed):
        return read_messages(listed, "")
    text = text_of(listed)
    return [] if text is None else [Message("", speaker, text)]


def _said(
    place: str, asked: list[Message], said: list[Message], model: str | None, scores: dict[str, float]
) -> Record:
    text = next((each.text for each in said if each.speaker == "assistant" and each.text), None)
    if text is None:
        raise WrongRecordError("", NO_CONTENT)
    return Said(place, text, persona_of(asked), last_question(asked), model, scores=scores)


def is_langfuse(first: dict[str, Any]) -> bool:
    """Whether a record is an observation or a trace of Langfuse."""
    ids = {"traceId", "trace_id", "observations", "parentObservationId", "parent_observation_id"}
    return "input" in first and "output" in first and not ids.isdisjoint(first)


def read_langfuse(place: str, record: dict[str, Any]) -> Iterator[Record]:
    """The text of an observation, or of each observation of a trace."""
    observations = record.get("observations")
    if not isinstance(observations, list) or not all(isinstance(each, dict) for each in observations):
        yield _read_observation(place, record, {})
        return
    scores = _scores(record.get("scores"))
    for n, each in enumerate(observations):
        at = f"{place}/observations/{n}"
        try:
            yield _read_observation(at, each, scores)
        except WrongRecordError as error:
            yield Refused(f"{at}{error.field}", error.reason)
    if not observations:
        raise WrongRecordError("/observations", "the trace has no observations")


def _read_observation(place: str, record: dict[str, Any], scores: dict[str, float]) -> Record:
    if str(record.get("type", "")).casefold() not in CALLS:
        raise WrongRecordError("/type", NO_CALL)
    model = next((name for key in LANGFUSE_MODELS if (name := text_or_none(record.get(key)))), None)
    asked, said = _messages(record.get("input"), "user"), _messages(record.get("output"), "assistant")
    return _said(place, asked, said, model, scores)


def _scores(found: Any) -> dict[str, float]:
    scores = {}
    for each in found if isinstance(found, list) else ():
        name, value = text_or_none(optional(each, "name")), number_or_none(optional(each, "value"))
        if name is not None and value is not None:
            scores[name] = value
    return scores
