"""What a shard already has, for whoever goes on with it."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.execution.result_rows import ResponseRow
from app.db.execution.shards import OF_CLAIM, Claim
from app.domain.providers.model import ChatReply, FinishReason, Usage
from app.ports import ModelCallError

_JUDGED = ("verdicts", "second_verdicts", "grades")
_KEYS = (
    "jsonb_to_recordset(CAST(:calls AS jsonb)) AS k (stage text, task text, run smallint, item smallint,"
    " unit smallint, last_unit smallint, trait smallint, judge smallint)"
)
_KEY_COLUMNS = (
    "calls.stage, calls.task, calls.run, calls.item, calls.unit, calls.last_unit, calls.trait, calls.judge"
)
_OF_KEYS = (
    f"shard_id = :shard AND ({_KEY_COLUMNS})"
    " IS NOT DISTINCT FROM (k.stage, k.task, k.run, k.item, k.unit, k.last_unit, k.trait, k.judge)"
)


async def stored_responses(connection: AsyncConnection, held: Claim) -> list[ResponseRow]:
    """Its responses."""
    return list(map(ResponseRow._make, await _rows(connection, held, "responses", ResponseRow._fields)))


async def stored_verdicts(connection: AsyncConnection, held: Claim) -> set[tuple[int, int, int, int, int]]:
    """The (run, item, unit, trait, judge) of its verdicts."""
    rows = await _rows(connection, held, "verdicts", ("run", "item", "unit", "trait", "judge"))
    return {(run, item, unit, trait, judge) for run, item, unit, trait, judge in rows}


async def stored_second_verdicts(
    connection: AsyncConnection, held: Claim
) -> set[tuple[int, int, int, int, int, bool]]:
    """The (run, item, unit, trait, judge, alone) of its second verdicts."""
    columns = ("run", "item", "unit", "trait", "judge", "alone")
    rows = await _rows(connection, held, "second_verdicts", columns)
    return {(run, item, unit, trait, judge, alone) for run, item, unit, trait, judge, alone in rows}


async def stored_grades(connection: AsyncConnection, held: Claim) -> set[tuple[int, int, int]]:
    """The (run, item, judge) of its grades."""
    rows = await _rows(connection, held, "grades", ("run", "item", "judge"))
    return {(run, item, judge) for run, item, judge in rows}


async def unread_replies(connection: AsyncConnection, held: Claim) -> dict[str, ChatReply]:
    """Return the replies that wait for a further call about them, by the path of their own call."""
    columns = ("path", "raw", "finish_reason", "thoughts", "provider_finish_reason")
    return {
        path: ChatReply(raw, FinishReason(reason), thoughts=thoughts, provider_finish_reason=word)
        for path, raw, reason, thoughts, word in await _rows(connection, held, "unread_replies", columns)
    }


async def forget_unread_replies(connection: AsyncConnection, held: Claim) -> None:
    """Delete those replies of a shard; one that ends deletes its own (:func:`app.db.execution.shards.finish`)."""
    await connection.execute(text(f"DELETE FROM unread_replies WHERE {OF_CLAIM}"), held.place_of_rows)


async def forget_unread_replies_of_job(connection: AsyncConnection, job_id: str) -> None:
    """Delete those replies of a job that never goes on."""
    await connection.execute(
        text("DELETE FROM unread_replies WHERE cell_id IN (SELECT id FROM cells WHERE job_id = :job)"),
        {"job": job_id},
    )


async def withdraw(
    connection: AsyncConnection,
    held: Claim,
    texts: Collection[tuple[int, int]],
    judged: Collection[tuple[int, int]],
) -> None:
    """Delete texts, each named by run and item, and all that was judged of these and of further texts; they are missing then."""
    for places, tables in ((judged, _JUDGED), (texts, (*_JUDGED, "responses"))):
        for table in tables:
            await connection.execute(
                text(
                    f"DELETE FROM {table} WHERE cell_id = :cell AND tenant = :tenant AND (run, item) IN"
                    " (SELECT * FROM unnest(CAST(:runs AS smallint[]), CAST(:items AS smallint[])))"
                ),
                {
                    "cell": held.cell_id,
                    "tenant": held.tenant,
                    "runs": [run for run, _ in places],
                    "items": [item for _, item in places],
                },
            )
    await forget_unread_replies(connection, held)


async def fail_calls(
    connection: AsyncConnection, shard_id: int, calls: Sequence[Mapping[str, object]], failure: ModelCallError
) -> None:
    """Turn answered calls of a shard into failed ones, each given by its columns; what they cost stays."""
    await connection.execute(
        text(
            f"UPDATE calls SET outcome = :outcome, code = :code, detail = :detail FROM {_KEYS} WHERE {_OF_KEYS}"
            " AND outcome = 'ok'"
        ),
        {
            "shard": shard_id,
            "calls": json.dumps(calls),
            "outcome": failure.kind.value,
            "code": failure.code,
            "detail": str(failure),
        },
    )


async def most_failures(
    connection: AsyncConnection, shard_id: int, calls: Sequence[Mapping[str, object]], code: str
) -> tuple[int, str]:
    """Return how often the request that failed most often has failed with a code, and its model as ``connection/model``.

    The requests are those of some calls of a shard, each given by its columns; none has failed if the number is 0.
    """
    rows = await connection.execute(
        text(
            "SELECT count(DISTINCT calls.id), min(connection || '/' || model)"
            f" FROM calls, {_KEYS} WHERE {_OF_KEYS} AND code = :code"
            f" GROUP BY {_KEY_COLUMNS} ORDER BY 1 DESC, 2 LIMIT 1"
        ),
        {"shard": shard_id, "calls": json.dumps(calls), "code": code},
    )
    row = rows.first()
    return (0, "") if row is None else (row[0], row[1])


async def usage_of_text(connection: AsyncConnection, held: Claim, run: int, item: int) -> Usage | None:
    """Return the usage of the call that generated a text; stored replies lack it."""
    found = await connection.execute(
        text(
            "SELECT input_tokens, output_tokens, reasoning_tokens FROM calls"
            " WHERE shard_id = :shard AND tenant = :tenant AND stage = 'generation' AND run = :run AND item = :item"
            " AND outcome = 'ok' AND input_tokens IS NOT NULL AND output_tokens IS NOT NULL"
            " ORDER BY started_at DESC LIMIT 1"
        ),
        {"shard": held.shard_id, "tenant": held.tenant, "run": run, "item": item},
    )
    row = found.one_or_none()
    return None if row is None else Usage(row[0], row[1], reasoning_tokens=row[2])


async def _rows(
    connection: AsyncConnection, held: Claim, table: str, columns: Sequence[str]
) -> Iterable[Any]:
    return await connection.execute(
        text(f"SELECT {', '.join(columns)} FROM {table} WHERE {OF_CLAIM}"), held.place_of_rows
    )
