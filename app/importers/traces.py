"""Calls of models in traces: OpenTelemetry's conventions for generative AI (OTLP in JSON: spans and log records), and Langfuse's exports."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from app.importers.calls import NO_CALL, call_texts
from app.importers.content import UNPACKED_BYTES, parse_json
from app.importers.messages import Message, read_messages, text_of
from app.importers.names import SPEAKERS
from app.importers.openinference import is_openinference, read_openinference
from app.importers.parquet import size_of
from app.importers.records import (
    Record,
    Refused,
    WrongRecordError,
    number_or_none,
    optional,
    text_or_none,
)

SPANS = ("resourceSpans", "scopeSpans", "spans")
LOGS = ("resourceLogs", "scopeLogs", "logRecords")
SIGNALS = (SPANS, LOGS)
MESSAGES = {f"gen_ai.{speaker}.message": speaker for speaker in ("system", "user", "assistant", "tool")}
CHOICE = "gen_ai.choice"
MOST_NESTED = 100
"""Lists and objects in each other, in a value of an attribute."""
_CAPITAL = re.compile("[A-Z]")
MOST_INDEXED = 1_000
"""Messages of one span, where each has attributes of its own."""
RECORD_BYTES = 1_000
"""What a log record takes beside its texts, about."""
PROMPTS = "text_completion"
"""The operation that takes several prompts at once, none of which has seen the others."""
CALLS = ("generation", "embedding")
LANGFUSE_MODELS = ("model", "providedModelName", "provided_model_name", "modelName")


def is_otlp(first: dict[str, Any]) -> bool:
    """Whether a record is a request of spans, or of log records, in OTLP's JSON encoding."""
    return any(isinstance(_named(first, names[0]), list) for names in SIGNALS)


class Calls:
    """The calls in requests of OTLP. Log records of one call may be in several requests, so in several lines."""

    def __init__(self) -> None:
        self._open: dict[Any, _Call] = {}
        self._size = 0

    def read_request(self, place: str, request: dict[str, Any]) -> Iterator[Record]:
        """The texts of each span, and of log records whose calls can't be kept open any longer."""
        for signal in SIGNALS:
            for path, record in _recorded(place, request, *signal):
                if isinstance(record, Refused):
                    yield record
                    continue
                of_span = record.get("traceId"), record.get("spanId")
                if signal is LOGS and all(isinstance(each, str) and each for each in of_span):
                    yield from self._add(of_span, path, record)
                else:
                    yield from _Call(path).take(record).read()

    def rest(self) -> Iterator[Record]:
        """The texts of the calls that are still open, once there are no more requests."""
        while self._open:
            yield from self._oldest()

    def _add(self, of_span: Any, path: str, record: dict[str, Any]) -> Iterator[Record]:
        call = self._open.setdefault(of_span, _Call(path)).take(record)
        size = size_of(record) + RECORD_BYTES
        call.size += size
        self._size += size
        while self._size > UNPACKED_BYTES:
            yield from self._oldest()

    def _oldest(self) -> Iterator[Record]:
        call = self._open.pop(next(iter(self._open)))
        self._size -= call.size
        return call.read()


def _recorded(
    place: str, request: dict[str, Any], resources: str, scopes: str, name: str
) -> Iterator[tuple[str, Any]]:
    """What a request has of a signal, each with its place; empty lists are left out in this encoding."""
    of_resources = _named(request, resources)
    for n, resource in enumerate(of_resources if isinstance(of_resources, list) else ()):
        at = f"{place}/{resources}/{n}"
        of_scopes = _named(resource, scopes)
        if not isinstance(of_scopes, list):
            yield at, Refused(at, f"has no {scopes}")
            continue
        for m, scope in enumerate(of_scopes):
            records = _named(scope, name)
            if not isinstance(records, list):
                yield at, Refused(f"{at}/{scopes}/{m}", f"has no {name}")
                continue
            for k, record in enumerate(records):
                path = f"{at}/{scopes}/{m}/{name}/{k}"
                yield path, record if isinstance(record, dict) else Refused(path, "must be an object")


def _named(value: Any, name: str) -> Any:
    """A member by its name in JSON, or by its name in the protocol."""
    found = optional(value, name)
    return optional(value, _CAPITAL.sub(lambda each: f"_{each[0].lower()}", name)) if found is None else found


class _Call:
    """A span, or the log records of a span.

    Args:
        place: Where it stands, or the first of them.

    Attributes:
        size: About how many bytes its log records take.
    """

    def __init__(self, place: str) -> None:
        self.place = place
        self.attributes: dict[str, Any] = {}
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.wrong: WrongRecordError | None = None
        self.size = 0

    def take(self, record: dict[str, Any]) -> "_Call":
        """Adds a span with its events, or a log record, which is one."""
        events = record.get("events")
        try:
            for each in (record, *(events if isinstance(events, list) else ())):
                if isinstance(each, dict):
                    self._add(each)
        except WrongRecordError as error:
            self.wrong = error
        return self

    def _add(self, holder: dict[str, Any]) -> None:
        own = _members(holder.get("attributes"))
        self.attributes |= own
        name = _named(holder, "eventName") or own.get("event.name") or holder.get("name")
        body = _plain(holder["body"]) if isinstance(holder.get("body"), dict) else None
        if isinstance(name, str):
            self.events.append((name, own | (body if isinstance(body, dict) else {})))

    def read(self) -> Iterator[Record]:
        """Its texts, or why it has none."""
        try:
            if self.wrong is not None:
                raise self.wrong
            yield from _read_span(self.place, self.attributes, self.events)
        except WrongRecordError as error:
            yield Refused(f"{self.place}{error.field}", error.reason)


def _members(listed: Any) -> dict[str, Any]:
    """Attributes, or the members of an object, by their keys."""
    found = {}
    for each in listed if isinstance(listed, list) else ():
        key, value = optional(each, "key"), optional(each, "value")
        if isinstance(key, str) and isinstance(value, dict):
            found[key] = _plain(value)
    return found


def _plain(value: dict[str, Any], depth: int = 0) -> Any:
    """A value without the names of its types.

    Raises:
        WrongRecordError: If it is nested too deeply.
    """
    if depth > MOST_NESTED:
        raise WrongRecordError("", "nested too deeply")
    listed, members = _named(value, "arrayValue"), _named(value, "kvlistValue")
    if isinstance(listed, dict):
        values = listed.get("values")
        found = values if isinstance(values, list) else []
        return [_plain(each, depth + 1) for each in found if isinstance(each, dict)]
    if isinstance(members, dict):
        values = members.get("values")
        return {
            each["key"]: _plain(each["value"], depth + 1)
            for each in (values if isinstance(values, list) else ())
            if isinstance(optional(each, "key"), str) and isinstance(optional(each, "value"), dict)
        }
    return next(iter(value.values()), None)


def _read_span(
    place: str, attributes: dict[str, Any], events: Sequence[tuple[str, dict[str, Any]]]
) -> Iterator[Record]:
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
    elif is_openinference(attributes):
        return read_openinference(place, attributes)
    elif any(key.startswith("gen_ai.") for key in (*attributes, *(name for name, _ in events))):
        asked, said = _by_the_conventions(attributes)
        if not said:
            asked, said = _by_events(events)
    else:
        raise WrongRecordError("", NO_CALL)
    separate = attributes.get("gen_ai.operation.name") == PROMPTS
    return call_texts(place, asked, said, model, {}, separate=separate)


def _by_the_conventions(attributes: dict[str, Any]) -> tuple[list[Message], list[Message]]:
    """What was asked and said: as lists of messages, or as before these, in all or with attributes for each message."""
    system = _messages(attributes.get("gen_ai.system_instructions"), "system")
    asked, said = (
        next((found for key in keys if (found := _messages(attributes.get(key), speaker))), [])
        for keys, speaker in (
            (("gen_ai.input.messages", "gen_ai.prompt"), "user"),
            (("gen_ai.output.messages", "gen_ai.completion"), "assistant"),
        )
    )
    return (
        [*system, *(asked or _indexed(attributes, "gen_ai.prompt", "user"))],
        said or _indexed(attributes, "gen_ai.completion", "assistant"),
    )


def _by_events(events: Sequence[tuple[str, dict[str, Any]]]) -> tuple[list[Message], list[Message]]:
    """What was asked and said, where each message is an event, as up to version 1.36 of the conventions."""
    asked: list[Message] = []
    said: list[Message] = []
    for name, fields in events:
        content = fields.get("gen_ai.event.content")
        found = fields if content is None else _object_of(content)
        if name == CHOICE:
            said += _messages(found.get("message", found), "assistant")
        elif name in MESSAGES:
            text = text_of(found.get("content"))
            asked.append(Message("", MESSAGES[name], text))
    return asked, said


def _object_of(content: Any) -> dict[str, Any]:
    """The object that a text of JSON is; an empty one if it is none."""
    try:
        found = parse_json(content) if isinstance(content, str) else content
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {}


def _indexed(attributes: dict[str, Any], prefix: str, speaker: str) -> list[Message]:
    """Messages with attributes for each, as OpenLLMetry has them; a prompt without roles has its text as the user's."""
    found = []
    for n in range(MOST_INDEXED):
        role = attributes.get(f"{prefix}.{n}.role")
        content = attributes.get(f"{prefix}.{n}.content", attributes.get(f"{prefix}.{n}.user"))
        if role is None and content is None:
            break
        text = text_of(_parts_of(content))
        found.append(Message("", SPEAKERS.get(role, speaker) if isinstance(role, str) else speaker, text))
    return found


def _parts_of(content: Any) -> Any:
    """The parts of a message that are written as a text of JSON; any other content as it is."""
    try:
        parts = parse_json(content) if isinstance(content, str) and content.startswith("[") else None
    except ValueError:
        return content
    are_parts = isinstance(parts, list) and all(isinstance(optional(each, "type"), str) for each in parts)
    return parts if parts and are_parts else content


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
        value = [optional(each, "message") for each in value["choices"]]
    listed = value if isinstance(value, list) else [value]
    if any(isinstance(each, dict) and "role" in each for each in listed):
        return read_messages(listed, "")
    text = text_of(listed)
    return [] if text is None else [Message("", speaker, text)]


def is_langfuse(first: dict[str, Any]) -> bool:
    """Whether a record is an observation or a trace of Langfuse, with or without its observations, or a page of its API."""
    listed = first.get("data")
    if isinstance(listed, list) and listed:
        return isinstance(listed[0], dict) and "data" not in listed[0] and is_langfuse(listed[0])
    if isinstance(first.get("observations"), list) and isinstance(first.get("trace"), dict):
        return True
    ids = {"traceId", "trace_id", "observations", "parentObservationId", "parent_observation_id"}
    said = {"input", "output"} <= first.keys()
    return said and (not ids.isdisjoint(first) or _is_trace(first))


def _is_trace(record: dict[str, Any]) -> bool:
    """Whether a record is a trace of the table that Langfuse exports, which has its own input and output."""
    return "timestamp" in record and not {"sessionId", "session_id"}.isdisjoint(record)


def read_langfuse(place: str, record: dict[str, Any]) -> Iterator[Record]:
    """The text of an observation, or of each observation of a trace or page."""
    if isinstance(record.get("data"), list):
        for n, each in enumerate(record["data"]):
            yield from _parts(f"{place}/data/{n}", each)
        return
    yield from _parts(place, record)


def _parts(place: str, record: Any) -> Iterator[Record]:
    if not isinstance(record, dict):
        yield Refused(place, "must be an object")
        return
    listed = record.get("observations")
    scores = _scores(record.get("scores") or optional(record, "trace", "scores"))
    of_trace = isinstance(listed, list) and all(isinstance(each, dict) for each in listed)
    parts = enumerate(listed) if isinstance(listed, list) and of_trace else ()
    named = [(f"{place}/observations/{n}", each) for n, each in parts] if of_trace else [(place, record)]
    for at, each in named:
        try:
            yield from _read_observation(at, each, scores if of_trace else {})
        except WrongRecordError as error:
            yield Refused(f"{at}{error.field}", error.reason)
    if not named:
        yield Refused(f"{place}/observations", "the trace has no observations")


def _read_observation(place: str, record: dict[str, Any], scores: dict[str, float]) -> Iterator[Record]:
    if str(record.get("type", "")).casefold() not in CALLS and not (
        "type" not in record and _is_trace(record)
    ):
        raise WrongRecordError("/type", NO_CALL)
    model = next((name for key in LANGFUSE_MODELS if (name := text_or_none(record.get(key)))), None)
    asked, said = _messages(record.get("input"), "user"), _messages(record.get("output"), "assistant")
    return call_texts(place, asked, said, model, scores)


def _scores(found: Any) -> dict[str, float]:
    scores = {}
    for each in found if isinstance(found, list) else ():
        name, value = text_or_none(optional(each, "name")), number_or_none(optional(each, "value"))
        if name is not None and value is not None:
            scores[name] = value
    return scores
