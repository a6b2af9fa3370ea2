"""Calls that failed: what they failed of, and whether any of their kind was answered."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

MOST_GROUPS = 50
"""Groups of failures that are told apart; of more, those with the most calls."""

SAME_CHARACTERS = 60
"""Failures are alike if their words begin alike: further on there are request ids and counts."""


@dataclass(frozen=True, slots=True)
class FailureRow:
    """Calls of one stage and model that failed alike.

    Attributes:
        stage: Of the calls.
        model: ``connection/model``.
        code: The provider's code, or ours.
        http_status: Of the answer; ``None`` where there was none.
        detail: The provider's words to one of them.
        calls: How many attempts.
        last_at: When the last of them was sent.
    """

    stage: str
    model: str
    code: str
    http_status: int | None
    detail: str | None
    calls: int
    last_at: datetime


_HISTOGRAM = text(
    "SELECT stage, connection || '/' || model, coalesce(code, outcome), http_status,"
    ' max(detail COLLATE "C"), count(*), max(started_at)'
    " FROM calls WHERE job_id = :job AND tenant = :tenant AND outcome <> 'ok'"
    f" GROUP BY stage, connection, model, coalesce(code, outcome), http_status, left(detail, {SAME_CHARACTERS})"
    f" ORDER BY count(*) DESC, max(started_at) DESC LIMIT {MOST_GROUPS}"
)


async def histogram(connection: AsyncConnection, tenant: str, job_id: str) -> list[FailureRow]:
    """A job's failed calls by stage, model, code and words, the most frequent first."""
    rows = await connection.execute(_HISTOGRAM, {"job": job_id, "tenant": tenant})
    return [FailureRow(*row) for row in rows]


async def any_answer(connection: AsyncConnection, job_id: str, stage: str, of: str, model: str) -> bool:
    """Whether a model has answered any call of a stage of a job.

    Args:
        connection: Where to look.
        job_id: Which job.
        stage: Which stage.
        of: The model's connection.
        model: Its name there.
    """
    rows = await connection.execute(
        text(
            "SELECT EXISTS (SELECT FROM calls JOIN shards ON shards.id = calls.shard_id"
            " WHERE shards.job_id = :job AND calls.outcome = 'ok' AND calls.stage = :stage"
            " AND calls.connection = :of AND calls.model = :model)"
        ),
        {"job": job_id, "stage": stage, "of": of, "model": model},
    )
    return bool(rows.scalar_one())


async def unanswered(connection: AsyncConnection, job_id: str) -> FailureRow | None:
    """How most calls failed of a model in a stage of which none was answered; ``None`` where there is no such model.

    Refusals by a content filter aside, and a reply that was used again is an answer. The job's finished shards have been added up.
    """
    rows = await connection.execute(
        text(
            "SELECT calls.stage, calls.connection || '/' || calls.model, coalesce(code, outcome), http_status,"
            ' max(detail COLLATE "C"), count(*), max(started_at)'
            " FROM calls JOIN (SELECT u.stage, u.model FROM shard_usage u JOIN shards ON shards.id = u.shard_id"
            "  WHERE shards.job_id = :job GROUP BY u.stage, u.model HAVING sum(calls) = sum(failed_calls)) AS vain"
            " ON vain.stage = calls.stage AND vain.model = calls.connection || '/' || calls.model"
            " WHERE calls.job_id = :job AND outcome NOT IN ('ok', 'filtered')"
            "  AND NOT EXISTS (SELECT FROM reused_replies r JOIN shards ON shards.id = r.shard_id"
            "   WHERE shards.job_id = :job AND r.stage = calls.stage AND r.connection = calls.connection AND r.model = calls.model)"
            " GROUP BY calls.stage, connection, calls.model, coalesce(code, outcome), http_status"
            " ORDER BY count(*) DESC LIMIT 1"
        ),
        {"job": job_id},
    )
    row = rows.first()
    return None if row is None else FailureRow(*row)
