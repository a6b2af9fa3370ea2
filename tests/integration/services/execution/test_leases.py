"""Leases are kept while their shards are worked at, on a real database."""

import asyncio
import contextlib
import time
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.execution import shards
from app.db.execution.shards import AnyClaim
from app.services.execution import leases
from app.services.execution.leases import LeaseKeeper
from app.services.execution.stop_signal import StoppedError, StopReason, StopSignal
from app.services.jobs.view import view_job
from app.telemetry.metrics import LEASES_LOST
from tests.integration.jobs import TENANT, claimed, execute, expire, new_job, scalar, take


class TestLeaseKeeper:
    async def test_it_renews_and_notices_a_loss(self, engine: AsyncEngine) -> None:
        claim = await claimed(engine, (await new_job(engine)).id)
        keeper, stop = LeaseKeeper(engine, 0.4), StopSignal()
        async with keeper.running():
            with keeper.holding(claim, stop, time.monotonic()):
                await asyncio.sleep(0.6)
                assert stop.reason is None
                assert await scalar(engine, "SELECT lease_expires_at > clock_timestamp() FROM shards")
                await execute(engine, "UPDATE shards SET lease_token = lease_token + 1")
                await asyncio.sleep(0.3)
        assert stop.reason is StopReason.LEASE_LOST

    async def test_it_reports_the_calls_on_the_wire(
        self, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        renewed = asyncio.Event()
        renew = shards.renew

        async def renewing(*args: Any) -> set[AnyClaim]:
            kept: set[AnyClaim] = await renew(*args)
            renewed.set()
            return kept

        monkeypatch.setattr(shards, "renew", renewing)
        job = await new_job(engine)
        claim = await claimed(engine, job.id)
        keeper, stop = LeaseKeeper(engine, 4.0), StopSignal()
        assert (await view_job(engine, TENANT, job.id)).on_the_wire is None
        async with keeper.running():
            with keeper.holding(claim, stop, time.monotonic()), stop.on_the_wire():
                await renewed.wait()
                assert (await view_job(engine, TENANT, job.id)).on_the_wire == 1
        await execute(engine, "UPDATE shards SET lease_owner = NULL, lease_expires_at = NULL")
        assert (await view_job(engine, TENANT, job.id)).on_the_wire == 0

    async def test_what_can_not_be_renewed_is_stopped_when_its_lease_has_run_out(
        self, engine: AsyncEngine
    ) -> None:
        """Also when the database does not even say no: here the shard's row is locked, and renewing waits."""
        claim = await claimed(engine, (await new_job(engine)).id)
        keeper, stop = LeaseKeeper(engine, 0.4), StopSignal()
        async with engine.begin() as holder:
            await holder.execute(text("SELECT FROM shards FOR UPDATE"))
            async with keeper.running():
                with keeper.holding(claim, stop, time.monotonic()):
                    while stop.reason is None:  # noqa: ASYNC110 - seen from outside
                        await asyncio.sleep(0.01)
        assert stop.reason is StopReason.LEASE_LOST

    async def test_a_shard_that_has_ended_is_not_one_that_was_lost(self, engine: AsyncEngine) -> None:
        claim = await claimed(engine, (await new_job(engine)).id)
        keeper, stop, before = LeaseKeeper(engine, 0.2), StopSignal(), LEASES_LOST._value.get()
        async with keeper.running():
            with keeper.holding(claim, stop, time.monotonic()):
                await execute(engine, "UPDATE shards SET done = true, lease_owner = NULL")
                keeper.given_back(claim)
                await asyncio.sleep(0.3)  # others are told of it
        assert stop.reason is None
        assert LEASES_LOST._value.get() == before

    async def test_no_call_starts_when_the_lease_has_run_out_though_the_job_is_seen_to_be_active(
        self, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(leases, "JOB_CHECK_SECONDS", 0.02)
        lease = 2.0
        claim = await claimed(engine, (await new_job(engine)).id)
        keeper, stop, asked = LeaseKeeper(engine, lease), StopSignal(), time.monotonic()
        confirmed = 0.0
        async with engine.begin() as holder:
            await holder.execute(text("SELECT FROM shards FOR UPDATE"))
            async with keeper.running():
                with keeper.holding(claim, stop, asked), contextlib.suppress(TimeoutError, StoppedError):
                    while stop.reason is None:
                        async with asyncio.timeout(lease):
                            await stop.confirmed()
                        confirmed = time.monotonic() - asked
                        await asyncio.sleep(0.01)
        assert lease - 0.5 < confirmed < lease + 0.02

    async def test_a_shard_that_one_process_holds_twice_is_kept_for_the_new_claim(
        self, engine: AsyncEngine
    ) -> None:
        old = await claimed(engine, (await new_job(engine)).id)
        await expire(engine, old)
        new = await take(engine, old.shard_id)
        assert new is not None
        keeper, stop_old, stop_new = LeaseKeeper(engine, 0.4), StopSignal(), StopSignal()
        async with keeper.running():
            with keeper.holding(new, stop_new, time.monotonic()):
                with keeper.holding(old, stop_old, time.monotonic()):
                    await asyncio.sleep(0.2)
                await expire(engine, new)
                await asyncio.sleep(0.2)
                assert await scalar(engine, "SELECT lease_expires_at > clock_timestamp() FROM shards")
        assert (stop_old.reason, stop_new.reason) == (StopReason.LEASE_LOST, None)

    @pytest.mark.parametrize("end", ["UPDATE jobs SET status = 'paused'", "DELETE FROM jobs"])
    async def test_it_stops_the_shards_of_jobs_that_may_not_call(
        self, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch, end: str
    ) -> None:
        monkeypatch.setattr(leases, "JOB_CHECK_SECONDS", 0.02)
        claim = await claimed(engine, (await new_job(engine)).id)
        keeper, stop = LeaseKeeper(engine, 20), StopSignal()
        async with keeper.running():
            with keeper.holding(claim, stop, time.monotonic()):
                await execute(engine, end)
                await asyncio.sleep(0.2)
        assert stop.reason is StopReason.JOB_INACTIVE

    async def test_after_a_shutdown_new_shards_stop_at_once(self, engine: AsyncEngine) -> None:
        claim = await claimed(engine, (await new_job(engine)).id)
        keeper, before, after = LeaseKeeper(engine, 20), StopSignal(), StopSignal()
        with contextlib.ExitStack() as held:
            held.enter_context(keeper.holding(claim, before, time.monotonic()))
            keeper.stop_all(StopReason.SHUTDOWN)
            held.enter_context(
                keeper.holding(await claimed(engine, (await new_job(engine)).id), after, time.monotonic())
            )
            assert before.reason is after.reason is StopReason.SHUTDOWN
