"""The worker dies in each stage of a PersonaGym job, which ends as if it had not, with nothing prepared twice."""

from collections import Counter

import pytest

from tests.e2e.stack import Json, Stack
from tests.faults.conftest import IN_FLIGHT, FaultyWorld
from tests.faults.test_kill_worker import identities
from tests.observe import eventually

JOB: Json = {
    "personas": ["gym-05", "gym-13", "gym-19"],
    "tasks": [
        {"task": "expected_action", "questions": 4},
        {"task": "toxicity_control", "questions": 3, "atomic": True},
    ],
    "models": ["simulated/sim-drifting", "simulated-anthropic/sim-refusing"],
    "judges": ["simulated/sim-judge-lenient", "simulated-anthropic/sim-judge-noisy"],
    "reasoner": "simulated/sim-reasoner-sloppy",
}
MODELS = 5
COMPARED = (
    "completeness",
    "cells",
    "totals",
    "persona_scores",
    "persona_score_totals",
    "judge_agreement",
    "preparation",
)


@pytest.fixture(scope="module")
def undisturbed(world: FaultyWorld) -> Json:
    """The results of the job when nothing happens to it."""
    world.stack.simulate(latency_ms=0)
    job_id = world.stack.submit(JOB)
    job = world.stack.ended(job_id)
    assert (job["status"], job["completeness"]) == ("completed", "full")
    asked = identities(world.stack.ledger(job_id))
    assert set(asked.values()) == {1}
    return world.stack.results(job_id) | {"asked": set(asked)}


def recorded(world: FaultyWorld, job_id: str) -> set[str]:
    """The calls whose outcome is in the database."""
    rows = world.database.execute(
        "SELECT concat_ws('/', 'generation', ordinal, run, item) FROM responses JOIN cells ON cells.id = cell_id"
        " WHERE job_id = %(job)s"
        " UNION ALL SELECT concat_ws('/', 'judging', ordinal, run, item, unit, trait, judge)"
        "  FROM verdicts JOIN cells ON cells.id = cell_id WHERE job_id = %(job)s"
        " UNION ALL SELECT concat_ws('/', 'judging', ordinal, run, item, judge)"
        "  FROM grades JOIN cells ON cells.id = cell_id WHERE job_id = %(job)s"
        " UNION ALL SELECT concat_ws('/', kind, persona, nullif(task, ''),"
        "   CASE kind WHEN 'exemplars' THEN item END, ask) FROM preparations WHERE job_id = %(job)s",
        {"job": job_id},
    )
    return {path for (path,) in rows}


class TestWorkerKilled:
    @pytest.mark.parametrize(
        ("kind", "calls"),
        [("environments", 1), ("questions", 3), ("exemplars", 7), ("generation", 8), ("grade", 12)],
    )
    def test_job_ends_as_if_nothing_had_happened_and_asks_for_nothing_recorded_again(
        self, world: FaultyWorld, slow: Stack, undisturbed: Json, kind: str, calls: int
    ) -> None:
        job_id = slow.submit(JOB)
        assert eventually(lambda: self._asked(slow, job_id)[kind] >= calls, 30)
        worker = slow.pid("worker1")
        slow.kill("worker1")
        slow.restarted("worker1", worker)
        kept = recorded(world, job_id)  # the new worker has not even loaded its modules
        before = identities(slow.ledger(job_id))

        job = slow.ended(job_id)
        asked = identities(slow.ledger(job_id))
        assert (job["status"], job["completeness"]) == ("completed", "full")
        found = slow.results(job_id)
        for part in COMPARED:
            assert found[part] == undisturbed[part], part
        assert (
            found["manifest"]["personagym"]["question_set"]
            == undisturbed["manifest"]["personagym"]["question_set"]
        )
        assert len(before) < len(undisturbed["asked"])
        assert set(asked) == undisturbed["asked"]
        assert (asked - before).keys() & kept == set()
        assert asked.total() - len(asked) <= MODELS * 2 * IN_FLIGHT
        assert max(asked.values()) <= 2

    @staticmethod
    def _asked(stack: Stack, job_id: str) -> Counter[str]:
        return Counter(entry["kind"] for entry in stack.ledger(job_id))
