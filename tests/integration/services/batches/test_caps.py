"""What the jobs of one API key, or of one tenant, spend together when their calls go out in batches."""

import pytest
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.jobs import budgets
from app.db.jobs.budgets import CapOf
from app.domain.jobs.budget import NANOS, Amount, Budget
from app.domain.jobs.status import JobStatus
from app.domain.keys.contract import ApiKeyChangeIn, SpendingIn
from app.domain.providers.model import Model, Usage
from app.ports import Price
from app.services.jobs.control import resume_job
from app.services.keys.api_keys import change_key
from app.services.keys.tenant_limits import LimitChanges, change_limits
from tests.integration.jobs import TENANT, execute
from tests.integration.services.batches.test_batches import Service, batched_job, service, simulator
from tests.integration.services.keys.test_spending_caps import new_key, taken

__all__ = ["service", "simulator"]

CENT = 0.01


class CentACall:
    """A ``PriceBook`` for which no count of tokens is needed."""

    def price(self, model: Model, usage: Usage, *, batched: bool = False) -> Price:
        """Always the same."""
        return Price(CENT, "operator")


async def test_no_batch_carries_them_over_it_and_a_raised_one_lets_them_end(
    engine: AsyncEngine, service: Service
) -> None:
    service.change_batching(prices=CentACall())
    key = await new_key(engine, 20 * CENT)
    jobs = [await batched_job(service, capped_key=key) for _ in range(2)]
    for job in jobs:
        assert (await service.until(job, JobStatus.PAUSED)).status_reason == "spending_cap_reached"
    asked = sum(service.asked(job).total() for job in jobs)
    assert await taken(engine, key) == pytest.approx(asked * CENT)
    assert asked == 20
    await change_key(engine, TENANT, key, ApiKeyChangeIn(spending=SpendingIn(usd_limit=1000 * CENT)))
    for job in jobs:
        await resume_job(service.control, TENANT, job.id)
        assert (await service.completed(job)).completeness == "full"
        assert set(service.asked(job).values()) == {1}
    assert await taken(engine, key) == pytest.approx(sum(service.asked(job).total() for job in jobs) * CENT)


async def test_no_batch_carries_a_tenants_jobs_over_its_cap(engine: AsyncEngine, service: Service) -> None:
    service.change_batching(prices=CentACall())
    await change_limits(engine, TENANT, LimitChanges(usd=20 * CENT, changes_cap=True))
    jobs = [await batched_job(service, capped_key=key) for key in (await new_key(engine, 20 * CENT), None)]
    for job in jobs:
        paused = await service.until(job, JobStatus.PAUSED)
        assert paused.error is not None
        assert "the tenant's spending cap" in paused.error["detail"]
    assert sum(service.asked(job).total() for job in jobs) == 20


async def test_a_job_goes_on_whose_last_batch_is_recorded_while_it_is_looked_whether_there_is_one(
    engine: AsyncEngine, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await batched_job(service, budget=Budget(calls=20))
    look = budgets.any_outstanding
    raised: list[str] = []

    async def room_meanwhile(connection: AsyncConnection, job_id: str, cap: CapOf | None = None) -> bool:
        account = await budgets.read_account(connection, TENANT, job_id)
        assert account is not None
        if account.spent.calls == 20 and not raised:
            raised.append(job_id)  # in the transaction of who looks, which has locked the account
            assert await budgets.change_limits(connection, TENANT, job_id, Budget(calls=10_000))
        return await look(connection, job_id, cap)

    monkeypatch.setattr(budgets, "any_outstanding", room_meanwhile)
    assert (await service.until(job, JobStatus.PAUSED, JobStatus.COMPLETED)).status is JobStatus.COMPLETED
    assert raised == [job.id]


async def test_a_model_that_billed_more_than_was_reserved_gets_batches_of_one_call(
    engine: AsyncEngine, service: Service
) -> None:
    service.change_batching(prices=CentACall())
    largest = Amount(1, 9, round(5 * CENT * NANOS))
    await execute(
        engine,
        "INSERT INTO exceeded_bounds VALUES (:tenant, 'simulated/sim-judge', :tokens, :nanos, 0)",
        tenant=TENANT,
        tokens=largest.tokens,
        nanos=largest.nanos,
    )
    job = await batched_job(service, budget=Budget(usd=5))
    await service.until_submitted()
    while not (await execute(engine, "SELECT FROM batches WHERE model = 'sim-judge'")):
        await service.step()
    (held,) = await execute(
        engine, "SELECT nanos, alone FROM reservations WHERE model = 'simulated/sim-judge'"
    )
    assert tuple(held) == (largest.nanos, True)
    await service.completed(job)
    sizes = await execute(engine, "SELECT model, calls, count(*) FROM batches GROUP BY 1, 2 ORDER BY 1")
    assert [tuple(row) for row in sizes] == [("sim-faithful", 2, 1), ("sim-judge", 1, 30)]
