"""How much is made of a wrong body."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from app.domain.jobs.request import JobIn
from app.domain.sets.contract import QuestionSetIn
from tests.api.service import job_body

FEW = 2_500
"""Errors that take some milliseconds; a body of 8 MB could have two million."""
TEXT = {"persona": "E-low", "task": "essay", "text": "No."}


def errors_of(**changes: Any) -> list[tuple[tuple[int | str, ...], str]]:
    """Where a job with these fields is wrong, and how."""
    with pytest.raises(ValidationError) as caught:
        JobIn.model_validate(job_body(models=None) | changes)
    return [(each["loc"], each["msg"]) for each in caught.value.errors()]


class TestExcess:
    @pytest.mark.parametrize(
        "changes",
        [
            {"responses": [1] * 100_000},
            {"responses": [{f"x{n}": 1 for n in range(200)}] * 1_000},
            {"questions": {f"p{n}": {"expected_action": [1] * 1000} for n in range(200)}},
            {"questions": {"p": {f"t{n}": 1 for n in range(20_000)}}},
            {"environments": {f"p{n}": [1] * 500 for n in range(200)}},
            {"environments": {f"p{n}": 1 for n in range(10_000)}},
            {"dimensions": [{"questions": [1] * 200, "levels": [1] * 500}] * 50},
            {"personas": [{"traits": {str(n): n for n in range(500)}}] * 1000},
            {"models": [1] * 100_000},
            {"models": [{"stop": [1] * 10_000}] * 50},
            {"metadata": {str(n): n for n in range(20_000)}},
            {"thresholds": [1] * 100_000},
            {str(n): n for n in range(20_000)},
        ],
        ids=lambda changes: f"{next(iter(changes))} {json.dumps(changes)[:40]}",
    )
    def test_a_body_that_is_wrong_all_over_has_few_errors(self, changes: dict[str, Any]) -> None:
        assert 0 < len(errors_of(**changes)) < FEW

    def test_too_long_lists_and_objects_are_told_as_such(self) -> None:
        found = errors_of(
            models=["acme/acme-1"] * 51,
            metadata={str(n): "" for n in range(60)},
            responses=[TEXT] * 200_001,
            questions={str(n): {} for n in range(10_001)},
        )
        assert [where[0] for where, _ in found] == ["models", "responses", "questions", "metadata"]
        assert all(
            f"should have at most {most}" in said
            for (_, said), most in zip(found, (50, 200000, 10000, 16), strict=True)
        )

    def test_the_first_unknown_fields_of_many_are_told(self) -> None:
        found = errors_of(**{f"x{n}": n for n in range(1000)})
        assert [where for where, _ in found] == [(f"x{n}",) for n in range(20)]

    def test_known_fields_after_many_unknown_ones_are_seen(self) -> None:
        found = errors_of(**{f"x{n}": n for n in range(1000)}, iterations="many")
        assert ("iterations",) in [where for where, _ in found]


class TestParts:
    @given(st.integers(0, 999), st.integers(1, 20))
    def test_a_wrong_element_is_told_at_its_place(self, first: int, step: int) -> None:
        wrong = range(first, 1000, step)
        responses = [TEXT | {"text": n} if n in wrong else TEXT for n in range(1000)]
        found = errors_of(responses=responses)
        part = range(first - first % 100, first - first % 100 + 100)
        places = [("responses", "list", n, "text") for n in wrong if n in part]
        assert [where for where, _ in found] == places

    def test_what_a_rule_of_ours_says_of_it_is_kept(self) -> None:
        found = errors_of(responses=[TEXT] * 950 + [TEXT | {"text": "a\0"}])
        place = ("responses", "list", 950, "text")
        assert found == [(place, "Value error, must not contain the character U+0000")]

    def test_a_question_deep_inside_is_told_at_its_place(self) -> None:
        asked: list[Any] = ["Why?"] * 650 + [" "]
        questions = {f"p{n}": {"expected_action": ["Why?"]} for n in range(30)} | {
            "p30": {"expected_action": asked}
        }
        with pytest.raises(ValidationError) as caught:
            QuestionSetIn.model_validate({"questions": questions})
        (found,) = caught.value.errors()
        assert found["loc"] == ("questions", "p30", "expected_action", 650)

    def test_right_ones_come_in_their_order(self) -> None:
        responses = [TEXT | {"text": str(n)} for n in range(1050)]
        questions = {f"p{n}": {"expected_action": [f"{n} {m}" for m in range(250)]} for n in range(25)}
        body = JobIn.model_validate(job_body(models=None) | {"responses": responses, "questions": questions})
        assert isinstance(body.responses, list)
        assert [response.text for response in body.responses] == [str(n) for n in range(1050)]
        assert body.questions == questions

    def test_a_list_in_place_of_an_object_is_told_as_such(self) -> None:
        assert errors_of(questions=[None] * 30) == [
            (("questions", "object"), "Input should be a valid dictionary")
        ]
