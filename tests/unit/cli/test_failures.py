"""What a terminal shows of a job that waits or has failed."""

import io
from datetime import UTC, datetime

from rich.console import Console

from persona_assay.terminal.failures import MOST_FAILURES, failure_view
from persona_assay.terminal.progress import JobProgress, follow
from tests.unit.cli.documents import job

FAILURE = {
    "stage": "judging",
    "model": "lab/judge",
    "code": "invalid_request_error",
    "http_status": 400,
    "detail": "HTTP 400: no temperature",
    "calls": 10,
    "remedy": "Leave the temperature out.",
    "last_at": "2026-11-22T12:00:00Z",
}
ERROR = {
    "code": "invalid_request_error",
    "detail": "HTTP 400: no temperature",
    "model": "lab/judge",
    "stage": "judging",
    "cause": "lab rejected the request",
    "remedy": "Leave the temperature out.",
}


class TestFailures:
    def test_name_model_stage_words_and_what_to_do(self) -> None:
        paused = job("paused", error=ERROR, status_reason="invalid_request_error", failures=[FAILURE])
        assert failure_view(paused).plain.split("\n") == [
            "Job paused (invalid request error): lab rejected the request.",
            "Leave the temperature out.",
            f"Then run: assay resume {paused['id']}",
            "lab/judge in judging: HTTP 400: no temperature",
        ]
        assert f"Then run: assay retry {paused['id']}" in failure_view({**paused, "status": "failed"}).plain
        same_words = job("failed", error=ERROR | {"cause": ERROR["detail"]}, failures=[FAILURE])
        assert failure_view(same_words).plain.endswith("\nConcerns lab/judge in judging.")

    def test_tell_nobody_to_resume_what_resumes_by_itself(self) -> None:
        paused = job("paused", error=ERROR, status_reason="provider_unreachable")
        assert f"To resume it now: assay resume {paused['id']}" in failure_view(paused).plain

    def test_are_counted_beyond_the_most_frequent(self) -> None:
        failed = job("failed", error=None, failures=[FAILURE] * (MOST_FAILURES + 2))
        assert failure_view(failed).plain.endswith(
            f"and 2 more kinds of failure: assay status {failed['id']} --json"
        )

    def test_of_another_kind_than_what_stopped_the_job_are_counted(self) -> None:
        other = FAILURE | {"model": "lab/writer"}
        paused = job("paused", error=ERROR, failures=[FAILURE, other])
        assert failure_view(paused).plain.endswith(
            "\n10 failed calls in judging to lab/writer: HTTP 400: no temperature. Leave the temperature out."
        )

    def test_of_an_older_service_have_the_providers_words_as_their_cause(self) -> None:
        error = {"code": "odd", "detail": "HTTP 400: no."}
        assert failure_view(job("failed", error=error)).plain == "Job failed: HTTP 400: no."

    def test_that_pause_a_job_are_told_once_while_it_is_waited_for(self) -> None:
        paused = job("paused", error=ERROR)
        told = io.StringIO()
        follow([job(), paused, paused, job(), job("completed")], Console(file=told, width=200))
        assert told.getvalue().count("Then run: assay resume job_1") == 1

    def test_of_an_older_service_are_not_there(self) -> None:
        assert "\n" not in failure_view(job("failed", error=None)).plain


class TestRetrying:
    def test_says_from_the_first_failure_why_and_what_to_do_instead_of_until_when(self) -> None:
        retrying = {
            "model": "openai/gpt",
            "stage": "generation",
            "attempts": 17,
            "cause": "api.openai.com can't be resolved",
            "remedy": "Check that the server is running.",
        }
        held = {"model": "openai/gpt", "until": "2026-11-22T14:02:00Z", "reason": "away"}
        line = JobProgress(job(retrying=[retrying], held=[held])).line()
        assert line.endswith(
            "Retrying: api.openai.com can't be resolved, 17 attempts. Check that the server is running."
        )
        assert "waiting for" not in line


class TestHolds:
    def test_say_until_when_and_why(self) -> None:
        until = datetime(2026, 11, 22, 14, 2, tzinfo=UTC)
        held = {
            "model": "groq/llama",
            "until": until.isoformat(),
            "reason": "daily limit of requests used up",
        }
        line = JobProgress(job(held=[held])).line()
        assert (
            f"waiting for groq/llama until {until.astimezone():%H:%M} (daily limit of requests used up)"
            in line
        )
