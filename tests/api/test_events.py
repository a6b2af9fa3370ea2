"""A job followed by server-sent events, read as they come over the wire."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx2

from tests.api.service import Json, Service, job_body, pointers
from tests.observe import PATIENCE


@dataclass(frozen=True)
class Event:
    id: str
    name: str
    job: Json


@contextmanager
def listening(
    service: Service, job_id: str, last_event_id: str | None = None
) -> Iterator[tuple[httpx2.Response, Iterator[Event]]]:
    """The answer, and its events as they come. The service's own client would read to the end first."""
    headers = {} if last_event_id is None else {"Last-Event-ID": last_event_id}
    with (
        httpx2.Client(base_url=service.url, timeout=PATIENCE, trust_env=False) as client,
        client.stream("GET", f"/v1/jobs/{job_id}/events", headers=headers) as response,
    ):
        yield response, _events(response)


def _events(response: httpx2.Response) -> Iterator[Event]:
    fields: dict[str, str] = {}
    for line in response.iter_lines():
        name, _, value = line.partition(": ")
        if not line and "data" in fields:
            yield Event(fields["id"], fields["event"], json.loads(fields["data"]))
            fields = {}
        elif line and name:
            fields[name] = value


class TestEvents:
    def test_a_jobs_states_come_as_they_change_until_it_is_over(self, stack: Service) -> None:
        job = stack.submit(job_body(iterations=4, tasks=["questionnaire"]))
        with listening(stack, job["id"]) as (response, events):
            assert response.headers["content-type"].startswith("text/event-stream")
            told = list(events)
        assert {event.name for event in told} == {"job"}
        states = [event.job["status"] for event in told]
        assert states[-1] == "completed"
        assert "completed" not in states[:-1]
        done = [event.job["progress"]["judging"]["succeeded"] for event in told]
        assert done == sorted(done)
        assert told[-1].job == stack.job(job["id"])
        ids = [event.id for event in told]
        assert len(set(ids)) == len(ids)

    def test_an_events_id_is_the_states_tag(self, stack: Service, finished: Json) -> None:
        with listening(stack, finished["id"]) as (_, events):
            (last,) = events
        tag = stack.get(f"/v1/jobs/{finished['id']}").headers["etag"]
        assert tag == f'"{last.id}"'

    def test_who_knows_the_last_state_need_not_come_again(self, stack: Service, finished: Json) -> None:
        with listening(stack, finished["id"]) as (_, events):
            (last,) = events
        headers = {"Last-Event-ID": last.id}
        again = stack.get(f"/v1/jobs/{finished['id']}/events", headers=headers)
        assert (again.status_code, again.content) == (204, b"")

    def test_who_comes_back_is_told_only_what_is_new(self, api: Service) -> None:
        job = api.submit(job_body())
        with listening(api, job["id"]) as (_, events):
            first = next(events)
        with listening(api, job["id"], first.id) as (response, events):
            assert response.status_code == 200
            cancelled = threading.Thread(target=api.post, args=(f"/v1/jobs/{job['id']}/cancel",))
            cancelled.start()
            assert next(events).job["status"] == "cancelled"
            cancelled.join()

    def test_an_unknown_id_is_told_the_state(self, api: Service) -> None:
        job = api.submit(job_body())
        with listening(api, job["id"], "no such event") as (_, events):
            assert next(events).job == job

    def test_the_stream_ends_with_a_job_that_is_deleted(self, api: Service) -> None:
        job = api.submit(job_body())
        with listening(api, job["id"]) as (_, events):
            next(events)
            api.execute("DELETE FROM jobs WHERE id = %s", job["id"])
            assert list(events) == []

    def test_there_are_none_of_no_job(self, api: Service) -> None:
        assert api.get("/v1/jobs/job_01kxyz0abcdefghjkmnpqrstvw/events").status_code == 404
        assert api.get("/v1/jobs/nonsense/events").status_code == 404

    def test_parameters_are_refused(self, api: Service) -> None:
        job = api.submit(job_body())
        response = api.get(f"/v1/jobs/{job['id']}/events", params={"since": "1"})
        assert (response.status_code, pointers(response)) == (422, ["/query/since"])
