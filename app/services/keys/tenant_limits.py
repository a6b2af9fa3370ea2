"""Tenants' limits, set by the operator: spending cap and allowed models. They apply to every key of the tenant."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.jobs import bounds
from app.db.jobs.budgets import Payers
from app.db.keys import tenant_limits
from app.db.keys.tenant_limits import LimitsRow
from app.db.locks import lock, lock_shared
from app.domain.jobs.budget import NANOS, Budget, limits_of
from app.domain.keys.contract import LimitsOfTenant, Spending


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
    return LimitsOfTenant(tenant=row.tenant, models=row.models, spending=spending)


async def payers(connection: AsyncConnection, tenant: str, capped_key: str | None) -> Payers:
    """Whose caps something that is to be spent now counts against; the tenant gets none until the transaction has ended.

    Args:
        connection: Where.
        tenant: Who spends it.
        capped_key: The API key that was shown, if it has a cap.
    """
    await lock_shared(connection, _lock_of(tenant))
    return Payers(capped_key, tenant if await tenant_limits.is_capped(connection, tenant) else None)


def _lock_of(tenant: str) -> str:
    """Shared by submissions, so that each is seen to count against the cap, or to have come before it."""
    return f"limits of {tenant}"
