"""Valkey ends and comes back, again and again, in the middle of a job."""

import time
from collections.abc import Iterator

import pytest

from embedded.valkey import EmbeddedValkey
from tests.conftest import scratch_directory
from tests.databases import Databases
from tests.e2e.stack import Json
from tests.faults.conftest import JOB, FaultyWorld, faulty_world

LATENCY_MS = 400.0
LONG = JOB | {"iterations": 12}
PARTS = ("worker1", "worker2")

pytestmark = pytest.mark.timeout(1200)  # for a busy machine


@pytest.fixture
def own_valkey() -> Iterator[EmbeddedValkey]:
    """A server that nobody else uses."""
    with scratch_directory() as directory, EmbeddedValkey(directory / "valkey") as server:
        yield server


@pytest.fixture
def world(databases: Databases, template_database: str, own_valkey: EmbeddedValkey) -> Iterator[FaultyWorld]:
    with faulty_world(databases, template_database, own_valkey, {}, workers=len(PARTS)) as running:
        running.stack.simulate(latency_ms=LATENCY_MS, error_rate=0, requests_per_minute=0)
        yield running


@pytest.mark.parametrize(
    ("restarts", "job"), [(3, JOB), pytest.param(40, LONG, marks=pytest.mark.long)], ids=["short", "long"]
)
def test_its_restarts_end_no_worker_and_lose_nothing(
    restarts: int, job: Json, world: FaultyWorld, own_valkey: EmbeddedValkey
) -> None:
    workers = {part: world.stack.pid(part) for part in PARTS}
    job_id = world.stack.submit(job)
    for number in range(restarts):
        world.stack.after_calls(20)
        own_valkey.process.stop()
        time.sleep(0.15 * (number % 4))  # it is away for as long as that
        own_valkey.restart()
    assert world.stack.job(job_id)["status"] == "running", "the restarts struck within the job"
    ended = world.stack.ended(job_id, 600)
    assert (ended["status"], ended["completeness"]) == ("completed", "full")
    assert {part: world.stack.pid(part) for part in PARTS} == workers
