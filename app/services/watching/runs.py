"""Takes a run further: its anchors' job, then its own, then its figures; each exactly once.

A run's row is locked while a step of it is made. One transaction writes a job and notes it, so that neither is there without the other,
however long nobody looks after a crash.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app import clock
from app.db.health import is_away
from app.db.jobs import listing
from app.db.watching import schedule_runs, schedules
from app.db.watching.schedule_runs import JobState, RunRow
from app.db.watching.schedules import ScheduleRow
from app.db.webhooks import webhooks
from app.domain.errors import InvalidJobError
from app.domain.jobs.request import JobIn
from app.domain.webhooks.webhook import WebhookEvent
from app.services.errors import CallNotAllowedError, SpendingCapError, TooManyJobsError, internal_cause
from app.services.jobs.submit import (
    Submission,
    SubmissionDependencies,
    announce_job,
    check_submission,
    write_job,
)
from app.services.watching.bodies import anchor_job, run_job
from app.services.watching.due import LEAST_USD, USED_UP, told
from app.services.watching.measure import measure

log = structlog.get_logger(__name__)

LONGEST_WAIT = timedelta(hours=12)
"""After so long a run that could not be taken further, for errors of our own, is given up."""
RUN_USED_UP = "the run's budget is used up; the job is paused"
CAP_REACHED = "the spending cap of the API key or the tenant is reached; the job is paused"
REFUSED = (InvalidJobError, SpendingCapError, CallNotAllowedError, TooManyJobsError)
MOST_WORDS = 500

Submitting = Callable[[], SubmissionDependencies]
"""Gives what submitting takes; made when it is first needed, for most services have no schedules."""


class _Wanted(NamedTuple):
    """A job that a run is to submit, and the column that will name it."""

    tenant: str
    column: str
    submission: Submission


@dataclass(frozen=True, slots=True)
class _Step:
    """A locked run with what its next step goes by."""

    connection: AsyncConnection
    schedule: ScheduleRow
    run: RunRow
    states: Mapping[str, JobState]

    def has_ended(self, job_id: str) -> bool:
        """Whether a job does nothing more: it has ended, is gone, or may spend no more."""
        state = self.states.get(job_id)
        return state is None or state.status.is_terminal or state.reason in schedule_runs.UNPAID


async def advance(engine: AsyncEngine, deps: Submitting) -> None:
    """Takes each run a step further that waits for it; one that fails does not keep others from theirs."""
    async with engine.connect() as connection:
        waiting = await schedule_runs.active_runs(connection)
    for run_id in waiting:
        try:
            async with engine.begin() as connection:
                wanted = await _advance_run(connection, run_id)
            if wanted is not None:
                await _submit(engine, deps(), run_id, wanted)
        except Exception as error:
            if is_away(error):
                raise
            log.exception("schedule's run not advanced; trying again", run=run_id)
            await _give_up_late(engine, run_id, error)


async def _locked(connection: AsyncConnection, run_id: str) -> _Step | None:
    run = await schedule_runs.lock_run(connection, run_id)
    if run is None:
        return None
    schedule = await schedules.get_schedule(connection, run.tenant, run.schedule_id)
    if schedule is None:
        return None
    ids = [id_ for id_ in (run.anchor_job_id, run.job_id) if id_ is not None]
    states = await schedule_runs.job_states(connection, run.tenant, ids)
    return _Step(connection, schedule, run, states)


async def _advance_run(connection: AsyncConnection, run_id: str) -> _Wanted | None:
    """Ends a run whose jobs have, or says which job it is to submit."""
    step = await _locked(connection, run_id)
    if step is None:
        return None
    run = step.run
    if run.job_id is not None:
        if step.has_ended(run.job_id):
            await _end(step)
    elif step.schedule.anchors is not None and run.anchor_job_id is None:
        return await _wanted(step, "anchor_job_id")
    elif run.anchor_job_id is None or step.has_ended(run.anchor_job_id):
        return await _wanted(step, "job_id")
    return None


async def _wanted(step: _Step, column: str) -> _Wanted | None:
    try:
        return _Wanted(step.run.tenant, column, await _submission(step, column))
    except InvalidJobError as error:
        await _refused(step, column, error)
        return None


async def _submit(engine: AsyncEngine, deps: SubmissionDependencies, run_id: str, wanted: _Wanted) -> None:
    """Submits a run's job. It is planned without a lock, for a transaction that rests for a minute is ended."""
    try:
        prepared = await check_submission(deps, wanted.tenant, wanted.submission)
    except REFUSED as error:
        async with engine.begin() as connection:
            step = await _locked(connection, run_id)
            if step is not None:
                await _refused(step, wanted.column, error)
        return
    async with engine.begin() as connection:
        step = await _locked(connection, run_id)
        if step is None or getattr(step.run, wanted.column) is not None:
            return  # somebody else was faster
        try:
            async with connection.begin_nested():
                written = await write_job(deps, connection, wanted.tenant, wanted.submission, prepared)
        except REFUSED as error:
            await _refused(step, wanted.column, error)
            return
        await schedule_runs.change_run(
            connection, step.run, **{wanted.column: written.row.id}, state="running"
        )
        if written.row.simulated:
            await schedules.note_simulated(connection, step.schedule)
    await announce_job(deps.queue, written)


async def _refused(step: _Step, column: str, error: Exception) -> None:
    await _fail(step, f"the {'anchors' if column == 'anchor_job_id' else 'job'}: {error}"[:MOST_WORDS])


async def _submission(step: _Step, column: str) -> Submission:
    schedule, tenant = step.schedule, step.run.tenant
    most = await _left(step)
    wanted: JobIn
    sent: dict[str, Any]
    if column == "anchor_job_id" and schedule.anchors is not None:
        wanted, sent = anchor_job(schedule.job, schedule.anchors, most)
    else:
        wanted, sent = run_job(schedule.job, most)
    capped = None
    if schedule.key_id is not None and await schedules.is_capped(step.connection, tenant, schedule.key_id):
        capped = schedule.key_id
    name = wanted.name or schedule.name or schedule.id
    return Submission(wanted, sent, name, capped_key=capped)


async def _left(step: _Step) -> float | None:
    """What the run's next job may spend, in US dollars; ``None`` for no limit."""
    schedule = step.schedule
    taken = await _taken(step)
    limits = []
    if schedule.run_usd is not None:
        limits.append(schedule.run_usd - (taken or 0.0))
    if schedule.total_usd is not None:
        spent = await schedules.spent(step.connection, schedule.tenant, [schedule.id])
        limits.append(schedule.total_usd - spent[schedule.id] - (taken or 0.0))
    return max(LEAST_USD, min(limits)) if limits else None


async def _taken(step: _Step) -> float | None:
    """What the run's jobs have cost; ``None`` where nothing is known."""
    ids = [id_ for id_ in (step.run.anchor_job_id, step.run.job_id) if id_ is not None]
    taken = await listing.taken(step.connection, step.run.tenant, ids) if ids else {}
    known = [each.usd for each in taken.values() if each.usd is not None]
    return sum(known) if known else None


async def _end(step: _Step) -> None:
    """Keeps a run's figures, and what they say."""
    run = step.run
    usd = await _taken(step)
    if run.job_id is None or (reason := _why_none(step, run.job_id)) is not None:
        if reason == RUN_USED_UP and await _took_all_that_was_left(step):
            await schedules.pause(step.connection, step.schedule, "budget_used_up")
            reason = f"{USED_UP}; the job is paused"
        await _fail(step, reason or "", usd=usd)
        return
    found = await measure(step.connection, step.schedule, run, run.job_id)
    if found.watched is None:
        await _fail(step, found.reason or "the job has no such value", usd=usd)
        return
    await schedule_runs.change_run(
        step.connection, run, **found.columns(), state="measured", usd=usd, ended_at=clock.now()
    )
    for alarm in found.alarms:
        data = told(step.schedule, run.id, run.due) | {"figure": step.schedule.figure, "alarm": alarm}
        data["links"] = {**data["links"], "job": f"/v1/jobs/{run.job_id}"}  # type: ignore[dict-item] # it is one
        await webhooks.note_event(step.connection, run.tenant, WebhookEvent.DRIFT_DETECTED, run.job_id, data)


async def _took_all_that_was_left(step: _Step) -> bool:
    """Whether it was what all runs together may spend that was too little for this one: the next one could not even begin."""
    schedule, of_job = step.schedule, step.schedule.job.get("budget") or {}
    if schedule.total_usd is None or not of_job.keys() <= {"usd"}:
        return False
    spent = await schedules.spent(step.connection, schedule.tenant, [schedule.id])
    others = [limit for limit in (schedule.run_usd, of_job.get("usd")) if limit is not None]
    return all(schedule.total_usd - spent[schedule.id] <= limit for limit in others)


def _why_none(step: _Step, job_id: str) -> str | None:
    """Why an ended job has no figures; ``None`` if it may have some."""
    state = step.states.get(job_id)
    if state is None:
        return "the job was deleted before it was read"
    if not state.status.is_terminal:
        return CAP_REACHED if state.reason == "spending_cap_reached" else RUN_USED_UP
    if state.status.value in {"failed", "cancelled"}:
        return f"the job is {state.status.value}" + (f": {state.reason}" if state.reason else "")
    return None


async def _fail(step: _Step, reason: str, *, usd: float | None = None) -> None:
    run = step.run
    if usd is None:
        usd = await _taken(step)
    await schedule_runs.change_run(
        step.connection, run, state="failed", reason=reason, usd=usd, ended_at=clock.now()
    )
    data = told(step.schedule, run.id, run.due) | {"reason": reason}
    await webhooks.note_event(step.connection, run.tenant, WebhookEvent.RUN_FAILED, run.job_id, data)


async def _give_up_late(engine: AsyncEngine, run_id: str, error: Exception) -> None:
    """Ends a run that could not be taken further for hours, by an error of ours: while it has not ended, all later ones are skipped."""
    async with engine.begin() as connection:
        run = await schedule_runs.lock_run(connection, run_id)
        if run is None or clock.now() - run.due < LONGEST_WAIT:
            return
        schedule = await schedules.get_schedule(connection, run.tenant, run.schedule_id)
        if schedule is not None:
            step = _Step(connection, schedule, run, {})
            await _fail(step, f"an internal error: {internal_cause(error)}")
