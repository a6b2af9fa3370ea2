"""A job's rows as reproduction bundles have them: read as JSON, and written again under other ids.

Rows name what belongs to the job by its number in it: a cell by its ordinal, a shard by its place among the job's shards. No other id,
no tenant and no lease is in them.
"""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from sqlalchemy import String, insert, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.execution.response_cache_tables import ReusedReply, ShardReuse
from app.db.execution.shard_counts import USAGE_COLUMNS
from app.db.tables import (
    Base,
    Call,
    Cell,
    Grade,
    Preparation,
    Response,
    SecondVerdict,
    Shard,
    ShardUsage,
    Verdict,
)
from app.domain.jobs.bundle import OF_CELLS, OF_JOB, OF_SHARDS, ROWS

Json = dict[str, Any]

_TABLES: Mapping[str, type[Base]] = {
    table.__tablename__: table
    for table in (
        Cell,
        Shard,
        Preparation,
        ShardUsage,
        ShardReuse,
        Call,
        Response,
        Verdict,
        SecondVerdict,
        Grade,
        ReusedReply,
    )
}
_UNSAID = {"tenant", "job_id", "id", "batch_id"}
"""Of no meaning elsewhere. What batches there were is in the manifest."""
_LEASES = {"announced_at", "lease_owner", "lease_expires_at"}
_NUMBERED = {"cell_id": "cell", "shard_id": "shard", "prerequisite_id": "prerequisite"}
_KEYS: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(OF_JOB, ("persona",)),
    **dict.fromkeys(OF_SHARDS, ("shard_id",)),
    **dict.fromkeys(OF_CELLS, ("cell_id", "run", "item")),
}
"""The columns by which tables are read page by page."""
PAGE_BYTES = 1_000_000
_ORDER = {
    "calls": "started_at, stage, cell_id, persona, task, run, item, unit, trait, judge, attempt, latency_ms",
    "preparations": "persona, kind, task, item, ask",
    "shard_usage": "stage, model",
    "shard_reuse": "stage, model",
    "reused_replies": "run, item, unit, trait, judge, stage",
    "responses": "run, item",
    "verdicts": "run, item, unit, trait, judge",
    "second_verdicts": "run, item, unit, trait, judge, alone",
    "grades": "run, item, judge",
}
REPLIES = {"raw", "thoughts", "repair_raw"}
"""What judges said, word for word."""
_WITH_REPLIES = {"verdicts", "second_verdicts", "grades"}
_NOTES_WITHOUT_REPLIES = "jsonb_set(t.notes, '{refusal_check}', '\"\"', false) AS notes"
"""The empty text keeps the count of checked texts."""

JOB_FIELDS = (
    *("name", "status", "status_reason", "error", "request", "metadata", "priority", "tags"),
    *("planned_responses", "expected_verdicts", "created_at", "started_at", "finished_at"),
    "reader",
)


async def job_fields(connection: AsyncConnection, tenant: str, job_id: str) -> Json | None:
    """What a bundle has of a job's row; ``None`` if there is no such job any more."""
    columns = ", ".join(f'"{name}"' for name in JOB_FIELDS)
    budget = (
        "SELECT json_build_object('usd', nanos_limit::float8 / 1e9, 'calls', calls_limit, 'tokens', tokens_limit)"
        " FROM budgets WHERE job_id = jobs.id AND num_nonnulls(nanos_limit, calls_limit, tokens_limit) > 0"
    )
    await _in_utc(connection)
    row = await connection.execute(
        text(
            f"SELECT row_to_json(j) FROM (SELECT {columns}, ({budget}) AS budget"
            " FROM jobs WHERE id = :job AND tenant = :tenant) j"
        ),
        {"job": job_id, "tenant": tenant},
    )
    found: Json | None = row.scalar_one_or_none()
    return found


async def _in_utc(connection: AsyncConnection) -> None:
    """Moments are the same text wherever the database is."""
    await connection.execute(text("SELECT set_config('TimeZone', 'UTC', true)"))


async def stream_rows(
    engine: AsyncEngine, tenant: str, job_id: str, table: str, *, replies: bool
) -> AsyncIterator[list[str]]:
    """A table's rows of a job as JSON texts, in pages of some :data:`PAGE_BYTES`; without ``replies`` judges' words are missing.

    A connection is held for one page, never while somebody reads what was found.
    """
    given: dict[str, Any] = {"job": job_id, "tenant": tenant}
    starts: list[Sequence[Any]] = [()]
    if table in _KEYS:
        async with engine.connect() as connection:
            rows = await connection.execute(text(_page_starts(table)), given | {"page": PAGE_BYTES})
            starts = list(rows)
    for start, stop in pairwise([*starts, ()]):
        statement = text(_reading(table, bounded=len(stop) > 0, replies=replies))
        bounds = {f"start_{n}": key for n, key in enumerate(start)}
        bounds |= {f"stop_{n}": key for n, key in enumerate(stop)}
        async with engine.connect() as connection:
            await _in_utc(connection)
            lines = list((await connection.execute(statement, given | bounds)).scalars())
        if lines:
            yield lines


def _page_starts(table: str) -> str:
    """The keys at which pages of a table begin; rows of one key are never divided."""
    keys = ", ".join(_KEYS[table])
    sizes = [
        f"octet_length(t.{column.name})"
        if isinstance(column.type, String)
        else f'pg_column_size(t."{column.name}")'
        for column in _TABLES[table].__table__.columns
    ]
    names = sum(len(column.name) + len('"":,') for column in _TABLES[table].__table__.columns)
    size = " + ".join([str(names), *(f"coalesce({each}, 0)" for each in sizes)])
    return (
        f"WITH sized AS (SELECT {keys}, sum({size}) AS bytes FROM {table} t WHERE {_of_job(table)} GROUP BY {keys}),"
        f" pages AS (SELECT {keys}, floor((sum(bytes) OVER (ORDER BY {keys}) - bytes) / :page) AS page FROM sized)"
        f" SELECT DISTINCT ON (page) {keys} FROM pages ORDER BY page, {keys}"
    )


def _of_job(table: str) -> str:
    """The condition that rows ``t`` are the job's."""
    parent = "cells" if table in OF_CELLS else "shards" if table in OF_SHARDS else None
    if parent is None:
        return "t.job_id = :job AND t.tenant = :tenant"
    ids = f"SELECT id FROM {parent} WHERE job_id = :job AND tenant = :tenant"
    return f"t.{parent[:-1]}_id IN ({ids}) AND t.tenant = :tenant"


def _reading(table: str, *, bounded: bool, replies: bool) -> str:
    """The statement that reads a page, from its start up to the start of the next one where it is ``bounded``."""
    model = _TABLES[table]
    columns = []
    for name in _columns(model):
        if name in _NUMBERED:
            columns.append(f"{_number_of(name)} AS {_NUMBERED[name]}")
        elif not replies and table in _WITH_REPLIES and name in REPLIES:
            columns.append(f'NULL AS "{name}"')
        elif not replies and (table, name) == ("responses", "notes"):
            columns.append(_NOTES_WITHOUT_REPLIES)
        else:
            columns.append(f't."{name}"')
    where, order = [_of_job(table)], "t.ordinal" if table == "cells" else "t.id"
    if table in _KEYS:
        keys = [f"t.{name}" for name in _KEYS[table]]
        for sign, bound in ((">=", "start"), ("<", "stop"))[: 1 + bounded]:
            values = ", ".join(f":{bound}_{n}" for n in range(len(keys)))
            where.append(f"({', '.join(keys)}) {sign} ({values})")
        order = ", ".join(keys + [f"t.{name}" for name in _ORDER[table].split(", ")])
    return (
        f"WITH numbers AS MATERIALIZED (SELECT id, row_number() OVER (ORDER BY id) - 1 AS number"
        " FROM shards WHERE job_id = :job AND tenant = :tenant)"
        f" SELECT row_to_json(x)::text FROM (SELECT {', '.join(columns)} FROM {table} t"
        f" WHERE {' AND '.join(where)} ORDER BY {order}) x"
    )


def _number_of(column: str) -> str:
    if column == "cell_id":
        return "(SELECT ordinal FROM cells WHERE cells.id = t.cell_id)"
    return f"(SELECT number FROM numbers WHERE numbers.id = t.{column})"


def _columns(model: type[Base]) -> list[str]:
    left_out = _UNSAID | (_LEASES if model is Shard else set())
    return [column.name for column in model.__table__.columns if column.name not in left_out]


def fields_of_rows() -> dict[str, frozenset[str]]:
    """Return the names that the rows of each table may have in a bundle."""
    return {
        table: frozenset(_NUMBERED.get(name, name) for name in _columns(_TABLES[table])) for table in ROWS
    }


_UNLIKE_CALLS = text(
    "WITH numbers AS (SELECT id, done, row_number() OVER (ORDER BY id) - 1 AS number FROM shards WHERE job_id = :job),"
    f" found AS (SELECT shard_id, {USAGE_COLUMNS} FROM calls WHERE shard_id IN (SELECT id FROM numbers)"
    "  GROUP BY shard_id, stage, connection, model, tenant)"
    " SELECT n.number, stage, model FROM found f"
    " FULL JOIN (SELECT * FROM shard_usage WHERE shard_id IN (SELECT id FROM numbers)) u USING (shard_id, stage, model)"
    " JOIN numbers n ON n.id = shard_id WHERE n.done"
    " AND ((f.calls, f.failed_calls, f.input_tokens, f.output_tokens, f.cached_input_tokens, f.unpriced_calls)"
    "   IS DISTINCT FROM"
    "   (u.calls, u.failed_calls, u.input_tokens, u.output_tokens, u.cached_input_tokens, u.unpriced_calls)"
    "  OR (f.usd IS NULL) <> (u.usd IS NULL) OR abs(f.usd - u.usd) > 1e-9 * abs(u.usd))"
    " ORDER BY 1, 2, 3 LIMIT 1"
)


async def unlike_calls(connection: AsyncConnection, job_id: str) -> tuple[int, str, str] | None:
    """The first finished shard, by number, whose calls of a stage and model do not add up to its usage; ``None`` if there is none."""
    row = (await connection.execute(_UNLIKE_CALLS, {"job": job_id})).first()
    return None if row is None else (row.number, row.stage, row.model)


async def begin(connection: AsyncConnection) -> None:
    """A bundle may take long to be written, and its results to be computed: no time limit of requests ends that."""
    for setting in ("statement_timeout", "idle_in_transaction_session_timeout"):
        await connection.execute(text(f"SELECT set_config('{setting}', '0', true)"))
    await _in_utc(connection)


async def insert_job_row(connection: AsyncConnection, values: Json) -> None:
    """Writes a job's row."""
    names = ", ".join(f'"{name}"' for name in values)
    await connection.execute(
        text(
            f"INSERT INTO jobs ({names}) SELECT {names} FROM json_populate_record(NULL::jobs, CAST(:row AS json))"
        ),
        {"row": json.dumps(values)},
    )


class RowWriter:
    """Writes a job's rows, table by table in the order of :data:`ROWS`.

    Attributes:
        cells: The cells' ids, by ordinal.
        shards: The shards' ids, by number.
    """

    def __init__(self, connection: AsyncConnection, tenant: str, job_id: str) -> None:
        self._connection = connection
        self._tenant = tenant
        self._job_id = job_id
        self.cells: dict[int, int] = {}
        self.shards: list[int] = []

    async def write(self, table: str, rows: Sequence[Json]) -> None:
        """Writes rows that all have the same fields.

        Raises:
            DBAPIError: If a value is none that its column takes.
            LookupError: If a row names a cell or a shard that there is not.
        """
        if table in ("cells", "shards"):
            await self._write_numbered(table, rows)
            return
        model = _TABLES[table]
        renamed = list(map(self._with_ids, rows))
        named = [name for name in _columns(model) if renamed and name in renamed[0]]
        shared = {name: f":{name}" for name in ("tenant", "job_id") if name in model.__table__.columns}
        if table == "calls":
            shared["id"] = "gen_random_uuid()"
        columns = ", ".join(f'"{name}"' for name in (*shared, *named))
        values = ", ".join([*shared.values(), *(f'x."{name}"' for name in named)])
        await self._connection.execute(
            text(
                f"INSERT INTO {table} ({columns}) SELECT {values}"
                f" FROM json_populate_recordset(NULL::{table}, CAST(:rows AS json)) x"
            ),
            {"tenant": self._tenant, "job_id": self._job_id, "rows": json.dumps(renamed)},
        )

    def _with_ids(self, row: Json) -> Json:
        ids: dict[str, int | None] = {}
        for column, name in _NUMBERED.items():
            if name in row:
                number = row[name]
                if number is not None and (not isinstance(number, int) or number < 0):
                    raise LookupError(name)
                numbered = self.cells if column == "cell_id" else self.shards
                ids[column] = None if number is None else numbered[number]
        return row | ids

    async def _write_numbered(self, table: str, rows: Sequence[Json]) -> None:
        """Writes cells or shards, whose ids the other rows need. A shard names earlier ones alone."""
        model = Cell if table == "cells" else Shard
        start = 0
        while start < len(rows):
            stop = start + 1
            while stop < len(rows) and not self._names_new(rows[stop], len(self.shards)):
                stop += 1
            some = list(map(self._with_ids, rows[start:stop]))
            given = {"tenant": self._tenant, "job_id": self._job_id}
            columns = [name for name in _columns(model) if name in some[0]]
            inserted = await self._connection.execute(
                insert(model).returning(model.id, sort_by_parameter_order=True),
                [given | {name: row[name] for name in columns} for row in some],
            )
            ids = list(inserted.scalars())
            if table == "shards":
                self.shards += ids
            else:
                self.cells |= {row["ordinal"]: id_ for row, id_ in zip(some, ids, strict=True)}
            start = stop

    @staticmethod
    def _names_new(row: Json, known: int) -> bool:
        prerequisite = row.get("prerequisite")
        return isinstance(prerequisite, int) and prerequisite >= known
