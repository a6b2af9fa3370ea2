"""Shards that are delivered several times, to workers that stood still until others had done the work."""

import asyncio
from collections import Counter

import pytest
import structlog
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.execution import shards
from app.db.execution.shards import Claim
from app.services.execution import stop_signal
from app.services.scheduling.dispatcher import claim_next
from app.telemetry.metrics import SHARD_FAILURES
from tests.faults.trial import report
from tests.integration.jobs import execute, new_job, scalar, shard_ids
from tests.integration.services.scheduling.test_run_shard import Provider, Worker

STALE = "What a stale owner wrote. It must not be seen."
CALLS = 6  # two texts of two sentences


@pytest.fixture(autouse=True)
def _jobs_stay_active(monkeypatch: pytest.MonkeyPatch) -> None:
    """These workers have no lease keeper that sees again that a job is active."""
    monkeypatch.setattr(stop_signal, "FRESH_SECONDS", 3600.0)


async def deliver_thrice(engine: AsyncEngine) -> None:
    """One shard: its first holder stands still past its lease, two others are told of it at once, then the first goes on."""
    job = await new_job(engine)
    (shard_id,) = await shard_ids(engine, job.id)
    frozen = Worker(engine, Provider(text=STALE, gate=asyncio.Event()))
    others = [Worker(engine, Provider()), Worker(engine, Provider())]
    async with frozen.deps.writer.running(), others[0].deps.writer.running(), others[1].deps.writer.running():
        first = asyncio.create_task(frozen.run(shard_id))
        await frozen.provider.called.wait()
        await execute(
            engine,
            "UPDATE shards SET lease_expires_at = clock_timestamp() - interval '1 second' WHERE id = :id",
            id=shard_id,
        )
        await asyncio.gather(*(other.run(shard_id) for other in others))
        done = await execute(engine, "SELECT * FROM shards WHERE id = :id", id=shard_id)
        assert frozen.provider.gate is not None
        frozen.provider.gate.set()
        await first
        await others[0].run(shard_id)  # once more, when all is done

    assert await execute(engine, "SELECT * FROM shards WHERE id = :id", id=shard_id) == done
    made = Counter(others[0].provider.calls + others[1].provider.calls)
    assert set(made.values()) == {1}
    assert made.total() == CALLS
    of_shard = "WHERE cell_id = (SELECT cell_id FROM shards WHERE id = :id)"
    texts = await execute(engine, f"SELECT text FROM responses {of_shard}", id=shard_id)
    assert len(texts) == 2
    assert STALE not in {text for (text,) in texts}
    assert await scalar(engine, f"SELECT count(*) FROM verdicts {of_shard}", id=shard_id) == CALLS - 2
    # What the stale owner had paid for is accounted for all the same.
    paid = await scalar(engine, "SELECT count(*) FROM calls WHERE shard_id = :id", id=shard_id)
    assert paid == CALLS + len(frozen.provider.calls)
    assert len(frozen.provider.calls) == 2
    assert (await others[0].finalize(job)).completeness == "full"


@pytest.mark.usefixtures("calls_at_once")
class TestStaleOwner:
    async def test_writes_nothing_and_effects_happen_once(self, engine: AsyncEngine) -> None:
        for _ in range(10):
            await deliver_thrice(engine)
        report("stale owners, short", seed=0, n=10, of=10)

    @pytest.mark.long
    @pytest.mark.timeout(3600)
    async def test_a_thousand_times(self, engine: AsyncEngine) -> None:
        for _ in range(1000):
            await deliver_thrice(engine)
        report("stale owners", seed=0, n=1000, of=1000)

    async def test_that_wakes_when_all_its_rows_are_there_is_no_error_of_ours(
        self, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A virtual machine that was stopped between its last row and the end of its shard, until another worker had it."""
        job = await new_job(engine)
        (shard_id,) = await shard_ids(engine, job.id)
        ordinary = shards.finish

        async def finish_after_a_pause(connection: AsyncConnection, held: Claim) -> bool:
            await execute(
                engine, "UPDATE shards SET lease_token = lease_token + 1 WHERE id = :id", id=shard_id
            )
            return await ordinary(connection, held)

        monkeypatch.setattr(shards, "finish", finish_after_a_pause)
        failures = SHARD_FAILURES._value.get()
        frozen = Worker(engine, Provider())
        with structlog.testing.capture_logs() as told:
            async with frozen.deps.writer.running():
                await frozen.run(shard_id)
        assert [line for line in told if line["log_level"] == "error"] == []
        assert SHARD_FAILURES._value.get() == failures
        assert await scalar(engine, "SELECT failures FROM shards WHERE id = :id", id=shard_id) == 0


@pytest.mark.usefixtures("calls_at_once")
class TestLateOwner:
    async def test_that_is_the_only_one_pays_for_nothing_twice(self, engine: AsyncEngine) -> None:
        """A busy machine: the lease runs out while calls are on the wire, and the same process gets the next messages."""
        job = await new_job(engine)
        (shard_id,) = await shard_ids(engine, job.id)
        worker = Worker(engine, Provider(gate=asyncio.Event()))
        async with worker.deps.writer.running():
            first = asyncio.create_task(worker.run(shard_id))
            await worker.provider.called.wait()
            lapsed = "lease_expires_at = clock_timestamp() - interval '1 second'"
            await execute(engine, f"UPDATE shards SET {lapsed}, announced_at = now() - interval '1 minute'")
            async with asyncio.timeout(30):
                await worker.run(shard_id)
            assert await claim_next(worker.deps) is None
            assert not first.done()
            assert worker.provider.gate is not None
            worker.provider.gate.set()
            await first
        assert Counter(worker.provider.calls).total() == len(set(worker.provider.calls)) == CALLS
        assert await scalar(engine, "SELECT lease_token FROM shards WHERE id = :id", id=shard_id) == 1
        assert (await worker.finalize(job)).completeness == "full"
