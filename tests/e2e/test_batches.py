"""Jobs whose calls go out in batches, against the same jobs with direct calls."""

from collections import Counter
from collections.abc import Iterator

import pytest

from embedded.valkey import EmbeddedValkey
from tests.conftest import scratch_directory
from tests.databases import Databases
from tests.e2e.stack import Json, Stack, judged_path, running_stack

POLLED_OFTEN = {
    "ASSAY_BATCH_POLL_SECONDS": "0.1",
    "ASSAY_BATCH_CALLS": "150",
    "ASSAY_SWEEP_SECONDS": "0.2",
    "ASSAY_LEASE_SECONDS": "5",
}
BATCH_MS = 200


@pytest.fixture(scope="module")
def stack(databases: Databases, template_database: str, valkey: EmbeddedValkey) -> Iterator[Stack]:
    with (
        databases.new("batches", template=template_database) as url,
        scratch_directory() as directory,
        running_stack(
            directory, database_url=url, redis_url=valkey.url(), environment=POLLED_OFTEN
        ) as running,
    ):
        running.simulate(batch_ms=BATCH_MS)
        yield running


def body(connection: str, execution: str, **changes: object) -> Json:
    return {
        "personas": ["E-high", "N-low"],
        "tasks": ["essay", "questionnaire"],
        "models": [f"{connection}/sim-drifting", f"{connection}/sim-refusing"],
        "judges": [f"{connection}/sim-judge"],
        "instructions": [0, 2],
        "iterations": 2,
        "execution": execution,
    } | changes


def measured(results: Json) -> Json:
    """What of a job's results does not depend on how its calls were made."""
    return {name: results.get(name) for name in ("cells", "totals", "completeness", "control")}


def answered(job: Json) -> Json:
    """Tokens and calls that were answered; a direct call may have been tried again."""
    usage = job["usage"]
    calls = usage["calls"] - usage["failed_calls"]
    return {"calls": calls} | {name: usage[name] for name in ("input_tokens", "output_tokens")}


def asked(stack: Stack, job_id: str) -> Counter[str]:
    return Counter(judged_path(entry["request_id"]) for entry in stack.ledger(job_id))


class TestSameResults:
    @pytest.mark.parametrize("connection", ["simulated", "simulated-anthropic"])
    def test_as_with_direct_calls_and_nothing_is_asked_twice(self, stack: Stack, connection: str) -> None:
        direct, batched = (
            stack.submit(body(connection, execution, control=True)) for execution in ("direct", "batch")
        )
        first, second = stack.ended(direct), stack.ended(batched)
        assert (first["status"], second["status"]) == ("completed", "completed")
        assert measured(stack.results(batched)) == measured(stack.results(direct))
        assert asked(stack, batched).keys() == asked(stack, direct).keys()
        assert set(asked(stack, batched).values()) == {1}
        assert answered(second) == answered(first)


class TestCheckedJudges:
    @pytest.mark.parametrize(
        ("judging", "check"),
        [
            ({"sentences_per_call": 4}, "judging_check"),
            ({"order_check": {"share": 0.3}}, "order_check"),
        ],
    )
    def test_are_asked_as_with_direct_calls_and_nothing_is_asked_twice(
        self, stack: Stack, judging: Json, check: str
    ) -> None:
        several = {"personas": ["E-high"], "tasks": ["essay"], "judging": judging}
        direct, batched = (
            stack.submit(body("simulated", execution, **several)) for execution in ("direct", "batch")
        )
        assert [stack.ended(job)["status"] for job in (direct, batched)] == ["completed", "completed"]
        assert measured(stack.results(batched)) == measured(stack.results(direct))
        assert stack.results(batched)[check] == stack.results(direct)[check]
        assert asked(stack, batched).keys() == asked(stack, direct).keys()
        assert set(asked(stack, batched).values()) == {1}


@pytest.mark.slow
class TestKilled:
    def test_whatever_dies_while_a_job_waits_the_batches_are_found_again(self, stack: Stack) -> None:
        direct = stack.submit(body("simulated", "direct"))
        stack.ended(direct)
        stack.simulate(batch_ms=3000)
        try:
            batched = stack.submit(body("simulated", "batch"))
            stack.until(batched, lambda job: job["batches"]["ended"] > 0)
            for part in ("worker1", "sweeper"):
                former = stack.pid(part)
                stack.kill(part)
                stack.restarted(part, former)
            assert stack.ended(batched)["status"] == "completed"
        finally:
            stack.simulate(batch_ms=BATCH_MS)
        assert measured(stack.results(batched)) == measured(stack.results(direct))
        assert set(asked(stack, batched).values()) == {1}
        manifest = stack.results(batched)["manifest"]
        assert manifest["execution"] == "batch"
        assert len({batch["id"] for batch in manifest["batches"]}) == stack.job(batched)["batches"]["ended"]


class TestPersonaGym:
    def test_is_prepared_directly_and_answered_and_graded_in_batches(self, stack: Stack) -> None:
        wanted = {
            "personas": ["gym-01"],
            "tasks": [{"task": "expected_action", "questions": 3}],
            "models": ["simulated/sim-faithful"],
            "judges": ["simulated/sim-judge"],
            "reasoner": "simulated/sim-reasoner",
        }
        jobs = [stack.submit(wanted | {"execution": mode}) for mode in ("direct", "batch")]
        assert [stack.ended(job)["status"] for job in jobs] == ["completed", "completed"]
        direct, batched = (stack.results(job) for job in jobs)
        assert batched["persona_scores"] == direct["persona_scores"]
