"""What an ended shard keeps of its rows: how many there are of which kind, and what its calls took."""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

COUNTS = (
    "LATERAL (SELECT count(*) FILTER (WHERE status NOT IN ('failed', 'no_answer')) AS answered,"
    "  count(*) FILTER (WHERE status IN ('failed', 'no_answer')) AS failed, coalesce(sum(verdicts_due), 0) AS due"
    "  FROM responses r WHERE r.cell_id = s.cell_id AND r.run >= s.run_start AND r.run < s.run_stop) r,"
    " LATERAL (SELECT count(*) FILTER (WHERE status <> 'failed') AS answered,"
    "  count(*) FILTER (WHERE status = 'failed') AS failed"
    "  FROM (SELECT cell_id, run, status FROM verdicts UNION ALL SELECT cell_id, run, status FROM grades"
    "   UNION ALL SELECT cell_id, run, status FROM second_verdicts WHERE alone) v"
    "  WHERE v.cell_id = s.cell_id AND v.run >= s.run_start AND v.run < s.run_stop) v"
)
"""What the rows of a shard ``s`` amount to: the one place where that is counted."""


SET_COUNTS = (
    "responses_answered = counted.r_answered, responses_failed = counted.r_failed,"
    " verdicts_due = counted.due, verdicts_answered = counted.v_answered, verdicts_failed = counted.v_failed"
    " FROM (SELECT s.id, r.answered AS r_answered, r.failed AS r_failed, r.due,"
    f"  v.answered AS v_answered, v.failed AS v_failed FROM shards s, {COUNTS} WHERE s.id = :shard) counted"
)
"""Keeps the counts of a shard's rows with the shard."""


USAGE_COLUMNS = (
    "stage, connection || '/' || model AS model, tenant, count(*) AS calls,"
    " count(*) FILTER (WHERE outcome <> 'ok') AS failed_calls,"
    " coalesce(sum(input_tokens), 0) AS input_tokens, coalesce(sum(output_tokens), 0) AS output_tokens,"
    " coalesce(sum(cached_input_tokens), 0) AS cached_input_tokens, sum(usd) AS usd,"
    " count(*) FILTER (WHERE usd IS NULL AND maybe_paid) AS unpriced_calls"
)
"""What rows of ``calls`` amount to, grouped by stage, connection, model and tenant."""

STORE_USAGE = (
    "INSERT INTO shard_usage (shard_id, stage, model, tenant, calls, failed_calls, input_tokens,"
    " output_tokens, cached_input_tokens, usd, unpriced_calls)"
    f" SELECT shard_id, {USAGE_COLUMNS} FROM calls"
)
GROUP_USAGE = (
    "GROUP BY shard_id, stage, connection, model, tenant ON CONFLICT (shard_id, stage, model) DO UPDATE SET"
    " calls = excluded.calls, failed_calls = excluded.failed_calls, input_tokens = excluded.input_tokens,"
    " output_tokens = excluded.output_tokens, cached_input_tokens = excluded.cached_input_tokens,"
    " usd = excluded.usd, unpriced_calls = excluded.unpriced_calls"
)


async def store_usage(connection: AsyncConnection, shard_id: int) -> None:
    """Adds up the calls of a shard that ends, or waits for batches."""
    await connection.execute(
        text(f"{STORE_USAGE} WHERE shard_id = :shard {GROUP_USAGE}"), {"shard": shard_id}
    )


async def refresh_usage(connection: AsyncConnection, job_id: str) -> None:
    """Adds up the calls of a job's finished shards once more: a stale owner's came after its shard had ended."""
    await connection.execute(
        text(
            f"{STORE_USAGE} WHERE shard_id IN (SELECT id FROM shards WHERE job_id = :job AND done) {GROUP_USAGE}"
        ),
        {"job": job_id},
    )
