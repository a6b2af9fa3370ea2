"""`/v1/jobs`: submit, plan, list, follow, control, delete."""

from http import HTTPStatus
from typing import Annotated

from fastapi import Header, Response

from app.api.http import cursors
from app.api.http.access import needs
from app.api.http.cursors import After, PageLimit
from app.api.http.dependencies import CallerDep, JobId, Services, ServicesDep, SpendingJobId, TenantDep
from app.api.http.openapi import CONFLICT, NOT_FOUND, answers_with
from app.api.http.resources import resource
from app.api.http.strict_json import StrictRequest
from app.api.jobs.job_route import JobRoute, job_of
from app.api.jobs.listing import JobFilterDep, Sort, cursor_of, place_in
from app.domain.errors import FieldError, InvalidJobError
from app.domain.jobs.contract import JobDetail, JobList, Plan
from app.domain.jobs.request import CloneIn, JobChangeIn, JobIn, PlanIn
from app.domain.jobs.reread import Reread, RereadIn
from app.domain.keys.api_key import Scope
from app.services.jobs.clone import changed_body
from app.services.jobs.control import (
    cancel_job,
    change_budget,
    change_job,
    check_spender,
    delete_job,
    pause_job,
    resume_job,
    retry_job,
)
from app.services.jobs.listing import list_jobs
from app.services.jobs.plan import plan_job
from app.services.jobs.submit import Submission, submit_job
from app.services.jobs.view import view_job
from app.services.results.reread import reread_job

router = resource("/jobs", "jobs", route_class=JobRoute)

POLL_SECONDS = "1"

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        pattern=r"^[\x21-\x7e]+$",
        description="The same key and body return the same thing for 24 hours.",
    ),
]


@router.post("", operation_id="submitJob", status_code=202, summary="Submit a job")
@needs(Scope.SUBMIT)
async def submit(
    request: StrictRequest,
    body: JobIn,
    services: ServicesDep,
    tenant: TenantDep,
    caller: CallerDep,
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> JobDetail:
    """Accepts a job. It runs in the background; poll its `Location`."""
    sent, gone = await request.sent(), request.is_disconnected
    submission = Submission(body, sent, body.name, idempotency_key, caller.capped_key, gone)
    return await _accepted(services, tenant, submission, response)


async def _accepted(services: Services, tenant: str, submission: Submission, response: Response) -> JobDetail:
    """Submits a job, and says where to follow it."""
    job = await submit_job(services.submission, tenant, submission)
    view = await view_job(services.engine, tenant, job.id)
    response.headers["Location"] = f"/v1/jobs/{job.id}"
    if not view.status.is_terminal:
        response.headers["Retry-After"] = POLL_SECONDS
    return view


@router.post("/plan", operation_id="planJob", summary="Estimate a job")
@needs(Scope.READ)
async def plan(request: StrictRequest, body: PlanIn, services: ServicesDep, tenant: TenantDep) -> Plan:
    """Estimates a job's calls and cost and, on request, the size that detects a given difference. Nothing is stored or spent."""
    return await plan_job(services.planning, tenant, body, request.is_disconnected, body.detect)


@router.post(
    "/{job_id}/clone",
    operation_id="cloneJob",
    status_code=202,
    responses=NOT_FOUND | CONFLICT,
    summary="Run a job again with changes",
)
@needs(Scope.SUBMIT)
async def clone(
    request: StrictRequest,
    job_id: JobId,
    body: CloneIn,
    services: ServicesDep,
    tenant: TenantDep,
    caller: CallerDep,
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> JobDetail:
    """Submits a new job with this job's configuration plus the given changes. The original is not changed.

    Names are resolved again, and unspecified versions are the latest. Responses and questions that the job's body
    contained are not stored as a body and must be sent again.
    """
    try:
        changed = await changed_body(services.engine, tenant, job_id, body.changes)
        wanted = await job_of(services.submission, tenant, JobIn, changed)
        submission = Submission(
            wanted, changed, wanted.name, idempotency_key, caller.capped_key, request.is_disconnected
        )
        return await _accepted(services, tenant, submission, response)
    except InvalidJobError as error:
        raise InvalidJobError(
            [FieldError(f"/changes{each.pointer}", each.message) for each in error.errors]
        ) from error


@router.get("", operation_id="listJobs", summary="List jobs")
@needs(Scope.READ)
async def list_(
    services: ServicesDep,
    tenant: TenantDep,
    wanted: JobFilterDep,
    sort: Sort = "-created",
    limit: PageLimit = 20,
    after: After = None,
) -> JobList:
    """Returns jobs, newest first by default. Filter by labels with `metadata[key]=value`, repeatable."""
    found = await list_jobs(
        services.engine, tenant, wanted, limit=limit + 1, sort=sort, after=place_in(sort, after)
    )
    return cursors.page(JobList, found, limit, lambda entry: entry.job, cursor_of)


@router.get(
    "/{job_id}",
    operation_id="getJob",
    responses=answers_with(JobDetail, 200) | {304: {"description": "Not changed."}} | NOT_FOUND,
    summary="Get a job",
)
@needs(Scope.READ)
async def get(
    job_id: JobId,
    services: ServicesDep,
    tenant: TenantDep,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """A job's status and live progress. Until the job has ended, `Retry-After` says when to poll again.

    While a job runs, `progress`, `usage` and `cost` are at most two seconds old; all other fields are current.
    """
    state = await services.follower.read(tenant, job_id)
    tag = f'"{state.tag}"'
    headers = {"ETag": tag}
    if not state.is_last:
        headers["Retry-After"] = POLL_SECONDS
    if if_none_match is not None and (tag in if_none_match or if_none_match.strip() == "*"):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Response(state.body, headers=headers, media_type="application/json")


@router.patch(
    "/{job_id}",
    operation_id="changeJob",
    responses=NOT_FOUND | CONFLICT,
    summary="Change a job's name, tags, notes or budget",
)
@needs(Scope.SUBMIT)
async def change(
    job_id: JobId, body: JobChangeIn, services: ServicesDep, tenant: TenantDep, caller: CallerDep
) -> JobDetail:
    """Changes a job's name, tags, notes or budget, or archives it, whatever its status.

    A job that paused because of its budget continues when it is resumed. Stored results and reports keep the old name.
    """
    if "budget" in body.model_fields_set:
        await check_spender(services.control, tenant, job_id, caller.capped_key)
        await change_budget(services.control, tenant, job_id, body.budget.to_budget())
    await change_job(services.control, tenant, job_id, body)
    return await view_job(services.engine, tenant, job_id)


@router.delete(
    "/{job_id}",
    operation_id="deleteJob",
    status_code=204,
    response_class=Response,
    responses=NOT_FOUND | CONFLICT,
    summary="Delete a finished job",
)
@needs(Scope.SUBMIT)
async def delete(job_id: JobId, services: ServicesDep, tenant: TenantDep) -> Response:
    """Deletes a finished job with its responses and results."""
    await delete_job(services.control, tenant, job_id)
    return Response(status_code=HTTPStatus.NO_CONTENT)


@router.post(
    "/{job_id}/cancel",
    operation_id="cancelJob",
    responses=NOT_FOUND,
    summary="Cancel a job",
)
@needs(Scope.SUBMIT)
async def cancel(job_id: JobId, services: ServicesDep, tenant: TenantDep) -> JobDetail:
    """Starts no further calls and keeps everything already paid for. Has no effect on a job that has ended."""
    await cancel_job(services.control, tenant, job_id)
    return await view_job(services.engine, tenant, job_id)


@router.post(
    "/{job_id}/pause",
    operation_id="pauseJob",
    responses=NOT_FOUND | CONFLICT,
    summary="Pause a job",
)
@needs(Scope.SUBMIT)
async def pause(job_id: JobId, services: ServicesDep, tenant: TenantDep) -> JobDetail:
    """Starts no further calls until the job is resumed."""
    await pause_job(services.control, tenant, job_id)
    return await view_job(services.engine, tenant, job_id)


@router.post(
    "/{job_id}/resume",
    operation_id="resumeJob",
    responses=NOT_FOUND | CONFLICT,
    summary="Resume a paused job",
)
@needs(Scope.SUBMIT)
async def resume(job_id: SpendingJobId, services: ServicesDep, tenant: TenantDep) -> JobDetail:
    """Continues a paused job where it stopped; nothing is repeated."""
    await resume_job(services.control, tenant, job_id)
    return await view_job(services.engine, tenant, job_id)


@router.post(
    "/{job_id}/retry",
    operation_id="retryJob",
    responses=NOT_FOUND | CONFLICT,
    summary="Retry failed parts of a job",
)
@needs(Scope.SUBMIT)
async def retry(job_id: SpendingJobId, services: ServicesDep, tenant: TenantDep) -> JobDetail:
    """Repeats only what failed, could not be parsed or has no answer in a job that has ended or is paused. Everything else is kept.

    A job without failures, or one that is running, stays unchanged. A job that is cancelled, about to end, or paused with
    calls still in flight is refused with 409, as is an ended one that lacks only what nobody can be asked for again, such
    as verdicts that imported judges did not give.
    """
    await retry_job(services.control, tenant, job_id)
    return await view_job(services.engine, tenant, job_id)


@router.post(
    "/{job_id}/reread",
    operation_id="rereadJob",
    responses=NOT_FOUND | CONFLICT,
    summary="Read a finished job's stored replies again",
)
@needs(Scope.SUBMIT)
async def reread(
    request: StrictRequest,  # noqa: ARG001 - reads the body strictly
    body: RereadIn,
    job_id: JobId,
    services: ServicesDep,
    tenant: TenantDep,
) -> Reread:
    """Reads judges' stored replies with the current rules, without calls, and shows which verdicts change.

    With `apply`, the new verdicts replace the old ones and the results are computed again; webhooks are sent as at the first end.
    Otherwise nothing is stored. A job that has not ended, or that changes meanwhile, is refused with 409.
    """
    return await reread_job(services.engine, services.control.queue, services.contexts, tenant, job_id, body)
