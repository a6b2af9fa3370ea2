"""Budgets: what jobs may spend, what they have spent, and what is reserved for calls that are on their way.

A reservation is settled by its call's row in ``calls``, whoever sees it first. So nothing is lost, or counted twice,
when a worker dies between the two.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import insert, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.execution.shards import IN_DOLLARS, AnyClaim
from app.db.jobs import jobs
from app.db.tables import Budget as BudgetRow
from app.db.webhooks import webhooks
from app.domain.jobs.budget import Amount, Budget, Limits, limits_of
from app.domain.jobs.contract import JobError
from app.domain.jobs.status import JobStatus
from app.domain.providers.failure import BOUND_EXCEEDED, cause, remedy
from app.domain.webhooks.webhook import WebhookEvent

NOTHING = Amount()

MOST_REPEATS = 2
"""Bills beyond the largest one seen, of a model that takes one call at a time, that pause a job."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A call that wants to be paid for.

    Attributes:
        call_id: Id under which it will be recorded.
        claim: Claim of its shard.
        most: Its worst case.
        model: ``connection/name``.
        alone: Whether the model takes one call at a time; see :mod:`app.db.jobs.bounds`.
    """

    call_id: UUID
    claim: AnyClaim
    most: Amount
    model: str
    alone: bool = False


class CapOf(StrEnum):
    """Whose jobs spend a cap together."""

    KEY = "API key"
    TENANT = "tenant"


@dataclass(frozen=True, slots=True)
class Cap:
    """What the jobs of an API key or a tenant may spend together, and what of it is taken, in billionths of a dollar."""

    nanos_limit: int
    nanos_taken: int
    of: CapOf = CapOf.KEY

    @property
    def nanos_left(self) -> int:
        """What is not taken; 0 where more than the cap is."""
        return max(0, self.nanos_limit - self.nanos_taken)

    def affordable(self, wanted: Sequence[Amount], beside: Amount = NOTHING) -> int:
        """How many of the wanted calls, in their order, fit beside what is taken, and beside some more."""
        taken = Amount(nanos=self.nanos_taken) + beside
        return Limits(calls=None, tokens=None, nanos=self.nanos_limit).affordable(taken, wanted)


@dataclass(frozen=True, slots=True)
class Account:
    """Where a budget stands.

    Attributes:
        limits: What may be spent.
        spent: What recorded calls took; the worst case of those whose cost is unknown.
        reserved: The worst case of the calls whose outcome is not recorded.
        may_call: Whether the job is active, so that calls may be paid for.
        exceeded: Calls that were billed beyond their reservation.
        is_slowed: Whether any of the tenant's models takes one call at a time; known where the account is locked.
        caps: Those of the API key that submitted the job and of its tenant, if they have any; known where the account is locked.
    """

    limits: Limits
    spent: Amount
    reserved: Amount
    may_call: bool
    exceeded: int = 0
    is_slowed: bool = False
    caps: tuple[Cap, ...] = ()

    def affordable(self, wanted: Sequence[Amount], beside: Amount = NOTHING) -> int:
        """How many of the wanted calls, in their order, fit beside what is taken, and beside some more."""
        taken = self.spent + self.reserved + beside
        own = self.limits.affordable(taken, wanted)
        return min([own, *(cap.affordable(wanted, beside) for cap in self.caps)])

    def capped_by(self, wanted: Amount, beside: Amount = NOTHING) -> CapOf | None:
        """The cap that does not leave enough for a call though the job's own limits would; of two the key's."""
        if not self.limits.affordable(self.spent + self.reserved + beside, [wanted]):
            return None
        return next((cap.of for cap in self.caps if not cap.affordable([wanted], beside)), None)


_TAKEN_NANOS = (
    "greatest(CASE WHEN c.maybe_paid AND (c.usd IS NULL OR c.input_tokens IS NULL) THEN r.nanos ELSE 0 END,"
    " ceil(round((c.usd * 1e9)::numeric, 3))::bigint)"
)
_TAKEN = (
    "CASE WHEN c.input_tokens IS NOT NULL THEN c.input_tokens + coalesce(c.output_tokens, 0)"
    " WHEN c.maybe_paid THEN r.tokens ELSE 0 END AS tokens,"
    f" {_TAKEN_NANOS} AS nanos"
)
"""What a recorded call ``c`` took of its reservation ``r``."""

_HELD_NANOS = f"coalesce(sum(CASE WHEN c.id IS NULL THEN r.nanos ELSE {_TAKEN_NANOS} END), 0)::bigint"
"""What reservations ``r`` come to, each as its call ``c`` turned out if that is recorded, and else at its worst."""

_HELD_BY_JOBS = (
    f"SELECT {_HELD_NANOS} FROM budgets b JOIN reservations r ON r.job_id = b.job_id"
    " LEFT JOIN calls c ON c.id = r.call_id"
)

TAKEN_BY_KEY = f"(api_keys.nanos + ({_HELD_BY_JOBS} WHERE b.key_id = api_keys.id))"
"""What the jobs of an API key have spent, those included that were deleted, or may yet for calls that are on their way."""

TAKEN_BY_TENANT = (
    f"(tenant_limits.nanos + ({_HELD_BY_JOBS} WHERE b.under_tenant AND b.tenant = tenant_limits.tenant))"
)
"""The same of the jobs that a tenant submitted under a cap."""


class Payers(NamedTuple):
    """Whose caps what is spent counts against, besides a job's own budget.

    Attributes:
        key_id: An API key that has a cap.
        tenant: A tenant that has one.
    """

    key_id: str | None = None
    tenant: str | None = None


NOBODY = Payers()


async def insert_budget(
    connection: AsyncConnection, tenant: str, job_id: str, budget: Budget, payers: Payers = NOBODY
) -> None:
    """Gives a job its budget, and the caps that it has to keep."""
    limits = limits_of(budget)
    await connection.execute(
        insert(BudgetRow).values(
            job_id=job_id,
            tenant=tenant,
            key_id=payers.key_id,
            under_tenant=payers.tenant is not None,
            calls_limit=limits.calls,
            tokens_limit=limits.tokens,
            nanos_limit=limits.nanos,
        )
    )


async def count_recorded(connection: AsyncConnection, job_id: str) -> None:
    """Count the recorded calls of an imported job against its own budget; no cap of this installation paid for them."""
    await connection.execute(
        text(
            "UPDATE budgets SET (calls, tokens, nanos) = (SELECT count(*),"
            " coalesce(sum(coalesce(input_tokens, 0) + coalesce(output_tokens, 0)), 0),"
            " coalesce(sum(ceil(round((usd * 1e9)::numeric, 3))), 0) FROM calls"
            "  WHERE shard_id IN (SELECT id FROM shards WHERE job_id = :job)) WHERE job_id = :job"
        ),
        {"job": job_id},
    )


async def change_limits(
    connection: AsyncConnection, tenant: str, job_id: str, budget: Budget
) -> Limits | None:
    """Replaces the limits that are given, of those that the job has; what is left out stays.

    Returns:
        The limits before; ``None`` if the job has no budget.
    """
    rows = await connection.execute(
        text(
            "SELECT calls_limit, tokens_limit, nanos_limit FROM budgets"
            " WHERE job_id = :job AND tenant = :tenant FOR UPDATE"
        ),
        {"job": job_id, "tenant": tenant},
    )
    row = rows.first()
    if row is None:
        return None
    new = limits_of(budget)
    await connection.execute(
        text(
            "UPDATE budgets SET calls_limit = coalesce(:calls, calls_limit),"
            " tokens_limit = coalesce(:tokens, tokens_limit), nanos_limit = coalesce(:nanos, nanos_limit)"
            " WHERE job_id = :job AND tenant = :tenant"
        ),
        {"job": job_id, "tenant": tenant, "calls": new.calls, "tokens": new.tokens, "nanos": new.nanos},
    )
    return Limits(*row)


async def payers_of(connection: AsyncConnection, tenant: str, job_id: str) -> Payers:
    """Whose caps what a tenant's job spends counts against."""
    rows = await connection.execute(
        text(
            "SELECT key_id, CASE WHEN under_tenant THEN tenant END FROM budgets"
            " WHERE job_id = :job AND tenant = :tenant"
        ),
        {"job": job_id, "tenant": tenant},
    )
    row = rows.first()
    return NOBODY if row is None else Payers(*row)


async def lock_account(connection: AsyncConnection, job_id: str) -> Account | None:
    """Lock a job's account until the transaction ends, after settling every recorded call.

    Notes the models that billed calls beyond their reservations, and pauses the job if one does so again and again.
    """
    payers = await _lock(connection, job_id)
    if payers is None:
        return None
    rows = await connection.execute(
        text(
            "WITH settled AS (DELETE FROM reservations r USING calls c"
            "  WHERE r.job_id = :job AND c.id = r.call_id RETURNING c.connection || '/' || c.model AS model,"
            f"  r.tokens AS most_tokens, r.nanos AS most_nanos, r.alone, {_TAKEN}),"
            " over AS (SELECT b.tenant, x.model, max(x.tokens) AS tokens, max(x.nanos) AS nanos, count(*) AS calls,"
            "  count(*) FILTER (WHERE x.alone) AS repeats FROM settled x JOIN budgets b ON b.job_id = :job"
            "  WHERE (b.tokens_limit IS NOT NULL AND x.tokens > x.most_tokens)"
            f"  OR ({IN_DOLLARS} AND x.nanos > x.most_nanos) GROUP BY b.tenant, x.model),"
            " noted AS (INSERT INTO exceeded_bounds AS e (tenant, model, tokens, nanos, repeats)"
            "  SELECT tenant, model, tokens, nanos, repeats FROM over ORDER BY model"
            "  ON CONFLICT (tenant, model) DO UPDATE SET tokens = greatest(e.tokens, excluded.tokens),"
            "  nanos = greatest(e.nanos, excluded.nanos), repeats = e.repeats + excluded.repeats"
            "  RETURNING tenant, model, repeats, xmax = 0 AS is_first),"
            " s AS (SELECT count(*) AS calls, coalesce(sum(tokens), 0)::bigint AS tokens,"
            "  coalesce(sum(nanos), 0)::bigint AS nanos FROM settled),"
            " of_key AS (UPDATE api_keys SET nanos = api_keys.nanos + s.nanos FROM s WHERE id = :key),"
            " of_tenant AS (UPDATE tenant_limits SET nanos = tenant_limits.nanos + s.nanos FROM s"
            "  WHERE tenant = :tenant)"
            " UPDATE budgets SET calls = budgets.calls + s.calls, tokens = budgets.tokens + s.tokens,"
            " nanos = budgets.nanos + s.nanos, exceeded = exceeded + (SELECT coalesce(sum(calls), 0) FROM over)"
            " FROM s WHERE job_id = :job"
            " RETURNING calls_limit, tokens_limit, nanos_limit, budgets.calls, budgets.tokens, budgets.nanos,"
            " (SELECT status FROM jobs WHERE id = :job) AS status, exceeded,"
            " EXISTS (SELECT FROM noted) OR EXISTS (SELECT FROM exceeded_bounds e WHERE e.tenant = budgets.tenant)"
            "  AS is_slowed,"
            " (SELECT min(model) FROM noted JOIN over USING (model) WHERE over.repeats > 0"
            "  AND noted.repeats >= :most_repeats) AS stopped_by,"
            " budgets.tenant, (SELECT array_agg(model ORDER BY model) FROM noted WHERE is_first) AS first_beyond"
        ),
        {
            "job": job_id,
            "key": payers.key_id,
            "tenant": payers.tenant,
            "most_repeats": MOST_REPEATS,
        },
    )
    row = rows.one()
    status = row.status
    for model in row.first_beyond or ():
        data = {"id": model, "object": "model"}
        await webhooks.note_event(connection, row.tenant, WebhookEvent.BILL_EXCEEDED, job_id, data)
    if row.stopped_by is not None and await _stop(connection, job_id, row.stopped_by):
        status = JobStatus.PAUSED
    reserved = await connection.execute(
        text(
            "SELECT count(*), coalesce(sum(tokens), 0)::bigint, coalesce(sum(nanos), 0)::bigint"
            " FROM reservations WHERE job_id = :job"
        ),
        {"job": job_id},
    )
    account = _account(status, row[:3], row[3:6], reserved.one(), row.exceeded)
    return replace(account, is_slowed=row.is_slowed, caps=await read_caps(connection, payers))


async def _stop(connection: AsyncConnection, job_id: str, model: str) -> bool:
    """Pause a job one of whose models keeps exceeding its bound."""
    error = JobError(
        code=BOUND_EXCEEDED,
        cause=cause(BOUND_EXCEEDED, None, model),
        detail="calls were billed beyond the largest bill seen before, which was reserved for them",
        model=model,
        remedy=remedy(BOUND_EXCEEDED, None, model),
    )
    return await jobs.move(connection, job_id, to=JobStatus.PAUSED, reason=BOUND_EXCEEDED, error=error)


async def _lock(connection: AsyncConnection, job_id: str) -> Payers | None:
    """Locks a job's budget, and the key and the tenant whose caps it keeps, in this order; ``None`` if it has no budget."""
    rows = await connection.execute(
        text(
            "SELECT key_id, CASE WHEN under_tenant THEN tenant END FROM budgets WHERE job_id = :job FOR UPDATE"
        ),
        {"job": job_id},
    )
    row = rows.first()
    if row is None:
        return None
    payers = Payers(*row)
    if payers.key_id is not None:
        await connection.execute(
            text("SELECT FROM api_keys WHERE id = :key FOR UPDATE"), {"key": payers.key_id}
        )
    if payers.tenant is not None:
        await connection.execute(
            text("SELECT FROM tenant_limits WHERE tenant = :tenant FOR UPDATE"), {"tenant": payers.tenant}
        )
    return payers


async def charge(connection: AsyncConnection, payers: Payers, nanos: int) -> None:
    """Counts what was spent without a job against caps, in billionths of a dollar; less than 0 gives some back."""
    for statement, payer in (
        ("UPDATE api_keys SET nanos = nanos + :nanos WHERE id = :payer", payers.key_id),
        ("UPDATE tenant_limits SET nanos = nanos + :nanos WHERE tenant = :payer", payers.tenant),
    ):
        if payer is not None:
            await connection.execute(text(statement), {"nanos": nanos, "payer": payer})


async def read_caps(connection: AsyncConnection, payers: Payers) -> tuple[Cap, ...]:
    """The caps that there are, and what of them is taken: the key's before the tenant's."""
    found = []
    for of, columns, payer in (
        (CapOf.KEY, f"{TAKEN_BY_KEY} FROM api_keys WHERE id", payers.key_id),
        (CapOf.TENANT, f"{TAKEN_BY_TENANT} FROM tenant_limits WHERE tenant", payers.tenant),
    ):
        if payer is not None:
            rows = await connection.execute(
                text(f"SELECT nanos_limit, {columns} = :payer AND nanos_limit IS NOT NULL"), {"payer": payer}
            )
            found += [Cap(limit, taken, of) for limit, taken in rows]
    return tuple(found)


async def leave_to_payers(connection: AsyncConnection, job_id: str) -> None:
    """Before a job is removed: its key and tenant keep what it spent, and the worst case of what is still not known."""
    payers = await _lock(connection, job_id)
    if payers is None or payers == NOBODY:
        return
    rows = await connection.execute(
        text(
            f"SELECT {_HELD_NANOS} FROM reservations r LEFT JOIN calls c ON c.id = r.call_id WHERE r.job_id = :job"
        ),
        {"job": job_id},
    )
    await charge(connection, payers, rows.scalar_one())


async def read_account(connection: AsyncConnection, tenant: str, job_id: str) -> Account | None:
    """A job's account as it stands; ``None`` for a job without a budget."""
    rows = await connection.execute(
        text(
            f"WITH r AS (SELECT c.id IS NOT NULL AS recorded, {_TAKEN}, r.tokens AS most_tokens,"
            "  r.nanos AS most_nanos FROM reservations r LEFT JOIN calls c ON c.id = r.call_id"
            "  WHERE r.job_id = :job AND r.tenant = :tenant)"
            " SELECT calls_limit, tokens_limit, nanos_limit,"
            " b.calls + count(*) FILTER (WHERE recorded),"
            " b.tokens + coalesce(sum(r.tokens) FILTER (WHERE recorded), 0)::bigint,"
            " b.nanos + coalesce(sum(r.nanos) FILTER (WHERE recorded), 0)::bigint,"
            " count(*) FILTER (WHERE NOT recorded),"
            " coalesce(sum(most_tokens) FILTER (WHERE NOT recorded), 0)::bigint,"
            " coalesce(sum(most_nanos) FILTER (WHERE NOT recorded), 0)::bigint,"
            " (SELECT status FROM jobs WHERE id = :job AND tenant = :tenant) AS status, b.exceeded"
            " FROM budgets b LEFT JOIN r ON true WHERE b.job_id = :job AND b.tenant = :tenant GROUP BY b.job_id"
        ),
        {"job": job_id, "tenant": tenant},
    )
    row = rows.first()
    return None if row is None else _account(row.status, row[:3], row[3:6], row[6:9], row.exceeded)


def _account(
    status: str, limits: Sequence[Any], spent: Sequence[Any], reserved: Sequence[Any], exceeded: int
) -> Account:
    may_call = JobStatus(status).may_call
    return Account(Limits(*limits), Amount(*spent), Amount(*reserved), may_call, exceeded)


async def reserve(connection: AsyncConnection, job_id: str, calls: Sequence[Wanted]) -> None:
    """Reserves the worst case of calls. The caller holds the account's lock and has seen that they fit."""
    columns: dict[str, Any] = {
        "ids": [call.call_id for call in calls],
        "tenants": [call.claim.tenant for call in calls],
        "shards": [call.claim.shard_id for call in calls],
        "leases": [call.claim.token for call in calls],
        "tokens": [call.most.tokens for call in calls],
        "nanos": [call.most.nanos for call in calls],
        "models": [call.model for call in calls],
        "alone": [call.alone for call in calls],
    }
    await connection.execute(
        text(
            "INSERT INTO reservations (call_id, tenant, job_id, shard_id, lease_token, tokens, nanos, model, alone)"
            " SELECT id, tenant, :job, shard, lease, tokens, nanos, model, alone FROM unnest(CAST(:ids AS uuid[]),"
            "  CAST(:tenants AS text[]), CAST(:shards AS bigint[]), CAST(:leases AS bigint[]),"
            "  CAST(:tokens AS bigint[]), CAST(:nanos AS bigint[]), CAST(:models AS text[]), CAST(:alone AS boolean[]))"
            "  AS wanted (id, tenant, shard, lease, tokens, nanos, model, alone)"
            " ON CONFLICT DO NOTHING"
        ),
        columns | {"job": job_id},
    )


async def refund(connection: AsyncConnection, call_ids: Sequence[UUID]) -> None:
    """Takes back the reservations of calls that were not sent."""
    await connection.execute(
        text("DELETE FROM reservations WHERE call_id = ANY(:ids)"), {"ids": list(call_ids)}
    )


_JOB = "r.job_id = :job"
_SAME_CAP = {
    CapOf.KEY: "o.key_id = b.key_id",
    CapOf.TENANT: "o.tenant = b.tenant AND o.under_tenant AND b.under_tenant",
}

LIVE = (
    "NOT EXISTS (SELECT FROM calls c WHERE c.id = r.call_id)"
    " AND (EXISTS (SELECT FROM shards s WHERE s.id = r.shard_id AND s.lease_token = r.lease_token"
    "  AND s.lease_expires_at > clock_timestamp()) OR EXISTS (SELECT FROM batch_calls b WHERE b.id = r.call_id))"
)
"""Whether the call of a reservation ``r`` is on its way in a worker that lives, or in a batch."""


async def any_outstanding(connection: AsyncConnection, job_id: str, cap: CapOf | None = None) -> bool:
    """Whether a call is on its way in a worker that lives, or in a batch, so that some of what is reserved may come free.

    What is recorded is not: it counts as it turned out, though a job under the same cap may not have settled it yet.

    Args:
        connection: Where.
        job_id: The job.
        cap: Calls of the other jobs under this cap of its count as well.
    """
    whose = _JOB
    if cap is not None:
        others = f"SELECT o.job_id FROM budgets b JOIN budgets o ON {_SAME_CAP[cap]} WHERE b.job_id = :job"
        whose = f"r.job_id IN ({others})"
    rows = await connection.execute(
        text(f"SELECT EXISTS (SELECT FROM reservations r WHERE {whose} AND {LIVE})"),
        {"job": job_id},
    )
    return bool(rows.scalar_one())
