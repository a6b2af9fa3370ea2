"""Shards: announcing, claiming, keeping, giving back, ending; and what in them is still missing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.execution.shard_counts import SET_COUNTS, store_usage
from app.db.tables import status_list
from app.domain.jobs.priority import Priority
from app.domain.jobs.status import ACTIVE, STOPPED, JobStatus


@dataclass(frozen=True, slots=True)
class ShardClaim:
    """The right to write what comes of a shard, until its lease runs out or somebody else claims it.

    Attributes:
        shard_id: Which shard.
        token: The fencing token under which it was claimed.
        tenant: Whose job it is.
        job_id: Which job.
        attempts_before: Attempts of its calls are counted from here.
        priority: The job's.
        budgeted: Whether the job has a budget.
        dollars: Whether the budget, or a cap that the job has to keep, is in dollars.
        waited: Whether the job was still waiting for somebody to begin it.
        shared: Whether there are other tenants, who have keys that are still good.
        queued_seconds: How long ago the shard was announced.
        claimed_at: When it was claimed, by the database's clock.
    """

    shard_id: int
    token: int
    tenant: str
    job_id: str
    attempts_before: int = field(default=0, kw_only=True)
    priority: Priority = field(default=Priority.NORMAL, kw_only=True)
    budgeted: bool = field(default=False, kw_only=True)
    dollars: bool = field(default=False, kw_only=True)
    waited: bool = field(default=False, kw_only=True)
    shared: bool = field(default=False, kw_only=True)
    queued_seconds: float = field(default=0.0, kw_only=True)
    claimed_at: datetime | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class Claim(ShardClaim):
    """A claim on responses.

    Attributes:
        cell_id: Which cell, and ``cell`` its ordinal in the job.
        run_start: First run.
        run_stop: One past the last run.
    """

    cell_id: int
    cell: int
    run_start: int
    run_stop: int

    @property
    def place(self) -> int:
        """What the shard's calls are named by in their job: the cell."""
        return self.cell

    @property
    def place_of_rows(self) -> dict[str, object]:
        """Parameters of :data:`OF_CLAIM`."""
        return {
            "cell": self.cell_id,
            "start": self.run_start,
            "stop": self.run_stop,
            "tenant": self.tenant,
        }


@dataclass(frozen=True, slots=True)
class PreparationClaim(ShardClaim):
    """A claim on what prepares a persona.

    Attributes:
        persona: Index among the job's personas.
        retries: How often failed steps of it were opened again.
    """

    persona: int
    retries: int = 0

    @property
    def place(self) -> int:
        """What the shard's calls are named by in their job: the persona."""
        return self.persona


AnyClaim = Claim | PreparationClaim


MOST = 2**31 - 1
"""No limit."""

PRIORITY_MINUTES = 10
"""By so much older is a job taken to be for each step of priority: without end, jobs of high priority would starve the others."""

PREPARED = (
    "(s.prerequisite_id IS NULL OR EXISTS (SELECT FROM shards p WHERE p.id = s.prerequisite_id AND p.done))"
)
"""Whether a shard ``s`` can be worked on as far as its prerequisite goes."""

CALLED_FOR = (
    f"(jobs.status IN ({status_list(ACTIVE)}) AND (s.answered OR NOT s.parked)"
    f" OR s.answered AND jobs.status IN ({status_list(STOPPED)}))"
)
"""Whether the state of its job wants a shard ``s`` worked on."""


CLAIMABLE = (
    "NOT s.done AND (s.lease_expires_at IS NULL OR s.lease_expires_at < clock_timestamp())"
    f" AND {CALLED_FOR} AND {PREPARED}"
)
"""Whether a shard ``s`` can be claimed: nobody holds it, its persona is prepared and its job active.

Shards for which a batch holds answers can be in a job that stands still or ends, too: what is paid for is kept.
"""

NOT_HELD = "s.id <> ALL (CAST(:held AS bigint[]))"
"""Condition that the claiming process does not hold a shard ``s``.

The lease of a held shard runs out while its process is late. Claimed again by the same process, its calls on the wire would be repeated.
"""

OF_CLAIM = "cell_id = :cell AND run >= :start AND run < :stop AND tenant = :tenant"
"""Condition that a row belongs to the claimed runs; its parameters are :attr:`Claim.place_of_rows`."""

IN_DOLLARS = "(b.nanos_limit IS NOT NULL OR b.key_id IS NOT NULL OR b.under_tenant)"
"""Whether the budget ``b``, or a cap that its job has to keep, is in dollars."""

LEASE_FREE = (
    " UPDATE shards s SET lease_token = lease_token + 1, lease_owner = :owner, parked = false, on_the_wire = NULL,"
    # From when the row is ours, by the database's clock.
    " lease_expires_at = clock_timestamp() + make_interval(secs => :seconds) FROM free WHERE s.id = free.id"
    " RETURNING s.id, lease_token, s.tenant, s.job_id, persona, retries, cell_id,"
    " (SELECT ordinal FROM cells WHERE cells.id = cell_id) AS cell, run_start, run_stop,"
    " attempts_before, free.priority, EXISTS (SELECT FROM budgets WHERE budgets.job_id = s.job_id) AS budgeted,"
    f" EXISTS (SELECT FROM budgets b WHERE b.job_id = s.job_id AND {IN_DOLLARS}) AS dollars,"
    " free.status = 'queued' AS waited,"
    " EXISTS (SELECT FROM api_keys WHERE api_keys.tenant <> s.tenant AND revoked_at IS NULL"
    "  AND (expires_at IS NULL OR expires_at > clock_timestamp())) AS shared,"
    " coalesce(CAST(extract(epoch FROM clock_timestamp() - announced_at) AS double precision), 0)"
    "  AS queued_seconds, clock_timestamp() AS claimed_at"
)
"""Leases the shard in ``free``, which is locked there with its job."""


class Among(NamedTuple):
    """Of which shards the next one is: those that either of the last two lets pass.

    Attributes:
        quiet_seconds: Of those that were announced so long ago.
        of_tenant_below: Of tenants of whose jobs fewer shards are held, by all workers.
        of_job_below: Of jobs of which fewer shards are held.
        newest_first: Whether a tenant's newest job comes first in place of its oldest.
        newer_than: Of jobs with higher ids, which are newer.
    """

    quiet_seconds: float = 0.0
    of_tenant_below: int = MOST
    of_job_below: int = 0
    newest_first: bool = False
    newer_than: str = ""


ALL = Among()


async def refill(
    connection: AsyncConnection, job_id: str, window: int, *, answered_below: int | None = None
) -> list[int]:
    """Announces further shards of a job, so that at most ``window`` are announced and not done.

    Those that a finished preparation has opened come before further preparations. The caller holds the lock on the job's row: two at once would each announce a window.

    Args:
        connection: Where.
        job_id: Which job.
        window: How many.
        answered_below: Only those for which a batch holds answers and that have failed less often, of a job that makes
            no calls any more.

    Returns:
        The shards to tell the queue of, after the transaction has committed.
    """
    rows = await connection.execute(
        text(
            "UPDATE shards SET announced_at = clock_timestamp() WHERE id IN ("
            " SELECT id FROM shards s WHERE job_id = :job AND NOT done AND announced_at IS NULL"
            " AND CASE WHEN CAST(:below AS integer) IS NULL THEN answered OR NOT parked"
            "  ELSE answered AND failures < :below END"
            f" AND {PREPARED} ORDER BY coalesce(prerequisite_id, id), id"
            " LIMIT greatest(0, :window - (SELECT count(*) FROM shards"
            "  WHERE job_id = :job AND NOT done AND announced_at IS NOT NULL"
            # What else was announced is never claimed, and so never makes room.
            "  AND (CAST(:below AS integer) IS NULL OR answered)))"
            " FOR UPDATE SKIP LOCKED) RETURNING id"
        ),
        {"job": job_id, "window": window, "below": answered_below},
    )
    return sorted(row.id for row in rows)


async def announce_again(
    connection: AsyncConnection, job_id: str, *, quiet_seconds: float | None, answered: bool = False
) -> list[int]:
    """Announced shards of a job that nobody holds: the message, or the worker, was lost.

    Those whose lease ran out are announced at once. Those never claimed may still wait in the queue.

    Args:
        connection: Where.
        job_id: Which job.
        quiet_seconds: Announce never claimed shards after so long; ``None`` for not at all.
        answered: Only those for which a batch holds answers.
    """
    rows = await connection.execute(
        text(
            "UPDATE shards SET announced_at = clock_timestamp() WHERE id IN ("
            " SELECT id FROM shards WHERE NOT done AND job_id = :job AND (answered OR NOT :answered)"
            " AND (lease_expires_at IS NULL OR lease_expires_at < clock_timestamp())"
            " AND (announced_at < lease_expires_at"
            "  OR announced_at < clock_timestamp() - make_interval(secs => CAST(:quiet AS double precision)))"
            " ORDER BY id FOR UPDATE SKIP LOCKED) RETURNING id"
        ),
        {"job": job_id, "quiet": quiet_seconds, "answered": answered},
    )
    return sorted(row.id for row in rows)


async def jobs_to_announce(
    connection: AsyncConnection, window: int, quiet_seconds: float | None
) -> list[str]:
    """Return the active jobs with shards to announce, in turns by tenant, each tenant's oldest first.

    Such a job announces fewer shards than its window allows, or has announced shards that :func:`announce_again` would announce.
    """
    rows = await connection.execute(
        text(
            "WITH lost AS MATERIALIZED (SELECT job_id FROM shards WHERE NOT done AND lease_owner IS NOT NULL"
            "  AND lease_expires_at < clock_timestamp() AND announced_at < lease_expires_at"
            " UNION SELECT job_id FROM shards WHERE NOT done"
            "  AND announced_at < clock_timestamp() - make_interval(secs => CAST(:quiet AS double precision))"
            "  AND (lease_expires_at IS NULL OR lease_expires_at < clock_timestamp())),"
            # At most as many entries of the index are read for each job as its window has places.
            " due AS (SELECT id, tenant, created_at FROM jobs WHERE"
            f" status IN ({status_list(ACTIVE)}) AND (id IN (SELECT job_id FROM lost)"
            "  OR EXISTS (SELECT FROM shards s WHERE s.job_id = jobs.id AND NOT done AND announced_at IS NULL"
            f"   AND (answered OR NOT parked) AND {PREPARED})"
            "  AND (SELECT count(*) FROM (SELECT FROM shards a WHERE a.job_id = jobs.id AND NOT a.done"
            "   AND a.announced_at IS NOT NULL LIMIT :window) announced) < :window))"
            " SELECT id FROM due ORDER BY row_number() OVER (PARTITION BY tenant ORDER BY created_at, id), created_at"
        ),
        {"window": window, "quiet": quiet_seconds},
    )
    return list(rows.scalars())


async def unclaimed(connection: AsyncConnection) -> int:
    """How many shards of active jobs are announced and held by nobody: as many messages should be in the queue."""
    rows = await connection.execute(
        text(
            "SELECT count(*) FROM shards JOIN jobs ON jobs.id = shards.job_id"
            f" WHERE jobs.status IN ({status_list(ACTIVE)}) AND NOT done AND announced_at IS NOT NULL"
            " AND (lease_expires_at IS NULL OR lease_expires_at < clock_timestamp())"
        )
    )
    return int(rows.scalar_one())


async def claim_next(
    connection: AsyncConnection,
    owner: str,
    lease_seconds: float,
    among: Among = ALL,
    shard_id: int | None = None,
    *,
    held: Sequence[int] = (),
) -> AnyClaim | None:
    """Claims the shard whose turn it is: of the tenant of whose jobs fewest shards are held, by all workers.

    Of a tenant's jobs, the one of which fewest are held comes first, then the older one; see :data:`PRIORITY_MINUTES`.
    One statement, and one that waits for nobody: a shard that somebody else is just claiming, or a job that somebody has
    locked, is passed over, so that no job holds up the others.

    Args:
        connection: Where.
        owner: Who claims it.
        lease_seconds: For how long.
        among: Which shards can be it.
        shard_id: Of the job whose turn it is, this one if it can be claimed, or else the first.
        held: Shards that are not claimed, see :data:`NOT_HELD`.
    """
    rows = await connection.execute(
        text(
            "WITH held AS MATERIALIZED (SELECT tenant, job_id, count(*) AS number FROM shards WHERE NOT done"
            "  AND lease_owner IS NOT NULL AND announced_at IS NOT NULL AND lease_expires_at > clock_timestamp()"
            "  GROUP BY tenant, job_id),"
            # Jobs in the order of their turns; shards are looked up for one after the other until one can be claimed.
            " turns AS (SELECT jobs.id, coalesce(tenants.number, 0) AS of_tenant, coalesce(held.number, 0) AS of_job,"
            "   CAST(extract(epoch FROM created_at) + 60 * :step * array_position(ARRAY['high', 'normal', 'low'], priority)"
            "    AS double precision) * :direction AS turn"
            "  FROM jobs LEFT JOIN held ON held.job_id = jobs.id"
            "  LEFT JOIN (SELECT tenant, CAST(sum(number) AS bigint) AS number FROM held GROUP BY tenant) tenants"
            "   ON tenants.tenant = jobs.tenant"
            f" WHERE (status IN ({status_list(ACTIVE)}) OR status IN ({status_list(STOPPED)})"
            "   AND jobs.id IN (SELECT job_id FROM shards WHERE answered AND NOT done))"
            "  AND (coalesce(tenants.number, 0) < :of_tenant OR coalesce(held.number, 0) < :of_job)"
            "  AND jobs.id > :newer_than ORDER BY 2, 3, 4, 1),"
            " free AS (SELECT first.* FROM turns, LATERAL (SELECT s.id, jobs.priority, jobs.status"
            "   FROM shards s JOIN jobs ON jobs.id = s.job_id"
            f"  WHERE s.job_id = turns.id AND {CLAIMABLE} AND {NOT_HELD} AND s.announced_at IS NOT NULL"
            "   AND s.announced_at <= clock_timestamp() - make_interval(secs => :quiet)"
            "   ORDER BY s.id IS NOT DISTINCT FROM CAST(:shard AS bigint) DESC, s.id"
            "   LIMIT 1 FOR SHARE OF jobs SKIP LOCKED FOR NO KEY UPDATE OF s SKIP LOCKED) first"
            "  ORDER BY of_tenant, of_job, turn, turns.id LIMIT 1)" + LEASE_FREE
        ),
        {
            "owner": owner,
            "seconds": lease_seconds,
            "shard": shard_id,
            "step": PRIORITY_MINUTES,
            "quiet": among.quiet_seconds,
            "of_tenant": among.of_tenant_below,
            "of_job": among.of_job_below,
            "held": list(held),
            "direction": -1 if among.newest_first else 1,
            "newer_than": among.newer_than,
        },
    )
    return _claim_of(rows.first())


async def bar(connection: AsyncConnection, job_id: str) -> None:
    """Ends every claim on a job's unfinished shards: nothing is written into a job that is over.

    Waits for whoever is writing under one of them.
    """
    await connection.execute(
        text(
            "UPDATE shards SET lease_token = lease_token + 1, lease_owner = NULL, lease_expires_at = NULL"
            # Locked in the order of their ids, as the writer does, so that the two never wait for each other.
            " WHERE id IN (SELECT id FROM shards WHERE job_id = :job AND NOT done AND lease_token > 0"
            "  ORDER BY id FOR UPDATE)"
        ),
        {"job": job_id},
    )


async def withdraw(connection: AsyncConnection, job_id: str) -> None:
    """Takes back the announcements of a job's shards that nobody holds, so that the next refill makes them again.

    While a job stands still, workers drop the messages that reach them.
    """
    await connection.execute(
        text(
            "UPDATE shards SET announced_at = NULL, failures = 0 WHERE id IN ("
            " SELECT id FROM shards WHERE job_id = :job AND NOT done AND (announced_at IS NOT NULL OR failures > 0)"
            " AND (lease_expires_at IS NULL OR lease_expires_at < clock_timestamp())"
            " ORDER BY id FOR UPDATE SKIP LOCKED)"
        ),
        {"job": job_id},
    )


async def claim(
    connection: AsyncConnection, shard_id: int, owner: str, lease_seconds: float
) -> AnyClaim | None:
    """Claims one shard if it can be, waiting for whoever has locked it or its job.

    The job's row is share-locked first: a job that is cancelled before this commits is not claimed. The shard's row may be
    a stale writer's for a while.
    """
    rows = await connection.execute(
        text(
            "WITH free AS (SELECT s.id, jobs.priority, jobs.status FROM shards s JOIN jobs ON jobs.id = s.job_id"
            f"  WHERE s.id = :shard AND {CLAIMABLE} FOR SHARE OF jobs FOR NO KEY UPDATE OF s)" + LEASE_FREE
        ),
        {"shard": shard_id, "owner": owner, "seconds": lease_seconds},
    )
    return _claim_of(rows.first())


async def first_claimable(
    connection: AsyncConnection, shard_id: int, *, held: Sequence[int] = ()
) -> int | None:
    """Return a shard that can be claimed, even a locked one: the named one, or else the first that is announced."""
    rows = await connection.execute(
        text(
            "SELECT s.id FROM shards s JOIN jobs ON jobs.id = s.job_id"
            f" WHERE (s.id = :shard OR s.announced_at IS NOT NULL) AND {CLAIMABLE} AND {NOT_HELD}"
            " ORDER BY s.id = :shard DESC, s.id LIMIT 1"
        ),
        {"shard": shard_id, "held": list(held)},
    )
    return rows.scalar_one_or_none()


def _claim_of(row: Any) -> AnyClaim | None:
    if row is None:
        return None
    shard = (row.id, row.lease_token, row.tenant, row.job_id)
    names = ("attempts_before", "budgeted", "dollars", "waited", "shared", "queued_seconds", "claimed_at")
    job = {"priority": Priority(row.priority), **{name: getattr(row, name) for name in names}}
    if row.persona is not None:
        return PreparationClaim(*shard, row.persona, row.retries, **job)
    return Claim(*shard, row.cell_id, row.cell, row.run_start, row.run_stop, **job)


async def start_job(connection: AsyncConnection, job_id: str) -> None:
    """Marks a job as running when its first shard has been claimed."""
    await connection.execute(
        text(
            "UPDATE jobs SET status = 'running', started_at = coalesce(started_at, clock_timestamp()),"
            " updated_at = clock_timestamp() WHERE id = :job AND status = 'queued'"
        ),
        {"job": job_id},
    )


async def renew(
    connection: AsyncConnection, claims: Mapping[AnyClaim, int], lease_seconds: float
) -> set[AnyClaim]:
    """Keep the leases of claims that are still valid, and store how many calls each has on the wire.

    Returns:
        Those that are still ours.
    """
    rows = await connection.execute(
        text(
            # Locked in the order of their ids, as the writer does, so that the two never wait for each other.
            "WITH ours AS (SELECT shards.id, held.calls FROM shards"
            "  JOIN unnest(CAST(:ids AS bigint[]), CAST(:tokens AS bigint[]), CAST(:calls AS int[]))"
            "  AS held (id, token, calls)"
            "  ON shards.id = held.id AND lease_token = held.token"
            # One that was given back keeps its token; renewed, it would be held by nobody until that runs out.
            "  WHERE NOT done AND lease_owner IS NOT NULL ORDER BY shards.id FOR UPDATE OF shards)"
            " UPDATE shards SET lease_expires_at = clock_timestamp() + make_interval(secs => :seconds),"
            "  on_the_wire = ours.calls"
            " FROM ours WHERE shards.id = ours.id RETURNING shards.id, lease_token"
        ),
        {
            "seconds": lease_seconds,
            "ids": [c.shard_id for c in claims],
            "tokens": [c.token for c in claims],
            "calls": list(claims.values()),
        },
    )
    ours = {(row.id, row.lease_token) for row in rows}
    return {claim for claim in claims if (claim.shard_id, claim.token) in ours}


async def standing(
    connection: AsyncConnection, claims: Sequence[AnyClaim]
) -> dict[AnyClaim, tuple[JobStatus, bool]]:
    """What has become of claims: the state of the job, and whether the shard is still held under the claim.

    Claims of jobs that have been deleted are missing.
    """
    rows = await connection.execute(
        text(
            "SELECT held.place, jobs.status, lease_token = token AND lease_owner IS NOT NULL AS ours"
            " FROM unnest(CAST(:ids AS bigint[]), CAST(:tokens AS bigint[])) WITH ORDINALITY AS held (id, token, place)"
            " JOIN shards ON shards.id = held.id JOIN jobs ON jobs.id = job_id"
        ),
        {"ids": [c.shard_id for c in claims], "tokens": [c.token for c in claims]},
    )
    return {claims[row.place - 1]: (JobStatus(row.status), row.ours) for row in rows}


async def holds(connection: AsyncConnection, held: AnyClaim) -> bool:
    """Whether nobody has claimed the shard since."""
    rows = await connection.execute(
        text("SELECT FROM shards WHERE id = :shard AND lease_token = :token"),
        {"shard": held.shard_id, "token": held.token},
    )
    return rows.first() is not None


async def is_leased(connection: AsyncConnection, shard_id: int) -> bool:
    """Return whether a worker holds a shard."""
    rows = await connection.execute(
        text("SELECT FROM shards WHERE id = :shard AND lease_expires_at > clock_timestamp()"),
        {"shard": shard_id},
    )
    return rows.first() is not None


async def release(connection: AsyncConnection, held: AnyClaim, *, failed: bool) -> int:
    """Gives an unfinished shard back, so that it is announced again with the next refill.

    Args:
        connection: Where.
        held: The claim.
        failed: Whether an internal error was the reason.

    Returns:
        How often the shard has failed so far.
    """
    rows = await connection.execute(
        text(
            "UPDATE shards SET lease_owner = NULL, lease_expires_at = NULL, announced_at = NULL,"
            " failures = failures + :failed WHERE id = :shard AND lease_token = :token AND NOT done"
            " RETURNING failures"
        ),
        {"shard": held.shard_id, "token": held.token, "failed": int(failed)},
    )
    row = rows.first()
    return 0 if row is None else row.failures


async def park(connection: AsyncConnection, held: Claim) -> None:
    """Gives back a shard that waits for batches; it is announced again when one has ended.

    The caller holds the lock on the job's row, as does whoever ends a batch.
    """
    rows = await connection.execute(
        text(
            "UPDATE shards SET parked = true, lease_owner = NULL, lease_expires_at = NULL, announced_at = NULL,"
            f" {SET_COUNTS} WHERE shards.id = counted.id AND lease_token = :token AND NOT done RETURNING shards.id"
        ),
        {"shard": held.shard_id, "token": held.token},
    )
    if rows.first() is not None:
        await store_usage(connection, held.shard_id)


async def finish(connection: AsyncConnection, held: Claim) -> bool:
    """End a shard if nothing in it is missing and the claim still holds, and forget its unread replies: its verdicts have them.

    Returns:
        Whether it ended now.
    """
    rows = await connection.execute(
        text(
            f"WITH ended AS (UPDATE shards SET done = true, lease_owner = NULL, lease_expires_at = NULL, {SET_COUNTS}"
            " WHERE shards.id = counted.id AND lease_token = :token AND NOT done"
            " AND r_answered + r_failed = planned_responses AND v_answered + v_failed = counted.due"
            " RETURNING shards.id),"
            f" forgotten AS (DELETE FROM unread_replies WHERE EXISTS (SELECT FROM ended) AND {OF_CLAIM})"
            " SELECT FROM ended"
        ),
        {"shard": held.shard_id, "token": held.token, **held.place_of_rows},
    )
    if rows.first() is None:
        return False
    await store_usage(connection, held.shard_id)
    return True


async def finish_preparation(connection: AsyncConnection, held: PreparationClaim) -> bool:
    """Ends a preparation if all its steps have ended and the claim still holds.

    Returns:
        Whether it ended now.
    """
    rows = await connection.execute(
        text(
            "UPDATE shards SET done = true, lease_owner = NULL, lease_expires_at = NULL"
            " WHERE id = :shard AND lease_token = :token AND NOT done AND planned_exactly"
            " AND environments_planned + questions_planned + exemplars_planned"
            "  + CASE WHEN personas_planned > 0 THEN 1 ELSE 0 END = (SELECT count(*)"
            "  FROM preparations WHERE job_id = :job AND persona = :persona AND status <> 'incomplete')"
            " RETURNING id"
        ),
        {"shard": held.shard_id, "token": held.token, "job": held.job_id, "persona": held.persona},
    )
    if rows.first() is None:
        return False
    await store_usage(connection, held.shard_id)
    return True
