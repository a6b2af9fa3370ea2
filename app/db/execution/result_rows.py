"""Writes results in batches, under the fence: by COPY into the tables or, where that is not possible, by INSERT."""

import asyncio
import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, TypeAlias, cast
from uuid import UUID

import psycopg
from psycopg import pq
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.execution.copy import converse, copy_text
from app.db.execution.response_cache import ReplyRow, ReusedRow, keep


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
    notes: str | None = None
    """See :class:`app.domain.judging.text_notes.TextNotes`; as JSON text."""


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
    unread: str | None = None
    repair_raw: str | None = None


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
    unread: str | None = None
    repair_raw: str | None = None
    error: str | None = None


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
    unread: str | None = None
    repair_raw: str | None = None


class UnreadReplyRow(NamedTuple):
    """A row of ``unread_replies``."""

    cell_id: int
    run: int
    path: str
    tenant: str
    raw: str
    finish_reason: str
    thoughts: str | None
    provider_finish_reason: str | None


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
    reply: str | None = None


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


Row: TypeAlias = (
    ResponseRow
    | VerdictRow
    | SecondVerdictRow
    | GradeRow
    | UnreadReplyRow
    | PreparationRow
    | CallRow
    | ReusedRow
    | ReplyRow
)
TABLES: dict[type[Row], str] = {
    ResponseRow: "responses",
    VerdictRow: "verdicts",
    SecondVerdictRow: "second_verdicts",
    GradeRow: "grades",
    UnreadReplyRow: "unread_replies",
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

_COPY = "COPY {table} ({columns}) FROM STDIN"
"""Puts rows into a table, none of which may be there."""

_INSERT = (
    "INSERT INTO {table} ({columns}) SELECT {values}"
    " FROM json_populate_recordset(json_populate_record(CAST(NULL AS {table}), %s), %s) ON CONFLICT DO NOTHING"
)
"""Puts those rows into a table that are not there, given what all of them have and what each one has; some 1.4 times the work.

What else the table has by then, it fills in itself.
"""
_DOCUMENTS = frozenset({"content", "dropped_by", "notes"})
"""Columns that are JSON themselves, of which rows have the text."""


class ResultWriter:
    """One connection that writes result rows; not for concurrent use."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._copies = True

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
            if self._copies:
                try:
                    return await _copy(connection, batch)
                except psycopg.errors.UniqueViolation:
                    pass  # rare: a shard was taken over from a worker that still wrote, or a commit's answer got lost
                except psycopg.errors.FeatureNotSupported:
                    # Into a table with row-level security only its owner copies, and this role is none.
                    self._copies = False
            return await _insert(connection, batch)


async def _copy(connection: Connection, batch: Mapping[Held, Sequence[Row]]) -> set[Held]:
    """One transaction, of one message unless replies are kept; the claims that were stale."""
    rows = _by_kind(batch)
    kinds = _tables(rows)
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

    statements = [_check(batch)]
    statements += [_COPY.format(table=TABLES[kind], columns=", ".join(kind._fields)) for kind in kinds]
    if ReplyRow not in rows:
        await converse(connection, statements, read)
        return stale
    async with connection.transaction(), connection.cursor() as cursor:
        await converse(connection, statements, read)
        if ReplyRow in rows:
            await keep(cursor, cast("list[ReplyRow]", rows[ReplyRow]))
    return stale


async def _insert(connection: Connection, batch: Mapping[Held, Sequence[Row]]) -> set[Held]:
    """The same around the rows that are there already, and for a role that may not copy."""
    async with connection.transaction(), connection.cursor() as cursor:
        await cursor.execute(_check(batch), prepare=False)
        existing, valid = _current(cast("pq.abc.PGresult", cursor.pgresult))
        stale = set(batch) - valid
        rows = _by_kind(batch, stale, existing)
        async with connection.pipeline():
            for kind in _tables(rows):
                await cursor.execute(_insertion(kind), _documents(rows[kind]))
        if ReplyRow in rows:
            await keep(cursor, cast("list[ReplyRow]", rows[ReplyRow]))
    return stale


def _check(batch: Mapping[Held, Sequence[Row]]) -> str:
    return _CHECK.format(ids=",".join(str(shard_id) for shard_id, _ in batch))


def _tables(rows: Collection[type[Row]]) -> list[type[Row]]:
    return [kind for kind in TABLES if kind in rows]


def _insertion(kind: type[Row]) -> str:
    values = [f"({name} #>> '{{}}')::jsonb" if name in _DOCUMENTS else name for name in kind._fields]
    return _INSERT.format(table=TABLES[kind], columns=", ".join(kind._fields), values=", ".join(values))


def _documents(rows: Sequence[Row]) -> tuple[str, str]:
    """What all rows have, and what each one has: in most columns of a transaction all have the same."""
    columns = dict(zip(rows[0]._fields, zip(*rows, strict=True), strict=True))
    varying = {name: values for name, values in columns.items() if values.count(values[0]) < len(values)}
    shared = {name: values[0] for name, values in columns.items() if name not in varying}
    each = [dict(zip(varying, values, strict=True)) for values in zip(*varying.values(), strict=True)]
    return _json(shared), _json(each or [{}])


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


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
