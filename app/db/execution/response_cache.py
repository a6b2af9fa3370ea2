"""The response cache's rows: requests in progress, replies, and what jobs saved by them.

Several statements at a time lock rows of ``replies``; each does so in the order of their keys, so that none waits for
one that waits for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import psycopg
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.execution.shards import Claim
from app.db.places import place_arrays
from app.domain.jobs.status import TERMINAL
from app.domain.providers.model import ChatReply, FinishReason, Usage
from app.domain.providers.reuse import ReplyOrigin

FORGOTTEN_AT_ONCE = 10_000
"""Replies that one statement removes at most, so that none holds others up."""


class ReplyRow(NamedTuple):
    """A row of ``replies`` that has been answered."""

    tenant: str
    key: bytes
    job_id: str
    shared: bool
    shard_id: int
    lease_token: int
    text: str
    input_tokens: int | None
    output_tokens: int | None
    cached_input_tokens: int | None
    model_snapshot: str | None
    system_fingerprint: str | None
    thoughts: str | None = None


class ReusedRow(NamedTuple):
    """A row of ``reused_replies``."""

    tenant: str
    shard_id: int
    stage: str
    connection: str
    model: str
    cell_id: int
    run: int | None
    item: int | None
    unit: int | None
    trait: int | None
    judge: int | None
    origin: str
    input_tokens: int | None
    output_tokens: int | None
    usd: float | None
    model_snapshot: str | None
    system_fingerprint: str | None
    asked_at: datetime


@dataclass(frozen=True, slots=True)
class Wish:
    """A request whose reply may be there already.

    Attributes:
        key: What names it among its tenant's.
        claim: Under which claim its reply is wanted, and asked for if there is none.
        shared: Whether other jobs may use the reply.
        max_age_days: An older reply is no reply.
    """

    key: bytes
    claim: Claim
    shared: bool
    max_age_days: int

    @property
    def name(self) -> tuple[str, bytes]:
        """What names the reply: who wishes for the same is given the same."""
        return self.claim.tenant, self.key


@dataclass(frozen=True, slots=True)
class KeptReply:
    """A reply that is there.

    Attributes:
        reply: What was answered.
        job_id: The job that asked.
        asked_at: When.
    """

    reply: ChatReply
    job_id: str
    asked_at: datetime


_WISHED = (
    "unnest(CAST(:tenants AS text[]), CAST(:keys AS bytea[]), CAST(:jobs AS text[]), CAST(:shared AS boolean[]),"
    " CAST(:shards AS bigint[]), CAST(:tokens AS bigint[]), CAST(:days AS integer[]))"
    " AS w (tenant, key, job_id, shared, shard_id, lease_token, days)"
)
_TOO_OLD = "r.asked_at < clock_timestamp() - make_interval(days => {days})"
_ASKED_BY_ANOTHER = (
    "EXISTS (SELECT FROM shards s WHERE s.id = r.shard_id AND s.lease_token = r.lease_token"
    " AND s.lease_expires_at > clock_timestamp())"
)


def _wished(wishes: Sequence[Wish]) -> dict[str, Any]:
    return {
        "tenants": [wish.claim.tenant for wish in wishes],
        "keys": [wish.key for wish in wishes],
        "jobs": [wish.claim.job_id for wish in wishes],
        "shared": [wish.shared for wish in wishes],
        "shards": [wish.claim.shard_id for wish in wishes],
        "tokens": [wish.claim.token for wish in wishes],
        "days": [wish.max_age_days for wish in wishes],
    }


async def find(
    connection: AsyncConnection, wishes: Sequence[Wish]
) -> tuple[dict[tuple[str, bytes], KeptReply], set[tuple[str, bytes]]]:
    """The replies that are there, and the names of those that somebody else is asking for right now."""
    rows = await connection.execute(
        text(
            "SELECT r.tenant, r.key, r.job_id, r.asked_at, r.text, r.input_tokens, r.output_tokens,"
            " r.cached_input_tokens, r.model_snapshot, r.system_fingerprint, r.thoughts,"
            f" {_ASKED_BY_ANOTHER} AND (r.shard_id, r.lease_token) <> (w.shard_id, w.lease_token) AS taken"
            f" FROM {_WISHED} JOIN replies r ON r.tenant = w.tenant AND r.key = w.key"
            f" WHERE r.text IS NULL OR NOT w.shared OR NOT {_TOO_OLD.format(days='w.days')}"
        ),
        _wished(wishes),
    )
    kept: dict[tuple[str, bytes], KeptReply] = {}
    taken: set[tuple[str, bytes]] = set()
    for row in rows:
        name = (row.tenant, bytes(row.key))
        if row.text is not None:
            kept[name] = KeptReply(_reply(row), row.job_id, row.asked_at)
        elif row.taken:
            taken.add(name)
    return kept, taken


def _reply(row: Any) -> ChatReply:
    usage = None
    if row.input_tokens is not None:
        usage = Usage(row.input_tokens, row.output_tokens or 0, row.cached_input_tokens or 0)
    return ChatReply(
        text=row.text,
        finish_reason=FinishReason.STOP,
        usage=usage,
        model_snapshot=row.model_snapshot,
        system_fingerprint=row.system_fingerprint,
        thoughts=row.thoughts,
    )


async def claim(connection: AsyncConnection, wishes: Sequence[Wish]) -> set[tuple[str, bytes]]:
    """Takes it on to ask for replies, unless somebody else has taken it on, or been answered, meanwhile.

    Returns:
        The names of those that are now the caller's to ask for.
    """
    rows = await connection.execute(
        text(
            "INSERT INTO replies AS r (tenant, key, job_id, shared, shard_id, lease_token)"
            f" SELECT tenant, key, job_id, shared, shard_id, lease_token FROM {_WISHED} ORDER BY tenant, key"
            " ON CONFLICT (tenant, key) DO UPDATE SET job_id = excluded.job_id, text = NULL, thoughts = NULL,"
            " shard_id = excluded.shard_id, lease_token = excluded.lease_token, asked_at = excluded.asked_at"
            f" WHERE CASE WHEN r.text IS NOT NULL THEN r.shared AND {_TOO_OLD.format(days=':most_days')}"
            f" ELSE (r.shard_id, r.lease_token) = (excluded.shard_id, excluded.lease_token)"
            f"  OR NOT {_ASKED_BY_ANOTHER} END RETURNING r.tenant, r.key"
        ),
        _wished(wishes) | {"most_days": min(wish.max_age_days for wish in wishes)},
    )
    return {(row.tenant, bytes(row.key)) for row in rows}


async def release(connection: AsyncConnection, wishes: Sequence[Wish]) -> None:
    """Gives up asking: somebody else may."""
    await connection.execute(
        text(
            f"WITH ours AS (SELECT r.tenant, r.key FROM {_WISHED} JOIN replies r ON r.tenant = w.tenant"
            "  AND r.key = w.key AND r.shard_id = w.shard_id AND r.lease_token = w.lease_token"
            "  WHERE r.text IS NULL ORDER BY r.tenant, r.key FOR UPDATE OF r)"
            " DELETE FROM replies r USING ours WHERE r.tenant = ours.tenant AND r.key = ours.key"
        ),
        _wished(wishes),
    )


async def keep(cursor: psycopg.AsyncCursor[tuple[object, ...]], rows: Sequence[ReplyRow]) -> None:
    """Keeps replies; of two to the same request, the first."""
    columns = ", ".join(ReplyRow._fields)
    types = ("text", "bytea", "text", "bool", "bigint", "bigint", "text")
    casts = ", ".join(f"%s::{type_}[]" for type_ in (*types, "int", "int", "int", "text", "text", "text"))
    await cursor.execute(
        f"INSERT INTO replies AS r ({columns}) SELECT DISTINCT ON (tenant, key) {columns}"
        f" FROM unnest({casts}) AS new ({columns}) ORDER BY tenant, key"
        " ON CONFLICT (tenant, key) DO UPDATE SET job_id = excluded.job_id, shard_id = excluded.shard_id,"
        " lease_token = excluded.lease_token, text = excluded.text,"
        " input_tokens = excluded.input_tokens, output_tokens = excluded.output_tokens,"
        " cached_input_tokens = excluded.cached_input_tokens, model_snapshot = excluded.model_snapshot,"
        " system_fingerprint = excluded.system_fingerprint, thoughts = excluded.thoughts WHERE r.text IS NULL",
        [list(column) for column in zip(*rows, strict=True)],
    )


async def forget_old(connection: AsyncConnection, days: int) -> int:
    """Removes some of the replies that were asked for longer ago; those of a job that is not over only if others may use them.

    Returns:
        How many.
    """
    rows = await connection.execute(
        text(
            "DELETE FROM replies WHERE (tenant, key) IN (SELECT tenant, key FROM replies r"
            f" WHERE {_TOO_OLD.format(days=':days')} AND (shared OR NOT EXISTS (SELECT FROM jobs"
            "  WHERE jobs.id = r.job_id AND status <> ALL(:terminal)))"
            " ORDER BY asked_at LIMIT :most FOR UPDATE SKIP LOCKED) RETURNING 1"
        ),
        {"days": days, "most": FORGOTTEN_AT_ONCE, "terminal": [status.value for status in TERMINAL]},
    )
    return len(rows.all())


_FORGET = (
    "DELETE FROM replies WHERE (tenant, key) IN"
    " (SELECT tenant, key FROM replies WHERE {which} ORDER BY tenant, key FOR UPDATE)"
)
"""Locks rows by tenant and key, as other statements that wait for these locks do."""


async def forget_shard(connection: AsyncConnection, shard_id: int) -> None:
    """Remove the replies that a shard asked for."""
    await connection.execute(
        text(_FORGET.format(which="shard_id = :shard AND text IS NOT NULL")), {"shard": shard_id}
    )


async def forget_job(connection: AsyncConnection, tenant: str, job_id: str) -> None:
    """Removes the replies that a job asked for, and the accounting of those that it was spared."""
    for statement in (
        _FORGET.format(which="tenant = :tenant AND job_id = :job"),
        (
            "DELETE FROM reused_replies WHERE shard_id IN"
            " (SELECT id FROM shards WHERE job_id = :job AND tenant = :tenant)"
        ),
    ):
        await connection.execute(text(statement), {"job": job_id, "tenant": tenant})


# -- what was spared ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReuseRow:
    """What a stage of a job was spared of one model's calls; the model is named ``connection/model``.

    Attributes:
        stage: The stage.
        model: The model.
        same_job: Replies of the job itself that were used again.
        other_job: Replies of the tenant's other jobs.
        input_tokens: What the calls would have taken, as far as it is known.
        output_tokens: Likewise.
        usd: What they would have cost; ``None`` where no price is known.
        unpriced: Replies whose price is unknown.
        oldest: When the oldest was asked for.
    """

    stage: str
    model: str
    same_job: int
    other_job: int
    input_tokens: int
    output_tokens: int
    usd: float | None
    unpriced: int
    oldest: datetime


_SUMS = "stage, model, same_job, other_job, input_tokens, output_tokens, usd, unpriced, oldest"
_SPARED = (
    "stage, connection || '/' || model AS model,"
    " count(*) FILTER (WHERE origin = 'same_job') AS same_job,"
    " count(*) FILTER (WHERE origin = 'other_job') AS other_job, coalesce(sum(input_tokens), 0) AS input_tokens,"
    " coalesce(sum(output_tokens), 0) AS output_tokens, sum(usd) AS usd,"
    " count(*) FILTER (WHERE usd IS NULL) AS unpriced, min(asked_at) AS oldest"
)
_BY_MODEL = "GROUP BY shard_id, stage, connection, model, tenant"


async def store_reuse(connection: AsyncConnection, shard_id: int) -> None:
    """Adds up what a shard that has just ended was spared, in place of what was added up before a retry."""
    await connection.execute(text("DELETE FROM shard_reuse WHERE shard_id = :shard"), {"shard": shard_id})
    await connection.execute(
        text(
            f"INSERT INTO shard_reuse (tenant, shard_id, {_SUMS}) SELECT tenant, shard_id, {_SPARED}"
            f" FROM reused_replies WHERE shard_id = :shard {_BY_MODEL}"
        ),
        {"shard": shard_id},
    )


async def reuse(connection: AsyncConnection, tenant: str, job_id: str) -> list[ReuseRow]:
    """What a job was spared, by stage and model: of its finished shards as added up, of the others by their rows."""
    rows = await connection.execute(
        text(
            "SELECT stage, model, sum(same_job)::bigint, sum(other_job)::bigint, sum(input_tokens)::bigint,"
            " sum(output_tokens)::bigint, sum(usd)::float8, sum(unpriced)::bigint, min(oldest) FROM ("
            f" SELECT {_SUMS} FROM shard_reuse u JOIN shards s ON s.id = u.shard_id"
            "  WHERE s.job_id = :job AND s.tenant = :tenant AND s.done"
            f" UNION ALL SELECT {_SPARED} FROM reused_replies"
            "  WHERE shard_id IN (SELECT id FROM shards WHERE job_id = :job AND tenant = :tenant"
            f"   AND NOT done AND lease_token > 0) {_BY_MODEL}) AS parts"
            " GROUP BY stage, model ORDER BY stage, model"
        ),
        {"job": job_id, "tenant": tenant},
    )
    return [ReuseRow(*row) for row in rows]


async def snapshots(connection: AsyncConnection, tenant: str, job_id: str) -> list[dict[str, Any]]:
    """The model snapshots and system fingerprints that came with the replies that were used again, with their number."""
    rows = await connection.execute(
        text(
            "SELECT connection, model, model_snapshot AS snapshot, system_fingerprint, count(*) AS replies"
            " FROM reused_replies WHERE shard_id IN"
            "  (SELECT id FROM shards WHERE job_id = :job AND tenant = :tenant)"
            " GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4"
        ),
        {"job": job_id, "tenant": tenant},
    )
    return [dict(row._mapping) for row in rows]  # noqa: SLF001 - SQLAlchemy's public name for it


Place = tuple[int, int, int, int | None, int | None, int | None]
"""(cell ordinal, run, item, unit, trait, judge) of a verdict; the last three are missing of a response, unit and trait of a grade."""


async def origins(
    connection: AsyncConnection, tenant: str, job_id: str, responses: Sequence[tuple[int, int, int]]
) -> dict[Place, ReplyOrigin]:
    """Where the replies come from that stand behind these responses, each named by (cell ordinal, run, item), and their judgements."""
    rows = await connection.execute(
        text(
            "SELECT c.ordinal, u.run, u.item, u.unit, u.trait, u.judge, u.origin"
            " FROM unnest(CAST(:cells AS int[]), CAST(:runs AS int[]), CAST(:items AS int[]))"
            "  AS wanted (cell, run, item)"
            " JOIN cells c ON c.job_id = :job AND c.tenant = :tenant AND c.ordinal = wanted.cell"
            " JOIN reused_replies u ON u.cell_id = c.id AND u.run = wanted.run AND u.item = wanted.item"
            "  AND u.tenant = :tenant AND u.stage <> 'repairing'"
        ),
        {"tenant": tenant, "job": job_id, **place_arrays(responses)},
    )
    return {tuple(row)[:6]: ReplyOrigin(row.origin) for row in rows}
