"""Tenants' limits, set by the operator: spending cap and allowed models. They apply to every key of the tenant."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.batches import batches
from app.db.execution import shards
from app.db.jobs import bounds, jobs
from app.db.jobs.budgets import Payers
from app.db.keys import tenant_limits
from app.db.keys.tenant_limits import LimitsRow
from app.db.locks import lock, lock_shared
from app.domain.jobs.budget import NANOS, Budget, limits_of
from app.domain.jobs.contract import JobError
from app.domain.jobs.status import JobStatus
from app.domain.keys.contract import LimitsOfTenant, Spending
from app.domain.providers.failure import TENANT_IS_PAUSED, TENANT_PAUSED, remedy
from app.services.errors import CallNotAllowedError, TooManyJobsError

ADDED_AT_A_TIME = 100
"""Upper bound on transactions that add jobs of one tenant at a time; the processes' connections are fewer."""


@dataclass(frozen=True, slots=True)
class LimitChanges:
    """What to change of a tenant's limits.

    Attributes:
        usd: What its jobs may spend together; ``None`` for no cap.
        changes_cap: Whether that is to be changed.
        models: The models that it may use; ``None`` for all.
        changes_models: Whether that is to be changed.
    """

    usd: float | None = None
    changes_cap: bool = False
    models: Sequence[str] | None = None
    changes_models: bool = False


async def change_limits(engine: AsyncEngine, tenant: str, changes: LimitChanges) -> LimitsOfTenant:
    """Changes a tenant's limits, also before it has a key, and says what they are now.

    A cap counts what is spent by jobs that were submitted under one; those before it go on and are counted in ``uncapped_jobs``,
    and can't be resumed or retried.
    """
    values: dict[str, Any] = {}
    if changes.changes_cap:
        values["nanos_limit"] = None if changes.usd is None else limits_of(Budget(usd=changes.usd)).nanos
    if changes.changes_models:
        values["models"] = None if changes.models is None else list(changes.models)
    async with engine.begin() as connection:
        await lock(connection, _lock_of(tenant))
        await tenant_limits.write_limits(connection, tenant, values)
    async with engine.connect() as connection:
        row = await tenant_limits.read_limits(connection, tenant)
        uncapped = await tenant_limits.count_uncapped(connection, tenant)
    if row is None:
        raise RuntimeError(f"the limits of {tenant} vanished")
    counted = {"uncapped_jobs": 0 if row.nanos_limit is None else uncapped}
    return show_limits(row).model_copy(update=counted)


async def reset_bounds(engine: AsyncEngine, tenant: str, model: str | None) -> list[str]:
    """Forget which models billed calls beyond their worst case; return their names."""
    async with engine.begin() as connection:
        return await bounds.reset(connection, tenant, model)


def show_limits(row: LimitsRow) -> LimitsOfTenant:
    """A tenant's limits, in the form that keys have theirs."""
    spending = None
    if row.nanos_limit is not None:
        spending = Spending(usd_limit=row.nanos_limit / NANOS, usd_spent=row.nanos_taken / NANOS)
    return LimitsOfTenant(tenant=row.tenant, models=row.models, spending=spending, paused=row.paused)


async def payers(connection: AsyncConnection, tenant: str, capped_key: str | None) -> Payers:
    """Return whose caps new spending counts against; a tenant's limits don't change until the transaction has ended.

    Args:
        connection: Where.
        tenant: Who spends it.
        capped_key: The API key that was shown, if it has a cap.

    Raises:
        CallNotAllowedError: If the operator has paused the tenant.
    """
    await lock_shared(connection, _lock_of(tenant))
    capped, paused = await tenant_limits.spending_state(connection, tenant)
    return _payers(tenant, capped_key, capped=capped, paused=paused)


def _payers(tenant: str, capped_key: str | None, *, capped: bool, paused: bool) -> Payers:
    if paused:
        raise CallNotAllowedError(TENANT_PAUSED, TENANT_IS_PAUSED)
    return Payers(capped_key, tenant if capped else None)


async def admit_job(
    connection: AsyncConnection, tenant: str, capped_key: str | None, most: int
) -> tuple[Payers, Sequence[str] | None]:
    """Return whose caps a new job counts against, see :func:`payers`, and the models that the tenant may use.

    Raises:
        CallNotAllowedError: If the operator has paused the tenant.
        TooManyJobsError: If the tenant has `most` unfinished jobs.
    """
    await lock_shared(connection, _lock_of(tenant))
    spender = await tenant_limits.find_spender(connection, tenant)
    found = _payers(tenant, capped_key, capped=spender.capped, paused=spender.paused)
    await _refuse_many(connection, tenant, spender.unfinished, most)
    return found, spender.models


async def is_resumed(connection: AsyncConnection, tenant: str, error: CallNotAllowedError) -> bool:
    """Return whether a call was refused because its tenant was paused, and the tenant is paused no longer.

    The tenant stays as it is until the transaction ends, so a job that the transaction pauses is among those that the
    operator's next command resumes.
    """
    return error.code == TENANT_PAUSED and not await _is_paused(connection, tenant)


async def _is_paused(connection: AsyncConnection, tenant: str) -> bool:
    await lock_shared(connection, _lock_of(tenant))
    _, paused = await tenant_limits.spending_state(connection, tenant)
    return paused


async def pause_tenant(engine: AsyncEngine, tenant: str) -> int:
    """Stop a tenant's jobs and refuse new ones; return the number of jobs paused now."""
    async with engine.begin() as connection:
        await lock(connection, _lock_of(tenant))
        await tenant_limits.set_paused(connection, tenant, paused=True)
        active = await tenant_limits.active_jobs(connection, tenant)
    error = JobError(code=TENANT_PAUSED, detail=TENANT_IS_PAUSED, remedy=remedy(TENANT_PAUSED))
    paused = 0
    for job_id in active:
        async with engine.begin() as connection:
            if await _is_paused(connection, tenant):
                paused += await jobs.move(
                    connection, job_id, to=JobStatus.PAUSED, reason=TENANT_PAUSED, error=error
                )
    return paused


async def resume_tenant(engine: AsyncEngine, tenant: str) -> int:
    """Let a tenant's jobs make calls again; return the number of resumed jobs, which the sweeper announces."""
    async with engine.begin() as connection:
        await lock(connection, _lock_of(tenant))
        await tenant_limits.set_paused(connection, tenant, paused=False)
        paused = await jobs.paused_jobs(connection, TENANT_PAUSED)
    resumed = 0
    for job_id in [job.id for job in paused if job.tenant == tenant]:
        async with engine.begin() as connection:
            if await jobs.paused_jobs(connection, TENANT_PAUSED, job_id):
                moved = await jobs.move(connection, job_id, leave=[JobStatus.PAUSED], to=JobStatus.QUEUED)
                if moved:
                    await shards.withdraw(connection, job_id)
                    await batches.hasten(connection, job_id)
                resumed += moved
    return resumed


async def refuse_many_jobs(connection: AsyncConnection, tenant: str, most: int) -> None:
    """Refuse a further job of a tenant that has as many unfinished ones as are allowed.

    Near the limit, transactions that add jobs wait for each other, so that together they don't exceed it.

    Raises:
        TooManyJobsError: If the tenant has that many.
    """
    await _refuse_many(connection, tenant, await tenant_limits.count_unfinished(connection, tenant), most)


async def _refuse_many(connection: AsyncConnection, tenant: str, unfinished: int, most: int) -> None:
    if unfinished + ADDED_AT_A_TIME <= most:
        return
    await lock(connection, f"unfinished jobs of {tenant}")
    if await tenant_limits.count_unfinished(connection, tenant) >= most:
        raise TooManyJobsError(
            f"the tenant has {most:,} unfinished jobs, the most that are allowed; wait until jobs end, or cancel some"
        )


def _lock_of(tenant: str) -> str:
    """Shared by submissions, so that each is seen to count against the cap, or to have come before it."""
    return f"limits of {tenant}"
