"""Writes results in batches, under the fence: by COPY into the tables, or around the rows that are there already."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, cast
from uuid import UUID

import psycopg
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.replies import ReplyRow, ReusedRow, keep


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
    group_size: int = 1
    suspicion: str | None = None


class SecondVerdictRow(NamedTuple):
    """A row of ``second_verdicts``."""

    cell_id: int
    run: int
    item: int
    unit: int
    trait: int
    judge: int
    alone: bool
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
    suspicion: str | None = None


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
    last_unit: int | None = None
    batch_id: int | None = None


Row = ResponseRow | VerdictRow | SecondVerdictRow | GradeRow | PreparationRow | CallRow | ReusedRow | ReplyRow
TABLES: dict[type[Row], str] = {
    ResponseRow: "responses",
    VerdictRow: "verdicts",
    SecondVerdictRow: "second_verdicts",
    GradeRow: "grades",
    PreparationRow: "preparations",
    CallRow: "calls",
    ReusedRow: "reused_replies",
}


WRITE_SECONDS = 30.0
"""A transaction that takes longer is given up: its connection may lead nowhere."""

Held = tuple[int, int]
"""A shard's id and the fencing token under which rows of it were made. One process can hold a shard twice for a moment:
when it has lost the lease without knowing and claims it anew."""

Connection = psycopg.AsyncConnection[tuple[object, ...]]
Cursor = psycopg.AsyncCursor[tuple[object, ...]]
Put = Callable[[Cursor, str, str, Sequence[Row]], Awaitable[None]]


class ResultWriter:
    """One connection that writes result rows; not for concurrent use."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def write(self, batch: Mapping[Held, Sequence[Row]]) -> set[Held]:
        """Writes rows durably in one transaction.

        The shards' rows are share-locked against a new claim until the commit, so a row is written only while its
        shard's fencing token is current. Calls are written whatever the token, as long as the job has not been
        deleted: what was paid is accounted. So are replies that are kept, for whoever asks for the same.

        Args:
            batch: Rows by the claim under which they were made.

        Returns:
            The claims that were stale; of their rows only the calls and kept replies were written.

        Raises:
            psycopg.Error: If the database failed; nothing was written, or everything was. Writing again is safe.
            TimeoutError: If the database did not answer in time; likewise.
        """
        async with asyncio.timeout(WRITE_SECONDS), self._engine.connect() as borrowed:
            raw = await borrowed.get_raw_connection()
            connection = cast("Connection", raw.driver_connection)
            try:
                return await _write(connection, batch, _copy)
            except psycopg.errors.UniqueViolation:
                # Rare: a shard was taken over from a worker that still wrote, or a commit's answer got lost.
                return await _write(connection, batch, _insert_new)


async def _write(connection: Connection, batch: Mapping[Held, Sequence[Row]], put: Put) -> set[Held]:
    """One transaction; the claims that were stale."""
    async with connection.transaction(), connection.cursor() as cursor:
        existing, stale = await _check(cursor, batch.keys())
        rows: dict[type[Row], list[Row]] = {kind: [] for kind in (*TABLES, ReplyRow)}
        for held, of_claim in batch.items():
            for row in of_claim:
                if held not in stale or (isinstance(row, CallRow | ReplyRow) and held[0] in existing):
                    rows[type(row)].append(row)
        for kind, table in TABLES.items():
            if rows[kind]:
                await put(cursor, table, ", ".join(kind._fields), rows[kind])
        if rows[ReplyRow]:
            await keep(cursor, cast("list[ReplyRow]", rows[ReplyRow]))
        return stale


async def _check(cursor: Cursor, claims: Collection[Held]) -> tuple[set[int], set[Held]]:
    """The shards that still exist, share-locked, and the claims that do not hold any more."""
    await cursor.execute(
        "SELECT id, lease_token, done FROM shards WHERE id = ANY(%s) ORDER BY id FOR SHARE",
        ([shard_id for shard_id, _ in claims],),
    )
    found = cast("list[tuple[int, int, bool]]", await cursor.fetchall())
    valid = {(shard_id, token) for shard_id, token, done in found if not done}
    return {shard_id for shard_id, _, _ in found}, set(claims) - valid


async def _copy(cursor: Cursor, table: str, columns: str, rows: Sequence[Row]) -> None:
    """Puts rows into a table, none of which may be there."""
    async with cursor.copy(f"COPY {table} ({columns}) FROM STDIN") as copy:
        for row in rows:
            await copy.write_row(row)


async def _insert_new(cursor: Cursor, table: str, columns: str, rows: Sequence[Row]) -> None:
    """Puts those rows into a table that are not there; more than twice the work.

    They pass through a table of the written columns alone, without their constraints: what else the table has by then,
    it fills in itself.
    """
    await cursor.execute(
        f"CREATE TEMPORARY TABLE new_{table} ON COMMIT DROP AS SELECT {columns} FROM {table} WITH NO DATA"
    )
    await _copy(cursor, f"new_{table}", columns, rows)
    await cursor.execute(
        f"INSERT INTO {table} ({columns}) SELECT {columns} FROM new_{table} ON CONFLICT DO NOTHING"
    )
