"""Models that billed calls beyond their reservations: each takes one call at a time under a tenant's limits."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.jobs.budgets import LIVE
from app.domain.jobs.budget import Amount

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Exceeded:
    """A model that exceeded its bound: its largest bill, and whether one of its calls is in flight or still to be settled."""

    largest: Amount
    is_busy: bool


async def lock_exceeded(
    connection: AsyncConnection, job_id: str, models: Collection[str]
) -> dict[str, Exceeded]:
    """Lock, until the transaction ends, and return those of a job's models that exceeded their bounds."""
    asked = {"job": job_id, "models": sorted(models)}
    of_tenant = "tenant = (SELECT tenant FROM budgets WHERE job_id = :job) AND"
    rows = await connection.execute(
        text(
            f"SELECT model, tokens, nanos FROM exceeded_bounds WHERE {of_tenant} model = ANY(:models)"
            " ORDER BY model FOR UPDATE"
        ),
        asked,
    )
    found = rows.all()
    # A statement of its own: it sees what another transaction reserved before it gave up the lock. A call of the job that was
    # recorded since its account was locked is still to be settled, and may pause the job.
    unsettled = "r.job_id = :job AND EXISTS (SELECT FROM calls c WHERE c.id = r.call_id)"
    busy = await connection.execute(
        text(
            f"SELECT DISTINCT r.model FROM reservations r WHERE r.{of_tenant} r.model = ANY(:models)"
            f" AND ({LIVE} OR {unsettled})"
        ),
        asked,
    )
    calling = set(busy.scalars())
    return {row.model: Exceeded(Amount(1, row.tokens, row.nanos), row.model in calling) for row in found}


def due(
    wanted: Iterable[T], exceeded: Mapping[str, Exceeded], model_of: Callable[[T], str]
) -> Iterator[tuple[T, Amount | None]]:
    """Yield what may be sent now: the first of each model that exceeded its bound, with its largest bill, and all of others."""
    free = {model for model, one in exceeded.items() if not one.is_busy}
    for each in wanted:
        model = model_of(each)
        if model in free:
            free.remove(model)
            yield each, exceeded[model].largest
        elif model not in exceeded:
            yield each, None


async def reset(connection: AsyncConnection, tenant: str, model: str | None = None) -> list[str]:
    """Forget that a tenant's model, or all of them, exceeded bounds; return their names."""
    rows = await connection.execute(
        text(
            "DELETE FROM exceeded_bounds WHERE tenant = :tenant AND model = coalesce(:model, model) RETURNING model"
        ),
        {"tenant": tenant, "model": model},
    )
    return sorted(rows.scalars())
