"""Cancels, pauses, resumes, retries and deletes jobs, and changes their budgets. Each may be asked for any number of times."""

import asyncio
from dataclasses import dataclass, field

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.batches import batches
from app.db.execution import shards
from app.db.jobs import budgets, jobs, named_baselines, retention
from app.db.jobs.jobs import JobRow
from app.db.jobs.retries import can_reopen, reopen_failed
from app.db.keys import tenant_limits
from app.domain.errors import FieldError, InvalidJobError
from app.domain.jobs.budget import NO_LIMITS, UNITS, Budget
from app.domain.jobs.request import JobChangeIn
from app.domain.jobs.specification import decode_spec
from app.domain.jobs.status import ACTIVE, ENDING, RESUMABLE, RETRIABLE, JobStatus
from app.domain.jobs.verdicts_request import imported_judges
from app.ports import Queue
from app.services.errors import NotFoundError, NotUnderCapError, WrongStateError
from app.services.execution.retries import PROVIDER_UNREACHABLE
from app.services.execution.stop_signal import FRESH_SECONDS
from app.services.execution.stopping import settle
from app.services.jobs.listing import note_results
from app.services.jobs.retention import remove_job
from app.services.keys.tenant_limits import refuse_many_jobs
from app.services.providers.call_rules import CallRules
from app.services.tenant_turns import TenantTurns

CANCELLED_BY_USER = "cancelled_by_user"
PAUSED_BY_USER = "paused_by_user"

NOTICE_SECONDS = FRESH_SECONDS + 0.25
"""A worker starts calls for so long after a job was stopped, at most: what it may not have seen, and a margin."""
NOTICE_CHECK_SECONDS = 0.05


CHANGES_AT_A_TIME = 4
"""Jobs that a process cancels at a time, and retries or deletes at a time; each holds a connection, a large job's for seconds."""


@dataclass(frozen=True, slots=True)
class ControlDependencies:
    """Dependencies of changes to jobs."""

    engine: AsyncEngine
    queue: Queue
    window: int
    call_rules: CallRules
    max_unfinished_jobs: int
    cancellations: TenantTurns = field(default_factory=lambda: TenantTurns(CHANGES_AT_A_TIME))
    rewrites: TenantTurns = field(default_factory=lambda: TenantTurns(CHANGES_AT_A_TIME))


async def check_spender(deps: ControlDependencies, tenant: str, job_id: str, capped_key: str | None) -> None:
    """Let a job spend more only where its spending counts against the caps of the API key and the tenant.

    A job's payers never change, so the next step may rely on the check.

    Args:
        deps: What it takes.
        tenant: Whose job it is.
        job_id: The job that is to spend more.
        capped_key: The API key of the request, if it has a spending cap.

    Raises:
        NotFoundError: If the tenant has no such job.
        NotUnderCapError: If the job's spending does not count against the cap of that key, or of the tenant.
    """
    async with deps.engine.connect() as connection:
        limits = await tenant_limits.read_limits(connection, tenant)
        if capped_key is None and limits is None:
            return
        if await jobs.get_job(connection, tenant, job_id) is None:
            raise NotFoundError(f"job {job_id} not found")
        payers = await budgets.payers_of(connection, tenant, job_id)
    if capped_key is not None and payers.key_id != capped_key:
        raise NotUnderCapError(
            "this job's spending does not count against the API key's spending cap:"
            " use the key that submitted it, or one without a cap"
        )
    if limits is not None and limits.nanos_limit is not None and payers.tenant is None:
        raise NotUnderCapError(
            "this job was submitted before the tenant's spending cap was set and does not count against it:"
            " submit it again"
        )


async def _check_calls(
    deps: ControlDependencies, connection: AsyncConnection, tenant: str, job_id: str
) -> None:
    spec = await jobs.get_spec(connection, tenant, job_id)
    if spec is not None:
        await deps.call_rules.check(connection, tenant, job_id, decode_spec(spec))


async def cancel_job(deps: ControlDependencies, tenant: str, job_id: str) -> JobRow:
    """Cancel a job: no call starts after it; what was paid for is kept and reported. A finished job stays as it is.

    A job that already ends, and waits for its batches, gives them up at once.

    A job that never started ends at once; any other ends with the finalization of its results.

    Raises:
        NotFoundError: If the tenant has no such job.
    """
    await _get(deps, tenant, job_id)
    async with deps.cancellations.of(tenant), deps.engine.begin() as connection:
        moved = await jobs.move(
            connection,
            job_id,
            to=JobStatus.CANCELLING,
            reason=CANCELLED_BY_USER,
            tenant=tenant,
        )
        status = await jobs.lock_job(connection, job_id, tenant=tenant)
        if status in ENDING:
            await batches.give_up(connection, job_id, batches.GIVE_UP_SECONDS if moved else 0)
        await batches.hasten(connection, job_id)
        settled = status is JobStatus.CANCELLING and await settle(connection, job_id, status)
        ended = settled and not await jobs.has_started(connection, job_id)
        if ended:  # without results to compute
            await shards.bar(connection, job_id)
            await jobs.move(connection, job_id, to=JobStatus.CANCELLED, reason=CANCELLED_BY_USER)
            await note_results(connection, tenant, job_id, [], [])
    await _let_workers_notice(deps, job_id)
    if settled and not ended:
        await deps.queue.announce_finalize(job_id)
    return await _get(deps, tenant, job_id)


async def pause_job(deps: ControlDependencies, tenant: str, job_id: str) -> JobRow:
    """Pauses a job: no call starts until it is resumed. One that waits for its provider's server is not resumed by itself then.

    Raises:
        NotFoundError: If the tenant has no such job.
        WrongStateError: If the job can't be paused any more.
    """
    await _get(deps, tenant, job_id)
    async with deps.engine.begin() as connection:
        await jobs.move(connection, job_id, to=JobStatus.PAUSED, reason=PAUSED_BY_USER, tenant=tenant)
        await jobs.keep_paused(connection, job_id, PROVIDER_UNREACHABLE, PAUSED_BY_USER, tenant)
    await _let_workers_notice(deps, job_id)
    job = await _get(deps, tenant, job_id)
    if job.status is not JobStatus.PAUSED:
        raise WrongStateError(f"a job that is {job.status} can't be paused", job.status)
    return job


async def resume_job(deps: ControlDependencies, tenant: str, job_id: str) -> JobRow:
    """Lets a paused job go on where it stopped. The first calls that failed all alike, and stopped it, are made again.

    Raises:
        CallNotAllowedError: If one of its calls is not allowed today.
        NotFoundError: If the tenant has no such job.
        WrongStateError: If the job has ended or is being cancelled, or stopped at its first calls some of which are still on the wire.
    """
    if "first_calls" in ((await _get(deps, tenant, job_id)).error or {}):
        retried = await retry_job(deps, tenant, job_id)
        if retried.status not in RESUMABLE:
            return retried
    async with deps.engine.begin() as connection:
        moved = await jobs.move(connection, job_id, leave=[*RESUMABLE], to=JobStatus.QUEUED, tenant=tenant)
        if moved:
            await _check_calls(deps, connection, tenant, job_id)
        announced = await _announce(connection, job_id, deps.window) if moved else []
    await deps.queue.announce_shards(announced)
    job = await _get(deps, tenant, job_id)
    if not job.status.may_call and not moved:
        raise WrongStateError(f"a job that is {job.status} can't be resumed", job.status)
    return job


async def queue_again(connection: AsyncConnection, job_id: str, window: int) -> list[int]:
    """Resumes a paused job that the caller has locked; returns the shards to announce."""
    await jobs.move(connection, job_id, leave=[*RESUMABLE], to=JobStatus.QUEUED)
    return await _announce(connection, job_id, window)


async def _announce(connection: AsyncConnection, job_id: str, window: int) -> list[int]:
    """The shards to announce of a job that goes on."""
    await shards.withdraw(connection, job_id)
    announced = await shards.refill(connection, job_id, window)
    await batches.hasten(connection, job_id)
    return announced


async def retry_job(deps: ControlDependencies, tenant: str, job_id: str) -> JobRow:
    """Redoes what failed, stayed unparsed or has no answer in a job that is over or paused, and keeps all the rest.

    A job that is at work stays as it is, as does one in which nothing failed. What a failed job never came to is
    done as well.

    Raises:
        CallNotAllowedError: If one of its calls is not allowed today.
        TooManyJobsError: If the tenant has too many unfinished jobs.
        NotFoundError: If the tenant has no such job.
        WrongStateError: If it was cancelled, is just ending, or is paused with calls still on the wire; or if it is over and lacks
            something, but nothing that could be asked for again.
    """
    job = await _get(deps, tenant, job_id)
    announced: list[int] = []
    async with deps.rewrites.of(tenant), deps.engine.begin() as connection:
        if job.status.is_terminal:  # before the job's row is locked, as submissions do
            await refuse_many_jobs(connection, tenant, deps.max_unfinished_jobs)
        status = await jobs.lock_job(connection, job_id, tenant=tenant)
        if status in RETRIABLE:
            announced = await _reopen(deps, connection, tenant, job_id, status)
    if status is not None and status not in {*RETRIABLE, *ACTIVE}:
        raise WrongStateError(f"a job that is {status} can't be retried", status)
    await deps.queue.announce_shards(announced)
    return await _get(deps, tenant, job_id)


async def _reopen(
    deps: ControlDependencies, connection: AsyncConnection, tenant: str, job_id: str, status: JobStatus
) -> list[int]:
    """The shards to announce of a locked job, after its failures have been opened again."""
    _, leased = await jobs.open_work(connection, job_id)
    if leased:
        raise WrongStateError("calls of the job are still in progress; retry it when they have ended", status)
    # A frozen owner's token may still be good; nobody may write between here and the commit.
    await shards.bar(connection, job_id)
    if not await reopen_failed(connection, job_id, unfinished=status is JobStatus.FAILED):
        job = await jobs.get_job(connection, tenant, job_id)
        if job is not None and status.is_terminal and job.completeness == "partial":
            raise WrongStateError(_nothing_to_retry(job), status)
        return []
    await _check_calls(deps, connection, tenant, job_id)
    await jobs.forget_result(connection, job_id)
    await jobs.move(connection, job_id, leave=[status], to=JobStatus.QUEUED)
    await batches.hasten(connection, job_id)
    return await shards.refill(connection, job_id, deps.window)


def _nothing_to_retry(job: JobRow) -> str:
    said = "nothing in this job can be retried: none of its calls failed, stayed unparsed or lacks an answer"
    if imported_judges(job.request):
        return f"{said}; verdicts that imported judges did not give can't be asked for"
    return said


async def is_retriable(engine: AsyncEngine, job_id: str, status: JobStatus) -> bool:
    """Whether a retry of a job, of the caller's tenant, would find anything to do."""
    if status not in RETRIABLE:
        return False
    async with engine.connect() as connection:
        return await can_reopen(connection, job_id, unfinished=status is JobStatus.FAILED)


async def change_budget(deps: ControlDependencies, tenant: str, job_id: str, budget: Budget) -> None:
    """Changes limits of a job's budget, in whatever state it is; those that are not given stay.

    Raises:
        NotFoundError: If the tenant has no such job.
        WrongStateError: If the job has no budget.
        InvalidJobError: If it has no limit of a kind that is given: its calls were not checked against one. An imported job
            takes all: its calls were counted when it was imported.
    """
    job = await _get(deps, tenant, job_id)
    counted = job.imported_from is not None
    async with deps.engine.begin() as connection:
        had = await budgets.change_limits(connection, tenant, job_id, budget)
        if had is None or (had == NO_LIMITS and not counted):
            raise WrongStateError("the job was submitted without a budget", job.status)
        unknown = [
            FieldError(f"/budget/{kind}", "the job was submitted without such a limit")
            for kind, unit in UNITS.items()
            if not counted and getattr(had, unit) is None and getattr(budget, kind) is not None
        ]
        if unknown:
            raise InvalidJobError(unknown)


async def change_job(deps: ControlDependencies, tenant: str, job_id: str, change: JobChangeIn) -> None:
    """Changes what people keep of a job: its name, tags and notes, and whether it is archived.

    Raises:
        NotFoundError: If the tenant has no such job.
    """
    changes = change.model_dump(exclude_unset=True, include={"name", "tags", "notes"})
    archived = change.archived if "archived" in change.model_fields_set else None
    async with deps.engine.begin() as connection:
        if not await jobs.change_job(connection, tenant, job_id, changes, archived=archived):
            raise NotFoundError(f"job {job_id} not found")


async def delete_job(deps: ControlDependencies, tenant: str, job_id: str) -> None:
    """Deletes a finished job with everything that belongs to it, and the sets that nobody else has to do with.

    Raises:
        NotFoundError: If the tenant has no such job.
        WrongStateError: If the job has not ended, is a baseline, or a schedule's runs judge its texts.
    """
    async with deps.rewrites.of(tenant), deps.engine.begin() as connection:
        await jobs.lock_job(connection, job_id, tenant=tenant)
        job = await jobs.get_job(connection, tenant, job_id)
        if job is None:
            raise NotFoundError(f"job {job_id} not found")
        if not job.status.is_terminal:
            raise WrongStateError(f"a job that is {job.status} can't be deleted; cancel it first", job.status)
        named = await named_baselines.names_of_job(connection, tenant, job_id)
        if named:
            message = f"the job is the baseline {', '.join(named)}; delete that baseline first"
            raise WrongStateError(message, job.status)
        judging = await retention.schedules_judging(connection, tenant, job_id)
        if judging:
            message = f"the schedule {', '.join(judging)} judges the job's texts; delete that schedule first"
            raise WrongStateError(message, job.status)
        await remove_job(connection, tenant, job_id)


async def _let_workers_notice(deps: ControlDependencies, job_id: str) -> None:
    """Waits until no worker can start a call of a stopped job: all have given its shards back, or know too little."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + NOTICE_SECONDS
    while loop.time() < deadline:
        async with deps.engine.connect() as connection:
            _, leased = await jobs.open_work(connection, job_id)
        if not leased:
            return
        await asyncio.sleep(NOTICE_CHECK_SECONDS)


async def _get(deps: ControlDependencies, tenant: str, job_id: str) -> JobRow:
    async with deps.engine.connect() as connection:
        job = await jobs.get_job(connection, tenant, job_id)
    if job is None:
        raise NotFoundError(f"job {job_id} not found")
    return job
