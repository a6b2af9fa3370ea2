"""Jobs that are cancelled, paused, retried and kept to a budget while calls hang, providers ask to wait, and workers die."""

import json
import random
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

import pytest

from app.limits.concurrency import START
from embedded.valkey import EmbeddedValkey
from tests.databases import Databases
from tests.e2e.stack import Json, Stack
from tests.faults.conftest import IN_FLIGHT, JOB, SLOTS, FaultyWorld, Undisturbed, faulty_world
from tests.faults.test_kill_worker import assert_same, identities, recorded
from tests.observe import eventually

RETRY_AFTER_SECONDS = 120
SMALL: Json = JOB | {
    "personas": ["E-high"],
    "tasks": ["social_media_post"],
    "models": ["simulated/sim-faithful"],
    "instructions": [1],
    "iterations": 1,
}
"""A text, and a call for each of its sentences."""
PROMISED_SECONDS = 3.0
"""Within which a cancelled job ends; asserted by the long form, on a machine that has nothing else to do."""
PATIENT_SECONDS = 45.0
"""The same of the short form, far below what a hanging call or its provider would take."""
STARTING_SECONDS = 1.0
"""What a call that was let go before a stop was answered may take to reach a provider on a loaded machine."""


class Obstinate(ThreadingHTTPServer):
    """A provider that answers no call: it hangs, or asks to wait, as the model's name says."""

    daemon_threads = True
    request_queue_size = 512

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Obstinacy)
        self.received: list[tuple[float, str]] = []
        self.released = Event()

    def of(self, model: str) -> list[float]:
        """When calls to a model came, by the monotonic clock."""
        return [moment for moment, name in self.received if name == model]


class _Obstinacy(BaseHTTPRequestHandler):
    server: Obstinate

    def do_POST(self) -> None:
        model = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["model"]
        self.server.received.append((time.monotonic(), model))
        if model.startswith("hanging"):
            self.server.released.wait(RETRY_AFTER_SECONDS)
        body = b'{"error": {"message": "later", "type": "requests", "code": "rate_limit_exceeded"}}'
        self.send_response(429)
        self.send_header("Retry-After", str(RETRY_AFTER_SECONDS))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def handle(self) -> None:
        try:
            super().handle()
        except ConnectionError:
            return  # the caller did not wait

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the overridden method's name for it
        """Says nothing."""


@pytest.fixture(scope="module")
def obstinate() -> Iterator[Obstinate]:
    """The provider behind the connection `openai`."""
    with Obstinate() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.released.set()
        server.shutdown()


@pytest.fixture(scope="module")
def world(
    databases: Databases, template_database: str, valkey: EmbeddedValkey, obstinate: Obstinate
) -> Iterator[FaultyWorld]:
    """A running service whose calls are tried once only, so that some fail."""
    base_url = f"http://127.0.0.1:{obstinate.server_port}/v1"
    provider = {"OPENAI_BASE_URL": base_url, "OPENAI_API_KEY": "sk-any", "ASSAY_CALL_ATTEMPTS": "1"}
    with faulty_world(databases, template_database, valkey, provider) as running:
        yield running


def stop(world: FaultyWorld, obstinate: Obstinate, verb: str, model: str, seed: int, seconds: float) -> None:
    """Stops a job with calls under way to an obstinate provider, which it must not wait for."""
    rng = random.Random(seed)
    job_id = world.stack.submit(JOB | {"models": [f"openai/{model}"]})
    calls = rng.randint(1, START) if model.startswith("hanging") else 1
    assert eventually(lambda: len(obstinate.of(model)) >= calls, 60), f"seed {seed}"
    time.sleep(rng.random() * 0.5)
    asked = time.monotonic()
    answer = world.stack.act(job_id, verb)
    answered = time.monotonic()
    if verb == "pause":
        assert answer["status"] == "paused"
    else:
        job = world.stack.ended(job_id, seconds)
        assert (job["status"], job["completeness"]) == ("cancelled", "partial"), f"seed {seed}"
        # What was on the wire may have been paid: it is accounted for, at an unknown cost.
        assert job["usage"]["calls"] == len(obstinate.of(model))
        if model.startswith("hanging"):
            assert job["cost"]["unpriced_calls"] == len(obstinate.of(model))
    took = time.monotonic() - asked
    assert took < seconds, f"seed {seed}: {took:.1f} s"
    time.sleep(STARTING_SECONDS)
    assert max(obstinate.of(model)) <= answered + STARTING_SECONDS, (
        f"seed {seed}: a call started after the answer"
    )
    before = len(obstinate.of(model))
    time.sleep(STARTING_SECONDS)
    assert len(obstinate.of(model)) == before, f"seed {seed}: a call started after the answer"
    if verb == "pause":
        world.stack.act(job_id, "cancel")
        world.stack.ended(job_id, seconds)


class TestStopped:
    @pytest.mark.parametrize("verb", ["cancel", "pause"])
    @pytest.mark.parametrize("kind", ["hanging", "waiting"])
    def test_it_waits_neither_for_a_hanging_call_nor_for_what_the_provider_asks(
        self, world: FaultyWorld, obstinate: Obstinate, verb: str, kind: str
    ) -> None:
        stop(world, obstinate, verb, f"{kind}-{verb}", 1, PATIENT_SECONDS)

    @pytest.mark.long
    @pytest.mark.timeout(7200)
    @pytest.mark.parametrize("verb", ["cancel", "pause"])
    @pytest.mark.parametrize("kind", ["hanging", "waiting"])
    def test_it_does_so_within_three_seconds_100_times(
        self, world: FaultyWorld, obstinate: Obstinate, verb: str, kind: str
    ) -> None:
        for seed in range(100):
            stop(world, obstinate, verb, f"{kind}-{verb}-{seed}", seed, PROMISED_SECONDS)


class TestRetried:
    def test_only_what_failed_is_done_again_though_the_worker_dies(
        self, world: FaultyWorld, undisturbed: Undisturbed
    ) -> None:
        world.stack.simulate(latency_ms=0, error_rate=0.2)
        job_id = world.stack.submit(JOB)
        job = world.stack.ended(job_id)
        assert (job["status"], job["completeness"]) == ("completed", "partial")
        failed = {path for path, times in _unanswered(world.stack, job_id).items() if times}
        kept = recorded(world, job_id) - failed
        before = identities(world.stack.ledger(job_id))

        world.stack.simulate(latency_ms=60, error_rate=0)
        assert world.stack.act(job_id, "retry")["status"] in {"queued", "running"}
        world.stack.after_calls(len(failed) // 3)
        worker = world.stack.pid("worker1")
        world.stack.kill("worker1")
        world.stack.restarted("worker1", worker)
        job = world.stack.ended(job_id)
        assert (job["status"], job["completeness"]) == ("completed", "full")
        assert_same(world.stack.results(job_id), undisturbed)
        asked = identities(world.stack.ledger(job_id)) - before
        assert asked.keys() & kept == set()
        assert world.stack.act(job_id, "retry")["finished_at"] == job["finished_at"]


def _unanswered(stack: Stack, job_id: str) -> dict[str, int]:
    """How often each call was received, of those that were never answered well."""
    entries = stack.ledger(job_id)
    answered = identities([entry for entry in entries if entry["status"] == 200])
    return {path: times for path, times in identities(entries).items() if path not in answered}


class TestBudget:
    @pytest.mark.parametrize(
        "seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 21))]
    )
    def test_it_is_never_exceeded_though_the_worker_dies_and_once_raised_the_job_goes_on(
        self, world: FaultyWorld, undisturbed: Undisturbed, seed: int
    ) -> None:
        rng = random.Random(seed)
        world.stack.simulate(latency_ms=60, error_rate=0)
        limit = rng.randint(undisturbed.calls // 4, undisturbed.calls // 2)
        job_id = world.stack.submit(JOB | {"budget": {"calls": limit}})
        world.stack.after_calls(rng.randint(limit // 4, limit // 2))
        worker = world.stack.pid("worker1")
        world.stack.kill("worker1")
        world.stack.restarted("worker1", worker)
        job = world.stack.until(job_id, lambda job: job["status"] == "paused")
        assert job["status_reason"] == "budget_exhausted"
        sent = len(world.stack.ledger(job_id))
        # What the dead worker had on the wire stays reserved; nothing else is left over.
        assert limit - 3 * IN_FLIGHT <= sent <= limit
        assert job["budget"]["calls"]["remaining"] == 0

        world.stack.simulate(latency_ms=0)
        raised = world.stack.api.patch(f"/v1/jobs/{job_id}", json={"budget": {"calls": 10**6}}).json()
        assert raised["budget"]["calls"]["remaining"] == 10**6 - limit
        world.stack.act(job_id, "resume")
        job = world.stack.ended(job_id)
        assert (job["status"], job["completeness"]) == ("completed", "full")
        assert_same(world.stack.results(job_id), undisturbed)
        parts: Json = job["budget"]["calls"]
        assert parts["spent"] == job["usage"]["calls"]
        assert parts["spent"] + parts["reserved"] >= len(world.stack.ledger(job_id))


class TestFairness:
    def test_a_small_job_does_not_wait_for_a_big_one_that_fills_the_worker(self, world: FaultyWorld) -> None:
        world.stack.simulate(latency_ms=60, error_rate=0)
        big = world.stack.submit(JOB | {"iterations": 12})
        world.stack.until(big, lambda job: job["usage"]["calls"] > 50)
        # They fill the worker, and the queue before the small job.
        assert _open_shards(world, big) > 2 * SLOTS
        small = world.stack.submit(SMALL)
        job = world.stack.ended(small)
        assert (job["status"], job["completeness"]) == ("completed", "full")
        progress = world.stack.job(big)["progress"]["judging"]
        assert 0 < progress["succeeded"] < progress["total"] / 2
        assert set(identities(world.stack.ledger(big)).values()) == {1}  # nothing is asked for twice
        world.stack.act(big, "cancel")
        # Nothing waits for a place in order to end, either.
        assert world.stack.ended(big)["status"] == "cancelled"

    @pytest.mark.long
    @pytest.mark.timeout(7200)
    def test_it_takes_three_times_its_time_alone_at_most_20_times(self, world: FaultyWorld) -> None:
        world.stack.simulate(latency_ms=200, error_rate=0)
        alone = min(self._seconds(world) for _ in range(3))
        big = world.stack.submit(JOB | {"personas": ["big-five"], "instructions": "all", "iterations": 200})
        world.stack.until(big, lambda job: job["usage"]["calls"] > 500)
        took = [self._seconds(world) for _ in range(20)]
        assert not world.stack.job(big)["finished_at"]
        world.stack.act(big, "cancel")
        world.stack.ended(big)
        assert max(took) <= 3 * alone, (alone, took)

    @staticmethod
    def _seconds(world: FaultyWorld) -> float:
        started = time.monotonic()
        assert world.stack.ended(world.stack.submit(SMALL))["status"] == "completed"
        return time.monotonic() - started


def _open_shards(world: FaultyWorld, job_id: str) -> int:
    row = world.database.execute(
        "SELECT count(*) FROM shards WHERE job_id = %s AND NOT done", [job_id]
    ).fetchone()
    assert row is not None
    return int(row[0])
