"""What an operator watches: figures over all jobs, from counts that are cheap however much there is."""

from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

MOST_JOBS = 20
"""So many active jobs, the newest, are shown one by one."""
MOST_REASONS = 20


@dataclass(frozen=True, slots=True)
class ActiveJob:
    """An active or paused job.

    Attributes:
        id: Which job.
        open_shards: Shards that are not done.
        open_responses: Responses planned in them.
        usd: Known cost of its finished shards.
    """

    id: str
    open_shards: int
    open_responses: int
    usd: float


@dataclass(frozen=True, slots=True)
class WaitingMessages:
    """Messages to webhooks that are neither delivered nor given up.

    Attributes:
        count: How many.
        oldest_seconds: Since when the oldest one waits; 0 if there is none.
        overdue_seconds: Since when the longest due one should be on its way; 0 if none is due.
    """

    count: int
    oldest_seconds: float
    overdue_seconds: float


@dataclass(frozen=True, slots=True)
class HeldUploads:
    """Uploads of one status.

    Attributes:
        count: How many.
        received: Bytes that have arrived of them.
        records: Records that are kept of them.
    """

    count: int
    received: int
    records: int


@dataclass(frozen=True, slots=True)
class OperatingFigures:
    """A look at everything.

    Attributes:
        jobs: Jobs by status.
        stopped: Paused jobs by their reason, the most frequent reasons.
        leased: Shards that a worker holds.
        expired: Shards of active jobs whose lease ran out and that nobody has claimed since.
        active: Jobs that are not over.
        messages: What webhooks are still to be told.
        uploads: Uploads by status.
    """

    jobs: dict[str, int]
    stopped: dict[str, int]
    leased: int
    expired: int
    active: list[ActiveJob]
    messages: WaitingMessages
    uploads: dict[str, HeldUploads]


async def operating_figures(connection: AsyncConnection) -> OperatingFigures:
    """Reads the figures. It never counts calls, responses or verdicts, of which there are millions."""
    jobs = await connection.execute(text("SELECT status, count(*) FROM jobs GROUP BY status"))
    stopped = await connection.execute(
        text(
            "SELECT coalesce(status_reason, 'unknown'), count(*) FROM jobs WHERE status = 'paused'"
            " GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT :most"
        ),
        {"most": MOST_REASONS},
    )
    leases = await connection.execute(
        text(
            "SELECT count(*) FILTER (WHERE lease_expires_at >= clock_timestamp()),"
            " count(*) FILTER (WHERE lease_expires_at < clock_timestamp() AND jobs.status IN ('queued', 'running'))"
            " FROM shards JOIN jobs ON jobs.id = shards.job_id"
            " WHERE NOT done AND announced_at IS NOT NULL AND lease_expires_at IS NOT NULL"
        )
    )
    leased, expired = leases.one()
    active = await connection.execute(
        text(
            "SELECT j.id, s.open, s.responses, u.usd FROM (SELECT id FROM jobs"
            "  WHERE status NOT IN ('completed', 'failed', 'cancelled') ORDER BY created_at DESC LIMIT :most) j,"
            " LATERAL (SELECT count(*) AS open, coalesce(sum(planned_responses), 0)::bigint AS responses"
            "  FROM shards WHERE job_id = j.id AND NOT done) s,"
            " LATERAL (SELECT coalesce(sum(usd), 0)::float8 AS usd FROM shard_usage"
            "  WHERE shard_id IN (SELECT id FROM shards WHERE job_id = j.id AND done)) u"
        ),
        {"most": MOST_JOBS},
    )
    messages = await connection.execute(
        text(
            "SELECT count(*), coalesce(extract(epoch FROM clock_timestamp() - min(d.created_at)), 0)::float8,"
            " greatest(coalesce(extract(epoch FROM clock_timestamp() - min(d.due_at)), 0), 0)::float8"
            " FROM webhook_deliveries d JOIN webhooks w ON w.id = d.webhook_id AND w.disabled_reason IS NULL"
            " WHERE d.state = 'waiting'"
        )
    )
    held = await connection.execute(
        text(
            "SELECT status, count(*), sum(received)::bigint, sum(records)::bigint FROM uploads GROUP BY status"
        )
    )
    return OperatingFigures(
        jobs={row[0]: row[1] for row in jobs},
        stopped={row[0]: row[1] for row in stopped},
        leased=leased,
        expired=expired,
        active=[ActiveJob(*row) for row in active],
        messages=WaitingMessages(*messages.one()),
        uploads={status: HeldUploads(*counts) for status, *counts in held},
    )
