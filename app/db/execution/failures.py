"""Calls that failed: what they failed of, and whether any of their kind was answered."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.domain.providers.failure import FILTERED, remedy

MOST_GROUPS = 50
"""Groups of failures that are told apart; of more, those with the most calls."""

SAME_CHARACTERS = 60
"""Failures are alike if their words begin alike: further on there are request ids and counts."""

SHOWN_CHARACTERS = 200
"""Of the words of a text or verdict that is of no use."""


@dataclass(frozen=True, slots=True)
class FailureRow:
    """Calls of one stage and model that failed in the same way.

    Attributes:
        stage: Of the calls.
        model: ``connection/model``.
        code: The provider's code, or ours.
        http_status: Of the answer; ``None`` where there was none.
        detail: The provider's words to one of them.
        calls: How many attempts.
        last_at: When the last of them was sent.
        filtered: Whether a content filter refused them.
    """

    stage: str
    model: str
    code: str
    http_status: int | None
    detail: str | None
    calls: int
    last_at: datetime
    filtered: bool = False

    @property
    def remedy(self) -> str:
        """What to do about it, in sentences."""
        code = FILTERED if self.filtered else self.code
        return remedy(code, self.http_status, self.model, repeated=True)


_HISTOGRAM = text(
    "SELECT stage, connection || '/' || model, coalesce(code, outcome), http_status,"
    " max(detail COLLATE \"C\"), count(*), max(started_at), outcome = 'filtered'"
    " FROM calls WHERE job_id = :job AND tenant = :tenant AND outcome <> 'ok'"
    " GROUP BY stage, connection, model, coalesce(code, outcome), http_status, outcome = 'filtered',"
    f" left(detail, {SAME_CHARACTERS})"
    f" ORDER BY count(*) DESC, max(started_at) DESC LIMIT {MOST_GROUPS}"
)


async def histogram(connection: AsyncConnection, tenant: str, job_id: str) -> list[FailureRow]:
    """A job's failed calls by stage, model, code and words, the most frequent first."""
    rows = await connection.execute(_HISTOGRAM, {"job": job_id, "tenant": tenant})
    return [FailureRow(*row) for row in rows]


async def any_answer(
    connection: AsyncConnection,
    job_id: str,
    of: str,
    model: str | None,
    stage: str | None,
    since: datetime | None = None,
) -> bool:
    """Return whether a call of a job to a connection was answered.

    Args:
        connection: Where to look.
        job_id: The job.
        of: The calls' connection.
        model: Only calls to this model.
        stage: Only calls of this stage.
        since: Only calls sent later.
    """
    given = {"connection": of, "model": model, "stage": stage}
    only = "".join(f" AND calls.{name} = :{name}" for name, value in given.items() if value is not None)
    only += "" if since is None else " AND calls.started_at > :since"
    rows = await connection.execute(
        text(
            "SELECT EXISTS (SELECT FROM calls JOIN shards ON shards.id = calls.shard_id"
            f" WHERE shards.job_id = :job AND calls.outcome = 'ok'{only})"
        ),
        {"job": job_id, "since": since} | given,
    )
    return bool(rows.scalar_one())


async def unanswered(connection: AsyncConnection, job_id: str) -> FailureRow | None:
    """How most calls failed of a model in a stage of which none was answered; ``None`` where there is no such model.

    Refusals by a content filter aside, and a reply that was used again is an answer. The job's finished shards have been added up.
    """
    rows = await connection.execute(
        text(
            "SELECT calls.stage, calls.connection || '/' || calls.model, coalesce(code, outcome), http_status,"
            ' max(detail COLLATE "C"), count(*), max(started_at)'
            " FROM calls JOIN (SELECT u.stage, u.model FROM shard_usage u JOIN shards ON shards.id = u.shard_id"
            "  WHERE shards.job_id = :job GROUP BY u.stage, u.model HAVING sum(calls) = sum(failed_calls)) AS vain"
            " ON vain.stage = calls.stage AND vain.model = calls.connection || '/' || calls.model"
            " WHERE calls.job_id = :job AND outcome NOT IN ('ok', 'filtered')"
            "  AND NOT EXISTS (SELECT FROM reused_replies r JOIN shards ON shards.id = r.shard_id"
            "   WHERE shards.job_id = :job AND r.stage = calls.stage AND r.connection = calls.connection AND r.model = calls.model)"
            " GROUP BY calls.stage, connection, calls.model, coalesce(code, outcome), http_status"
            " ORDER BY count(*) DESC LIMIT 1"
        ),
        {"job": job_id},
    )
    row = rows.first()
    return None if row is None else FailureRow(*row)


@dataclass(frozen=True, slots=True)
class UselessRow:
    """Texts or verdicts of one status, where a job has none that results could be computed from.

    Attributes:
        status: Of them.
        count: How many.
        words: What is kept of one of them: the provider's words, or the beginning of the judge's reply.
    """

    status: str
    count: int
    words: str | None


def _all_useless(table: str, words: str, of: str, useful: str) -> str:
    """Rows of some cells by their status; none where one of them is useful, which is found without reading them all."""
    return (
        f'SELECT status, count(*), max(left({words}, {SHOWN_CHARACTERS}) COLLATE "C")'
        f" FROM {table} JOIN cells ON cells.id = cell_id WHERE job_id = :job AND {of}"
        f" AND NOT EXISTS (SELECT FROM cells, LATERAL (SELECT FROM {table} WHERE cell_id = cells.id"
        f"  AND {of} AND {useful} LIMIT 1) AS found WHERE job_id = :job) GROUP BY status"
    )


_TEXTS = text(
    _all_useless("responses", "error", "cells.model = :model", "status IN ('answered', 'refused')")
    + " ORDER BY 2 DESC, 1"
)
_ASKED = "judge = :judge AND NOT (status = 'refused' AND raw IS NULL)"
"""Sentences of a refusal are refused without being judged, which is a result."""
_VERDICTS = text(
    _all_useless("verdicts", "coalesce(raw, error)", _ASKED, "status IN ('scored', 'not_applicable')")
    + " UNION ALL "
    + _all_useless("grades", "coalesce(raw, error)", _ASKED, "status = 'scored'")
    + " ORDER BY 2 DESC, 1"
)


async def useless_texts(connection: AsyncConnection, job_id: str, model: str) -> list[UselessRow]:
    """A model's texts by status, the most frequent first, if it has written some and each was filtered, has no answer or failed."""
    rows = await connection.execute(_TEXTS, {"job": job_id, "model": model})
    return [UselessRow(*row) for row in rows]


async def useless_verdicts(connection: AsyncConnection, job_id: str, judge: int) -> list[UselessRow]:
    """A judge's verdicts or grades by status, the most frequent first, if there are some and none says anything.

    A judge with verdicts of use and grades of none, or the other way round, is found too.

    Args:
        connection: Where to look.
        job_id: Which job.
        judge: Which of its judges.
    """
    rows = await connection.execute(_VERDICTS, {"job": job_id, "judge": judge})
    return [UselessRow(*row) for row in rows]
