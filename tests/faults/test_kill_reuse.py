"""Replies that are used again, on a running service of two workers: by the provider's own record, each is asked for once."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from embedded.valkey import EmbeddedValkey
from tests.databases import Databases
from tests.e2e.stack import Json, Stack, judged_path
from tests.faults.conftest import IN_FLIGHT, JOB, LATENCY_MS, FaultyWorld, Undisturbed, faulty_world
from tests.faults.test_kill_worker import MODELS, assert_same, recorded

WORKERS = 2
SECONDS = 300.0
PATIENT = {"ASSAY_LEASE_SECONDS": "10"}
"""A busy machine's worker that loses its leases asks twice, which is another test's matter."""

IN_JOB: Json = JOB | {"reuse": {"judging": "in_job"}}
ACROSS_JOBS: Json = JOB | {"reuse": {"judging": "across_jobs", "generation": "across_jobs"}}
SLOW_MS = 150.0  # so that what is answered is soon on disk beside what is on the wire, on a busy machine too
CELLS_A_PERSONA = 4  # 2 tasks × 2 models

Asked = tuple[str, ...]
"""What a call says to its model: a judge's by task, dimension and sentence, which are all that its prompt is made of."""


@dataclass(frozen=True)
class Plain:
    """The job when every call is made, and what each of its calls says."""

    undisturbed: Undisturbed
    said: dict[str, Asked]

    @property
    def different(self) -> set[Asked]:
        return set(self.said.values())


def said(entry: Json) -> Asked:
    path = judged_path(entry["request_id"])
    if entry["kind"] != "judge":
        return (path,)
    task = int(path.split("/")[1]) % CELLS_A_PERSONA // 2
    return ("judge", str(task), entry["dimension"], entry["sentence"])


def asked(stack: Stack, job_id: str) -> Counter[Asked]:
    """How often a job said each thing."""
    return Counter(said(entry) for entry in stack.ledger(job_id))


def told(stack: Stack, job_id: str) -> list[tuple[str, int, int | None]]:
    """The calls that said what others had said: id, status, and the place of their reply, if they had one."""
    entries = stack.ledger(job_id)
    often = Counter(said(entry) for entry in entries)
    return [(e["request_id"], e["status"], e["answered"]) for e in entries if often[said(e)] > 1]


@pytest.fixture(scope="module")
def world(databases: Databases, template_database: str, valkey: EmbeddedValkey) -> Iterator[FaultyWorld]:
    with faulty_world(databases, template_database, valkey, PATIENT, workers=WORKERS) as running:
        yield running


@pytest.fixture(scope="module")
def plain(world: FaultyWorld) -> Plain:
    world.stack.simulate(latency_ms=0)
    job_id = world.stack.submit(JOB)
    job = world.stack.ended(job_id, SECONDS)
    assert (job["status"], job["completeness"], job["reuse"]) == ("completed", "full", None)
    (kept,) = world.database.execute("SELECT count(*) FROM replies").fetchone() or ()
    assert kept == 0
    ledger = world.stack.ledger(job_id)
    found = {judged_path(entry["request_id"]): said(entry) for entry in ledger}
    return Plain(Undisturbed(world.stack.results(job_id), len(ledger)), found)


class TestInsideAJob:
    def test_each_thing_is_asked_once_and_the_results_are_the_same(
        self, world: FaultyWorld, plain: Plain
    ) -> None:
        stack = world.stack
        stack.simulate(latency_ms=LATENCY_MS)
        job_id = stack.submit(IN_JOB)
        job = stack.ended(job_id, SECONDS)
        found = asked(stack, job_id)
        assert found == Counter(plain.different), told(stack, job_id)
        assert found.total() < 0.6 * len(plain.said)  # there was much to be spared
        assert job["reuse"]["same_job"] == len(plain.said) - len(plain.different)
        assert (job["usage"]["calls"], job["reuse"]["other_job"]) == (len(plain.different), 0)
        assert_same(stack.results(job_id), plain.undisturbed)
        origins = Counter(
            verdict["reused"]
            for arm in ("persona", "control")
            for response in stack.responses(job_id, arm=arm)
            for unit in response["units"]
            for verdict in unit["verdicts"]
        )
        assert origins["same_job"] == job["reuse"]["same_job"]


class TestAcrossJobs:
    def test_the_second_job_makes_no_call_and_has_the_same_results(
        self, world: FaultyWorld, plain: Plain
    ) -> None:
        stack = world.stack
        stack.simulate(latency_ms=0)
        first = stack.submit(ACROSS_JOBS)
        stack.ended(first, SECONDS)
        assert asked(stack, first) == Counter(plain.different), told(stack, first)
        second = stack.submit(ACROSS_JOBS)
        job = stack.ended(second, SECONDS)
        assert (job["status"], job["completeness"]) == ("completed", "full")
        # A refusal is not kept, whether its provider calls it one or its words do.
        refused = {said(entry) for entry in stack.ledger(first) if entry.get("refusal")}
        assert set(asked(stack, second)) == refused
        assert len(refused) < 0.04 * len(plain.different)
        assert not any(entry["kind"] == "judge" for entry in stack.ledger(second))
        assert job["usage"]["calls"] == len(refused)
        assert job["reuse"]["other_job"] + job["reuse"]["same_job"] == len(plain.said) - len(refused)
        for job_id in (first, second):
            assert_same(stack.results(job_id), plain.undisturbed)


class TestWorkerKilled:  # last: a worker that has just started takes long over its imports on a busy machine
    def test_a_killed_worker_changes_nothing_and_what_is_recorded_is_not_asked_again(
        self, world: FaultyWorld, plain: Plain
    ) -> None:
        stack = world.stack
        stack.simulate(latency_ms=SLOW_MS)
        job_id = stack.submit(IN_JOB)
        stack.after_calls(len(plain.different) // 3)
        former = stack.pid("worker1")
        stack.kill("worker1")
        kept = {plain.said[path] for path in recorded(world, job_id) & plain.said.keys()}
        before = asked(stack, job_id)
        stack.restarted("worker1", former)
        job = stack.ended(job_id, SECONDS)
        found = asked(stack, job_id)
        assert (job["status"], job["completeness"]) == ("completed", "full")
        assert before.total() < len(plain.different)
        assert set(found) == plain.different
        assert (found - before).keys() & kept == set()
        # As in a job that spares nothing: on the wire, or answered and on its way into the database.
        assert found.total() - len(found) <= MODELS * 2 * IN_FLIGHT, told(stack, job_id)
        assert_same(stack.results(job_id), plain.undisturbed)
