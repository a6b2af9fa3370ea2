"""Exemplars that are kept with a question set."""

import json
from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection


class ExemplarPlace(NamedTuple):
    """Exemplars of a job, and where they are kept in a question set."""

    persona: int
    task: str
    item: int
    place: str
    key: str


class KeptExemplars(NamedTuple):
    """A row of ``exemplars``."""

    place: str
    key: str
    reasoner: str | None
    content: Sequence[str]


async def keys_of_set(connection: AsyncConnection, tenant: str, set_id: str) -> frozenset[str]:
    """The keys of all exemplars of a question set."""
    rows = await connection.execute(
        text("SELECT key FROM exemplars WHERE tenant = :tenant AND set_id = :set"),
        {"tenant": tenant, "set": set_id},
    )
    return frozenset(row.key for row in rows)


async def keys_of_personas(
    connection: AsyncConnection, tenant: str, descriptions: Sequence[str]
) -> frozenset[str]:
    """The keys of what reasoners made, in all question sets that ask one of these personas."""
    rows = await connection.execute(
        text(
            "SELECT DISTINCT e.key FROM question_sets q JOIN exemplars e ON e.tenant = q.tenant AND e.set_id = q.id"
            " WHERE q.tenant = :tenant AND jsonb_exists_any(q.content, CAST(:descriptions AS text[]))"
            "  AND e.reasoner IS NOT NULL"
        ),
        {"tenant": tenant, "descriptions": list(descriptions)},
    )
    return frozenset(row.key for row in rows)


async def keep_given(
    connection: AsyncConnection, tenant: str, set_id: str, given: Sequence[KeptExemplars]
) -> None:
    """Keeps exemplars that came with their questions."""
    await connection.execute(
        text(
            "INSERT INTO exemplars (tenant, set_id, place, key, content) SELECT :tenant, :set, place, key, content::jsonb"
            " FROM unnest(CAST(:places AS text[]), CAST(:keys AS text[]), CAST(:contents AS text[])) g (place, key, content)"
            " ON CONFLICT DO NOTHING"
        ),
        {"tenant": tenant, "set": set_id}
        | {"places": [each.place for each in given], "keys": [each.key for each in given]}
        | {"contents": [json.dumps(list(each.content), ensure_ascii=False) for each in given]},
    )


async def keep_of_job(
    connection: AsyncConnection,
    tenant: str,
    job_id: str,
    set_id: str,
    places: Sequence[ExemplarPlace],
    *,
    reasoner: str,
    asked_only: bool,
) -> None:
    """Keeps what a job's reasoner made with a question set, if that is still there.

    Args:
        connection: Where.
        tenant: Whose.
        job_id: Which job's.
        set_id: The question set.
        places: Where which are kept; those that are not ready are left out.
        reasoner: Who made them.
        asked_only: Whether to leave out those that the job did not ask for itself.
    """
    await connection.execute(
        text(
            "INSERT INTO exemplars (tenant, set_id, place, key, reasoner, content)"
            " SELECT :tenant, q.id, g.place, g.key, :reasoner, p.content"
            " FROM unnest(CAST(:personas AS int[]), CAST(:tasks AS text[]), CAST(:items AS int[]),"
            " CAST(:places AS text[]), CAST(:keys AS text[])) g (persona, task, item, place, key)"
            " JOIN preparations p ON p.job_id = :job AND p.tenant = :tenant AND p.kind = 'exemplars'"
            " AND p.persona = g.persona AND p.task = g.task AND p.item = g.item AND p.status = 'ready'"
            " JOIN question_sets q ON q.tenant = :tenant AND q.id = :set"
            f"{' WHERE p.ask > 0' if asked_only else ''} ON CONFLICT DO NOTHING"
        ),
        {"tenant": tenant, "job": job_id, "set": set_id, "reasoner": reasoner}
        | {"personas": [each.persona for each in places], "tasks": [each.task for each in places]}
        | {"items": [each.item for each in places], "places": [each.place for each in places]}
        | {"keys": [each.key for each in places]},
    )


async def exemplars_of_set(
    connection: AsyncConnection, tenant: str, set_id: str, *, limit: int, after: tuple[str, str] | None
) -> list[KeptExemplars]:
    """A page of a question set's exemplars, in the order of its personas and questions.

    Args:
        connection: Where.
        tenant: Whose.
        set_id: The question set.
        limit: How many at most.
        after: Place and key of the last of the page before.
    """
    where = "" if after is None else ' AND (place COLLATE "C", key COLLATE "C") > (:place, :key)'
    rows = await connection.execute(
        text(
            f"SELECT place, key, reasoner, content FROM exemplars WHERE tenant = :tenant AND set_id = :set{where}"
            ' ORDER BY place COLLATE "C", key COLLATE "C" LIMIT :limit'
        ),
        {"tenant": tenant, "set": set_id, "limit": limit}
        | ({} if after is None else {"place": after[0], "key": after[1]}),
    )
    return [KeptExemplars(*row) for row in rows]
