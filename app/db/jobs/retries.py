"""Reopens the failed, unparsed and unanswered parts of a stopped job; everything else stays."""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

MOST_ATTEMPTS = 30_000
"""From here on attempts are not counted further: the column has two bytes, and a call takes some 200 at most."""

_UNPARSED = "status IN ('failed', 'unparsed')"
_LACKING = "(status = 'failed' OR status = 'no_answer' AND finish_reason IS NOT NULL)"
"""Responses that can be asked for again. An existing text of nothing but thoughts, which has no finish reason, can't be."""
_CELLS = "cell_id IN (SELECT id FROM cells WHERE job_id = :job)"
_CALLED = (
    "judge NOT IN (SELECT n - 1 FROM jobs, jsonb_array_elements(spec -> 'judges') WITH ORDINALITY AS judges (judge, n)"
    " WHERE jobs.id = :job AND judges.judge ->> 'imported' IS NOT NULL)"
)
"""What an imported judge lacks nobody can be asked for."""
_VERDICTS = f"FROM verdicts WHERE {_CELLS} AND {_UNPARSED} AND {_CALLED}"
_CHECKS = f"FROM second_verdicts WHERE {_CELLS} AND alone AND {_UNPARSED}"
_GRADES = f"FROM grades WHERE {_CELLS} AND {_UNPARSED} AND {_CALLED}"
_RESPONSES = f"FROM responses WHERE {_CELLS} AND {_LACKING}"
_LOST = (
    f"WITH v AS (DELETE {_VERDICTS} RETURNING cell_id, run), c AS (DELETE {_CHECKS} RETURNING cell_id, run),"
    f" g AS (DELETE {_GRADES} RETURNING cell_id, run), r AS (DELETE {_RESPONSES} RETURNING cell_id, run)"
    " SELECT DISTINCT s.id FROM shards s"
    " JOIN (TABLE v UNION TABLE c UNION TABLE g UNION TABLE r) AS lost ON lost.cell_id = s.cell_id"
    "  AND lost.run >= s.run_start AND lost.run < s.run_stop WHERE s.job_id = :job"
)
_ANYTHING = (
    f"SELECT EXISTS (SELECT {_RESPONSES}) OR EXISTS (SELECT {_GRADES}) OR EXISTS (SELECT {_VERDICTS})"
    f" OR EXISTS (SELECT {_CHECKS})"
    " OR EXISTS (SELECT FROM preparations WHERE job_id = :job AND status = 'failed')"
    " OR :unfinished AND EXISTS (SELECT FROM shards WHERE job_id = :job AND NOT done)"
)
_STEPS = (
    # What failed for want of something else (ask 0) is gone; what was asked for goes on from what it has.
    "WITH failed AS (SELECT persona FROM preparations WHERE job_id = :job AND status = 'failed'),"
    " derived AS (DELETE FROM preparations WHERE job_id = :job AND status = 'failed' AND ask = 0),"
    " reopened AS (UPDATE preparations SET status = 'incomplete'"
    "  WHERE job_id = :job AND status = 'failed' AND ask > 0)"
    " SELECT id FROM shards WHERE job_id = :job AND kind = 'preparation'"
    "  AND persona IN (SELECT persona FROM failed)"
)


async def count_reopenings(connection: AsyncConnection, tenant: str, job_id: str) -> int:
    """Count a job's retries, shard by shard, and its rereads; the number grows whenever stored rows may change again."""
    rows = await connection.execute(
        text(
            "SELECT (SELECT coalesce(sum(retries), 0) FROM shards WHERE job_id = :job AND tenant = :tenant)"
            " + coalesce((SELECT rereads FROM jobs WHERE id = :job AND tenant = :tenant), 0)"
        ),
        {"job": job_id, "tenant": tenant},
    )
    return int(rows.scalar_one())


async def can_reopen(connection: AsyncConnection, job_id: str, *, unfinished: bool) -> bool:
    """Whether :func:`reopen_failed` would find anything to do."""
    found = await connection.scalar(text(_ANYTHING), {"job": job_id, "unfinished": unfinished})
    return bool(found)


async def reopen_failed(connection: AsyncConnection, job_id: str, *, unfinished: bool) -> bool:
    """Removes what failed, stayed unparsed or has no answer and opens the shards that it was in.

    The caller holds the lock on the job's row and has barred the claims on its unfinished shards, so nobody writes
    meanwhile. Fencing tokens grow: whoever once held a shard can't write into it any more. All calls stay accounted.

    Args:
        connection: Where.
        job_id: Which job.
        unfinished: Whether shards that were never finished are to be taken up, even if nothing in the job failed.

    Returns:
        Whether there is anything to do now.
    """
    opened = [row.id for row in await connection.execute(text(_STEPS), {"job": job_id})]
    opened += [row.id for row in await connection.execute(text(_LOST), {"job": job_id})]
    if not opened and not unfinished:
        return False
    return await reopen_shards(connection, job_id, opened, unfinished=True) > 0


async def reopen_shards(
    connection: AsyncConnection, job_id: str, shards: list[int], *, unfinished: bool = False
) -> int:
    """Open shards of a job from which rows were removed; whoever once held one can't write into it any more.

    Args:
        connection: Where.
        job_id: Which job; the caller holds the lock on its row.
        shards: Which shards.
        unfinished: Begin those anew, too, that were never finished.

    Returns:
        The number of shards opened.
    """
    rows = await connection.execute(
        text(
            "UPDATE shards SET done = false, lease_token = lease_token + 1, lease_owner = NULL,"
            " lease_expires_at = NULL, announced_at = NULL, parked = false, failures = 0, retries = retries + 1,"
            " attempts_before = least(:most, greatest(attempts_before, coalesce("
            "  (SELECT max(attempt) FROM calls WHERE calls.shard_id = shards.id), 0)))"
            " WHERE job_id = :job AND (id = ANY(:opened) OR :unfinished AND NOT done)"
        ),
        {"job": job_id, "opened": shards, "most": MOST_ATTEMPTS, "unfinished": unfinished},
    )
    # Of open shards the calls themselves are added up.
    await connection.execute(
        text("DELETE FROM shard_usage WHERE shard_id = ANY(:opened)"), {"opened": shards}
    )
    return rows.rowcount
