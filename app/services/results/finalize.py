"""Ends a job: computes its results once, from the rows, and moves it to its last state."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.batches import batches
from app.db.engine import single_statements
from app.db.execution import failures, shard_counts, shards, stored_rows
from app.db.execution.failures import UselessRow
from app.db.health import is_away
from app.db.jobs import jobs, preparations
from app.db.jobs.jobs import JobRow
from app.db.jobs.retries import count_reopenings
from app.domain.jobs.contract import JobError
from app.domain.jobs.specification import JobSpec
from app.domain.jobs.status import ACTIVE, ENDING, JobStatus
from app.domain.personagym.replies import beginning
from app.domain.providers.model import Stage
from app.services.execution.retries import JobMustStopError
from app.services.execution.stopping import INTERNAL_ERROR, internal_error, settle, stop_error
from app.services.job_context import JobContexts
from app.services.jobs.listing import note_results
from app.services.results.compute import compute_results
from app.services.sets.freeze import freeze_ending

log = structlog.get_logger(__name__)

NOTHING_SUCCEEDED = "no_call_succeeded"
NO_TEXT, NO_SCORE = "no_usable_text", "no_score"
NO_PREPARATION = "preparation_failed"
_BEFORE_TEXTS = (Stage.ENVIRONMENTS, Stage.QUESTIONS)
_BEFORE_GRADES = (*_BEFORE_TEXTS, Stage.EXEMPLARS)

MAX_FINALIZATIONS = 5
"""After so many errors of ours the job ends without stored results instead of being tried for ever."""

TELL_SECONDS = 0.3
"""So often a process that computes results says so; a full worker that looks for jobs to finalize waits a second."""


async def finalize_job(engine: AsyncEngine, contexts: JobContexts, job_id: str) -> None:
    """Finalizes a job whose work is over; does nothing to any other. Safe to run twice, also at once.

    Raises:
        Exception: If the database is away; the sweeper has it tried again.
    """
    try:
        await _finalize(engine, contexts, job_id)
    except Exception as error:
        if is_away(error):
            raise
        log.exception("finalization failed", job=job_id)
        await _count_failure(engine, job_id, error)


async def _count_failure(engine: AsyncEngine, job_id: str, error: Exception) -> None:
    """Ends a job that can't be finalized; everything that was recorded stays."""
    async with engine.begin() as connection:
        status = await jobs.lock_job(connection, job_id)
        tenant = await jobs.tenant_of_unended(connection, job_id)
        if tenant is None or await jobs.count_failed_finalization(connection, job_id) < MAX_FINALIZATIONS:
            return
        if status not in {*ACTIVE, *ENDING} or not await settle(connection, job_id, status):
            return
        await shards.bar(connection, job_id)
        to = JobStatus.CANCELLED if status is JobStatus.CANCELLING else JobStatus.FAILED
        await jobs.move(connection, job_id, to=to, reason=INTERNAL_ERROR, error=internal_error(error))
        await note_results(connection, tenant, job_id, [], [])


async def _finalize(engine: AsyncEngine, contexts: JobContexts, job_id: str) -> None:
    """Bars and looks, computes, and ends: no lock and no transaction is held while results are computed."""
    async with single_statements(engine) as connection:
        tenant = await jobs.tenant_of_unended(connection, job_id)
    if tenant is None:
        return
    context = await contexts.get(tenant, job_id)
    if not await freeze_ending(engine, tenant, job_id, context.spec):
        return
    async with engine.begin() as connection:
        job = await _ready(connection, job_id)
        if job is None:
            return
        await shards.bar(connection, job_id)  # what is read from now on is all that there will be
        await batches.forget_waiting(connection, job_id)
        if job.status is JobStatus.CANCELLING:
            await stored_rows.forget_unread_replies_of_job(connection, job_id)
        await shard_counts.refresh_usage(connection, job_id)
        reopenings = await count_reopenings(connection, job.tenant, job_id)
        await jobs.finalization_goes_on(connection, job_id)
    async with _known_to_be_at_work(engine, job_id):
        computed = await compute_results(engine, job, context)
    async with engine.begin() as connection:
        status = await jobs.lock_job(connection, job_id)
        # Another finalization may have been faster; the job may be gone since, or taken up again and ending anew.
        if status is not job.status or await count_reopenings(connection, job.tenant, job_id) != reopenings:
            return
        await jobs.store_result(connection, job.tenant, job_id, computed.completeness, computed.document)
        await note_results(connection, job.tenant, job_id, computed.scores, computed.warnings)
        await _end(connection, job, context.spec, called=computed.called)
    log.info("job ended", job=job_id, completeness=computed.completeness)


async def _ready(connection: AsyncConnection, job_id: str) -> JobRow | None:
    """The job, locked, if it can be finalized now."""
    status = await jobs.lock_job(connection, job_id)
    if status not in {*ACTIVE, *ENDING} or not await settle(connection, job_id, status):
        return None
    return await jobs.get_job_of_any_tenant(connection, job_id)


@contextlib.asynccontextmanager
async def _known_to_be_at_work(engine: AsyncEngine, job_id: str) -> AsyncIterator[None]:
    """Keeps others from being told to finalize a job too, for as long as this process is alive."""
    telling = asyncio.create_task(_tell(engine, job_id))
    try:
        yield
    finally:
        telling.cancel()
        await asyncio.gather(telling, return_exceptions=True)


async def _tell(engine: AsyncEngine, job_id: str) -> None:
    while True:
        await asyncio.sleep(TELL_SECONDS)
        with contextlib.suppress(Exception):  # at worst two compute the same, and one of them ends the job
            async with engine.begin() as connection:
                await jobs.finalization_goes_on(connection, job_id)


async def _end(connection: AsyncConnection, job: JobRow, spec: JobSpec, *, called: bool) -> None:
    stopped_by = None if job.error is None else JobError.model_validate(job.error)
    if job.status is JobStatus.CANCELLING:
        await _move(connection, job, JobStatus.CANCELLED, job.status_reason, stopped_by)
    elif stopped_by is not None:
        await _move(connection, job, JobStatus.FAILED, job.status_reason, stopped_by)
    elif (not called and spec.called and (error := await _unanswered(connection, job)) is not None) or (
        error := await _useless(connection, job, spec)
    ) is not None:
        await _move(connection, job, JobStatus.FAILED, error.code, error)
    else:
        await _move(connection, job, JobStatus.COMPLETED, None, None)


async def _unanswered(connection: AsyncConnection, job: JobRow) -> JobError | None:
    """The error of a job in which a model answered nothing in a stage: all of a judge's verdicts failed, for example."""
    found = await failures.unanswered(connection, job.id)
    if found is not None:
        detail = found.detail or found.code
        return stop_error(
            JobMustStopError(found.code, detail, found.model, Stage(found.stage), found.http_status)
        )
    if await jobs.any_reply(connection, job.id):
        return None
    return JobError(code=NOTHING_SUCCEEDED, detail="none of the job's calls succeeded")


async def _useless(connection: AsyncConnection, job: JobRow, spec: JobSpec) -> JobError | None:
    """The error of a job in which a model's calls were answered and yet nothing of it can be measured, or none of a judge's is a score."""
    for model in () if spec.provided else spec.models:
        if found := await failures.useless_texts(connection, job.id, model.label):
            if error := await _unprepared(connection, job, spec, found, _BEFORE_TEXTS):
                return error
            detail = f"none of the model's responses can be judged: {_counted(found)}"
            return stop_error(JobMustStopError(NO_TEXT, detail, model.label, Stage.GENERATION))
    for number in spec.asked_judges:
        judge = spec.judges[number]
        if found := await failures.useless_verdicts(connection, job.id, number):
            if error := await _unprepared(connection, job, spec, found, _BEFORE_GRADES):
                return error
            detail = f"none of the judge's verdicts has a score: {_counted(found)}"
            return stop_error(JobMustStopError(NO_SCORE, detail, judge.label, Stage.JUDGING))
    return None


async def _unprepared(
    connection: AsyncConnection, job: JobRow, spec: JobSpec, found: list[UselessRow], kinds: tuple[Stage, ...]
) -> JobError | None:
    """Names the reasoner where texts or grades are missing because it prepared nothing for them."""
    if spec.gym is None or any(row.status != "failed" for row in found):
        return None
    step = await preparations.failed_kind(connection, job.tenant, job.id, kinds)
    if step is None:
        return None
    detail = step.error
    if step.reply is not None:
        begins = beginning(step.reply)
        detail += f'; the last reply begins: "{begins}"' if begins else "; the last reply is empty"
    return stop_error(JobMustStopError(NO_PREPARATION, detail, spec.gym.reasoner.label, Stage(step.kind)))


def _counted(found: list[UselessRow]) -> str:
    """For example ``5 filtered ("content_filter: The prompt …"), 1 unparsed ("I can't say.")``."""
    return ", ".join(
        f"{row.count:,} {row.status}" + (f' ("{row.words}")' if row.words else "") for row in found
    )


async def _move(
    connection: AsyncConnection,
    job: JobRow,
    to: JobStatus,
    reason: str | None,
    error: JobError | None,
) -> None:
    await jobs.move(connection, job.id, to=to, reason=reason, error=error)
