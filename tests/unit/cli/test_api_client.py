import socket
from pathlib import Path

import pytest

from app.client.api_client import ApiClient, write_report
from app.client.errors import ClientError, ProblemError, ProblemField, UnreachableError
from tests.unit.cli.documents import job, problem
from tests.unit.cli.stub_service import Answer, StubService

BROKEN_OFF = Answer(status=None)
NOW = {"Retry-After": "0"}


class TestSubmitting:
    def test_repeats_a_broken_request_under_the_same_key_so_that_it_makes_one_job(
        self, service: StubService
    ) -> None:
        service.on("POST /v1/jobs", BROKEN_OFF, Answer(job(), 202))
        with ApiClient(service.url) as client:
            assert client.submit({"name": "x"})["id"] == "job_1"
        first, second = service.asked
        assert first.headers["idempotency-key"] == second.headers["idempotency-key"]
        assert first.body == second.body == {"name": "x"}

    def test_submits_another_job_under_another_key(self, service: StubService) -> None:
        service.on("POST /v1/jobs", Answer(job(), 202))
        with ApiClient(service.url) as client:
            client.submit({})
            client.submit({})
        assert service.asked[0].headers["idempotency-key"] != service.asked[1].headers["idempotency-key"]


class TestErrors:
    def test_a_problem_names_every_field(self, service: StubService) -> None:
        wrong = problem(422, "2 fields are wrong", ("/tasks/0", "no such task"), ("/seed", "too small"))
        service.on("POST /v1/jobs", Answer(wrong, 422))
        with (
            ApiClient(service.url) as client,
            pytest.raises(ProblemError, match="2 fields are wrong") as caught,
        ):
            client.submit({})
        assert caught.value.fields == (
            ProblemField("/tasks/0", "no such task"),
            ProblemField("/seed", "too small"),
        )
        assert caught.value.request_id == "req_1"

    def test_an_error_without_a_problem_document_is_told_by_its_status(self, service: StubService) -> None:
        service.on("GET /v1/jobs?limit=1", Answer(b"<html>bad gateway</html>", 502))
        with ApiClient(service.url) as client, pytest.raises(ProblemError, match="answers 502 Bad Gateway"):
            client.jobs(limit=1)

    def test_an_answer_of_something_else_is_not_taken_for_a_job(self, service: StubService) -> None:
        service.on("GET /v1/jobs/job_1", Answer(b"<html>hello</html>"))
        with ApiClient(service.url) as client, pytest.raises(ClientError, match="is the URL right"):
            client.job("job_1")

    def test_nobody_listening_says_how_to_start_the_service(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with ApiClient(url) as client, pytest.raises(UnreachableError, match="assay up"):
            client.job("job_1")

    @pytest.mark.parametrize("url", ["localhost:8321", "ftp://localhost", "http://[::1"])
    def test_what_is_no_url_is_said_to_be_none(self, url: str) -> None:
        with pytest.raises(ClientError, match="is not a"), ApiClient(url) as client:
            client.job("job_1")

    def test_a_service_that_is_away_for_a_moment_is_asked_again(self, service: StubService) -> None:
        away = Answer(problem(503, "the database can't be reached"), 503, {"Retry-After": "0"})
        service.on("GET /v1/jobs/job_1", away, Answer(job()))
        with ApiClient(service.url) as client:
            assert client.job("job_1")["status"] == "running"

    def test_a_service_that_asks_for_more_patience_than_there_is_is_not_waited_for(
        self, service: StubService
    ) -> None:
        service.on("GET /v1/jobs/job_1", Answer(problem(429, "slow down"), 429, {"Retry-After": "30"}))
        with ApiClient(service.url) as client, pytest.raises(ProblemError, match="slow down"):
            client.job("job_1")

    def test_no_job_id_reaches_another_path(self, service: StubService) -> None:
        with ApiClient(service.url) as client, pytest.raises(ProblemError):
            client.job("../personas?x=1")
        assert service.asked[0].path == "/v1/jobs/..%2Fpersonas%3Fx%3D1"


class TestFollowing:
    def test_gives_every_state_until_the_job_has_ended(self, service: StubService) -> None:
        states = [Answer(job(status), headers=NOW) for status in ("queued", "running", "completed")]
        service.on("GET /v1/jobs/job_1", *states)
        with ApiClient(service.url) as client:
            assert [state["status"] for state in client.follow("job_1")] == ["queued", "running", "completed"]
        assert len(service.asked) == 3

    def test_asks_only_for_what_has_changed(self, service: StubService) -> None:
        service.on(
            "GET /v1/jobs/job_1",
            Answer(job(), headers=NOW | {"ETag": '"a"'}),
            Answer(status=304, headers=NOW | {"ETag": '"a"'}),
            Answer(job("completed")),
        )
        with ApiClient(service.url) as client:
            states = [state["status"] for state in client.follow("job_1")]
        assert states == ["running", "running", "completed"]
        assert [asked.headers.get("if-none-match") for asked in service.asked] == [None, '"a"', '"a"']

    def test_outlasts_a_restart_of_the_service(self, service: StubService) -> None:
        service.on(
            "GET /v1/jobs/job_1",
            Answer(job(), headers=NOW),
            BROKEN_OFF,
            BROKEN_OFF,
            Answer(job("failed")),
        )
        with ApiClient(service.url) as client:
            assert [state["status"] for state in client.follow("job_1")] == ["running", "failed"]


class TestReports:
    PATH = "GET /v1/jobs/job_1/report?format=html"

    def test_saves_the_bytes_as_they_come(self, service: StubService, tmp_path: Path) -> None:
        service.on(self.PATH, Answer(b"<html>\xf0\x9f\x8e\xad</html>"))
        with ApiClient(service.url) as client:
            length = write_report(client, "job_1", {"format": "html"}, tmp_path / "report.html")
        assert (tmp_path / "report.html").read_bytes() == b"<html>\xf0\x9f\x8e\xad</html>"
        assert length == 6 + 4 + 7

    def test_a_report_that_breaks_off_leaves_the_earlier_file_alone(
        self, service: StubService, tmp_path: Path
    ) -> None:
        (tmp_path / "report.html").write_text("earlier")
        service.on(self.PATH, Answer(b"<html>", headers={"Content-Length": "1000"}))
        with ApiClient(service.url) as client, pytest.raises(UnreachableError):
            write_report(client, "job_1", {"format": "html"}, tmp_path / "report.html")
        assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
        assert (tmp_path / "report.html").read_text() == "earlier"

    def test_a_file_that_cannot_be_written_is_named(self, service: StubService, tmp_path: Path) -> None:
        with (
            ApiClient(service.url) as client,
            pytest.raises(ClientError, match=r"cannot write .*/none/report"),
        ):
            write_report(client, "job_1", {"format": "html"}, tmp_path / "none" / "report.html")
