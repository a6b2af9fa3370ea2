"""Writes results in batches, under the fence: by COPY into the tables, or around the rows that are there already."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, cast
from uuid import UUID

import psycopg
from psycopg import pq
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.copying import converse, copy_text
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
    reasoning_tokens: int | None = None
    thoughts: str | None = None


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
    error: str | None = None
    finish_reason: str | None = None
    thoughts: str | None = None


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
    finish_reason: str | None = None
    thoughts: str | None = None


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
    finish_reason: str | None = None
    thoughts: str | None = None


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
    detail: str | None = None
    reasoning_tokens: int | None = None


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

_CHECK = "SELECT id, lease_token, done FROM shards WHERE id = ANY('{{{ids}}}') ORDER BY id FOR SHARE"
"""The claims that hold, locked against a new claim until the commit."""

_COPY: Sequence[str] = ("COPY {table} ({columns}) FROM STDIN",)
"""Puts rows into a table, none of which may be there."""

_COPY_NEW: Sequence[str] = (
    "CREATE TEMPORARY TABLE new_{table} ON COMMIT DROP AS SELECT {columns} FROM {table} WITH NO DATA",
    "COPY new_{table} ({columns}) FROM STDIN",
    "INSERT INTO {table} ({columns}) SELECT {columns} FROM new_{table} ON CONFLICT DO NOTHING",
)
"""Puts those rows into a table that are not there; more than twice the work.

They pass through a table of the written columns alone, without their constraints: what else the table has by then, it
fills in itself.
"""


class ResultWriter:
    """One connection that writes result rows; not for concurrent use."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._put = _COPY

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
                return await _write(connection, batch, self._put)
            except psycopg.errors.UniqueViolation:
                # Rare: a shard was taken over from a worker that still wrote, or a commit's answer got lost.
                return await _write(connection, batch, _COPY_NEW)
            except psycopg.errors.FeatureNotSupported:
                # Into a table with row-level security only its owner copies, and this role is none.
                self._put = _COPY_NEW
                return await _write(connection, batch, self._put)


async def _write(
    connection: Connection, batch: Mapping[Held, Sequence[Row]], put: Sequence[str]
) -> set[Held]:
    """One transaction, of one message unless replies are kept; the claims that were stale."""
    rows = _by_kind(batch)
    kinds = [kind for kind in TABLES if kind in rows]
    copies = [copy_text(rows[kind]) for kind in kinds]  # before anything is locked
    stale: set[Held] = set()

    def read(shards: pq.abc.PGresult) -> list[bytes]:
        nonlocal rows, stale
        existing, valid = _current(shards)
        stale = set(batch) - valid
        if not stale:
            return copies
        rows = _by_kind(batch, stale, existing)
        return [copy_text(rows.get(kind, ())) for kind in kinds]

    statements = [_CHECK.format(ids=",".join(str(shard_id) for shard_id, _ in batch))]
    for kind in kinds:
        statements += [form.format(table=TABLES[kind], columns=", ".join(kind._fields)) for form in put]
    if ReplyRow not in rows:
        await converse(connection, statements, read)
        return stale
    async with connection.transaction(), connection.cursor() as cursor:
        await converse(connection, statements, read)
        if ReplyRow in rows:
            await keep(cursor, cast("list[ReplyRow]", rows[ReplyRow]))
    return stale


def _by_kind(
    batch: Mapping[Held, Sequence[Row]], stale: Collection[Held] = (), existing: Collection[int] = ()
) -> dict[type[Row], list[Row]]:
    """The rows that may be written: of a stale claim those alone that account for what was paid, while there is its shard."""
    rows: dict[type[Row], list[Row]] = {}
    for held, of_claim in batch.items():
        for row in of_claim:
            if held not in stale or (isinstance(row, CallRow | ReplyRow) and held[0] in existing):
                rows.setdefault(type(row), []).append(row)
    return rows


def _current(shards: pq.abc.PGresult) -> tuple[set[int], set[Held]]:
    """The shards that still exist, and the claims that hold."""
    existing, valid = set(), set()
    for row in range(shards.ntuples):
        shard_id, token, done = [shards.get_value(row, column) for column in range(3)]
        existing.add(int(shard_id or 0))
        if done == b"f":
            valid.add((int(shard_id or 0), int(token or 0)))
    return existing, valid
