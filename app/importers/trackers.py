"""Calls of models that trackers recorded: those of `trackers.yaml`, and MLflow's traces."""

from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Any, NamedTuple

import yaml

from app.importers.calls import NO_CALL, call_texts, reply_messages, request_messages
from app.importers.content import parse_json
from app.importers.records import Record, Refused, WrongRecordError, optional, text_or_none

PAGES = ("data", "runs", "calls", "results", "events", "items", "spans", "traces")
"""Members of a page that list its records."""
MLFLOW_CALLS = ("CHAT_MODEL", "LLM")
EXAMPLE = "is an example of a data set: its outputs are what was expected, and no model's; export the runs of an experiment"


class Tracker(NamedTuple):
    """A tracker whose records are read.

    Attributes:
        name: Its name.
        has: Members by which a record is recognised.
        type: Path of the member that says what was recorded; of trackers that record more than calls of models.
        calls: Its values for such calls.
        request: Paths of what was asked.
        reply: Paths of what was answered.
        model: Paths of the model's name.
    """

    name: str
    has: list[str]
    request: list[str]
    reply: list[str]
    model: list[str]
    type: Sequence[str] = ()
    calls: Sequence[str] = ()

    def recognises(self, first: dict[str, Any]) -> bool:
        """Whether a record, or the first one of a page, is of this tracker."""
        records = _page(first)
        return set(self.has) <= (records[0] if records else first).keys()

    def read(self, place: str, record: dict[str, Any]) -> Iterator[Record]:
        """The texts of a record, or of each record of a page; those of calls in it, too."""
        name = _page_name(record)
        if name is not None:
            for n, each in enumerate(record[name]):
                yield from self._read_safely(f"{place}/{name}/{n}", each)
            return
        yield from self._read(place, record)

    def _read_safely(self, place: str, record: Any) -> Iterator[Record]:
        if not isinstance(record, dict):
            yield Refused(place, "must be an object")
            return
        try:
            yield from self._read(place, record)
        except WrongRecordError as error:
            yield Refused(f"{place}{error.field}", error.reason)

    def _read(self, place: str, record: dict[str, Any]) -> Iterator[Record]:
        within = record.get("child_runs")
        inner = list(enumerate(within)) if isinstance(within, list) else []
        kind = _at(record, self.type)
        if self.calls and str(kind).casefold() not in self.calls:
            if not inner:
                raise WrongRecordError("", NO_CALL)
        else:
            request, reply = _at(record, self.request), _at(record, self.reply)
            if reply is None and text_or_none(record.get("error")):
                raise WrongRecordError("/error", "the call failed")
            model = text_or_none(_at(record, self.model))
            yield from call_texts(place, request_messages(request), reply_messages(reply), model)
        for n, each in inner:
            yield from self._read_safely(f"{place}/child_runs/{n}", each)


def _page_name(record: dict[str, Any]) -> str | None:
    """The member that lists a page's records; only where the object is nothing but a page."""
    names = [name for name in PAGES if isinstance(record.get(name), list) and record[name]]
    return next((name for name in names if isinstance(record[name][0], dict)), None)


def _page(record: dict[str, Any]) -> list[dict[str, Any]]:
    name = _page_name(record)
    return [] if name is None else record[name]


def _at(record: dict[str, Any], paths: Sequence[str]) -> Any:
    """What stands at the first of some paths where something is; tables have such objects as JSON."""
    for path in paths:
        value: Any = record
        for name in path.split("."):
            value = optional(_unpacked(value), name)
        if value is not None and value != "":
            return value
    return None


def _unpacked(value: Any) -> Any:
    try:
        return parse_json(value) if isinstance(value, str) and value.startswith(("{", "[", '"')) else value
    except ValueError:
        return value


TRACKERS = tuple(
    Tracker(**{name: value for name, value in each.items() if name != "source"})
    for each in yaml.safe_load((files(__package__) / "trackers.yaml").read_text("utf-8"))
)


def is_example(first: dict[str, Any]) -> bool:
    """Whether a record is an example of a data set of LangSmith."""
    return {"inputs", "outputs"} <= first.keys() and not {"dataset_id", "metadata", "split"}.isdisjoint(first)


def read_example(place: str, _record: dict[str, Any]) -> Iterator[Record]:
    """Refuse an example."""
    yield Refused(place, EXAMPLE)


def is_mlflow(first: dict[str, Any]) -> bool:
    """Whether a record is a trace of MLflow, a row of a table of traces, or a page."""
    if _page_name(first) == "traces":
        first = first["traces"][0]
    whole = isinstance(first.get("info"), dict) and isinstance(optional(first, "data", "spans"), list)
    return (
        whole
        or {"spans", "trace_metadata"} <= first.keys()
        or {"spans", "request", "response"} <= first.keys()
    )


def read_mlflow(place: str, record: dict[str, Any]) -> Iterator[Record]:
    """The texts of a trace's calls of models; of a trace without such, its own answer."""
    if "info" not in record and "trace_id" not in record and _page_name(record) == "traces":
        for n, each in enumerate(record["traces"]):
            if isinstance(each, dict):
                yield from read_mlflow(f"{place}/traces/{n}", each)
            else:
                yield Refused(f"{place}/traces/{n}", "must be an object")
        return
    whole = _unpacked(record.get("trace"))  # of a table's row, whose other columns are not always JSON
    record = whole if isinstance(whole, dict) else record
    at, spans = f"{place}/data/spans", optional(record, "data", "spans")
    if spans is None:
        at, spans = f"{place}/spans", _unpacked(record.get("spans"))
    found = False
    for n, span in enumerate(spans if isinstance(spans, list) else ()):
        attributes = optional(_unpacked(span), "attributes")
        if _unpacked(optional(attributes, "mlflow.spanType")) not in MLFLOW_CALLS:
            continue
        found = True
        try:
            yield from _mlflow_call(f"{at}/{n}", attributes)
        except WrongRecordError as error:
            yield Refused(f"{at}/{n}{error.field}", error.reason)
    if not found:
        info = record.get("info", record)
        request = record.get("request") or optional(info, "trace_metadata", "mlflow.traceInputs")
        reply = record.get("response") or optional(info, "trace_metadata", "mlflow.traceOutputs")
        yield from call_texts(place, request_messages(request), reply_messages(reply), None)


def _mlflow_call(place: str, attributes: dict[str, Any]) -> Iterator[Record]:
    request = _unpacked(attributes.get("mlflow.spanInputs"))
    reply = _unpacked(attributes.get("mlflow.spanOutputs"))
    names = (
        _unpacked(attributes.get("mlflow.llm.model")),
        optional(request, "model"),
        optional(reply, "model"),
    )
    model = next((name for each in names if (name := text_or_none(each))), None)
    return call_texts(place, request_messages(request), reply_messages(reply), model)
