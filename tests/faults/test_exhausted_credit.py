"""A provider whose credit runs out in mid-job, in each of the two formats."""

import time
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.e2e.stack import Json, Stack
from tests.faults.conftest import IN_FLIGHT, JOB
from tests.observe import eventually

QUOTA = 300
STOPPED_SECONDS = 5.0
PATIENCE = 60.0
HANGING_MS = 3000.0

OPENAI: Json = JOB | {"models": ["simulated/sim-drifting"]}
ANTHROPIC: Json = JOB | {
    "models": ["simulated-anthropic/sim-drifting"],
    "judges": ["simulated-anthropic/sim-judge"],
}


@pytest.fixture
def poor(slow: Stack) -> Iterator[Stack]:
    """The stack with a provider that has a quota."""
    slow.simulate(latency_ms=20, quota=QUOTA)
    yield slow
    slow.simulate(quota=0)


def refused(entries: list[Json]) -> int:
    """Calls that were told that there is no credit."""
    statuses = Counter(entry["status"] for entry in entries)
    return statuses[429] + statuses[400]


def assert_stops(stack: Stack, job: Json, reason: str) -> None:
    """Runs a job until the credit is used up, and then with new credit."""
    job_id = stack.submit(job)
    paused = stack.until(job_id, lambda job: job["status"] not in {"queued", "running"}, PATIENCE)
    assert (paused["status"], paused["status_reason"]) == ("paused", reason)
    entries = stack.ledger(job_id)
    # One job calls two models here, so twice a model's calls can be in flight.
    assert 1 <= refused(entries) <= 2 * IN_FLIGHT + 1
    first = min(entry["at"] for entry in entries if entry["status"] in {400, 429})
    assert max(entry["at"] for entry in entries) - first < STOPPED_SECONDS
    stack.simulate(quota=0, latency_ms=0)
    stack.act(job_id, "resume")
    ended = stack.ended(job_id)
    assert (ended["status"], ended["completeness"]) == ("completed", "full")


class TestExhaustedCredit:
    def test_stops_a_job_that_goes_on_once_there_is_credit(self, poor: Stack) -> None:
        assert_stops(poor, OPENAI, "insufficient_quota")

    def test_is_known_by_its_words_where_it_has_no_code(self, poor: Stack) -> None:
        assert_stops(poor, ANTHROPIC, "credit_balance_too_low")

    def test_stops_the_job_while_other_calls_hang(self, poor: Stack) -> None:
        job_id = poor.submit(OPENAI)
        poor.after_calls(QUOTA // 3)
        # From now on what is answered comes late, but that there is no credit comes at once.
        poor.simulate(latency_ms=HANGING_MS * 5)
        started = time.monotonic()
        poor.simulate(quota=1)
        job = poor.until(job_id, lambda job: job["status"] != "running", PATIENCE)
        assert (job["status"], job["status_reason"]) == ("paused", "insufficient_quota")
        # The calls that were under way then take 15 s; the refusal did not wait for them.
        assert time.monotonic() - started < 3 * HANGING_MS / 1000 + STOPPED_SECONDS
        poor.act(job_id, "cancel")
        poor.ended(job_id)

    @pytest.mark.long
    @pytest.mark.parametrize("run", range(20))
    def test_stops_every_time(self, run: int, poor: Stack) -> None:
        poor.simulate(quota=QUOTA + run)
        job = OPENAI if run % 2 else ANTHROPIC
        assert_stops(poor, job, "insufficient_quota" if run % 2 else "credit_balance_too_low")


def test_no_call_starts_after_the_job_was_stopped(poor: Stack) -> None:
    job_id = poor.submit(OPENAI)
    poor.until(job_id, lambda job: job["status"] == "paused", PATIENCE)
    received = poor.received()
    assert not eventually(lambda: poor.received() > received, 1.0)
    poor.simulate(quota=0)
    poor.act(job_id, "cancel")
    poor.ended(job_id)
