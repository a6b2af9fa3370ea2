from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.api.service import Json, Service, pointers

BODY = {"url": "https://ci.example.com/hook", "events": ["job.completed"], "description": "nightly"}


@pytest.fixture
def hook(api: Service) -> Json:
    api.empty("webhooks")
    made: Json = api.post("/v1/webhooks", BODY).json()
    return made


class TestWebhooks:
    def test_the_secret_is_shown_once(self, api: Service, hook: Json) -> None:
        assert hook["secret"].startswith("whsec_")
        path = f"/v1/webhooks/{hook['id']}"
        changed = api.http.patch(path, json={"description": None})
        for answer in (api.get(path), api.get("/v1/webhooks"), changed, api.post(f"{path}/test")):
            assert hook["secret"] not in answer.text

    def test_one_without_events_is_told_of_all(self, api: Service) -> None:
        made = api.post("/v1/webhooks", {"url": BODY["url"]}).json()
        assert made["events"] == [
            *("job.completed", "job.failed", "job.cancelled", "job.paused", "drift.detected"),
            *("schedule.run_missed", "schedule.run_skipped", "schedule.run_failed"),
            *("connection.bill_exceeded", "connection.surplus_replies", "file.reader_ended"),
        ]

    def test_a_change_leaves_what_it_does_not_name(self, api: Service, hook: Json) -> None:
        path = f"/v1/webhooks/{hook['id']}"
        changed = api.http.patch(path, json={"events": ["job.failed", "job.failed"], "enabled": False}).json()
        assert (changed["events"], changed["enabled"], changed["disabled_reason"]) == (
            *(["job.failed"], False, "by_user"),
        )
        assert (changed["url"], changed["description"]) == (BODY["url"], "nightly")
        assert api.http.patch(path, json={"enabled": True}).json()["disabled_reason"] is None

    def test_a_test_message_waits_to_be_delivered(self, api: Service, hook: Json) -> None:
        sent = [api.post(f"/v1/webhooks/{hook['id']}/test").json()["id"] for _ in range(3)]
        found = list(api.walk(f"/v1/webhooks/{hook['id']}/deliveries", limit=2))
        assert [each["id"] for each in found] == sent[::-1]
        assert {(each["event"], each["state"], each["job"]) for each in found} == {
            ("webhook.test", "waiting", None)
        }

    def test_they_are_listed_newest_first_and_deleted_with_their_messages(
        self, api: Service, hook: Json
    ) -> None:
        newer = api.post("/v1/webhooks", BODY).json()
        assert [each["id"] for each in api.walk("/v1/webhooks", limit=1)] == [newer["id"], hook["id"]]
        api.post(f"/v1/webhooks/{hook['id']}/test")
        assert api.http.delete(f"/v1/webhooks/{hook['id']}").status_code == 204
        for path in ("", "/deliveries"):
            assert api.get(f"/v1/webhooks/{hook['id']}{path}").status_code == 404
        assert api.http.delete(f"/v1/webhooks/{hook['id']}").status_code == 404

    def test_there_are_twenty_at_most_however_many_are_made_at_once(self, api: Service, hook: Json) -> None:
        with ThreadPoolExecutor(8) as clients:
            answers = list(clients.map(lambda _: api.post("/v1/webhooks", BODY), range(24)))
        refused = [answer for answer in answers if answer.status_code != 201]
        assert len(refused) == 24 - 19
        assert {answer.status_code for answer in refused} == {422}
        assert refused[0].json()["errors"][0]["message"] == "limit of 20 webhooks reached"
        assert len(list(api.walk("/v1/webhooks"))) == 20

    def test_another_secret_is_shown_once_and_goes_on_beside_the_former_for_a_day(
        self, api: Service, hook: Json
    ) -> None:
        path = f"/v1/webhooks/{hook['id']}"
        assert hook["former_secret_until"] is None
        rotated = api.post(f"{path}/rotate-secret").json()
        assert rotated["secret"].startswith("whsec_")
        assert rotated["secret"] != hook["secret"]
        shown = api.get(path)
        assert rotated["secret"] not in shown.text
        until = datetime.fromisoformat(shown.json()["former_secret_until"]) - datetime.now(UTC)
        assert timedelta(hours=23) < until <= timedelta(hours=24)
        assert api.post("/v1/webhooks/whk_01kxyz0abcdefghjkmnpqrstvw/rotate-secret").status_code == 404

    def test_one_that_is_off_is_sent_no_test(self, api: Service, hook: Json) -> None:
        api.http.patch(f"/v1/webhooks/{hook['id']}", json={"enabled": False})
        assert api.post(f"/v1/webhooks/{hook['id']}/test").status_code == 409


class TestBadInput:
    @pytest.mark.parametrize(
        ("body", "pointer"),
        [
            ({"url": "http://ci.example.com/"}, "/url"),
            ({"url": "https://10.0.0.1/"}, "/url"),
            ({"url": "https://user@example.com/"}, "/url"),
            ({"url": "https://exa mple.com/"}, "/url"),
            ({"url": ""}, "/url"),
            ({"events": ["job.completed"]}, "/url"),
            (BODY | {"events": []}, "/events"),
            (BODY | {"events": ["job.exploded"]}, "/events/0"),
            (BODY | {"secret": "whsec_mine"}, "/secret"),
        ],
    )
    def test_each_is_refused_where_it_is_wrong(
        self, api: Service, body: dict[str, Any], pointer: str
    ) -> None:
        answer = api.post("/v1/webhooks", body)
        assert answer.status_code == 422
        assert pointers(answer) == [pointer]

    @pytest.mark.parametrize("body", [{}, {"url": None}, {"enabled": "yes"}, {"url": "http://10.0.0.1/"}])
    def test_so_is_a_change(self, api: Service, hook: Json, body: dict[str, Any]) -> None:
        assert api.http.patch(f"/v1/webhooks/{hook['id']}", json=body).status_code == 422

    @pytest.mark.parametrize("name", ["nothing", "whk_01kxyz0abcdefghjkmnpqrstvw", "whk_%00"])
    def test_what_there_is_not_is_not_found(self, api: Service, name: str) -> None:
        assert api.get(f"/v1/webhooks/{name}").status_code == 404
        assert api.post(f"/v1/webhooks/{name}/test").status_code == 404
