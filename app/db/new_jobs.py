"""Writes a job with all its parts: cells, shards, and what of its work is there already."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.tables import Cell, Job, Preparation, Response, Shard
from app.domain.priority import Priority
from app.domain.status import JobStatus


@dataclass(frozen=True, slots=True)
class NewJob:
    """What a job is made of, before the database numbers its parts."""

    id: str
    tenant: str
    name: str | None
    request: Mapping[str, Any]
    spec: Mapping[str, Any]
    simulated: bool
    metadata: Mapping[str, str]
    planned_responses: int
    expected_verdicts: int
    priority: Priority


@dataclass(frozen=True, slots=True)
class NewCell:
    """A row of ``cells``."""

    ordinal: int
    model: str
    persona: str
    task: str


@dataclass(frozen=True, slots=True)
class NewStep:
    """A step of a preparation that is over before it begins, because its outcome was given; see ``preparations``."""

    persona: int
    kind: str
    task: str
    content: Sequence[str]


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


@dataclass(frozen=True, slots=True)
class NewResponse:
    """A row of ``responses`` for an existing text, its cell named by ordinal."""

    cell: int
    run: int
    item: int
    instruction: int | None
    status: str
    text: str
    unit_starts: Sequence[int]
    unit_ends: Sequence[int]
    verdicts_due: int


async def insert_job(
    connection: AsyncConnection,
    job: NewJob,
    cells: Sequence[NewCell],
    shards: Sequence[NewShard],
    responses: Sequence[NewResponse] = (),
    preparations: Sequence[NewPreparation] = (),
    steps: Sequence[NewStep] = (),
) -> None:
    """Writes a job with all its parts."""
    await connection.execute(
        insert(Job).values(
            id=job.id,
            tenant=job.tenant,
            name=job.name,
            status=JobStatus.QUEUED.value,
            request=job.request,
            spec=job.spec,
            simulated=job.simulated,
            metadata_=job.metadata,
            priority=job.priority.value,
            planned_responses=job.planned_responses,
            expected_verdicts=job.expected_verdicts,
        )
    )
    prepared_by = await _insert_preparations(connection, job, preparations, steps)
    if not cells:  # the job only makes up personas
        return
    rows = await connection.execute(
        insert(Cell).returning(Cell.ordinal, Cell.id),
        [
            {"tenant": job.tenant, "job_id": job.id, "ordinal": c.ordinal, "model": c.model}
            | {"persona": c.persona, "task": c.task}
            for c in cells
        ],
    )
    ids = {row.ordinal: row.id for row in rows}
    await connection.execute(
        insert(Shard),
        [
            {"tenant": job.tenant, "job_id": job.id, "cell_id": ids[s.cell], "run_start": s.run_start}
            | {"run_stop": s.run_stop, "planned_responses": s.planned_responses}
            | {"responses_answered": s.responses_answered, "verdicts_due": s.verdicts_due}
            | {"prerequisite_id": None if s.after is None else prepared_by[s.after]}
            | {"planned_exactly": s.planned_exactly}
            for s in shards
        ],
    )
    if responses:
        await connection.execute(
            insert(Response),
            [
                {"tenant": job.tenant, "cell_id": ids[r.cell], "run": r.run, "item": r.item}
                | {"instruction": r.instruction, "status": r.status, "text": r.text}
                | {"unit_starts": list(r.unit_starts), "unit_ends": list(r.unit_ends)}
                | {"verdicts_due": r.verdicts_due}
                for r in responses
            ],
        )


async def _insert_preparations(
    connection: AsyncConnection,
    job: NewJob,
    preparations: Sequence[NewPreparation],
    steps: Sequence[NewStep],
) -> dict[int, int]:
    """The ids of the shards that prepare the personas, by persona."""
    if not preparations:
        return {}
    rows = await connection.execute(
        insert(Shard).returning(Shard.persona, Shard.id),
        [
            {"tenant": job.tenant, "job_id": job.id, "kind": "preparation", "persona": p.persona}
            | {"run_start": 0, "run_stop": 0, "planned_responses": 0, "planned_exactly": p.planned_exactly}
            | {"environments_planned": p.environments, "questions_planned": p.questions}
            | {"exemplars_planned": p.exemplars, "personas_planned": p.personas}
            for p in preparations
        ],
    )
    if steps:
        await connection.execute(
            insert(Preparation),
            [
                {"tenant": job.tenant, "job_id": job.id, "persona": s.persona, "kind": s.kind}
                | {"task": s.task, "item": 0, "ask": 0, "status": "ready", "content": list(s.content)}
                | {"dropped": 0, "error": None}
                for s in steps
            ],
        )
    return {row.persona: row.id for row in rows}
