"""Preparations: what a reasoner has made for a job."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.execution.shards import PreparationClaim
from app.domain.results.contract import PreparationAsks


@dataclass(frozen=True, slots=True)
class StoredStep:
    """Where a step stands after its last ask; see :class:`app.db.tables.Preparation`."""

    persona: int
    kind: str
    task: str
    item: int
    ask: int
    status: str
    content: Sequence[str]
    dropped: int
    error: str | None
    dropped_by: Mapping[str, int] = field(default_factory=dict)
    reply: str | None = None


@dataclass(frozen=True, slots=True)
class StepCounts:
    """Steps of one kind; where personas are made up, the personas themselves.

    Attributes:
        planned: All of them.
        ready: Those that ended well.
        failed: Those that were given up.
        running: Open ones of preparations that somebody works on right now.
        exact: Whether ``planned`` is known.
    """

    planned: int
    ready: int
    failed: int
    running: int
    exact: bool


class FailedAsksRow(NamedTuple):
    """Unusable replies of the reasoner in unfinished or failed steps of one kind and task."""

    stage: str
    task: str
    asks: int
    steps: int
    given_up: int
    reason: str
    reply: str


_LAST = (
    "SELECT DISTINCT ON (persona, kind, task, item) persona, kind, task, item, ask, status, content,"
    " dropped, error, dropped_by, reply FROM preparations WHERE job_id = :job AND tenant = :tenant"
)
_OF_EACH_STEP = " ORDER BY persona, kind, task, item, ask DESC"


async def steps_of_persona(
    connection: AsyncConnection, tenant: str, job_id: str, persona: int, task: str | None = None
) -> list[StoredStep]:
    """The steps of one persona's preparation; those of one task, if one is named."""
    where = " AND persona = :persona" + ("" if task is None else " AND task = :task")
    rows = await connection.execute(
        text(_LAST + where + _OF_EACH_STEP),
        {"job": job_id, "tenant": tenant, "persona": persona} | ({} if task is None else {"task": task}),
    )
    return [StoredStep(*row) for row in rows]


async def questions_of_job(
    connection: AsyncConnection, tenant: str, job_id: str, only: Collection[tuple[int, str]] | None = None
) -> dict[tuple[int, str], StoredStep]:
    """The questions that there are, by persona and task; of steps that are over only.

    Args:
        connection: Where.
        tenant: Whose.
        job_id: Which job's.
        only: Those of these personas and tasks; ``None`` for all.
    """
    where = " AND kind = 'questions' AND status <> 'incomplete'"
    values: dict[str, object] = {"job": job_id, "tenant": tenant}
    if only is not None:
        where += (
            " AND (persona, task) IN (SELECT * FROM unnest(CAST(:personas AS int[]), CAST(:tasks AS text[])))"
        )
        values |= {"personas": [persona for persona, _ in only], "tasks": [task for _, task in only]}
    rows = await connection.execute(text(_LAST + where + _OF_EACH_STEP), values)
    return {(row.persona, row.task): StoredStep(*row) for row in rows}


async def environments_of_job(connection: AsyncConnection, tenant: str, job_id: str) -> list[StoredStep]:
    """The environments that there are, persona by persona."""
    where = " AND kind = 'environments' AND status = 'ready'"
    rows = await connection.execute(text(_LAST + where + _OF_EACH_STEP), {"job": job_id, "tenant": tenant})
    return [StoredStep(*row) for row in rows]


async def exemplars_of_job(
    connection: AsyncConnection, tenant: str, job_id: str, *, limit: int, offset: int
) -> list[StoredStep]:
    """A page of a job's exemplars, question by question; of those that are ready."""
    rows = await connection.execute(
        text(
            f"{_LAST} AND kind = 'exemplars' AND status = 'ready'{_OF_EACH_STEP} LIMIT :limit OFFSET :offset"
        ),
        {"job": job_id, "tenant": tenant, "limit": limit, "offset": offset},
    )
    return [StoredStep(*row) for row in rows]


class ExemplarsUsed(NamedTuple):
    """What a job graded by.

    Attributes:
        asked: Questions whose exemplars the job's reasoner made.
        kept: Questions whose exemplars were there already.
        sha256: Of all texts.
    """

    asked: int
    kept: int
    sha256: str | None


NO_EXEMPLARS = ExemplarsUsed(0, 0, None)


async def exemplars_used(connection: AsyncConnection, tenant: str, job_id: str) -> ExemplarsUsed:
    """How many exemplars a job had and whence, and their hash."""
    rows = await connection.execute(
        text(
            "SELECT count(*) FILTER (WHERE ask > 0), count(*) FILTER (WHERE ask = 0), encode(sha256(convert_to("
            "string_agg(content::text, E'\\n' ORDER BY persona, task COLLATE \"C\", item), 'UTF8')), 'hex')"
            " FROM preparations WHERE tenant = :tenant AND job_id = :job AND kind = 'exemplars' AND status = 'ready'"
        ),
        {"tenant": tenant, "job": job_id},
    )
    return ExemplarsUsed(*rows.one())


async def has_given_questions(connection: AsyncConnection, tenant: str, job_id: str) -> bool:
    """Whether questions were given with a job, by itself or from a set."""
    given = text(
        "SELECT EXISTS (SELECT FROM preparations"
        " WHERE tenant = :tenant AND job_id = :job AND kind = 'questions' AND ask = 0)"
    )
    return bool((await connection.execute(given, {"tenant": tenant, "job": job_id})).scalar_one())


async def growth(connection: AsyncConnection, tenant: str, job_id: str) -> list[int]:
    """How many personas there were after each ask for some, in the order of the asks."""
    rows = await connection.execute(
        text(
            "SELECT jsonb_array_length(content) AS size FROM preparations"
            " WHERE job_id = :job AND tenant = :tenant AND kind = 'personas' ORDER BY ask"
        ),
        {"job": job_id, "tenant": tenant},
    )
    return [row.size for row in rows]


async def asks(connection: AsyncConnection, tenant: str, job_id: str) -> list[PreparationAsks]:
    """What preparing a job took, by kind and task."""
    rows = await connection.execute(
        text(
            "SELECT kind, task, count(*) AS steps, count(*) FILTER (WHERE status = 'failed') AS failed,"
            " sum(ask)::bigint AS asks, sum(dropped)::bigint AS dropped FROM preparations WHERE job_id = :job AND tenant = :tenant"
            " AND status <> 'incomplete' GROUP BY kind, task ORDER BY kind, task"
        ),
        {"job": job_id, "tenant": tenant},
    )
    return [PreparationAsks.of_row(row) for row in rows]


async def counts(connection: AsyncConnection, tenant: str, job_id: str) -> dict[str, StepCounts]:
    """How far a job's preparations are, by kind of step; empty for a job that has none."""
    rows = await connection.execute(
        text(
            "SELECT k.kind, sum(k.planned), coalesce(sum(p.ready), 0), coalesce(sum(p.failed), 0),"
            " coalesce(sum(k.planned - coalesce(p.ready, 0) - coalesce(p.failed, 0))"
            "  FILTER (WHERE s.lease_expires_at > clock_timestamp() AND NOT s.done), 0),"
            " bool_and(s.planned_exactly OR k.kind <> 'exemplars')"
            " FROM shards s CROSS JOIN LATERAL (VALUES ('environments', s.environments_planned),"
            "  ('questions', s.questions_planned), ('exemplars', s.exemplars_planned)) k (kind, planned)"
            " LEFT JOIN (SELECT persona, kind, count(*) FILTER (WHERE status = 'ready') AS ready,"
            "   count(*) FILTER (WHERE status = 'failed') AS failed FROM preparations"
            "   WHERE job_id = :job AND tenant = :tenant GROUP BY persona, kind) p ON p.persona = s.persona AND p.kind = k.kind"
            " WHERE s.job_id = :job AND s.tenant = :tenant AND s.kind = 'preparation' AND s.personas_planned = 0"
            " GROUP BY k.kind"
            " UNION ALL SELECT 'personas', s.personas_planned, coalesce(p.found, 0),"
            "  CASE WHEN p.given_up THEN s.personas_planned - p.found ELSE 0 END,"
            "  CASE WHEN s.lease_expires_at > clock_timestamp() AND NOT s.done"
            "   THEN s.personas_planned - coalesce(p.found, 0) ELSE 0 END, true"
            " FROM shards s LEFT JOIN (SELECT max(jsonb_array_length(content)) AS found,"
            "   bool_or(status = 'failed') AS given_up FROM preparations"
            "   WHERE job_id = :job AND tenant = :tenant AND kind = 'personas') p ON true"
            " WHERE s.job_id = :job AND s.tenant = :tenant AND s.personas_planned > 0"
        ),
        {"job": job_id, "tenant": tenant},
    )
    return {
        kind: StepCounts(int(planned), int(ready), int(failed), int(running), exact)
        for kind, planned, ready, failed, running, exact in rows
    }


async def failed_asks(connection: AsyncConnection, tenant: str, job_id: str) -> list[FailedAsksRow]:
    """Unusable replies of the reasoner, by kind and task; reason and reply are from the step with the most."""
    rows = await connection.execute(
        text(
            "WITH last AS (SELECT DISTINCT ON (persona, kind, task, item) * FROM preparations"
            "  WHERE job_id = :job AND tenant = :tenant ORDER BY persona, kind, task, item, ask DESC)"
            " SELECT DISTINCT ON (l.kind, l.task) l.kind, l.task, sum(n.asks) OVER w, count(*) OVER w,"
            "  count(*) FILTER (WHERE l.status = 'failed') OVER w, n.error, n.reply"
            " FROM last l CROSS JOIN LATERAL (SELECT count(*) AS asks, (array_agg(error ORDER BY ask DESC))[1] AS error,"
            "  (array_agg(reply ORDER BY ask DESC))[1] AS reply FROM preparations p"
            "  WHERE p.job_id = :job AND p.persona = l.persona AND p.kind = l.kind AND p.task = l.task"
            "   AND p.item = l.item AND p.reply IS NOT NULL) n"
            " WHERE l.status <> 'ready' AND n.asks > 0 WINDOW w AS (PARTITION BY l.kind, l.task)"
            " ORDER BY l.kind, l.task, l.ask DESC, l.persona, l.item"
        ),
        {"job": job_id, "tenant": tenant},
    )
    return [FailedAsksRow(*row) for row in rows]


async def fix_plan(connection: AsyncConnection, held: PreparationClaim, questions: Mapping[str, int]) -> bool:
    """Replaces what was estimated, once a persona's environments tell how many questions there will be.

    Args:
        connection: Where.
        held: The claim on the preparation.
        questions: Questions by task.

    Returns:
        Whether the claim still holds.
    """
    rows = await connection.execute(
        text(
            "UPDATE shards SET exemplars_planned = :exemplars, planned_exactly = true"
            " WHERE id = :shard AND lease_token = :token AND NOT done RETURNING id"
        ),
        {"shard": held.shard_id, "token": held.token, "exemplars": sum(questions.values())},
    )
    if rows.first() is None:
        return False
    await connection.execute(
        text(
            "UPDATE shards s SET planned_responses = (run_stop - run_start) * n.number, planned_exactly = true"
            " FROM cells c JOIN unnest(CAST(:tasks AS text[]), CAST(:numbers AS int[])) AS n (task, number)"
            " ON n.task = c.task WHERE c.id = s.cell_id AND s.prerequisite_id = :shard"
        ),
        {"shard": held.shard_id, "tasks": list(questions), "numbers": list(questions.values())},
    )
    return True


class FailedStep(NamedTuple):
    """A step for which the reasoner gave no usable reply."""

    kind: str
    error: str
    reply: str | None


async def failed_kind(
    connection: AsyncConnection, tenant: str, job_id: str, kinds: Sequence[str]
) -> FailedStep | None:
    """Finds a failed step of a kind that the reasoner made nothing of in the whole job.

    Args:
        connection: An open connection.
        tenant: The job's tenant.
        job_id: The job.
        kinds: The kinds of steps to look at.
    """
    rows = await connection.execute(
        text(
            "SELECT kind, error, reply FROM preparations p WHERE tenant = :tenant AND job_id = :job"
            " AND kind = ANY(:kinds) AND status = 'failed' AND ask > 0 AND NOT EXISTS (SELECT FROM preparations"
            "  WHERE job_id = :job AND kind = p.kind AND (status = 'ready' OR kind = 'questions' AND content <> '[]'))"
            " ORDER BY ask DESC, persona, kind, task, item LIMIT 1"
        ),
        {"tenant": tenant, "job": job_id, "kinds": list(kinds)},
    )
    row = rows.first()
    return None if row is None else FailedStep(*row)


async def all_done(connection: AsyncConnection, job_id: str) -> bool:
    """Whether every persona of a job is prepared."""
    rows = await connection.execute(
        text(
            "SELECT NOT EXISTS (SELECT FROM shards WHERE job_id = :job AND kind = 'preparation' AND NOT done)"
        ),
        {"job": job_id},
    )
    return bool(rows.scalar_one())


def encoded(value: Sequence[str] | Mapping[str, int]) -> str:
    """A step's content, or what it dropped by reason, as the writer takes it."""
    plain = dict(value) if isinstance(value, Mapping) else list(value)
    return json.dumps(plain, ensure_ascii=False)
