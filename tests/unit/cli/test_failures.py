"""What a terminal shows of a job that waits or has failed."""

from datetime import UTC, datetime

from persona_assay.terminal.listings import MOST_FAILURES, failure_view
from persona_assay.terminal.progress import JobProgress
from tests.unit.cli.documents import job

FAILURE = {
    "stage": "judging",
    "model": "lab/judge",
    "code": "invalid_request_error",
    "http_status": 400,
    "detail": "HTTP 400: no temperature",
    "calls": 10,
    "last_at": "2026-11-22T12:00:00Z",
}
ERROR = {
    "code": "invalid_request_error",
    "detail": "HTTP 400: no temperature",
    "model": "lab/judge",
    "stage": "judging",
    "remedy": "Leave the temperature out.",
}


class TestFailures:
    def test_name_model_stage_words_and_what_to_do(self) -> None:
        paused = job("paused", error=ERROR, status_reason="invalid_request_error", failures=[FAILURE])
        assert failure_view(paused).plain.split("\n") == [
            "Job paused (invalid request error)",
            "lab/judge in judging: HTTP 400: no temperature",
            f"Leave the temperature out. Then run: assay resume {paused['id']}",
            "10 failed calls in judging to lab/judge: HTTP 400: no temperature",
        ]
        assert f"Then run: assay retry {paused['id']}" in failure_view({**paused, "status": "failed"}).plain

    def test_are_counted_beyond_the_most_frequent(self) -> None:
        failed = job("failed", error=None, failures=[FAILURE] * (MOST_FAILURES + 2))
        assert failure_view(failed).plain.endswith(
            f"and 2 more kinds of failure: assay status {failed['id']} --json"
        )

    def test_of_an_older_service_are_not_there(self) -> None:
        assert "\n" not in failure_view(job("failed", error=None)).plain


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
