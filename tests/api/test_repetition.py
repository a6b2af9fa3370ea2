"""Requests that come more than once, at once or after a crash: what they make, they make once."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest

from tests.api.service import Json, Service, job_body, pointers
from tests.observe import eventually

KEY = {"Idempotency-Key": "again"}
WEBHOOK: Json = {"url": "https://receiver.example/hook"}
SCHEDULE: Json = {"cron": "0 2 * * *", "job": job_body()}
GENERATE: Json = {"generate": {"count": 3, "reasoner": "simulated/sim-reasoner"}}
MADE: list[Any] = [
    pytest.param("/v1/jobs", job_body(), id="jobs"),
    pytest.param("/v1/persona-sets", GENERATE, id="jobs that make up personas"),
    pytest.param("/v1/webhooks", WEBHOOK, id="webhooks"),
    pytest.param("/v1/schedules", SCHEDULE, id="schedules"),
    pytest.param("/v1/persona-sets", {"personas": ["a blunt critic"]}, id="persona sets"),
    pytest.param(
        "/v1/question-sets", {"questions": {"a cowboy": {"expected_action": ["Why?"]}}}, id="question sets"
    ),
]
AT_ONCE = 50


@pytest.fixture
def empty(api: Service) -> Iterator[Service]:
    api.empty("webhooks", "schedules", "persona_sets", "question_sets")
    yield api
    api.execute("DROP FUNCTION IF EXISTS refuse_keys CASCADE")


def answer(api: Service, path: str, body: Json) -> httpx2.Response:
    """What a client gets that asks again while the service is busy, as a slow machine is with fifty at once."""
    found: list[httpx2.Response] = []

    def is_made() -> bool:
        found.append(api.post(path, body, headers=KEY))
        assert found[-1].status_code in {201, 202, 503}, found[-1].text
        return found[-1].status_code != 503

    assert eventually(is_made, 60)
    return found[-1]


class TestAtOnce:
    @pytest.mark.parametrize(("path", "body"), MADE)
    def test_fifty_make_one(self, empty: Service, path: str, body: Json) -> None:
        with ThreadPoolExecutor(AT_ONCE) as clients:
            answers = list(clients.map(lambda _: answer(empty, path, body), range(AT_ONCE)))
        assert len({answer.json()["id"] for answer in answers}) == 1
        where = "/v1/jobs" if answers[0].status_code == 202 else path
        assert len(list(empty.walk(where))) == 1


class TestWebhooks:
    def test_the_same_request_gets_the_same_answer_with_the_secret(self, empty: Service) -> None:
        first, again = (empty.post("/v1/webhooks", WEBHOOK, headers=KEY) for _ in range(2))
        assert (first.status_code, first.json()) == (again.status_code, again.json())
        assert first.json()["secret"]

    def test_by_another_key_or_without_one_another_is_made(self, empty: Service) -> None:
        for headers in (KEY, {"Idempotency-Key": "other"}, None):
            assert empty.post("/v1/webhooks", WEBHOOK, headers=headers).status_code == 201
        assert len(list(empty.walk("/v1/webhooks"))) == 3

    def test_a_key_is_for_one_body_and_one_thing(self, empty: Service) -> None:
        made = empty.post("/v1/webhooks", WEBHOOK, headers=KEY).json()
        for path, body in (("/v1/webhooks", WEBHOOK | {"description": "x"}), ("/v1/jobs", job_body())):
            refused = empty.post(path, body, headers=KEY)
            assert (refused.status_code, pointers(refused)) == (422, ["/header/Idempotency-Key"])
        assert empty.http.delete(f"/v1/webhooks/{made['id']}").status_code == 204
        assert empty.post("/v1/webhooks", WEBHOOK, headers=KEY).json()["id"] != made["id"]


class TestSchedules:
    def test_a_key_is_for_one_body_and_one_thing_and_free_when_it_is_deleted(self, empty: Service) -> None:
        made = empty.post("/v1/schedules", SCHEDULE, headers=KEY)
        assert made.status_code == 201
        for path, body in (("/v1/schedules", SCHEDULE | {"name": "x"}), ("/v1/webhooks", WEBHOOK)):
            refused = empty.post(path, body, headers=KEY)
            assert (refused.status_code, pointers(refused)) == (422, ["/header/Idempotency-Key"])
        paused = empty.http.patch(made.headers["Location"], json={"paused": True}).json()
        again = empty.post("/v1/schedules", SCHEDULE, headers=KEY)
        assert (again.status_code, again.json()) == (201, paused)
        assert empty.http.delete(made.headers["Location"]).status_code == 204
        assert empty.post("/v1/schedules", SCHEDULE, headers=KEY).json()["id"] != paused["id"]


class TestCrash:
    @pytest.mark.parametrize(("path", "body"), MADE[:4])
    def test_between_a_thing_and_its_key_leaves_neither(self, empty: Service, path: str, body: Json) -> None:
        empty.execute(
            "CREATE FUNCTION refuse_keys() RETURNS trigger LANGUAGE plpgsql"
            " AS 'BEGIN RAISE EXCEPTION ''crash''; END'"
        )
        empty.execute(
            "CREATE TRIGGER refuse_keys BEFORE INSERT ON idempotency_keys EXECUTE FUNCTION refuse_keys()"
        )
        assert empty.post(path, body, headers=KEY).status_code == 500
        where = "/v1/jobs" if path == "/v1/persona-sets" else path
        assert (list(empty.walk(where)), empty.rows()["idempotency_keys"]) == ([], 0)
        empty.execute("DROP FUNCTION refuse_keys CASCADE")
        assert empty.post(path, body, headers=KEY).status_code in {201, 202}
        assert len(list(empty.walk(where))) == 1
