"""Schedules: create, list, change, delete; and their runs."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app import clock
from app.db.jobs import idempotency, jobs
from app.db.locks import lock
from app.db.watching import schedule_runs, schedules
from app.db.watching.schedule_runs import RunRow
from app.db.watching.schedules import ScheduleRow
from app.domain.errors import FieldError, InvalidJobError
from app.domain.jobs.plan import AtomicCell, Cell, GymCell, atomic
from app.domain.jobs.request import JobIn
from app.domain.results.gate import NAMES_SHOWN, PERSONA_SCORE, Threshold
from app.domain.suggestion import some_of
from app.domain.watching import contract
from app.domain.watching.contract import AnchorsIn, ScheduleBudgetIn, ScheduleChangeIn, ScheduleIn
from app.domain.watching.cron import next_due
from app.domain.watching.figure import figure_of
from app.services.errors import IdempotencyConflictError, NotFoundError
from app.services.idempotency import ClientKey
from app.services.identifiers import new_id
from app.services.jobs.submit import PreparedJob, Submission, SubmissionDependencies, check_submission
from app.services.jobs.view import find_job
from app.services.watching.bodies import anchor_job, run_job

MOST_SCHEDULES = 50
"""Of one tenant."""
BY_USER = "by_user"


async def create_schedule(
    deps: SubmissionDependencies,
    tenant: str,
    wanted: ScheduleIn,
    job: Mapping[str, Any],
    of_job: JobIn,
    key_id: str | None,
    client_key: ClientKey | None = None,
) -> contract.Schedule:
    """Keeps a schedule whose job could be run now; or finds the one that the same request made meanwhile.

    Args:
        deps: What planning its job takes.
        tenant: Whose it is.
        wanted: The request.
        job: The body of its job.
        of_job: The same, validated.
        key_id: The API key that was shown.
        client_key: The client's key for this request, if it gave one.

    Raises:
        IdempotencyConflictError: If that key came with another body within the last day.
        InvalidJobError: If the job or its anchors can't be run, the figure would not be there, or there are too many schedules.
    """
    prepared = await _planned(deps, tenant, of_job, job, "/job" if wanted.clone is None else "/clone")
    await _check_budget(deps, tenant, job, wanted.budget)
    figure = _figure(wanted.figure, prepared)
    body = {**job, "versions": _versions(prepared)}
    if wanted.anchors is not None:
        await _check_anchors(deps, tenant, body, wanted.anchors, figure_of(figure))
    schedule_id = new_id("sched")
    async with deps.engine.begin() as connection:
        await lock(connection, f"schedules of {tenant}")
        made = None if client_key is None else await client_key.made_before(connection, tenant)
        if made is not None:
            return await _made(connection, tenant, made)
        if await schedules.count_schedules(connection, tenant) >= MOST_SCHEDULES:
            raise InvalidJobError([FieldError("", f"limit of {MOST_SCHEDULES} schedules reached")])
        await _keep_sources(connection, tenant, wanted, body)
        await schedules.insert_schedule(
            connection,
            {
                "id": schedule_id,
                "tenant": tenant,
                "name": wanted.name,
                "cron": wanted.cron,
                "time_zone": wanted.time_zone,
                "job": body,
                "figure": figure,
                "anchors": None if wanted.anchors is None else wanted.anchors.model_dump(),
                **_limits(wanted.budget),
                "key_id": key_id,
                **_due(wanted.cron, wanted.time_zone, paused=wanted.paused),
            },
        )
        if client_key is not None:
            held = await idempotency.claim_key(
                connection, tenant, client_key.key, client_key.body_hash, schedule_id=schedule_id
            )
            if held is not None:
                raise IdempotencyConflictError  # something else took it meanwhile
    return await find_schedule(deps.engine, tenant, schedule_id)


async def _keep_sources(
    connection: AsyncConnection, tenant: str, wanted: ScheduleIn, job: Mapping[str, Any]
) -> None:
    """Locks the jobs whose texts the runs judge, so that whoever deletes one at this moment sees the schedule."""
    sources = {} if wanted.anchors is None else {wanted.anchors.job: "/anchors/job"}
    if "job" in (job.get("responses") or {}):
        sources[job["responses"]["job"]] = "/job/responses/job" if wanted.clone is None else "/clone"
    for source, pointer in sorted(sources.items()):
        if await jobs.lock_job(connection, source, tenant=tenant) is None:
            raise InvalidJobError([FieldError(pointer, f"job {source} not found")])


async def made_schedule(engine: AsyncEngine, tenant: str, client_key: ClientKey) -> contract.Schedule | None:
    """The schedule that the same request made within the last day, if it did.

    Raises:
        IdempotencyConflictError: If the key came with another body, or for something else.
    """
    async with engine.connect() as connection:
        made = await client_key.made_before(connection, tenant)
        return None if made is None else await _made(connection, tenant, made)


async def _made(connection: AsyncConnection, tenant: str, schedule_id: str) -> contract.Schedule:
    found = await _read(connection, tenant, schedule_id)
    if found is None:
        raise IdempotencyConflictError
    return found


async def _planned(
    deps: SubmissionDependencies, tenant: str, wanted: JobIn, body: Mapping[str, Any], pointer: str
) -> PreparedJob:
    """The job as it would be run now; nothing is stored."""
    if isinstance(wanted.responses, list):
        message = "a schedule keeps no texts: submit them as a job once, and name that job as their source"
        raise InvalidJobError([FieldError(f"{pointer}/responses", message)])
    try:
        return await check_submission(deps, tenant, Submission(wanted, body, wanted.name))
    except InvalidJobError as error:
        raise InvalidJobError(
            [FieldError(f"{pointer}{each.pointer}", each.message) for each in error.errors]
        ) from error


async def _check_budget(
    deps: SubmissionDependencies, tenant: str, job: Mapping[str, Any], budget: ScheduleBudgetIn | None
) -> None:
    """Refuses limits that no run could keep, because a price is not known."""
    limits = [limit for limit in _limits(budget).values() if limit is not None]
    if not limits:
        return
    limited, sent = run_job(job, min(limits))
    try:
        await check_submission(deps, tenant, Submission(limited, sent, limited.name))
    except InvalidJobError as error:
        raise InvalidJobError([FieldError("/budget", each.message) for each in error.errors]) from error


def _figure(wanted: str | None, prepared: PreparedJob) -> str:
    """The figure that is watched, of which the job will have exactly one."""
    spec, cells = prepared.resolution.spec, prepared.resolution.cells
    text = wanted or ("acc_atom" if atomic(cells) else PERSONA_SCORE)
    figure = figure_of(text)
    _check_place(figure, cells, "/figure", "the job")
    labels = sorted({spec.models[cell.model].label for cell in cells})
    model = figure.where.get("model")
    if model is None and len(labels) > 1:
        message = f"the job has several models; add @model=, one of {', '.join(labels)}"
        raise InvalidJobError([FieldError("/figure", message)])
    if model is not None and model not in labels:
        raise InvalidJobError(
            [FieldError("/figure", f"the job has no model {model!r}, only {', '.join(labels)}")]
        )
    return text


def _check_place(figure: Threshold, cells: Sequence[Cell], pointer: str, whose: str) -> None:
    """Refuses a figure of a metric, task, level, dimension or persona that no run will have."""
    places = [place for cell in cells if not cell.control for place in _places(figure, cell)]
    if not places:
        raise InvalidJobError([FieldError(pointer, f"{whose} has no {figure.metric}")])
    wanted = {key: value for key, value in figure.where.items() if key != "model"}
    if any(wanted.items() <= place.items() for place in places):
        return
    for key, value in wanted.items():
        known = sorted({place[key] for place in places})
        if value not in known:
            message = f"{whose} has no {key} {value!r}, only {some_of(known, NAMES_SHOWN)}"
            raise InvalidJobError([FieldError(pointer, message)])
    together = ", ".join(f"{key} {value!r}" for key, value in wanted.items())
    raise InvalidJobError([FieldError(pointer, f"{whose} has no {together} together")])


def _places(figure: Threshold, cell: Cell) -> list[dict[str, str]]:
    """What results will have of a planned cell for a figure, by the keys that this may name."""
    place = {"task": cell.task.id, "persona": cell.persona.id}
    if figure.metric == PERSONA_SCORE:
        return [place] if isinstance(cell, GymCell) else []
    if not isinstance(cell, AtomicCell):
        return []
    return [{**place, "dimension": trait.dimension, "level": trait.level} for trait in cell.persona.traits]


def _versions(prepared: PreparedJob) -> dict[str, str]:
    """The rules by which texts are read: the same in each run, whatever a release brings."""
    instrument = prepared.resolution.spec.instrument
    return {name: getattr(instrument, name) for name in ("segmenter", "refusals", "injections")}


async def _check_anchors(
    deps: SubmissionDependencies,
    tenant: str,
    body: Mapping[str, Any],
    anchors: AnchorsIn,
    figure: Threshold,
) -> None:
    try:
        await find_job(deps.engine, tenant, anchors.job)
    except NotFoundError as error:
        raise InvalidJobError([FieldError("/anchors/job", str(error))]) from error
    try:
        wanted, sent = anchor_job(body, anchors.model_dump(), None)
        prepared = await check_submission(deps, tenant, Submission(wanted, sent, wanted.name))
    except InvalidJobError as error:
        raise InvalidJobError(
            [
                FieldError(f"/anchors{each.pointer.removeprefix('/responses')}", each.message)
                for each in error.errors
            ]
        ) from error
    _check_place(figure, prepared.resolution.cells, "/anchors/job", "the anchors' job")


def _limits(budget: ScheduleBudgetIn | None) -> dict[str, float | None]:
    return {
        "run_usd": None if budget is None else budget.run_usd,
        "total_usd": None if budget is None else budget.total_usd,
    }


def _due(cron: str, zone: str, *, paused: bool) -> dict[str, Any]:
    return {
        "paused_reason": BY_USER if paused else None,
        "next_due": None if paused else next_due(cron, zone, clock.now()),
        "put_off_until": None,
    }


async def change_schedule(
    deps: SubmissionDependencies,
    tenant: str,
    schedule_id: str,
    changes: ScheduleChangeIn,
    key_id: str | None,
) -> contract.Schedule:
    """Changes a schedule; what is not named stays.

    Raises:
        InvalidJobError: If a limit could not be kept.
        NotFoundError: If the tenant has none of that id.
    """
    named, engine = changes.model_fields_set, deps.engine
    if changes.budget is not None:
        job = (await find_schedule(engine, tenant, schedule_id)).job
        await _check_budget(deps, tenant, job, changes.budget)
    async with engine.begin() as connection:
        found = await schedules.get_schedule(connection, tenant, schedule_id, lock=True)
        if found is None:
            raise NotFoundError("schedule not found")
        values: dict[str, Any] = {"key_id": key_id}
        values |= {name: getattr(changes, name) for name in named & {"name", "cron", "time_zone"}}
        if "budget" in named:
            values |= _limits(changes.budget)
        if named & {"cron", "time_zone", "paused"}:
            paused = changes.paused if "paused" in named else found.paused_reason is not None
            kept = {} if "paused" in named or not paused else {"paused_reason": found.paused_reason}
            values |= _due(
                values.get("cron", found.cron), values.get("time_zone", found.time_zone), paused=paused
            )
            values |= kept
        await schedules.change_schedule(connection, tenant, schedule_id, values)
    return await find_schedule(engine, tenant, schedule_id)


async def delete_schedule(engine: AsyncEngine, tenant: str, schedule_id: str) -> None:
    """Removes a schedule with its runs; their jobs stay.

    Raises:
        NotFoundError: If the tenant has none of that id.
    """
    async with engine.begin() as connection:
        if not await schedules.delete_schedule(connection, tenant, schedule_id):
            raise NotFoundError("schedule not found")


async def find_schedule(engine: AsyncEngine, tenant: str, schedule_id: str) -> contract.Schedule:
    """A schedule.

    Raises:
        NotFoundError: If the tenant has none of that id.
    """
    async with engine.connect() as connection:
        found = await _read(connection, tenant, schedule_id)
    if found is None:
        raise NotFoundError("schedule not found")
    return found


async def _read(connection: AsyncConnection, tenant: str, schedule_id: str) -> contract.Schedule | None:
    row = await schedules.get_schedule(connection, tenant, schedule_id)
    return None if row is None else (await _with_runs(connection, tenant, [row]))[0]


async def list_schedules(
    engine: AsyncEngine, tenant: str, *, limit: int, after: tuple[datetime, str] | None = None
) -> list[contract.Schedule]:
    """A tenant's schedules, newest first."""
    async with engine.connect() as connection:
        rows = await schedules.list_schedules(connection, tenant, limit=limit, after=after)
        return await _with_runs(connection, tenant, rows)


async def _with_runs(
    connection: AsyncConnection, tenant: str, rows: Sequence[ScheduleRow]
) -> list[contract.Schedule]:
    ids = [row.id for row in rows]
    last = await schedule_runs.last_runs(connection, tenant, ids)
    spent = await schedules.spent(connection, tenant, ids)
    # One that was deleted after its row was read has neither.
    return [_shown(row, spent.get(row.id, 0.0), last.get(row.id)) for row in rows]


async def list_runs(
    engine: AsyncEngine,
    tenant: str,
    schedule_id: str,
    *,
    limit: int,
    after: tuple[datetime, str] | None = None,
) -> Sequence[contract.ScheduleRun]:
    """A schedule's runs, newest first.

    Raises:
        NotFoundError: If the tenant has no such schedule.
    """
    async with engine.connect() as connection:
        if await schedules.get_schedule(connection, tenant, schedule_id) is None:
            raise NotFoundError("schedule not found")
        found = await schedule_runs.list_runs(connection, tenant, schedule_id, limit=limit, after=after)
    return [shown_run(row) for row in found]


def _shown(row: ScheduleRow, spent: float, last: RunRow | None) -> contract.Schedule:
    return contract.Schedule(
        id=row.id,
        name=row.name,
        cron=row.cron,
        time_zone=row.time_zone,
        job=row.job,
        figure=row.figure,
        anchors=None if row.anchors is None else AnchorsIn.model_validate(row.anchors),
        budget=contract.ScheduleBudget(run_usd=row.run_usd, total_usd=row.total_usd, spent_usd=spent),
        paused=row.paused_reason is not None,
        paused_reason=row.paused_reason,
        next_due=row.next_due,
        last_run=None if last is None else shown_run(last),
        simulated=row.simulated,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def shown_run(row: RunRow) -> contract.ScheduleRun:
    """A run as clients see it."""
    return contract.ScheduleRun(
        id=row.id,
        schedule=row.schedule_id,
        due=row.due,
        state=row.state,
        reason=row.reason,
        missed=row.missed,
        job=row.job_id,
        anchor_job=row.anchor_job_id,
        value=row.value,
        n=row.n,
        left_out=row.left_out,
        coverage=row.coverage,
        limits=_pair(row.low, row.high),
        anchor_value=row.anchor,
        anchor_n=row.anchor_n,
        anchor_left_out=row.anchor_left_out,
        anchor_coverage=row.anchor_coverage,
        anchor_limits=_pair(row.anchor_low, row.anchor_high),
        alarms=[contract.Alarm.model_validate(alarm) for alarm in row.alarms],
        usd=row.usd,
        ended_at=row.ended_at,
    )


def _pair(low: float | None, high: float | None) -> tuple[float, float] | None:
    return None if low is None or high is None else (low, high)
