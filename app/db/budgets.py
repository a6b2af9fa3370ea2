"""Budgets: what jobs may spend, what they have spent, and what is reserved for calls that are on their way.

A reservation is settled by its call's row in ``calls``, whoever sees it first. So nothing is lost, or counted twice,
when a worker dies between the two.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import insert, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.shards import AnyClaim
from app.db.tables import Budget as BudgetRow
from app.domain.budget import Amount, Budget, Limits, limits_of
from app.domain.status import JobStatus


@dataclass(frozen=True, slots=True)
class Wanted:
    """A call that wants to be paid for: its id, under which it will be recorded, and its worst case."""

    call_id: UUID
    claim: AnyClaim
    most: Amount


@dataclass(frozen=True, slots=True)
class Account:
    """Where a budget stands.

    Attributes:
        limits: What may be spent.
        spent: What recorded calls took; the worst case of those whose cost is unknown.
        reserved: The worst case of the calls whose outcome is not recorded.
        may_call: Whether the job is active, so that calls may be paid for.
    """

    limits: Limits
    spent: Amount
    reserved: Amount
    may_call: bool


_TAKEN = (
    "CASE WHEN c.input_tokens IS NOT NULL THEN c.input_tokens + coalesce(c.output_tokens, 0)"
    " WHEN c.maybe_paid THEN r.tokens ELSE 0 END AS tokens,"
    " CASE WHEN c.usd IS NOT NULL THEN ceil(round((c.usd * 1e9)::numeric, 3))::bigint"
    " WHEN c.maybe_paid THEN r.nanos ELSE 0 END AS nanos"
)
"""What a recorded call ``c`` took of its reservation ``r``."""


async def insert_budget(connection: AsyncConnection, tenant: str, job_id: str, budget: Budget) -> None:
    """Gives a job its budget."""
    limits = limits_of(budget)
    await connection.execute(
        insert(BudgetRow).values(
            job_id=job_id,
            tenant=tenant,
            calls_limit=limits.calls,
            tokens_limit=limits.tokens,
            nanos_limit=limits.nanos,
        )
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


async def lock_account(connection: AsyncConnection, job_id: str) -> Account | None:
    """A job's account, locked until the transaction ends, after every recorded call has been settled."""
    locked = await connection.execute(
        text("SELECT FROM budgets WHERE job_id = :job FOR UPDATE"), {"job": job_id}
    )
    if locked.first() is None:
        return None
    rows = await connection.execute(
        text(
            "WITH settled AS (DELETE FROM reservations r USING calls c"
            f"  WHERE r.job_id = :job AND c.id = r.call_id RETURNING {_TAKEN})"
            " UPDATE budgets SET calls = budgets.calls + s.calls, tokens = budgets.tokens + s.tokens,"
            " nanos = budgets.nanos + s.nanos"
            " FROM (SELECT count(*) AS calls, coalesce(sum(tokens), 0)::bigint AS tokens,"
            "  coalesce(sum(nanos), 0)::bigint AS nanos FROM settled) AS s WHERE job_id = :job"
            " RETURNING calls_limit, tokens_limit, nanos_limit, budgets.calls, budgets.tokens, budgets.nanos,"
            " (SELECT status FROM jobs WHERE id = :job) AS status"
        ),
        {"job": job_id},
    )
    row = rows.one()
    reserved = await connection.execute(
        text(
            "SELECT count(*), coalesce(sum(tokens), 0)::bigint, coalesce(sum(nanos), 0)::bigint"
            " FROM reservations WHERE job_id = :job"
        ),
        {"job": job_id},
    )
    return _account(row.status, row[:3], row[3:6], reserved.one())


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
            " (SELECT status FROM jobs WHERE id = :job AND tenant = :tenant) AS status"
            " FROM budgets b LEFT JOIN r ON true WHERE b.job_id = :job AND b.tenant = :tenant GROUP BY b.job_id"
        ),
        {"job": job_id, "tenant": tenant},
    )
    row = rows.first()
    return None if row is None else _account(row.status, row[:3], row[3:6], row[6:9])


def _account(status: str, limits: Sequence[Any], spent: Sequence[Any], reserved: Sequence[Any]) -> Account:
    return Account(Limits(*limits), Amount(*spent), Amount(*reserved), JobStatus(status).may_call)


async def reserve(connection: AsyncConnection, job_id: str, calls: Sequence[Wanted]) -> None:
    """Reserves the worst case of calls. The caller holds the account's lock and has seen that they fit."""
    columns: dict[str, Any] = {
        "ids": [call.call_id for call in calls],
        "tenants": [call.claim.tenant for call in calls],
        "shards": [call.claim.shard_id for call in calls],
        "leases": [call.claim.token for call in calls],
        "tokens": [call.most.tokens for call in calls],
        "nanos": [call.most.nanos for call in calls],
    }
    await connection.execute(
        text(
            "INSERT INTO reservations (call_id, tenant, job_id, shard_id, lease_token, tokens, nanos)"
            " SELECT id, tenant, :job, shard, lease, tokens, nanos FROM unnest(CAST(:ids AS uuid[]),"
            "  CAST(:tenants AS text[]), CAST(:shards AS bigint[]), CAST(:leases AS bigint[]),"
            "  CAST(:tokens AS bigint[]), CAST(:nanos AS bigint[])) AS wanted (id, tenant, shard, lease, tokens, nanos)"
            " ON CONFLICT DO NOTHING"
        ),
        columns | {"job": job_id},
    )


async def refund(connection: AsyncConnection, call_ids: Sequence[UUID]) -> None:
    """Takes back the reservations of calls that were not sent."""
    await connection.execute(
        text("DELETE FROM reservations WHERE call_id = ANY(:ids)"), {"ids": list(call_ids)}
    )


async def any_outstanding(connection: AsyncConnection, job_id: str) -> bool:
    """Whether a call is on its way in a worker that lives, or in a batch, so that some of what is reserved may come free."""
    rows = await connection.execute(
        text(
            "SELECT EXISTS (SELECT FROM reservations r JOIN shards s ON s.id = r.shard_id"
            " WHERE r.job_id = :job AND s.lease_token = r.lease_token"
            " AND s.lease_expires_at > clock_timestamp())"
            " OR EXISTS (SELECT FROM reservations r JOIN batch_calls b ON b.id = r.call_id WHERE r.job_id = :job)"
        ),
        {"job": job_id},
    )
    return bool(rows.scalar_one())
