from typing import Any

import pytest

from app.domain.jobs.contract import JobError


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        (
            {
                "code": "x",
                "model": "a/b",
                "stage": "judging",
                "detail": "é",
                "remedy": "Wait.",
                "cause": "c",
                "first_calls": 10,
            },
            '{"code":"x","cause":"c","model":"a/b","stage":"judging","detail":"é","remedy":"Wait.","first_calls":10}',
        ),
        ({"code": "x", "batch": 7, "detail": ""}, '{"code":"x","batch":7,"detail":""}'),
        (
            {"code": "x", "model": "a/b", "stage": None, "detail": "d", "from_another_release": True},
            '{"code":"x","model":"a/b","detail":"d"}',
        ),
    ],
)
def test_what_stopped_a_job_is_shown_in_the_order_in_which_it_is_stored(
    stored: dict[str, Any], shown: str
) -> None:
    error = JobError.model_validate(stored)
    assert error.model_dump_json() == shown
    assert JobError.model_validate_json(shown) == error
