"""What is said of a body's wrong fields, in words that do not take a programmer of Python."""

import json
from typing import Any

import pytest
from pydantic import ValidationError
from starlette.requests import Request

from app.api.http.pages import field_name
from app.api.http.problems import problem_response
from app.domain.jobs.request import JobIn
from app.domain.validation import field_error

BODY = {
    "personas": ["E-low"],
    "tasks": ["essay"],
    "models": ["acme/acme-1"],
    "judges": ["acme/acme-1"],
}


def messages(body: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(ValidationError) as caught:
        JobIn.model_validate(BODY | body)
    found = [
        field_error({**each, "loc": ("body", *each["loc"])}, BODY | body, JobIn)
        for each in caught.value.errors()
    ]
    return {error.pointer: error.message for error in found}


class TestUnknownFields:
    @pytest.mark.parametrize(
        ("body", "pointer", "message"),
        [
            ({"persona": ["E-low"]}, "/persona", "unknown field; did you mean 'personas'?"),
            ({"models": [{"model": "a/b", "temprature": 1}]}, "/models/0/temprature", "unknown field; did you mean 'temperature'?"),
            ({"judging": {"sentence_per_call": 3}}, "/judging/sentence_per_call", "unknown field; did you mean 'sentences_per_call'?"),
            ({"colour": "red"}, "/colour", "unknown field"),
            ({"personas" * 10: 1}, "/" + "personas" * 10, "unknown field"),
        ],
    )  # fmt: skip
    def test_name_the_nearest_known_one_of_their_own_object(
        self, body: dict[str, Any], pointer: str, message: str
    ) -> None:
        assert messages(body) == {pointer: message}


class TestTypes:
    @pytest.mark.parametrize(
        ("body", "pointer", "message"),
        [
            ({"tasks": "essay"}, "/tasks", "must be a list"),
            ({"budget": 25}, "/budget", "must be an object"),
            ({"iterations": "2"}, "/iterations", "must be a whole number"),
            ({"seed": -1}, "/seed", "must be greater than or equal to 0"),
            ({"models": [{}]}, "/models/0/model", "is required"),
            ({"tasks": []}, "/tasks", "must have at least 1 item"),
            ({"tasks": ["essay"] * 200}, "/tasks", "must have at most 50 items"),
            ({"metadata": {str(n): "" for n in range(40)}}, "/metadata", "must have at most 16 items"),
            ({"personas": ["E-low"] * 2000}, "/personas", "must have at most 1000 items"),
            ({"name": "n" * 301}, "/name", "must have at most 300 characters"),
            ({"name": ""}, "/name", "must have at least 1 character"),
            ({"responses": {}}, "/responses", "must be a list of responses, or an object with one of: qa, job, upload"),
            ({"responses": {"job": "job_1", "upload": "upl_1"}}, "/responses", "must be a list of responses, or an object with one of: qa, job, upload"),
            ({"responses": {"job": "job_1", "filtr": {}}}, "/responses/filtr", "unknown field; did you mean 'filter'?"),
            ({"responses": {"qa": {"bot": {"c": {"t": [["q" * 20_001, "a"]]}}}}}, "/responses/qa/bot/c/t/0/0", "must have at most 20000 characters"),
        ],
    )  # fmt: skip
    def test_are_named_as_json_has_them(self, body: dict[str, Any], pointer: str, message: str) -> None:
        assert messages(body) == {pointer: message}


@pytest.mark.parametrize(
    ("pointer", "name"),
    [
        ("/models", "Models"),
        ("/personas/2/traits/E", "Personas 3, traits, E"),
        ("/budget/max_usd", "Budget, max usd"),
        ("/metadata/a~1b", "Metadata, a/b"),
        ("", "Request"),
    ],
)
def test_a_page_names_fields_without_pointers(pointer: str, name: str) -> None:
    assert field_name(pointer) == name


@pytest.mark.parametrize(("status", "title"), [(404, "Not Found"), (460, "Checksum Mismatch")])
def test_a_title_is_the_statuss_phrase(status: int, title: str) -> None:
    request = Request({"type": "http", "path": "/v1/jobs", "headers": []})
    problem = json.loads(bytes(problem_response(request, status, "wrong", "Something is wrong.").body))
    assert (problem["title"], problem["status"]) == (title, status)
