"""Judges' stored replies, cell by cell, and replacing the verdicts that were read from them."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

_PLACE = ("run", "item", "unit", "trait", "judge")
_READ = ("status", "score", "raw", "finish_reason", "unread", "repair_raw")
_SENTENCE = (
    "substr(r.text, r.unit_starts[t.unit + 1] + 1, r.unit_ends[t.unit + 1] - r.unit_starts[t.unit + 1])"
)


class _Table(NamedTuple):
    """A table of judges' replies: its key within a cell, the columns that are read, and the text that was judged."""

    key: tuple[str, ...]
    columns: tuple[str, ...]
    text: str = _SENTENCE

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The primary key."""
        return ("cell_id", *self.key)


TABLES = {
    "verdicts": _Table(_PLACE, (*_READ, "suspicion", "group_size")),
    "second_verdicts": _Table((*_PLACE, "alone"), _READ),
    "grades": _Table(("run", "item", "judge"), (*_READ, "suspicion"), "r.text"),
}


async def cell_ids(connection: AsyncConnection, tenant: str, job_id: str) -> dict[int, int]:
    """Return the ids of a job's cells by ordinal."""
    rows = await connection.execute(
        text("SELECT ordinal, id FROM cells WHERE job_id = :job AND tenant = :tenant ORDER BY ordinal"),
        {"job": job_id, "tenant": tenant},
    )
    return {row.ordinal: row.id for row in rows}


async def replies_of_cell(
    connection: AsyncConnection, tenant: str, table: str, cell_id: int
) -> list[dict[str, Any]]:
    """Return the rows of one cell that hold a reply, with the judged ``text``, in the order of their keys."""
    of = TABLES[table]
    columns = ", ".join(f"t.{name}" for name in ("cell_id", *of.key, *of.columns))
    rows = await connection.execute(
        text(
            f"SELECT {columns}, {of.text} AS text FROM {table} t JOIN responses r"
            " ON r.cell_id = t.cell_id AND r.run = t.run AND r.item = t.item AND r.tenant = :tenant"
            " WHERE t.cell_id = :cell AND t.tenant = :tenant AND coalesce(t.raw, t.repair_raw) IS NOT NULL"
            f" ORDER BY {', '.join(f't.{name}' for name in of.key)}"
        ),
        {"tenant": tenant, "cell": cell_id},
    )
    return [dict(row) for row in rows.mappings()]


async def replace_verdicts(
    connection: AsyncConnection, tenant: str, table: str, rows: Sequence[dict[str, Any]]
) -> None:
    """Replace columns of a table's rows, which all have the same ones beside their keys."""
    keys = TABLES[table].key_columns
    values = ", ".join(f"{name} = n.{name}" for name in rows[0] if name not in keys)
    same = " AND ".join(f"t.{name} = n.{name}" for name in keys)
    await connection.execute(
        text(
            f"UPDATE {table} t SET {values}"
            f" FROM json_populate_recordset(NULL::{table}, CAST(:rows AS json)) n"
            f" WHERE {same} AND t.tenant = :tenant"
        ),
        {"tenant": tenant, "rows": json.dumps(rows)},
    )


async def note_reread(connection: AsyncConnection, tenant: str, job_id: str, reader: str) -> None:
    """Note that a job's replies were read again, by which version of the rules."""
    await connection.execute(
        text("UPDATE jobs SET reader = :reader, rereads = rereads + 1 WHERE id = :job AND tenant = :tenant"),
        {"job": job_id, "tenant": tenant, "reader": reader},
    )
