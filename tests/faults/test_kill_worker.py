"""Parts of the service die in the middle of a job, which ends as if they had not."""

import random
from collections import Counter

import httpx2
import pytest
import redis

from embedded.valkey import EmbeddedValkey
from tests.e2e.stack import Json, Stack, judged_path
from tests.faults.conftest import IN_FLIGHT, JOB, FaultyWorld, Undisturbed
from tests.observe import eventually

SEEDS = (1, 2)
MODELS = 3  # two that write, one that judges


def identities(entries: list[Json]) -> Counter[str]:
    """How often each judgement and each text was asked for."""
    return Counter(judged_path(entry["request_id"]) for entry in entries)


def recorded(world: FaultyWorld, job_id: str) -> set[str]:
    """The calls whose outcome is in the database."""
    rows = world.database.execute(
        "SELECT concat_ws('/', 'generation', ordinal, run, item) FROM responses JOIN cells ON cells.id = cell_id"
        " WHERE job_id = %(job)s UNION ALL"
        " SELECT concat_ws('/', 'judging', ordinal, run, item, unit, trait, judge)"
        " FROM verdicts JOIN cells ON cells.id = cell_id WHERE job_id = %(job)s",
        {"job": job_id},
    )
    return {path for (path,) in rows}


def assert_same(found: Json, undisturbed: Undisturbed) -> None:
    for part in ("completeness", "cells", "totals", "judges", "control"):
        assert found[part] == undisturbed.results[part], part


@pytest.fixture(params=SEEDS, ids="seed={}".format)
def struck_after(request: pytest.FixtureRequest, undisturbed: Undisturbed) -> int:
    """Calls after which something dies: drawn from the middle of the job."""
    return random.Random(request.param).randint(undisturbed.calls // 10, undisturbed.calls // 2)


class TestWorkerKilled:
    def test_job_ends_as_if_nothing_had_happened_and_asks_for_nothing_recorded_again(
        self,
        world: FaultyWorld,
        slow: Stack,
        undisturbed: Undisturbed,
        struck_after: int,
    ) -> None:
        job_id = slow.submit(JOB)
        slow.after_calls(struck_after)
        worker = slow.pid("worker1")
        slow.kill("worker1")
        slow.restarted("worker1", worker)
        kept = recorded(world, job_id)  # the new worker has not even loaded its modules
        asked_before = identities(slow.ledger(job_id))

        job = slow.ended(job_id)
        asked = identities(slow.ledger(job_id))
        asked_after = asked - asked_before
        twice = asked.total() - len(asked)
        assert 0 < len(asked_before) < undisturbed.calls  # it was in mid-job
        assert (job["status"], job["completeness"]) == ("completed", "full")
        assert_same(slow.results(job_id), undisturbed)
        assert asked_after.keys() & kept == set()
        assert max(asked.values()) <= 2
        # What was asked for twice was on the wire, or answered and on its way into the database.
        assert twice <= MODELS * 2 * IN_FLIGHT

    def test_without_a_kill_nothing_is_asked_for_twice(self, slow: Stack, undisturbed: Undisturbed) -> None:
        slow.simulate(latency_ms=0)
        job_id = slow.submit(JOB)
        slow.ended(job_id)
        asked = identities(slow.ledger(job_id))
        assert set(asked.values()) == {1}
        assert asked.total() == undisturbed.calls
        assert_same(slow.results(job_id), undisturbed)


class TestOtherPartKilled:
    @pytest.mark.parametrize("part", ["api", "sweeper"])
    def test_job_goes_on_and_ends_as_if_nothing_had_happened(
        self, slow: Stack, undisturbed: Undisturbed, part: str
    ) -> None:
        job_id = slow.submit(JOB)
        slow.after_calls(undisturbed.calls // 5)
        former = slow.pid(part)
        slow.kill(part)
        slow.restarted(part, former)
        slow.simulate(latency_ms=0)
        assert eventually(lambda: self._answers(slow), 120)
        job = slow.ended(job_id)
        assert (job["status"], job["completeness"]) == ("completed", "full")
        assert_same(slow.results(job_id), undisturbed)
        assert set(identities(slow.ledger(job_id)).values()) == {1}

    @staticmethod
    def _answers(stack: Stack) -> bool:
        try:
            return bool(stack.api.get("/readyz").json()["status"] == "ok")
        except httpx2.TransportError:
            return False


class TestQueueEmptied:
    def test_job_ends_as_if_nothing_had_happened(
        self, world: FaultyWorld, slow: Stack, undisturbed: Undisturbed, valkey: EmbeddedValkey
    ) -> None:
        job_id = slow.submit(JOB)
        slow.after_calls(undisturbed.calls // 10)
        with redis.Redis.from_url(valkey.url()) as client:
            waiting = client.llen("assay")
            client.flushall()
        assert waiting > 0
        slow.simulate(latency_ms=0)
        # A message may wait for half a minute before it counts as lost; the test has no half a minute.
        world.database.execute(
            "UPDATE shards SET announced_at = announced_at - interval '1 minute' WHERE job_id = %s", [job_id]
        )
        job = slow.ended(job_id)
        assert (job["status"], job["completeness"]) == ("completed", "full")
        assert_same(slow.results(job_id), undisturbed)
        assert set(identities(slow.ledger(job_id)).values()) == {1}
