"""What the jobs of one API key spend together, whichever of them, whatever becomes of them."""

import asyncio
import random
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.execution.result_rows import ResultWriter
from app.db.execution.shards import Claim
from app.db.jobs.budgets import Cap, CapOf, Payers, Wanted, any_outstanding, read_caps
from app.domain.errors import InvalidJobError
from app.domain.jobs.budget import NANOS, Amount, Budget
from app.domain.jobs.status import JobStatus
from app.domain.keys.api_key import Scope
from app.domain.keys.contract import ApiKeyChangeIn, ApiKeyIn, LimitsOfTenant, SpendingIn
from app.services.errors import CallNotAllowedError, NotUnderCapError, SpendingCapError
from app.services.execution.budget_reservations import BudgetKeeper
from app.services.execution.stop_signal import StoppedError
from app.services.jobs import submit as submit_job_module
from app.services.jobs.control import check_spender, pause_job, resume_job
from app.services.jobs.retention import remove_job
from app.services.jobs.view import view_job
from app.services.keys.api_keys import KeyDependencies, change_key, create_key, find_key
from app.services.keys.tenant_limits import LimitChanges, change_limits
from tests.integration.jobs import (
    TENANT,
    call_row,
    claimed,
    control_dependencies,
    execute,
    expire,
    new_job,
    scalar,
)


async def new_key(engine: AsyncEngine, usd: float) -> str:
    deps = KeyDependencies(engine, b"p" * 32)
    key = await create_key(
        deps, TENANT, ApiKeyIn(name="a key", scopes=[Scope.SUBMIT], spending=SpendingIn(usd_limit=usd))
    )
    return key.id


async def taken(engine: AsyncEngine, key_id: str) -> float:
    """What the key shows as spent."""
    found = await find_key(engine, TENANT, key_id)
    assert found.spending is not None
    return found.spending.usd_spent


def wanted(claim: Claim, usd: float) -> Wanted:
    return Wanted(uuid4(), claim, Amount(1, 10, round(usd * NANOS)), "acme/m")


async def answered(engine: AsyncEngine, of: Wanted, usd: float) -> None:
    assert isinstance(of.claim, Claim)
    row = call_row(of.claim)._replace(id=of.call_id, usd=usd)
    await ResultWriter(engine).write({(of.claim.shard_id, of.claim.token): [row]})


class TestTogether:
    async def test_two_jobs_spend_one_cap_and_then_both_pause(self, engine: AsyncEngine) -> None:
        key = await new_key(engine, 1.0)
        jobs = [await new_job(engine, capped_key=key) for _ in range(2)]
        claims, keeper = [await claimed(engine, job.id) for job in jobs], BudgetKeeper(engine)
        sent = 0
        for claim in claims * 4:
            call = wanted(claim, 0.2)
            try:
                await asyncio.wait_for(keeper.reserve(call, patient=True), 60)
            except StoppedError:
                continue
            await answered(engine, call, 0.2)
            sent += 1
        assert sent == 5
        assert await taken(engine, key) == pytest.approx(1.0)
        rows = await execute(engine, "SELECT status, status_reason FROM jobs")
        assert [tuple(row) for row in rows] == [("paused", "spending_cap_reached")] * 2

    async def test_a_raised_cap_lets_a_resumed_job_go_on(self, engine: AsyncEngine) -> None:
        key = await new_key(engine, 0.1)
        job = await new_job(engine, capped_key=key)
        claim, keeper = await claimed(engine, job.id), BudgetKeeper(engine)
        with pytest.raises(StoppedError):
            await keeper.reserve(wanted(claim, 0.2), patient=True)
        await change_key(engine, TENANT, key, ApiKeyChangeIn(spending=SpendingIn(usd_limit=0.2)))
        resumed = await resume_job(control_dependencies(engine), TENANT, job.id)
        assert resumed.status is JobStatus.QUEUED
        assert await keeper.reserve(wanted(claim, 0.2), patient=True)

    async def test_a_job_waits_while_another_ones_call_may_turn_out_cheaper(
        self, engine: AsyncEngine
    ) -> None:
        key = await new_key(engine, 1.0)
        one, other = [await claimed(engine, (await new_job(engine, capped_key=key)).id) for _ in range(2)]
        keeper, flying = BudgetKeeper(engine), wanted(one, 0.8)
        await keeper.reserve(flying, patient=True)
        waiting = asyncio.create_task(keeper.reserve(wanted(other, 0.6), patient=True))
        await asyncio.sleep(0.3)
        assert not waiting.done()
        await answered(engine, flying, 0.4)
        assert await asyncio.wait_for(waiting, 60)

    async def test_what_was_recorded_of_another_one_is_not_waited_for_though_nobody_has_settled_it(
        self, engine: AsyncEngine
    ) -> None:
        key = await new_key(engine, 1.0)
        one, other = [await claimed(engine, (await new_job(engine, capped_key=key)).id) for _ in range(2)]
        flying = wanted(one, 0.8)
        await BudgetKeeper(engine).reserve(flying, patient=True)
        async with engine.connect() as connection:
            assert await any_outstanding(connection, other.job_id, CapOf.KEY)
            await answered(engine, flying, 0.8)
            assert not await any_outstanding(connection, other.job_id, CapOf.KEY)

    async def test_a_job_whose_own_budget_is_used_up_does_not_wait_for_the_others(
        self, engine: AsyncEngine
    ) -> None:
        key = await new_key(engine, 10.0)
        one = await claimed(engine, (await new_job(engine, capped_key=key)).id)
        small = await new_job(engine, capped_key=key, budget=Budget(usd=0.1))
        keeper = BudgetKeeper(engine)
        await keeper.reserve(wanted(one, 0.8), patient=True)
        with pytest.raises(StoppedError):
            await asyncio.wait_for(
                keeper.reserve(wanted(await claimed(engine, small.id), 0.2), patient=True), 60
            )
        reason = await scalar(engine, "SELECT status_reason FROM jobs WHERE id = :job", job=small.id)
        assert reason == "budget_exhausted"

    async def test_four_jobs_in_a_race_do_not_cross_it(self, engine: AsyncEngine) -> None:
        await self._race(engine, random.Random(0))

    @pytest.mark.long
    @pytest.mark.timeout(3600)
    async def test_nor_do_they_in_200_races(self, engine: AsyncEngine) -> None:
        for seed in range(200):
            await self._race(engine, random.Random(seed))

    async def _race(self, engine: AsyncEngine, rng: random.Random) -> None:
        key = await new_key(engine, 1.0)
        await race(engine, rng, [key] * 4, Payers(key_id=key))


async def race(engine: AsyncEngine, rng: random.Random, keys: Sequence[str | None], payers: Payers) -> None:
    """Jobs of these keys want more together than the cap of the payers allows, and some of their workers die."""
    jobs = [await new_job(engine, capped_key=key) for key in keys]
    sent: list[float] = []

    async def work(claim: Claim, keeper: BudgetKeeper) -> None:
        for _ in range(6):
            call = wanted(claim, rng.choice([0.05, 0.1, 0.2]))
            await keeper.reserve(call, patient=True)
            cost = call.most.nanos / NANOS * rng.random()
            sent.append(cost)
            await asyncio.sleep(rng.random() * 0.01)
            if rng.random() < 0.9:  # else its worker dies
                await answered(engine, call, cost)

    claims = [await claimed(engine, job.id) for job in jobs]
    workers = [asyncio.create_task(work(claim, BudgetKeeper(engine))) for claim in claims]
    for claim in claims:
        await expire(engine, claim)  # what nobody answers is not waited for
    ended = await asyncio.gather(*workers, return_exceptions=True)
    assert {type(error) for error in ended} <= {StoppedError, type(None)}
    async with engine.connect() as connection:
        [cap] = await read_caps(connection, payers)
    assert sum(sent) * NANOS <= cap.nanos_taken + len(sent) <= cap.nanos_limit + len(sent)
    await execute(engine, "DELETE FROM jobs")


async def limit(engine: AsyncEngine, usd: float | None) -> LimitsOfTenant:
    return await change_limits(engine, TENANT, LimitChanges(usd=usd, changes_cap=True))


async def spent_by_tenant(engine: AsyncEngine) -> float:
    async with engine.connect() as connection:
        [cap] = await read_caps(connection, Payers(tenant=TENANT))
    return cap.nanos_taken / NANOS


class TestTenant:
    async def test_no_number_of_keys_with_its_whole_cap_each_gets_beyond_it(
        self, engine: AsyncEngine
    ) -> None:
        await self._race(engine, random.Random(0))

    @pytest.mark.long
    @pytest.mark.timeout(3600)
    async def test_nor_in_200_races(self, engine: AsyncEngine) -> None:
        for seed in range(200):
            await self._race(engine, random.Random(seed))

    async def _race(self, engine: AsyncEngine, rng: random.Random) -> None:
        """Three keys with the tenant's own cap each, and an administrator's without any."""
        await execute(engine, "DELETE FROM tenant_limits")
        await limit(engine, 1.0)
        keys = [await new_key(engine, 1.0) for _ in range(3)]
        await race(engine, rng, [*keys, None], Payers(tenant=TENANT))

    async def test_a_job_that_pauses_says_whose_cap_it_is(self, engine: AsyncEngine) -> None:
        await limit(engine, 0.1)
        claim = await claimed(engine, (await new_job(engine, capped_key=await new_key(engine, 5.0))).id)
        with pytest.raises(StoppedError):
            await BudgetKeeper(engine).reserve(wanted(claim, 0.2), patient=True)
        told = await scalar(engine, "SELECT error ->> 'detail' FROM jobs")
        assert told == "the next call may cost more than the tenant's spending cap leaves"

    async def test_a_key_that_is_used_up_does_not_wait_for_other_keys_of_the_tenant(
        self, engine: AsyncEngine
    ) -> None:
        await limit(engine, 1.0)
        rich = await claimed(engine, (await new_job(engine)).id)
        poor = await claimed(engine, (await new_job(engine, capped_key=await new_key(engine, 0.1))).id)
        keeper = BudgetKeeper(engine)
        await keeper.reserve(wanted(rich, 0.9), patient=True)
        with pytest.raises(StoppedError):
            await asyncio.wait_for(keeper.reserve(wanted(poor, 0.2), patient=True), 60)

    async def test_a_job_waits_while_a_call_of_another_key_may_turn_out_cheaper(
        self, engine: AsyncEngine
    ) -> None:
        await limit(engine, 1.0)
        one, other = [await claimed(engine, (await new_job(engine)).id) for _ in range(2)]
        await BudgetKeeper(engine).reserve(flying := wanted(one, 0.8), patient=True)
        async with engine.connect() as connection:
            assert await any_outstanding(connection, other.job_id, CapOf.TENANT)
            await answered(engine, flying, 0.4)
            assert not await any_outstanding(connection, other.job_id, CapOf.TENANT)
        assert await BudgetKeeper(engine).reserve(wanted(other, 0.6), patient=True)

    async def test_nothing_is_accepted_once_all_is_spent_whatever_key_is_shown(
        self, engine: AsyncEngine
    ) -> None:
        await limit(engine, 1.0)
        await execute(engine, "UPDATE tenant_limits SET nanos = nanos_limit")
        for key in (None, await new_key(engine, 5.0)):
            with pytest.raises(SpendingCapError, match=r"the tenant's spending cap of \$1.00 leaves \$0.00"):
                await new_job(engine, capped_key=key)
        assert (await new_job(engine, tenant="another")).tenant == "another"

    async def test_a_removed_job_stays_spent_though_the_cap_was_taken_away_meanwhile(
        self, engine: AsyncEngine
    ) -> None:
        await limit(engine, 10.0)
        job = await new_job(engine)
        claim, keeper = await claimed(engine, job.id), BudgetKeeper(engine)
        for cost in (0.25, None):
            await keeper.reserve(call := wanted(claim, 1.0), patient=True)
            if cost is not None:
                await answered(engine, call, cost)
        await limit(engine, None)
        async with engine.begin() as connection:
            await remove_job(connection, TENANT, job.id)
        await limit(engine, 10.0)
        assert await spent_by_tenant(engine) == pytest.approx(1.25)

    async def test_what_was_submitted_before_there_was_a_cap_is_counted_and_spends_no_more(
        self, engine: AsyncEngine
    ) -> None:
        earlier = await new_job(engine)
        assert (await limit(engine, 1.0)).uncapped_jobs == 1
        later = await new_job(engine)
        deps = control_dependencies(engine)
        with pytest.raises(NotUnderCapError, match="submitted before"):
            await check_spender(deps, TENANT, earlier.id, None)
        await check_spender(deps, TENANT, later.id, None)
        await limit(engine, None)
        await check_spender(deps, TENANT, earlier.id, None)

    async def test_one_that_is_being_submitted_meanwhile_is_counted_too(
        self, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        keep_caps = submit_job_module._keep_caps
        limiting: list[asyncio.Task[LimitsOfTenant]] = []

        async def limited_meanwhile(*args: Any) -> None:
            await keep_caps(*args)
            limiting.append(asyncio.create_task(limit(engine, 1.0)))
            waits = (
                "SELECT count(*) FROM pg_locks JOIN pg_database d ON d.oid = database"
                " WHERE datname = current_database() AND locktype = 'advisory' AND NOT granted"
            )
            while not (limiting[0].done() or await scalar(engine, waits)):  # noqa: ASYNC110 - seen from outside
                await asyncio.sleep(0.01)

        monkeypatch.setattr(submit_job_module, "_keep_caps", limited_meanwhile)
        await asyncio.wait_for(new_job(engine), 60)
        assert (await limiting[0]).uncapped_jobs == 1

    async def test_a_model_that_it_may_not_use_any_more_is_called_by_no_job_again(
        self, engine: AsyncEngine
    ) -> None:
        job = await new_job(engine)
        deps = control_dependencies(engine)
        await pause_job(deps, TENANT, job.id)
        for models, refused in (
            (["simulated/sim-faithful"], "simulated/sim-judge"),
            (["simulated/sim-judge", "simulated-anthropic/*"], "simulated/sim-faithful"),
            ([], "simulated/sim-faithful"),
        ):
            await change_limits(engine, TENANT, LimitChanges(models=models, changes_models=True))
            with pytest.raises(CallNotAllowedError, match=f"does not allow {refused} for this tenant"):
                await resume_job(deps, TENANT, job.id)
            with pytest.raises(InvalidJobError, match=f"does not allow {refused} for this tenant"):
                await new_job(engine)
        await change_limits(engine, TENANT, LimitChanges(models=["simulated/*"], changes_models=True))
        await resume_job(deps, TENANT, job.id)
        await new_job(engine)


class TestRemoval:
    async def test_what_a_removed_job_spent_or_may_have_stays_spent(self, engine: AsyncEngine) -> None:
        key = await new_key(engine, 10.0)
        job = await new_job(engine, capped_key=key)
        claim, keeper = await claimed(engine, job.id), BudgetKeeper(engine)
        settled, recorded, lost = (wanted(claim, 1.0) for _ in range(3))
        await keeper.reserve(settled, patient=True)
        await answered(engine, settled, 0.25)
        await keeper.reserve(recorded, patient=True)
        await keeper.reserve(lost, patient=True)
        await answered(engine, recorded, 0.5)
        before = await taken(engine, key)
        async with engine.begin() as connection:
            await remove_job(connection, TENANT, job.id)
        assert before == await taken(engine, key) == pytest.approx(1.75)


class TestSubmission:
    async def test_nothing_is_accepted_once_all_is_spent(self, engine: AsyncEngine) -> None:
        key = await new_key(engine, 1.0)
        await execute(engine, "UPDATE api_keys SET nanos = nanos_limit")
        with pytest.raises(SpendingCapError, match=r"cap of \$1.00 leaves \$0.00"):
            await new_job(engine, capped_key=key)
        assert await scalar(engine, "SELECT count(*) FROM jobs") == 0

    async def test_a_job_of_a_key_with_a_cap_shows_no_budget_that_it_has_not(
        self, engine: AsyncEngine
    ) -> None:
        job = await new_job(engine, capped_key=await new_key(engine, 1.0))
        assert (await view_job(engine, TENANT, job.id)).budget is None


def test_a_cap_leaves_room_for_calls_in_their_order() -> None:
    calls = [Amount(nanos=4), Amount(nanos=4), Amount(nanos=1)]
    assert Cap(10, 2).affordable(calls) == 2
    assert Cap(10, 2).affordable(calls, Amount(nanos=1)) == 1
    assert Cap(10, 11).affordable(calls) == 0
