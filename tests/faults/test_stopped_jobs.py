"""Jobs that are cancelled or paused in their middle, that can't be run, or whose provider is unreliable."""

import time
from collections import Counter

from tests.e2e.stack import Stack
from tests.faults.conftest import IN_FLIGHT, JOB, KNOWN_MODEL, SLOTS, Undisturbed
from tests.faults.test_kill_worker import assert_same, identities

ARRIVING_SECONDS = 0.1
"""What a call that was sent before a stop was answered may take to be seen by the provider."""
QUIET_SECONDS = 2.0
"""For so long nothing may come, twice what a worker may be behind."""

RESUMED_SECONDS = 20.0
"""A resumed job goes on at once, not when a message of the time before the pause counts as lost."""


class TestCancelledJob:
    def test_starts_no_call_any_more_and_keeps_what_was_paid(
        self, slow: Stack, undisturbed: Undisturbed
    ) -> None:
        job_id = slow.submit(JOB)
        slow.after_calls(undisturbed.calls // 4)
        answer = slow.act(job_id, "cancel")
        answered = time.monotonic()
        assert answer["status"] in {"cancelling", "cancelled"}
        job = slow.ended(job_id)
        assert (job["status"], job["status_reason"]) == ("cancelled", "cancelled_by_user")
        assert job["completeness"] == "partial"
        time.sleep(QUIET_SECONDS)
        entries = slow.ledger(job_id)
        assert max(entry["at"] for entry in entries) <= answered + ARRIVING_SECONDS
        kinds = Counter(entry["kind"] for entry in entries)
        assert 0 < len(entries) < undisturbed.calls
        assert job["usage"]["calls"] == len(entries)
        assert job["progress"]["generation"]["succeeded"] == kinds["generation"]
        # Sentences of refusals count as judged without a call.
        results = slow.results(job_id)
        refused = sum(cell["units"]["refused"] for cell in results["cells"])
        assert job["progress"]["judging"]["succeeded"] == kinds["judge"] + refused
        assert results["completeness"] == "partial"
        assert sum(cell["units"]["scored"] for cell in results["cells"]) > 0

    def test_can_be_cancelled_again(self, slow: Stack) -> None:
        job_id = slow.submit(JOB)
        slow.act(job_id, "cancel")
        ended = slow.ended(job_id)
        assert slow.act(job_id, "cancel")["finished_at"] == ended["finished_at"]


class TestPausedJob:
    def test_stands_still_and_once_resumed_ends_as_if_nothing_had_happened(
        self, slow: Stack, undisturbed: Undisturbed
    ) -> None:
        job_id = slow.submit(JOB)
        slow.after_calls(undisturbed.calls // 4)
        assert slow.act(job_id, "pause")["status"] == "paused"
        answered = time.monotonic()
        time.sleep(QUIET_SECONDS)
        assert max(entry["at"] for entry in slow.ledger(job_id)) <= answered + ARRIVING_SECONDS
        assert slow.job(job_id)["status"] == "paused"
        assert slow.results(job_id)["completeness"] == "partial"

        slow.simulate(latency_ms=0)
        assert slow.act(job_id, "resume")["status"] in {"queued", "running"}
        job = slow.ended(job_id, RESUMED_SECONDS)
        assert (job["status"], job["completeness"]) == ("completed", "full")
        assert_same(slow.results(job_id), undisturbed)
        assert set(identities(slow.ledger(job_id)).values()) == {1}


class TestJobThatCannotRun:
    def test_with_a_wrong_key_fails_and_says_so(self, slow: Stack) -> None:
        job = slow.ended(slow.submit(JOB | {"models": [f"openai/{KNOWN_MODEL}"]}))
        assert (job["status"], job["status_reason"]) == ("failed", "invalid_api_key")
        assert job["error"]["model"] == f"openai/{KNOWN_MODEL}"
        assert "Incorrect API key" in job["error"]["detail"]
        assert job["usage"]["calls"] <= IN_FLIGHT * SLOTS

    def test_with_a_model_that_the_provider_has_not_fails_and_says_so(self, slow: Stack) -> None:
        job = slow.ended(slow.submit(JOB | {"models": ["openai/gpt-4p"]}))
        assert (job["status"], job["status_reason"]) == ("failed", "model_not_found")
        assert job["error"]["model"] == "openai/gpt-4p"
        assert job["usage"]["calls"] <= IN_FLIGHT * SLOTS

    def test_with_a_judge_that_the_provider_has_not_keeps_its_texts_and_says_so(self, slow: Stack) -> None:
        job_id = slow.submit(JOB | {"judges": ["openai/gpt-4p"]})
        job = slow.until(job_id, lambda job: job["status"] not in {"queued", "running"})
        assert (job["status"], job["status_reason"]) == ("paused", "model_not_found")
        assert job["error"]["model"] == "openai/gpt-4p"
        assert slow.act(job_id, "cancel")["status"] in {"cancelling", "cancelled"}
        assert slow.ended(job_id)["progress"]["generation"]["succeeded"] > 0


class TestUnreliableProvider:
    def test_job_is_completed_in_full_with_every_retry_counted(self, slow: Stack) -> None:
        slow.simulate(latency_ms=0, error_rate=0.1, requests_per_minute=2400, burst=2)
        small = JOB | {"personas": ["E-high"], "tasks": ["essay"], "instructions": [1, 2], "iterations": 2}
        job_id = slow.submit(small)
        # The limit that the replies name holds for the calls of the tests before as well: it may take a minute to be free.
        job = slow.ended(job_id, 240)
        assert (job["status"], job["completeness"]) == ("completed", "full")
        entries = slow.ledger(job_id)
        statuses = Counter(entry["status"] for entry in entries)
        assert (
            statuses.total() - statuses[429] - statuses[200] > 0
        )  # 429 only where the first call ahead told no limit
        assert job["usage"]["calls"] == statuses.total()
        assert job["usage"]["failed_calls"] == statuses.total() - statuses[200]
        answered = identities([entry for entry in entries if entry["status"] == 200])
        assert set(answered.values()) == {1}
