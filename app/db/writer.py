"""Writes results in batches: COPY into temporary tables, then INSERT … ON CONFLICT DO NOTHING, under the fence."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, cast
from uuid import UUID

import psycopg
from sqlalchemy.ext.asyncio import AsyncEngine


class ResponseRow(NamedTuple):
    """A row of ``responses``."""

    cell_id: int
    run: int
    item: int
    tenant: str
    instruction: int | None
    status: str
    text: str | None
    unit_starts: list[int]
    unit_ends: list[int]
    verdicts_due: int
    finish_reason: str | None
    error: str | None
    input_tokens: int | None
    output_tokens: int | None


class VerdictRow(NamedTuple):
    """A row of ``verdicts``."""

    cell_id: int
    run: int
    item: int
    unit: int
    trait: int
    judge: int
    tenant: str
    status: str
    score: int | None
    raw: str | None


class GradeRow(NamedTuple):
    """A row of ``grades``."""

    cell_id: int
    run: int
    item: int
    judge: int
    tenant: str
    status: str
    score: int | None
    raw: str | None
    error: str | None


class PreparationRow(NamedTuple):
    """A row of ``preparations``; its content, and what was dropped by reason, as JSON text."""

    job_id: str
    persona: int
    kind: str
    task: str
    item: int
    ask: int
    tenant: str
    status: str
    content: str
    dropped: int
    error: str | None
    dropped_by: str = "{}"


class CallRow(NamedTuple):
    """A row of ``calls``."""

    id: UUID
    tenant: str
    job_id: str
    shard_id: int
    stage: str
    connection: str
    model: str
    cell_id: int | None
    run: int | None
    item: int | None
    unit: int | None
    trait: int | None
    judge: int | None
    attempt: int
    outcome: str
    code: str | None
    http_status: int | None
    input_tokens: int | None
    output_tokens: int | None
    cached_input_tokens: int | None
    usd: float | None
    maybe_paid: bool
    latency_ms: float
    finish_reason: str | None
    model_snapshot: str | None
    system_fingerprint: str | None
    provider_request_id: str | None
    started_at: datetime
    persona: int | None = None
    task: str | None = None


Row = ResponseRow | VerdictRow | GradeRow | PreparationRow | CallRow
TABLES: dict[type[Row], str] = {
    ResponseRow: "responses",
    VerdictRow: "verdicts",
    GradeRow: "grades",
    PreparationRow: "preparations",
    CallRow: "calls",
}


WRITE_SECONDS = 30.0
"""A transaction that takes longer is given up: its connection may lead nowhere."""

Held = tuple[int, int]
"""A shard's id and the fencing token under which rows of it were made. One process can hold a shard twice for a moment:
when it has lost the lease without knowing and claims it anew."""


class ResultWriter:
    """One connection that writes result rows; not for concurrent use."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def write(self, batch: Mapping[Held, Sequence[Row]]) -> set[Held]:
        """Writes rows durably in one transaction.

        The shards' rows are share-locked against a new claim until the commit, so a row is written only while its
        shard's fencing token is current. Calls are written whatever the token, as long as the job has not been
        deleted: what was paid is accounted.

        Args:
            batch: Rows by the claim under which they were made.

        Returns:
            The claims that were stale; of their rows only the calls were written.

        Raises:
            psycopg.Error: If the database failed; nothing was written, or everything was. Writing again is safe.
            TimeoutError: If the database did not answer in time; likewise.
        """
        async with asyncio.timeout(WRITE_SECONDS), self._engine.connect() as borrowed:
            raw = await borrowed.get_raw_connection()
            connection = cast("psycopg.AsyncConnection[tuple[object, ...]]", raw.driver_connection)
            async with connection.transaction(), connection.cursor() as cursor:
                existing, stale = await _check(cursor, batch.keys())
                for kind, table in TABLES.items():
                    rows = [
                        row
                        for held, of_claim in batch.items()
                        for row in of_claim
                        if isinstance(row, kind)
                        and (held not in stale or (kind is CallRow and held[0] in existing))
                    ]
                    if rows:
                        await _insert(cursor, table, kind._fields, rows)
                return stale


async def _check(
    cursor: psycopg.AsyncCursor[tuple[object, ...]], claims: Collection[Held]
) -> tuple[set[int], set[Held]]:
    """The shards that still exist, share-locked, and the claims that do not hold any more."""
    await cursor.execute(
        "SELECT id, lease_token, done FROM shards WHERE id = ANY(%s) ORDER BY id FOR SHARE",
        ([shard_id for shard_id, _ in claims],),
    )
    found = cast("list[tuple[int, int, bool]]", await cursor.fetchall())
    valid = {(shard_id, token) for shard_id, token, done in found if not done}
    return {shard_id for shard_id, _, _ in found}, set(claims) - valid


async def _insert(
    cursor: psycopg.AsyncCursor[tuple[object, ...]],
    table: str,
    columns: Sequence[str],
    rows: Sequence[Row],
) -> None:
    names = ", ".join(columns)
    await cursor.execute(
        f"CREATE TEMPORARY TABLE IF NOT EXISTS new_{table} (LIKE {table}) ON COMMIT DELETE ROWS"
    )
    async with cursor.copy(f"COPY new_{table} ({names}) FROM STDIN") as copy:
        for row in rows:
            await copy.write_row(row)
    await cursor.execute(
        f"INSERT INTO {table} ({names}) SELECT {names} FROM new_{table} ON CONFLICT DO NOTHING"
    )
