"""Budgets under races: many workers that pay, answer, fail, stop and die at random, and a ledger of what was sent."""

import asyncio
import random
from dataclasses import dataclass, field
from uuid import uuid4

import pytest
import structlog
from sqlalchemy import text
from sqlalchemy.exc import ProgrammingError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.execution.result_rows import ResultWriter
from app.db.execution.shards import Claim
from app.db.jobs import budgets
from app.db.jobs.budgets import CapOf, Wanted, read_account
from app.domain.jobs.budget import Amount, Budget
from app.domain.jobs.status import JobStatus
from app.services.errors import WrongStateError
from app.services.execution import budget_reservations
from app.services.execution.budget_reservations import BudgetKeeper
from app.services.execution.stop_signal import StoppedError
from app.services.jobs.control import change_budget, resume_job
from tests.integration.jobs import (
    TENANT,
    call_row,
    claimed,
    control_dependencies,
    execute,
    expire,
    new_job,
    scalar,
    shard_ids,
    take,
)

NANOS = 1_000


@dataclass
class Ledger:
    """What a provider has received: each call's true cost, counted when it is sent."""

    sent: list[Amount] = field(default_factory=list)

    @property
    def total(self) -> Amount:
        return sum(self.sent, Amount())


@dataclass
class Racer:
    """A worker whose calls end in every way there is."""

    engine: AsyncEngine
    claim: Claim
    ledger: Ledger
    rng: random.Random
    keeper: BudgetKeeper
    dead: asyncio.Event = field(default_factory=asyncio.Event)

    async def work(self, calls: int) -> None:
        await asyncio.gather(*(self._call() for _ in range(calls)), return_exceptions=True)

    async def _call(self) -> None:
        await asyncio.sleep(self.rng.random() * 0.03)
        most = Amount(1, self.rng.randint(1, 40), self.rng.randint(1, 40) * NANOS)
        wanted = Wanted(uuid4(), self.claim, most, "acme/m")
        await self.keeper.reserve(wanted, patient=True)
        if self.dead.is_set():
            return
        if self.rng.random() < 0.1:  # it is stopped before it is sent
            self.keeper.refund(wanted)
            return
        tokens, nanos = self.rng.randint(0, most.tokens), self.rng.randint(0, most.nanos)
        self.ledger.sent.append(Amount(1, tokens, nanos))
        await asyncio.sleep(self.rng.random() * 0.02)
        if self.dead.is_set():  # between the answer and its record
            return
        row = call_row(self.claim)._replace(id=wanted.call_id, input_tokens=tokens, output_tokens=0)
        known = self.rng.random() < 0.8
        row = row._replace(usd=nanos / 1e9) if known else row._replace(usd=None, input_tokens=None)
        await ResultWriter(self.engine).write({(self.claim.shard_id, self.claim.token): [row]})


async def race(engine: AsyncEngine, seed: int) -> None:
    """Three workers spend one budget; one dies, and another takes its shard. Nothing is sent beyond the budget."""
    rng = random.Random(seed)
    budget = rng.choice(
        [
            Budget(calls=rng.randint(1, 30)),
            Budget(tokens=rng.randint(40, 600)),
            Budget(usd=rng.randint(40, 600) * 1e-6),
        ]
    )
    job = await new_job(engine, iterations=60, budget=budget)
    ledger, racers = Ledger(), list[Racer]()
    for shard in (await shard_ids(engine, job.id))[:3]:
        claim = await take(engine, shard)
        assert claim is not None
        racers.append(Racer(engine, claim, ledger, rng, BudgetKeeper(engine)))
    working = [asyncio.create_task(racer.work(12)) for racer in racers]
    await asyncio.sleep(rng.random() * 0.05)
    victim = rng.choice(racers)
    victim.dead.set()
    await expire(engine, victim.claim)
    heir = await take(engine, victim.claim.shard_id)
    if heir is not None:
        await Racer(engine, heir, ledger, rng, BudgetKeeper(engine)).work(12)
    await asyncio.gather(*working)

    async with engine.connect() as connection:
        account = await read_account(connection, TENANT, job.id)
    assert account is not None, f"seed {seed}"
    booked = account.spent + account.reserved
    assert account.limits.allow(ledger.total), f"seed {seed}: {ledger.total} sent beyond {account.limits}"
    assert account.limits.allow(booked), f"seed {seed}: {booked} booked beyond {account.limits}"
    total = ledger.total
    assert (booked.calls, booked.tokens, booked.nanos) >= (total.calls, 0, 0), f"seed {seed}"
    assert booked.tokens >= total.tokens, f"seed {seed}: the account knows too little"
    assert booked.nanos >= total.nanos, f"seed {seed}: the account knows too little"
    await execute(engine, "DELETE FROM jobs")


class TestRaces:
    async def test_none_of_12_goes_over_its_budget(self, engine: AsyncEngine) -> None:
        for seed in range(12):
            await race(engine, seed)

    @pytest.mark.long
    @pytest.mark.timeout(3600)
    async def test_none_of_1000_goes_over_its_budget(self, engine: AsyncEngine) -> None:
        for seed in range(1000):
            await race(engine, seed)


def wanted(claim: Claim, tokens: int = 10) -> Wanted:
    return Wanted(uuid4(), claim, Amount(1, tokens, 0), "acme/m")


async def answered(engine: AsyncEngine, of: Wanted, tokens: int) -> None:
    assert isinstance(of.claim, Claim)
    row = call_row(of.claim)._replace(id=of.call_id, input_tokens=tokens, output_tokens=0)
    await ResultWriter(engine).write({(of.claim.shard_id, of.claim.token): [row]})


class TestReserving:
    async def test_a_budget_is_used_up_to_its_last_call_and_then_the_job_pauses(
        self, engine: AsyncEngine
    ) -> None:
        job = await new_job(engine, budget=Budget(calls=5))
        claim, keeper = await claimed(engine, job.id), BudgetKeeper(engine)
        outcomes = await asyncio.gather(
            *(self._send(engine, keeper, wanted(claim)) for _ in range(8)), return_exceptions=True
        )
        assert outcomes.count(None) == 5
        assert sum(isinstance(outcome, StoppedError) for outcome in outcomes) == 3
        row = (await execute(engine, "SELECT status, status_reason, error->>'code' FROM jobs"))[0]
        assert tuple(row) == ("paused", "budget_exhausted", "budget_exhausted")

    @staticmethod
    async def _send(engine: AsyncEngine, keeper: BudgetKeeper, call: Wanted) -> None:
        await keeper.reserve(call, patient=True)
        await answered(engine, call, 1)

    async def test_a_call_waits_while_one_on_the_wire_may_turn_out_cheaper(self, engine: AsyncEngine) -> None:
        job = await new_job(engine, budget=Budget(tokens=100))
        claim, keeper = await claimed(engine, job.id), BudgetKeeper(engine)
        flying = wanted(claim, 80)
        await keeper.reserve(flying, patient=True)
        assert not await keeper.reserve(wanted(claim, 60), patient=False)
        waiting = asyncio.create_task(keeper.reserve(wanted(claim, 60), patient=True))
        await asyncio.sleep(0.3)
        assert not waiting.done()
        assert keeper.is_short(job.id)
        await answered(engine, flying, 40)
        assert await asyncio.wait_for(waiting, 30)

    async def test_what_a_dead_worker_was_at_stays_reserved_and_is_not_waited_for(
        self, engine: AsyncEngine
    ) -> None:
        job = await new_job(engine, budget=Budget(tokens=100))
        claim, keeper = await claimed(engine, job.id), BudgetKeeper(engine)
        await keeper.reserve(wanted(claim, 80), patient=True)
        await expire(engine, claim)
        heir = await take(engine, claim.shard_id)
        assert heir is not None
        with pytest.raises(StoppedError):
            await asyncio.wait_for(BudgetKeeper(engine).reserve(wanted(heir, 60), patient=True), 30)
        async with engine.connect() as connection:
            account = await read_account(connection, TENANT, job.id)
        assert account is not None
        assert (account.spent.tokens, account.reserved.tokens) == (0, 80)

    async def test_a_frozen_workers_late_record_settles_its_reservation(self, engine: AsyncEngine) -> None:
        job = await new_job(engine, budget=Budget(tokens=100))
        claim, keeper = await claimed(engine, job.id), BudgetKeeper(engine)
        flying = wanted(claim, 80)
        await keeper.reserve(flying, patient=True)
        await expire(engine, claim)
        await take(engine, claim.shard_id)
        await answered(engine, flying, 30)
        async with engine.connect() as connection:
            account = await read_account(connection, TENANT, job.id)
        assert account is not None
        assert (account.spent, account.reserved) == (Amount(1, 30, 500_000_000), Amount())

    async def test_a_call_that_was_stopped_while_it_waited_reserves_nothing(
        self, engine: AsyncEngine
    ) -> None:
        job = await new_job(engine, budget=Budget(calls=10))
        claim, keeper = await claimed(engine, job.id), BudgetKeeper(engine)
        async with keeper.running():
            for _ in range(5):
                stopped = asyncio.create_task(keeper.reserve(wanted(claim), patient=True))
                await asyncio.sleep(0.001)
                stopped.cancel()
                await asyncio.gather(stopped, return_exceptions=True)
        assert await scalar(engine, "SELECT count(*) FROM reservations") == 0

    async def test_a_statement_that_the_database_refuses_is_told_and_not_asked_for_ever(
        self, engine: AsyncEngine
    ) -> None:
        job = await new_job(engine, budget=Budget(calls=10))
        claim, keeper = await claimed(engine, job.id), BudgetKeeper(engine)
        await execute(engine, "ALTER TABLE reservations RENAME TO reservations_elsewhere")
        try:
            with structlog.testing.capture_logs(), pytest.raises(ProgrammingError):
                await asyncio.wait_for(keeper.reserve(wanted(claim), patient=True), 60)
        finally:
            await execute(engine, "ALTER TABLE reservations_elsewhere RENAME TO reservations")
        assert await asyncio.wait_for(keeper.reserve(wanted(claim), patient=True), 60)
        assert await scalar(engine, "SELECT count(*) FROM reservations") == 1

    @staticmethod
    async def _waiting_for_locks(engine: AsyncEngine) -> int:
        statement = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        return int(await scalar(engine, statement))

    async def test_the_jobs_of_a_tenant_wait_for_locks_with_two_connections(
        self, engine: AsyncEngine
    ) -> None:
        jobs = [await new_job(engine, budget=Budget(calls=10)) for _ in range(6)]
        calls = [wanted(await claimed(engine, job.id)) for job in jobs]
        keeper = BudgetKeeper(engine)
        async with engine.begin() as blocker:
            await blocker.execute(text("SELECT FROM budgets FOR UPDATE"))
            paid = [asyncio.create_task(keeper.reserve(call, patient=True)) for call in calls]
            while await self._waiting_for_locks(engine) < 2:
                pass
            # As long again as it takes all of them to get a connection.
            assert [await self._waiting_for_locks(engine) for _ in range(30)] == [2] * 30
        assert all(await asyncio.gather(*paid))

    async def test_a_refund_does_not_wait_for_the_next_look_of_jobs_that_are_short(
        self, engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(budget_reservations, "SHORT_SECONDS", 3600)
        monkeypatch.setattr(budget_reservations, "LONGEST_SHORT_SECONDS", 3600)
        job = await new_job(engine, budget=Budget(calls=2))
        claim, keeper = await claimed(engine, job.id), BudgetKeeper(engine)
        first, second = wanted(claim), wanted(claim)
        await keeper.reserve(first, patient=True)
        await keeper.reserve(second, patient=True)
        assert not await keeper.reserve(wanted(claim), patient=False)
        assert keeper.is_short(job.id)
        waiting = asyncio.create_task(keeper.reserve(wanted(claim), patient=True))
        await asyncio.sleep(0)
        keeper.refund(second)
        assert await waiting


class TestChangingIt:
    async def test_a_raised_budget_lets_the_resumed_job_go_on(self, engine: AsyncEngine) -> None:
        job = await new_job(engine, budget=Budget(calls=1, tokens=1000))
        claim, keeper = await claimed(engine, job.id), BudgetKeeper(engine)
        await keeper.reserve(wanted(claim), patient=True)
        await execute(engine, "DELETE FROM reservations; UPDATE budgets SET calls = 1")
        with pytest.raises(StoppedError):
            await keeper.reserve(wanted(claim), patient=True)
        control = control_dependencies(engine)
        await change_budget(control, TENANT, job.id, Budget(calls=2))
        assert (await resume_job(control, TENANT, job.id)).status is JobStatus.QUEUED
        assert await keeper.reserve(wanted(claim), patient=True)
        assert await scalar(engine, "SELECT tokens_limit FROM budgets") == 1000

    async def test_a_job_without_a_budget_gets_none(self, engine: AsyncEngine) -> None:
        job = await new_job(engine)
        control = control_dependencies(engine)
        with pytest.raises(WrongStateError, match="without a budget"):
            await change_budget(control, TENANT, job.id, Budget(calls=2))


async def test_a_job_goes_on_whose_last_call_is_recorded_while_it_is_looked_whether_there_is_one(
    engine: AsyncEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = await claimed(engine, (await new_job(engine, budget=Budget(tokens=100))).id)
    keeper, flying = BudgetKeeper(engine), Wanted(uuid4(), claim, Amount(1, 80, 0), "acme/m")
    assert await keeper.reserve(flying, patient=True)
    look = budgets.any_outstanding

    async def recorded_meanwhile(connection: AsyncConnection, job_id: str, cap: CapOf | None = None) -> bool:
        row = call_row(claim)._replace(id=flying.call_id, input_tokens=5, output_tokens=5)
        await ResultWriter(engine).write({(claim.shard_id, claim.token): [row]})
        return await look(connection, job_id, cap)

    monkeypatch.setattr(budgets, "any_outstanding", recorded_meanwhile)
    assert await keeper.reserve(Wanted(uuid4(), claim, Amount(1, 80, 0), "acme/m"), patient=True)
