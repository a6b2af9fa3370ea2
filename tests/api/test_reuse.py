"""What a job says of replies that are used again, as a client sees it; the using is tested with workers."""

from typing import Any

import pytest

from tests.api.service import Json, Service, job_body, pointers

NOTHING: Json = {
    "same_job": 0,
    "other_job": 0,
    "input_tokens": 0,
    "output_tokens": 0,
    "usd": 0,
    "unpriced_replies": 0,
    "oldest": None,
    "by_model": [],
}


@pytest.mark.parametrize(
    "reuse", [{"judging": "in_job"}, {"judging": "across_jobs", "generation": "across_jobs"}]
)
def test_a_job_that_asks_for_it_shows_what_it_was_spared(api: Service, reuse: Json) -> None:
    job = api.submit(job_body(reuse=reuse))
    assert job["reuse"] == NOTHING
    assert job["spec"]["reuse"] == reuse


@pytest.mark.parametrize("reuse", [None, {}, {"judging": "off", "generation": "off"}])
def test_one_that_does_not_shows_nothing(api: Service, reuse: Any) -> None:
    assert api.submit(job_body(reuse=reuse))["reuse"] is None
    assert api.submit(job_body())["reuse"] is None


@pytest.mark.parametrize(
    ("reuse", "pointer"),
    [
        (True, "/reuse"),
        ({"judging": True}, "/reuse/judging"),
        ({"judging": "always"}, "/reuse/judging"),
        ({"generation": "in_job"}, "/reuse/generation"),
        ({"preparation": "in_job"}, "/reuse/preparation"),
    ],
)
def test_what_is_no_wish_is_refused(api: Service, reuse: Any, pointer: str) -> None:
    response = api.post("/v1/jobs", job_body(reuse=reuse))
    assert response.status_code == 422
    assert pointers(response) == [pointer]


def test_what_can_have_no_effect_is_refused(api: Service) -> None:
    by_chance = [{"model": "simulated/sim-judge", "temperature": 0.7}]
    response = api.post("/v1/jobs", job_body(judges=by_chance, reuse={"judging": "in_job"}))
    assert response.status_code == 422
    assert pointers(response) == ["/reuse/judging"]


def test_a_plan_says_that_it_can_not_tell(api: Service) -> None:
    without, asking = (
        api.post("/v1/jobs/plan", job_body(**more)) for more in ({}, {"reuse": {"judging": "in_job"}})
    )
    assert asking.json()["calls"] == without.json()["calls"]
    assert set(asking.json()["warnings"]) - set(without.json()["warnings"]) == {
        "The estimate assumes no reused replies: how many can be reused is not known in advance."
    }


def test_a_plan_says_how_little_is_used_again_of_judging_in_groups(api: Service) -> None:
    reuse = {"judging": "in_job"}
    one_by_one, grouped = (
        api.post("/v1/jobs/plan", job_body(reuse=reuse, **more)).json()["warnings"]
        for more in ({}, {"judging": {"sentences_per_call": 8}})
    )
    assert [warning for warning in grouped if warning not in one_by_one] == [
        "Grouped judging makes its calls every time; hardly any reply will be reused."
    ]
