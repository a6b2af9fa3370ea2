"""What both clients do over real HTTP."""

import asyncio
import inspect
import json
import logging
import socket
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest

from persona_assay import (
    AssayClient,
    AssayError,
    AsyncAssayClient,
    ProblemError,
    ProblemField,
    UnreachableError,
)
from persona_assay.operations import clone, plan, submit
from persona_assay.operations import job as look_at
from tests.stub_service import Answer, StubService
from tests.unit.cli.documents import job, problem
from tests.unit.client.conftest import Opens

BROKEN_OFF = Answer(status=None)
NOW = {"Retry-After": "0"}
JOB: Any = {"personas": ["E-high"], "tasks": ["essay"]}


def nobody_there() -> str:
    """A URL at which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


class TestSubmitting:
    def test_repeats_a_broken_request_under_the_same_key_so_that_it_makes_one_job(
        self, service: StubService, opened: Opens
    ) -> None:
        service.on("POST /v1/jobs", BROKEN_OFF, Answer(job(), 202))
        with opened(service.url) as client:
            assert client.submit(JOB)["id"] == "job_1"
        first, second = service.asked
        assert first.headers["idempotency-key"] == second.headers["idempotency-key"]
        assert first.body == second.body == JOB

    def test_submits_another_job_under_another_key(self, service: StubService, opened: Opens) -> None:
        service.on("POST /v1/jobs", Answer(job(), 202))
        with opened(service.url) as client:
            client.submit(JOB)
            client.submit(JOB)
            client.submit(JOB, idempotency_key="mine")
        keys = [asked.headers["idempotency-key"] for asked in service.asked]
        assert len(set(keys)) == 3
        assert keys[2] == "mine"

    def test_plans_and_jobs_on_many_texts_are_waited_for_for_minutes(self) -> None:
        """Half a million texts took 171 s, on a busy machine."""
        calls = submit(JOB), plan(JOB), clone("job_1"), look_at("job_1")
        with httpx2.Client(base_url="http://127.0.0.1") as http:
            sent = [http.build_request(**call.request()) for call in calls]
        assert [request.extensions["timeout"]["read"] for request in sent] == [300, 300, 300, 60]

    def test_what_json_cannot_say_is_refused_here(self, service: StubService, opened: Opens) -> None:
        with opened(service.url) as client, pytest.raises(AssayError, match="cannot be sent as JSON"):
            client.submit(JOB | {"budget": {"usd": float("nan")}})
        assert service.asked == []


class TestAsking:
    def test_a_key_is_sent_with_every_request(
        self, service: StubService, opened: Opens, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        service.on("GET /v1/jobs/job_1", Answer(job()))
        monkeypatch.setenv("ASSAY_API_KEY", "sk-env\n")
        for given in ({}, {"api_key": "sk-mine"}, {"api_key": ""}):
            with opened(service.url, **given) as client:
                client.job("job_1")
        sent = [asked.headers.get("authorization") for asked in service.asked]
        assert sent == ["Bearer sk-env", "Bearer sk-mine", None]

    def test_what_cannot_be_a_key_is_said_to_be_none(self, opened: Opens) -> None:
        with pytest.raises(AssayError, match="ASSAY_API_KEY"):
            opened("http://127.0.0.1", api_key="a\nb")

    def test_the_service_is_where_the_environment_says(
        self, service: StubService, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        service.on("GET /v1/models", Answer({"data": []}))
        monkeypatch.setenv("ASSAY_URL", f"{service.url}/")
        with AssayClient() as client:
            assert client.models() == {"data": []}

    def test_every_page_of_a_list_is_asked_for_with_the_same_filters(
        self, service: StubService, opened: Opens
    ) -> None:
        first = {"data": [{"id": "r1"}, {"id": "r2"}], "has_more": True, "next_cursor": "c=="}
        last = {"data": [{"id": "r3"}], "has_more": False, "next_cursor": None}
        path = "GET /v1/jobs/job_1/responses?task=essay&limit=2&out_of_character=true"
        service.on(path, Answer(first))
        service.on(f"{path}&after=c%3D%3D", Answer(last))
        with opened(service.url) as client:
            found = client.iter_responses("job_1", task="essay", limit=2, out_of_character=True)
            assert [response["id"] for response in found] == ["r1", "r2", "r3"]

    def test_labels_filter_jobs(self, service: StubService, opened: Opens) -> None:
        path = "GET /v1/jobs?limit=20&status=failed&metadata%5Bcommit+id%5D=a%26b"
        service.on(path, Answer({"data": [], "has_more": False, "next_cursor": None}))
        with opened(service.url) as client:
            assert client.jobs(status="failed", metadata={"commit id": "a&b"})["data"] == []

    def test_lines_are_sent_as_they_are(self, service: StubService, opened: Opens) -> None:
        service.on("POST /v1/persona-sets?name=critics", Answer({"id": "pset_1"}, 201))
        with opened(service.url) as client:
            client.keep_persona_file("description\na blunt critic — née\n", "csv", name="critics")
        (asked,) = service.asked
        assert asked.headers["content-type"] == "text/csv"
        assert asked.body == "description\na blunt critic — née\n".encode()

    def test_no_job_id_reaches_another_path(self, service: StubService, opened: Opens) -> None:
        with opened(service.url) as client, pytest.raises(ProblemError):
            client.job("../personas?x=1")
        assert service.asked[0].path == "/v1/jobs/..%2Fpersonas%3Fx%3D1"


class TestErrors:
    def test_a_problem_names_every_field(self, service: StubService, opened: Opens) -> None:
        wrong = problem(422, "2 fields are invalid", ("/tasks/0", "no such task"), ("/seed", "too small"))
        service.on("POST /v1/jobs", Answer(wrong, 422))
        with (
            opened(service.url) as client,
            pytest.raises(ProblemError, match="2 fields are invalid") as caught,
        ):
            client.submit(JOB)
        assert caught.value.fields == (
            ProblemField("/tasks/0", "no such task"),
            ProblemField("/seed", "too small"),
        )
        assert (caught.value.status, caught.value.request_id) == (422, "req_1")

    def test_an_error_without_a_problem_document_is_told_by_its_status(
        self, service: StubService, opened: Opens
    ) -> None:
        service.on("GET /v1/jobs?limit=1", Answer(b"<html>bad gateway</html>", 502))
        with (
            opened(service.url, retry_seconds=0) as client,
            pytest.raises(ProblemError, match="answers 502 Bad Gateway"),
        ):
            client.jobs(limit=1)
        assert len(service.asked) == 1

    def test_an_answer_of_something_else_is_not_taken_for_a_job(
        self, service: StubService, opened: Opens
    ) -> None:
        service.on("GET /v1/jobs/job_1", Answer(b"<html>hello</html>"))
        service.on("GET /v1/jobs/job_1/events", Answer(b"<html>hello</html>"))
        with opened(service.url) as client:
            with pytest.raises(AssayError, match="check the URL"):
                client.job("job_1")
            with pytest.raises(AssayError, match="check the URL"):
                list(client.events("job_1"))

    def test_nobody_listening_is_told_soon_and_with_how_to_start_the_service(self, opened: Opens) -> None:
        began = time.monotonic()
        with opened(nobody_there()) as client, pytest.raises(UnreachableError, match="assay up"):
            client.wait("job_1")
        assert time.monotonic() - began < 20  # a service that is known is tried for 60 s and more

    @pytest.mark.parametrize("url", ["localhost:8321", "ftp://localhost", "http://[::1"])
    def test_what_is_no_url_is_said_to_be_none(self, url: str, opened: Opens) -> None:
        with pytest.raises(AssayError, match="is not an http"), opened(url) as client:
            client.job("job_1")

    def test_a_service_that_is_away_for_a_moment_is_asked_again(
        self, service: StubService, opened: Opens
    ) -> None:
        away = Answer(problem(503, "the database can't be reached"), 503, NOW)
        service.on("GET /v1/jobs/job_1", away, Answer(problem(429, "slow down"), 429, NOW), Answer(job()))
        with opened(service.url) as client:
            assert client.job("job_1")["status"] == "running"

    def test_a_file_whose_reading_takes_long_is_waited_for(self, service: StubService, opened: Opens) -> None:
        reading, read = {"object": "import_reading", "upload": "upl_1"}, {"object": "import", "mapped": 3}
        service.on("POST /v1/imports?upload=upl_1", *[Answer(reading, 202, NOW)] * 5, Answer(read))
        with opened(service.url) as client:
            assert client.read_import(upload="upl_1")["mapped"] == 3
        assert len(service.asked) == 6

    def test_a_service_that_asks_for_more_patience_than_there_is_is_not_waited_for(
        self, service: StubService, opened: Opens
    ) -> None:
        service.on("GET /v1/jobs/job_1", Answer(problem(429, "slow down"), 429, {"Retry-After": "90"}))
        with opened(service.url) as client, pytest.raises(ProblemError, match="slow down"):
            client.job("job_1")
        assert len(service.asked) == 1

    def test_what_would_happen_twice_is_not_repeated(self, service: StubService, opened: Opens) -> None:
        service.on("POST /v1/webhooks/wh_1/rotate-secret", BROKEN_OFF)
        service.on("POST /v1/webhooks/wh_1/test", Answer(problem(503, "away"), 503, NOW))
        with opened(service.url) as client:
            with pytest.raises(UnreachableError):
                client.rotate_webhook_secret("wh_1")
            with pytest.raises(ProblemError, match="away"):
                client.test_webhook("wh_1")
        assert len(service.asked) == 2

    def test_who_waits_long_is_told_once_why(
        self, service: StubService, opened: Opens, caplog: pytest.LogCaptureFixture
    ) -> None:
        away = Answer(problem(503, "away"), 503, {"Retry-After": "1"})
        service.on("GET /v1/jobs/job_1", away, away, away, away, Answer(job()))
        with caplog.at_level(logging.WARNING, "persona_assay"), opened(service.url) as client:
            client.job("job_1")
        (record,) = caplog.records
        assert "is away (503 Service Unavailable); trying again for up to 60 s" in record.getMessage()

    def test_what_is_deleted_by_a_request_whose_answer_was_lost_is_deleted(
        self, service: StubService, opened: Opens
    ) -> None:
        gone = Answer(problem(404, "job not found"), 404)
        service.on("DELETE /v1/jobs/job_1", BROKEN_OFF, gone)
        service.on("DELETE /v1/jobs/job_2", gone)
        with opened(service.url) as client:
            client.delete_job("job_1")
            with pytest.raises(ProblemError, match="job not found"):
                client.delete_job("job_2")


class TestFollowing:
    def test_gives_every_state_until_the_job_has_ended(self, service: StubService, opened: Opens) -> None:
        states = [Answer(job(status), headers=NOW) for status in ("queued", "running", "completed")]
        service.on("GET /v1/jobs/job_1", *states)
        with opened(service.url) as client:
            assert [state["status"] for state in client.follow("job_1")] == ["queued", "running", "completed"]
        assert len(service.asked) == 3

    def test_asks_only_for_what_has_changed(self, service: StubService, opened: Opens) -> None:
        service.on(
            "GET /v1/jobs/job_1",
            Answer(job(), headers=NOW | {"ETag": '"a"'}),
            Answer(status=304, headers=NOW | {"ETag": '"a"'}),
            Answer(job("completed")),
        )
        with opened(service.url) as client:
            states = [state["status"] for state in client.follow("job_1")]
        assert states == ["running", "running", "completed"]
        assert [asked.headers.get("if-none-match") for asked in service.asked] == [None, '"a"', '"a"']

    def test_outlasts_a_restart_of_the_service(self, service: StubService, opened: Opens) -> None:
        service.on(
            "GET /v1/jobs/job_1",
            Answer(job(), headers=NOW),
            BROKEN_OFF,
            BROKEN_OFF,
            Answer(b"<html>bad gateway</html>", 502),
            Answer(job("failed")),
        )
        with opened(service.url) as client:
            assert client.wait("job_1")["status"] == "failed"

    def test_is_given_up_when_its_time_is_over(self, service: StubService, opened: Opens) -> None:
        service.on("GET /v1/jobs/job_1", Answer(job(), headers=NOW))
        with opened(service.url) as client, pytest.raises(TimeoutError, match="job_1 has not ended yet"):
            client.wait("job_1", timeout=0.2)


def told(id_: str, state: dict[str, Any], *, breaks_off: bool = False) -> Answer:
    """A stream of one event."""
    body = f"retry: 10\n\nid: {id_}\nevent: job\ndata: {json.dumps(state)}\n\n: still here\n\n".encode()
    length = {"Content-Length": str(len(body) + 1)} if breaks_off else {}
    return Answer(body, headers={"Content-Type": "text/event-stream"} | length)


class TestEvents:
    PATH = "GET /v1/jobs/job_1/events"

    def test_go_on_behind_the_last_one_when_a_connection_ends_or_breaks(
        self, service: StubService, opened: Opens
    ) -> None:
        service.on(
            self.PATH,
            told("a", job("queued"), breaks_off=True),
            BROKEN_OFF,
            told("b", job("running")),
            told("c", job("completed")),
        )
        with opened(service.url) as client:
            states = [state["status"] for state in client.events("job_1")]
        assert states == ["queued", "running", "completed"]
        assert [asked.headers.get("last-event-id") for asked in service.asked] == [None, "a", "a", "b"]

    def test_end_where_there_is_nothing_more_to_tell(self, service: StubService, opened: Opens) -> None:
        service.on(self.PATH, told("a", job("finalizing"), breaks_off=True), Answer(b"", 204))
        with opened(service.url) as client:
            assert [state["status"] for state in client.events("job_1")] == ["finalizing"]

    def test_of_an_unknown_job_are_a_problem(self, service: StubService, opened: Opens) -> None:
        service.on(self.PATH, Answer(problem(404, "job not found"), 404))
        with opened(service.url) as client, pytest.raises(ProblemError, match="job not found"):
            list(client.events("job_1"))


class TestReports:
    PATH = "GET /v1/jobs/job_1/report?format=html"

    def test_are_saved_as_they_come(self, service: StubService, opened: Opens, tmp_path: Path) -> None:
        service.on(self.PATH, Answer(b"<html>\xf0\x9f\x8e\xad</html>"))
        with opened(service.url) as client:
            length = client.save_report("job_1", tmp_path / "report.html")
        assert (tmp_path / "report.html").read_bytes() == b"<html>\xf0\x9f\x8e\xad</html>"
        assert length == 6 + 4 + 7

    def test_one_that_breaks_off_leaves_the_earlier_file_alone(
        self, service: StubService, opened: Opens, tmp_path: Path
    ) -> None:
        (tmp_path / "report.html").write_text("earlier")
        service.on(self.PATH, Answer(b"<html>", headers={"Content-Length": "1000"}))
        with opened(service.url) as client, pytest.raises(UnreachableError):
            client.save_report("job_1", tmp_path / "report.html")
        assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
        assert (tmp_path / "report.html").read_text() == "earlier"

    def test_a_place_that_cannot_be_written_is_an_error_of_the_files(
        self, service: StubService, opened: Opens, tmp_path: Path
    ) -> None:
        with opened(service.url) as client, pytest.raises(FileNotFoundError):
            client.save_report("job_1", tmp_path / "none" / "report.html")


class TestBothKinds:
    def test_have_the_same_methods_with_the_same_parameters(self) -> None:
        def shape(kind: type) -> dict[str, list[str]]:
            public = {n: v for n, v in vars(kind).items() if not n.startswith("_") and callable(v)}
            return {name: list(inspect.signature(method).parameters) for name, method in public.items()}

        assert shape(AssayClient) == shape(AsyncAssayClient)

    def test_their_methods_say_what_they_do(self) -> None:
        assert AssayClient.submit.__name__ == "submit"
        assert (AsyncAssayClient.gate.__doc__ or "").startswith("Checks a job's results against thresholds")
        assert list(inspect.signature(AssayClient("http://x").cancel).parameters) == ["job_id"]

    async def test_one_waits_while_the_loop_goes_on(self, service: StubService) -> None:
        service.on(
            "GET /v1/jobs/job_1", Answer(job(), headers={"Retry-After": "1"}), Answer(job("completed"))
        )
        longest = 0.0

        async def beats() -> None:
            nonlocal longest
            while True:
                began = time.monotonic()
                await asyncio.sleep(0.01)
                longest = max(longest, time.monotonic() - began)

        beating = asyncio.create_task(beats())
        async with AsyncAssayClient(service.url) as client:
            await client.wait("job_1")
        beating.cancel()
        assert longest < 0.7  # of the second that it waits
