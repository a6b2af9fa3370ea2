"""Writes a job with all its parts: cells, shards, and what of its work is there already."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import insert, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.jobs import copied_texts
from app.db.jobs.copied_texts import CopiedText
from app.db.jobs.new_verdicts import NewGrade, NewVerdicts
from app.db.tables import Cell, Job, Preparation, Shard
from app.domain.jobs.personagym_resolve import GivenStep
from app.domain.jobs.status import JobStatus
from app.domain.judging.imported import NOT_GIVEN
from app.domain.judging.verdict import VerdictStatus

ROWS_AT_ONCE, CHARACTERS_AT_ONCE = 500, 250_000
"""Rows that one statement inserts, and about how long their texts are together; nobody else is served while it is put together."""


class _Insertion:
    """Inserts rows some at a time, given as columns: a statement for each row takes the client and the server ten times as long.

    Args:
        table: Where.
        shared: Columns that are the same in all rows.
        columns: The others, with their types. An array is given as text: what is unnested can hold none.
    """

    def __init__(self, table: str, shared: Sequence[str], columns: Mapping[str, str]) -> None:
        given = [
            f"CAST(:{name} AS {'text' if kind.endswith(']') else kind}[])" for name, kind in columns.items()
        ]
        values = [f"CAST({name} AS {kind})" for name, kind in columns.items()]
        self._statement = text(
            f"INSERT INTO {table} ({', '.join((*shared, *columns))})"
            f" SELECT {', '.join([f':{name}' for name in shared] + values)}"
            f" FROM unnest({', '.join(given)}) AS given ({', '.join(columns)})"
        )
        self._shared, self._columns = shared, columns

    async def insert(
        self, connection: AsyncConnection, shared: Sequence[object], rows: Iterable[Sequence[object]]
    ) -> None:
        """Inserts rows, each of them a value for each column."""
        of_all = dict(zip(self._shared, shared, strict=True))
        for some in _some_at_a_time(rows):
            columns = map(list, zip(*some, strict=True))
            await connection.execute(self._statement, of_all | dict(zip(self._columns, columns, strict=True)))


def _some_at_a_time(rows: Iterable[Sequence[object]]) -> Iterator[list[Sequence[object]]]:
    some: list[Sequence[object]] = []
    characters = 0
    for row in rows:
        some.append(row)
        characters += sum(len(value) for value in row if isinstance(value, str))
        if len(some) == ROWS_AT_ONCE or characters > CHARACTERS_AT_ONCE:
            yield some
            some, characters = [], 0
    if some:
        yield some


_SHARDS = _Insertion(
    "shards",
    ["tenant", "job_id"],
    {"cell_id": "bigint"}
    | dict.fromkeys(
        ("run_start", "run_stop", "planned_responses", "responses_answered", "verdicts_due"), "int"
    )
    | {"prerequisite_id": "bigint", "planned_exactly": "bool", "done": "bool"}
    | dict.fromkeys(("responses_failed", "verdicts_answered", "verdicts_failed"), "int"),
)
_RESPONSES = _Insertion(
    "responses",
    ["tenant"],
    {"cell_id": "bigint"}
    | dict.fromkeys(("run", "item", "instruction"), "int")
    | dict.fromkeys(("status", "text", "thoughts", "error", "conversation"), "text")
    | {"notes": "jsonb", "verdicts_due": "int", "unit_starts": "int[]", "unit_ends": "int[]"},
)
_GRADES = _Insertion(
    "grades",
    ["tenant"],
    {"cell_id": "bigint"}
    | dict.fromkeys(("run", "item", "judge"), "int")
    | {"status": "text", "score": "int", "error": "text", "suspicion": "text"},
)
_VERDICTS = text(
    "INSERT INTO verdicts (tenant, cell_id, run, item, trait, judge, unit, status, score, error, suspicion)"
    " SELECT :tenant, cell_id, run, item, trait, judge, number - 1, status, score,"
    "  CASE WHEN status = 'failed' THEN :not_given END,"
    "  CASE WHEN number - 1 = ANY(CAST(doubtful AS int[])) THEN 'text' END"
    " FROM unnest(CAST(:cells AS bigint[]), CAST(:runs AS int[]), CAST(:items AS int[]), CAST(:traits AS int[]),"
    "  CAST(:judges AS int[]), CAST(:statuses AS text[]), CAST(:scores AS text[]), CAST(:doubtful AS text[]))"
    "  AS given (cell_id, run, item, trait, judge, statuses, scores, doubtful),"
    " unnest(CAST(statuses AS text[]), CAST(scores AS int[])) WITH ORDINALITY AS units (status, score, number)"
)


@dataclass(frozen=True, slots=True)
class NewCell:
    """A row of ``cells``."""

    ordinal: int
    model: str
    persona: str
    task: str


@dataclass(frozen=True, slots=True)
class NewPreparation:
    """A row of ``shards`` that prepares a persona, with the numbers of its steps; or that makes up ``personas``."""

    persona: int
    environments: int
    questions: int
    exemplars: int
    planned_exactly: bool
    personas: int = 0


@dataclass(frozen=True, slots=True)
class NewShard:
    """A row of ``shards``, its cell named by ordinal; the counts are known beforehand for existing texts only.

    ``after`` is the persona whose preparation has to come first.
    """

    cell: int
    run_start: int
    run_stop: int
    planned_responses: int
    after: int | None = None
    planned_exactly: bool = True
    responses_answered: int = 0
    verdicts_due: int = 0
    done: bool = False
    responses_failed: int = 0
    verdicts_answered: int = 0
    verdicts_failed: int = 0


@dataclass(frozen=True, slots=True)
class NewResponse:
    """A row of ``responses`` for an existing text, its cell named by ordinal; with what imported judges said of it.

    ``doubtful`` are the sentences that address the judge.
    """

    cell: int
    run: int
    item: int
    instruction: int | None
    status: str
    text: str
    unit_starts: Sequence[int]
    unit_ends: Sequence[int]
    verdicts_due: int
    thoughts: str | None = None
    notes: str | None = None
    error: str | None = None
    verdicts: Sequence[NewVerdicts] = ()
    doubtful: Collection[int] = ()
    grades: Sequence[NewGrade] = ()
    conversation: str | None = None

    @property
    def sentences(self) -> int:
        """How many it has."""
        return len(self.unit_starts)


async def insert_job(
    connection: AsyncConnection,
    job: Mapping[str, Any],
    cells: Sequence[NewCell],
    shards: Sequence[NewShard],
    responses: Sequence[NewResponse | CopiedText] = (),
    preparations: Sequence[NewPreparation] = (),
    steps: Sequence[GivenStep] = (),
) -> None:
    """Writes a job with all its parts.

    Args:
        connection: Where.
        job: Its columns, but for its status.
        cells: Its cells.
        shards: Its shards.
        responses: Texts that exist already.
        preparations: Those of its personas.
        steps: What of these is given.

    Raises:
        TextsGoneError: If texts that are to be copied are not there any more.
    """
    await connection.execute(insert(Job).values(**job, status=JobStatus.QUEUED.value))
    tenant, job_id = job["tenant"], job["id"]
    prepared_by = await _insert_preparations(connection, tenant, job_id, preparations, steps)
    if not cells:  # the job only makes up personas
        return
    rows = await connection.execute(
        insert(Cell).returning(Cell.ordinal, Cell.id),
        [
            {"tenant": tenant, "job_id": job_id, "ordinal": c.ordinal, "model": c.model}
            | {"persona": c.persona, "task": c.task}
            for c in cells
        ],
    )
    ids = {row.ordinal: row.id for row in rows}
    await _SHARDS.insert(
        connection,
        [tenant, job_id],
        (
            (
                ids[s.cell],
                *_counts(s),
                None if s.after is None else prepared_by[s.after],
                s.planned_exactly,
                s.done,
                s.responses_failed,
                s.verdicts_answered,
                s.verdicts_failed,
            )
            for s in shards
        ),
    )
    await _RESPONSES.insert(
        connection,
        [tenant],
        (
            (
                ids[r.cell],
                r.run,
                r.item,
                r.instruction,
                r.status,
                r.text,
                r.thoughts,
                r.error,
                r.conversation,
                r.notes,
                r.verdicts_due,
                *_spans(r),
            )
            for r in responses
            if isinstance(r, NewResponse)
        ),
    )
    await copied_texts.copy(connection, tenant, ids, [r for r in responses if isinstance(r, CopiedText)])
    await _insert_imported(connection, tenant, ids, responses)


async def _insert_imported(
    connection: AsyncConnection,
    tenant: str,
    ids: Mapping[int, int],
    responses: Sequence[NewResponse | CopiedText],
) -> None:
    """Writes what imported judges said; a response's verdicts by a judge are sent as one row, with arrays."""
    names = ("cells", "runs", "items", "traits", "judges", "statuses", "scores", "doubtful")
    rows = (
        (ids[r.cell], r.run, r.item, v.trait, v.judge, *_arrays(v), f"{{{','.join(map(str, r.doubtful))}}}")
        for r in responses
        for v in r.verdicts
    )
    await _GRADES.insert(
        connection,
        [tenant],
        ((ids[r.cell], r.run, r.item, *_graded(grade)) for r in responses for grade in r.grades),
    )
    for some in _some_at_a_time(rows):
        columns = dict(zip(names, map(list, zip(*some, strict=True)), strict=True))
        await connection.execute(_VERDICTS, {"tenant": tenant, "not_given": NOT_GIVEN, **columns})


def _graded(given: NewGrade) -> tuple[int, str, int | None, str | None, str | None]:
    missing = given.score is None
    why = NOT_GIVEN if missing else None
    status = VerdictStatus.FAILED if missing else VerdictStatus.SCORED
    return given.judge, status.value, given.score, why, "text" if given.doubtful and not missing else None


def _arrays(given: NewVerdicts) -> tuple[str, str]:
    statuses = ",".join([verdict.status for verdict in given.verdicts])
    scores = ",".join(["NULL" if verdict.score is None else str(verdict.score) for verdict in given.verdicts])
    return f"{{{statuses}}}", f"{{{scores}}}"


def _counts(shard: NewShard) -> tuple[int, ...]:
    planned, answered, due = shard.planned_responses, shard.responses_answered, shard.verdicts_due
    return shard.run_start, shard.run_stop, planned, answered, due


def _spans(response: NewResponse) -> Iterator[str]:
    """Where the sentences are, as Postgres writes arrays."""
    return (f"{{{','.join(map(str, offsets))}}}" for offsets in (response.unit_starts, response.unit_ends))


async def _insert_preparations(
    connection: AsyncConnection,
    tenant: str,
    job_id: str,
    preparations: Sequence[NewPreparation],
    steps: Sequence[GivenStep],
) -> dict[int, int]:
    """The ids of the shards that prepare the personas, by persona."""
    if not preparations:
        return {}
    rows = await connection.execute(
        insert(Shard).returning(Shard.persona, Shard.id),
        [
            {"tenant": tenant, "job_id": job_id, "kind": "preparation", "persona": p.persona}
            | {"run_start": 0, "run_stop": 0, "planned_responses": 0, "planned_exactly": p.planned_exactly}
            | {"environments_planned": p.environments, "questions_planned": p.questions}
            | {"exemplars_planned": p.exemplars, "personas_planned": p.personas}
            for p in preparations
        ],
    )
    whole = [step for step in steps if not step.kept]
    if whole:
        await connection.execute(
            insert(Preparation),
            [
                {"tenant": tenant, "job_id": job_id, "persona": s.person, "kind": s.kind}
                | {"task": s.task, "item": 0, "ask": 0, "status": "ready", "content": list(s.content)}
                | {"dropped": 0, "error": None}
                for s in whole
            ],
        )
    await _copy_exemplars(connection, tenant, job_id, [step for step in steps if step.kept])
    return {row.persona: row.id for row in rows}


async def _copy_exemplars(
    connection: AsyncConnection, tenant: str, job_id: str, steps: Sequence[GivenStep]
) -> None:
    """Copies the exemplars of a question set; of those that are gone by now, the reasoner makes others."""
    if not steps:
        return
    await connection.execute(
        text(
            "INSERT INTO preparations"
            " (job_id, persona, kind, task, item, ask, tenant, status, content, dropped, error)"
            " SELECT DISTINCT ON (s.person, s.task, s.item) :job, s.person, 'exemplars', s.task, s.item, 0, :tenant, 'ready',"
            " e.content, 0, NULL FROM unnest(CAST(:persons AS int[]), CAST(:tasks AS text[]), CAST(:items AS int[]),"
            " CAST(:keys AS text[])) s (person, task, item, key)"
            " JOIN exemplars e ON e.tenant = :tenant AND e.key = s.key"
        ),
        {"job": job_id, "tenant": tenant}
        | {"persons": [step.person for step in steps], "tasks": [step.task for step in steps]}
        | {"items": [step.item for step in steps], "keys": [step.kept for step in steps]},
    )
