"""A job's progress and usage: finished shards from their counts, the few running ones from their rows."""

from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.execution.shard_counts import COUNTS, USAGE_COLUMNS


@dataclass(frozen=True, slots=True)
class Counts:
    """Sums over shards.

    Attributes:
        planned: Responses planned.
        answered: Responses there are, refusals included.
        failed: Responses whose calls never succeeded.
        due: Verdicts that those responses call for.
        judged: Verdicts and grades there are, whatever they say.
        unjudged: Verdicts whose calls never succeeded.
        estimated: Shards of which it is not known yet how many responses they will have.
        preparations: Shards that prepare personas, or make some up.
        on_the_wire: Calls sent and not yet answered, as of the last renewals of leases.
        unreported: Shards whose lease has not been renewed yet, so that their calls are not counted.
    """

    planned: int = 0
    answered: int = 0
    failed: int = 0
    due: int = 0
    judged: int = 0
    unjudged: int = 0
    estimated: int = 0
    preparations: int = 0
    on_the_wire: int = 0
    unreported: int = 0


@dataclass(frozen=True, slots=True)
class UsageRow:
    """What a stage's calls to one model took; the model is named ``connection/model``."""

    stage: str
    model: str
    calls: int
    failed_calls: int
    input_tokens: int
    output_tokens: int
    cached_input_tokens: int
    usd: float | None
    unpriced_calls: int


_COUNTS = text(
    "SELECT false AS leased, sum(planned_responses), sum(responses_answered), sum(responses_failed),"
    " sum(verdicts_due), sum(verdicts_answered), sum(verdicts_failed),"
    " count(*) FILTER (WHERE NOT planned_exactly AND kind = 'responses'),"
    " count(*) FILTER (WHERE kind = 'preparation'), 0, 0"
    " FROM shards WHERE job_id = :job AND tenant = :tenant AND (done OR parked OR lease_token = 0)"
    " HAVING count(*) > 0"
    " UNION ALL SELECT coalesce(lease_expires_at > clock_timestamp(), false), planned_responses,"
    "  r.answered, r.failed, r.due, v.answered, v.failed, 0, (kind = 'preparation')::int,"
    "  coalesce(s.on_the_wire, 0), (s.on_the_wire IS NULL)::int"
    f" FROM shards s, {COUNTS}"
    " WHERE job_id = :job AND tenant = :tenant AND NOT done AND NOT parked AND lease_token > 0"
)

_USAGE = text(
    "SELECT stage, model, sum(calls)::bigint, sum(failed_calls)::bigint, sum(input_tokens)::bigint,"
    " sum(output_tokens)::bigint, sum(cached_input_tokens)::bigint, sum(usd)::float8,"
    " sum(unpriced_calls)::bigint FROM ("
    " SELECT u.stage, u.model, u.tenant, u.calls, u.failed_calls, u.input_tokens, u.output_tokens,"
    "  u.cached_input_tokens, u.usd, u.unpriced_calls FROM shard_usage u"
    "  JOIN shards s ON s.id = u.shard_id WHERE s.job_id = :job AND s.tenant = :tenant AND (s.done OR s.parked)"
    f" UNION ALL SELECT {USAGE_COLUMNS} FROM calls"
    "  WHERE shard_id IN (SELECT id FROM shards WHERE job_id = :job AND tenant = :tenant"
    "   AND NOT done AND NOT parked AND lease_token > 0) GROUP BY stage, connection, model, tenant) AS parts"
    " GROUP BY stage, model ORDER BY stage, model"
)


async def counts(connection: AsyncConnection, tenant: str, job_id: str) -> tuple[Counts, Counts]:
    """Sums over all shards of a job, and over those leased right now; both from one snapshot."""
    parts = list(await connection.execute(_COUNTS, {"job": job_id, "tenant": tenant}))
    return _sum([tuple(row)[1:] for row in parts]), _sum([tuple(row)[1:] for row in parts if row.leased])


def _sum(rows: list[tuple[int, ...]]) -> Counts:
    return Counts(*(int(sum(column)) for column in zip(*rows, strict=True))) if rows else Counts()


async def usage(connection: AsyncConnection, tenant: str, job_id: str) -> list[UsageRow]:
    """Calls, tokens and cost of a job by stage and model."""
    rows = await connection.execute(_USAGE, {"job": job_id, "tenant": tenant})
    return [UsageRow(*row) for row in rows]


async def lacks_calls(connection: AsyncConnection, tenant: str, job_id: str, cells: int) -> bool:
    """Whether a call of a job's first so many cells, or of a preparation, is missing or failed; of finished shards."""
    found = await connection.scalar(
        text(
            "SELECT EXISTS (SELECT FROM shards s LEFT JOIN cells c ON c.id = s.cell_id"
            " WHERE s.job_id = :job AND s.tenant = :tenant AND coalesce(c.ordinal, 0) < :cells AND NOT (done"
            " AND responses_answered = planned_responses AND verdicts_answered = verdicts_due"
            " AND responses_failed = 0 AND verdicts_failed = 0))"
        ),
        {"job": job_id, "tenant": tenant, "cells": cells},
    )
    return bool(found)
