"""The client held to the OpenAPI document, so that neither can drift from the other."""

import inspect
import json
import typing
from collections.abc import Callable
from typing import Any

import pytest
from httpx2 import ServerSentEvent

from generators.client_types import DOCUMENT
from persona_assay import AssayClient, administration, operations
from persona_assay.calls import Answer, Call
from persona_assay.exchange import Listener, Watch
from tests.api.service import Json


def _after_the_first() -> Call[Any]:
    watch = Watch("job_1", None, lambda: 0.0)
    watch.take(Answer("", 200, {"ETag": '"a"'}, b'{"status": "running"}'))
    return watch.call()


def _resumed() -> Call[Any]:
    listener = Listener("job_1")
    listener.take(ServerSentEvent(event="job", data='{"status": "running"}', id="a"))
    return listener.call()


FOLLOWED: dict[str, Callable[[], Call[Any]]] = {"follow": _after_the_first, "events": _resumed}
"""What the clients' own methods ask for."""

VALUES: dict[str, Any] = {
    "job": {"personas": ["p"], "tasks": ["t"]},
    "limit": 3,
    "metadata": {"key": "value"},
    "out_of_character": True,
    "judges_disagree": True,
    "people_against_judges": True,
    "min_gap": 1.5,
    "usd": 1.0,
    "calls": 1,
    "tokens": 1,
    "thresholds": ["acc>=1"],
    "a": {"baseline": "x"},
    "b": {"baseline": "y"},
    "personas": ["p"],
    "questions": {},
    "count": 1,
    "annotations": [],
    "flag": {},
    "flagged": True,
    "wanted": {},
    "change": {},
    "changes": {"iterations": 2},
    "connection": {},
    "events": ["job.completed"],
    "form": "csv",
    "bundle": b"PK",
    "raw_replies": False,
    "level": "cells",
    "size": 1,
    "offset": 0,
    "part": b"x",
    "overlap_seconds": 1,
}
"""Arguments that are not simply text."""


@pytest.fixture(scope="module")
def document() -> Json:
    found: Json = json.loads(DOCUMENT.read_text("utf-8"))
    return found


def builders() -> dict[str, Callable[..., Call[Any]]]:
    """What makes a call, by the method's name."""
    return {
        name: made
        for module in (operations, administration)
        for name, made in inspect.getmembers(module, inspect.isfunction)
        if made.__module__ == module.__name__ and not name.startswith("_")
    }


def whole_call(build: Callable[..., Call[Any]]) -> Call[Any]:
    """A call with everything in it that it can have."""
    names = inspect.signature(build).parameters
    return build(**{name: VALUES.get(name, "x") for name in names})


def all_calls() -> list[Call[Any]]:
    """Every call that the client can make."""
    return [whole_call(build) for build in builders().values()] + [made() for made in FOLLOWED.values()]


def operations_of(document: Json) -> dict[tuple[str, str], Json]:
    """What the document says of each operation, by method and path."""
    return {
        (method, path): described
        for path, item in document["paths"].items()
        for method, described in item.items()
        if path.startswith("/v1/")
    }


def operation_of(document: Json, call: Call[Any]) -> Json:
    """What the document says of a call."""
    return operations_of(document)[call.method.lower(), call.route]


class TestOperations:
    def test_there_is_a_method_for_every_operation(self, document: Json) -> None:
        assert {(call.method.lower(), call.route) for call in all_calls()} == operations_of(document).keys()
        assert {*builders(), *FOLLOWED} <= set(dir(AssayClient))

    @pytest.mark.parametrize("name", builders())
    def test_what_is_sent_is_what_the_document_knows(self, document: Json, name: str) -> None:
        call = whole_call(builders()[name])
        described = operation_of(document, call)
        known = {(each["in"], each["name"]) for each in described.get("parameters", ())}
        query = {("query", key) for key in call.query if not key.startswith("metadata[")}
        path = {("path", key) for key in call.names}
        headers = {("header", key) for key in call.headers if key != "Content-Type"}
        assert query | path | headers <= known
        assert (call.body is not None or call.content is not None) == ("requestBody" in described)

    def test_every_parameter_that_the_document_knows_can_be_given(self, document: Json) -> None:
        given: dict[tuple[str, str], set[str]] = {}
        for call in all_calls():
            names = {name.lower() for name in (*call.query, *call.names, *call.headers)}
            given.setdefault((call.method.lower(), call.route), set()).update(names)
        missing = {
            operation: {each["name"].lower() for each in described.get("parameters", ())} - given[operation]
            for operation, described in operations_of(document).items()
        }
        assert {operation: names for operation, names in missing.items() if names} == {}

    @pytest.mark.parametrize("name", builders())
    def test_what_is_answered_is_what_the_type_says(self, document: Json, name: str) -> None:
        build = builders()[name]
        (answer,) = typing.get_args(typing.get_type_hints(build)["return"])
        responses = operation_of(document, whole_call(build))["responses"]
        declared = [
            content.get("schema", {})
            for status, response in responses.items()
            if status.startswith("2")
            for content in response.get("content", {}).values()
        ]
        schemas = [
            choice.get("$ref", "").rpartition("/")[2]
            for schema in declared
            for choice in schema.get("anyOf", [schema])
        ]
        if answer is bytes:
            assert not any(schemas) or "format" in whole_call(build).query
        elif answer is type(None):
            assert schemas == []
        else:
            assert answer.__name__ in schemas

    def test_a_report_has_the_formats_and_levels_that_the_service_offers(self, document: Json) -> None:
        described = document["paths"]["/v1/jobs/{job_id}/report"]["get"]["parameters"]
        offered = {each["name"]: each["schema"].get("enum") for each in described}
        assert offered["format"] == list(typing.get_args(operations.ReportFormat))
        assert offered["level"] == list(typing.get_args(operations.ReportLevel))
