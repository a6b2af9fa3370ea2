"""The worker dies in each stage of a PersonaGym job, which ends as if it had not, with nothing prepared twice."""

from collections import Counter
from typing import ClassVar

import pytest

from tests.e2e.stack import Json, Stack
from tests.faults.conftest import IN_FLIGHT, LATENCY_MS, FaultyWorld
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


class TestWorkerKilledWhileItGradesExistingAnswers:
    @pytest.fixture
    def body(self, world: FaultyWorld, undisturbed: Json) -> Json:
        """The answers of the undisturbed job, but for one that its model now lacks."""
        answers = [
            {name: each[name] for name in ("model", "persona", "task", "question", "run", "text")}
            for each in world.stack.responses(undisturbed["job"])
            if each["status"] == "answered"
        ]
        tasks = ["expected_action", {"task": "toxicity_control", "atomic": True}]
        kept = {"personas": JOB["personas"], "judges": JOB["judges"], "reasoner": JOB["reasoner"]}
        return kept | {"tasks": tasks, "responses": answers[1:]}

    @pytest.mark.parametrize(("kind", "calls"), [("exemplars", 7), ("grade", 12)])
    def test_job_ends_as_if_nothing_had_happened_and_asks_for_nothing_recorded_again(
        self, world: FaultyWorld, slow: Stack, body: Json, kind: str, calls: int
    ) -> None:
        world.stack.simulate(latency_ms=0)
        self._forget_exemplars(world)
        first = world.stack.submit(body)
        world.stack.ended(first)
        whole = identities(world.stack.ledger(first))
        slow.simulate(latency_ms=LATENCY_MS)
        self._forget_exemplars(world)
        job_id = slow.submit(body)
        assert eventually(lambda: Counter(e["kind"] for e in slow.ledger(job_id))[kind] >= calls, 30)
        worker = slow.pid("worker1")
        slow.kill("worker1")
        slow.restarted("worker1", worker)
        kept, before = recorded(world, job_id), identities(slow.ledger(job_id))
        job = slow.ended(job_id)
        asked = identities(slow.ledger(job_id))
        assert (job["status"], job["completeness"]) == ("completed", "partial")  # one answer is missing
        found, undisturbed = slow.results(job_id), slow.results(first)
        for part in COMPARED:
            assert found[part] == undisturbed[part], part
        assert len(before) < len(whole)
        assert set(asked) == set(whole)
        assert (asked - before).keys() & kept == set()
        assert max(asked.values()) <= 2

    @staticmethod
    def _forget_exemplars(world: FaultyWorld) -> None:
        """Else those of the job before are used again, and nobody is asked for any."""
        world.database.execute("DELETE FROM exemplars")


class TestWorkerKilledWhileItMakesUpPersonas:
    BODY: ClassVar[Json] = {"generate": {"count": 100, "reasoner": "simulated/sim-reasoner-sloppy"}}
    LATENCY_MS = 400.0  # asks follow one another, so there is always one in flight

    def test_job_ends_as_if_nothing_had_happened_and_asks_for_nothing_recorded_again(
        self, world: FaultyWorld, slow: Stack
    ) -> None:
        slow.simulate(latency_ms=0)
        first = self._submit(slow)
        slow.ended(first)
        undisturbed = slow.results(first)["persona_set"]
        assert undisturbed["found"] == 100

        slow.simulate(latency_ms=self.LATENCY_MS)
        job_id = self._submit(slow)
        assert eventually(lambda: len(slow.ledger(job_id)) >= 3, 60)
        worker = slow.pid("worker1")
        slow.kill("worker1")
        slow.restarted("worker1", worker)
        kept, before = recorded(world, job_id), identities(slow.ledger(job_id))
        job = slow.ended(job_id)
        asked = identities(slow.ledger(job_id))
        assert (job["status"], job["completeness"]) == ("completed", "full")
        assert slow.results(job_id)["persona_set"] == undisturbed
        assert len(before) < undisturbed["asks"] == len(asked)
        assert (asked - before).keys() & kept == set()
        assert asked.total() - len(asked) <= 1

    def _submit(self, stack: Stack) -> str:
        answer = stack.api.post("/v1/persona-sets", json=self.BODY)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])
