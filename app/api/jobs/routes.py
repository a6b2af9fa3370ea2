"""`/v1/jobs`: submit, plan, list, follow, control, delete; results, responses, reports."""

from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from app.api.http import cursors
from app.api.http.access import needs
from app.api.http.answer_headers import FRAMED_BY_NOBODY
from app.api.http.cursors import After, PageLimit
from app.api.http.dependencies import (
    CallerDep,
    JobId,
    ResponsePlace,
    Services,
    ServicesDep,
    SpendingJobId,
    TenantDep,
    job_id_of,
    no_unknown_parameters,
    takes_a_stream,
)
from app.api.http.openapi import CONFLICT, NOT_FOUND, PROBLEMS, Responses, answers_with
from app.api.http.packing import gzipped, takes_gzip
from app.api.http.problems import wrong_field
from app.api.http.strict_json import StrictRequest
from app.api.jobs.job_route import JobRoute, job_of
from app.api.jobs.listing import JobFilterDep, Sort, cursor_of, place_in
from app.api.jobs.response_lists import SearchedText, read_list, source_of
from app.api.results.routes import JUNIT_TYPE, comparer_of, junit_answer
from app.db.results.sorted_responses import Sort as ResponseSort
from app.domain.errors import FieldError, InvalidJobError
from app.domain.jobs.contract import JobDetail, JobList, Plan
from app.domain.jobs.request import CloneIn, JobChangeIn, JobIn, PlanIn
from app.domain.judging.judge_call import JudgeCalls
from app.domain.judging.judged_response import ResponseList
from app.domain.keys.api_key import Scope
from app.domain.personagym.environments import Environments
from app.domain.results.by_instruction import ByInstruction
from app.domain.results.contract import Results, RunDistances
from app.domain.results.model_groups import ModelGroups
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
from app.services.jobs.follow import read_state
from app.services.jobs.listing import list_jobs
from app.services.jobs.plan import plan_job
from app.services.jobs.submit import Submission, submit_job
from app.services.jobs.view import find_job, view_job
from app.services.results.by_instruction import read_by_instruction
from app.services.results.environments import read_environments
from app.services.results.gate import gate_of
from app.services.results.judge_calls import read_judge_calls
from app.services.results.model_groups import groups_of
from app.services.results.reports import EXPORTS, ReportFormat, ReportLevel, export_report
from app.services.results.responses import APART, Arm, ResponseFilter
from app.services.results.run_distances import CellChoice, read_run_distances
from app.services.results.side_by_side import Source, read_side_by_side

router = APIRouter(
    prefix="/v1/jobs",
    tags=["jobs"],
    route_class=JobRoute,
    dependencies=[Depends(no_unknown_parameters)],
    responses=PROBLEMS,
)

REPORTS: Responses = {
    200: {"content": {export.media_type: {} for export in EXPORTS.values()} | {JUNIT_TYPE: {}}}
}
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
    state = await read_state(services.engine, tenant, job_id, services.progress, services.holds)
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
    calls still in flight is refused with 409.
    """
    await retry_job(services.control, tenant, job_id)
    return await view_job(services.engine, tenant, job_id)


@router.get(
    "/{job_id}/results",
    operation_id="getResults",
    responses=answers_with(Results) | NOT_FOUND,
    summary="Get a job's results",
)
@needs(Scope.READ)
async def results(job_id: JobId, services: ServicesDep, tenant: TenantDep) -> Response:
    """Every metric by cell and in total, each with its n and what was left out.

    Also available while the job runs; these results are at most 30 seconds old (`computed_at`).
    """
    job = await find_job(services.engine, tenant, job_id)
    return Response(await services.results.read(job), media_type="application/json")


@router.get(
    "/{job_id}/distances",
    operation_id="getDistances",
    responses=answers_with(RunDistances) | NOT_FOUND,
    summary="Get a cell's distances between runs",
)
@needs(Scope.READ)
async def distances(
    job_id: JobId,
    services: ServicesDep,
    tenant: TenantDep,
    persona: Annotated[str, Query(max_length=100)],
    task: Annotated[str, Query(max_length=100)],
    model: Annotated[
        str | None, Query(max_length=300, description="May be left out if the job has only one.")
    ] = None,
    dimension: Annotated[
        str | None, Query(max_length=100, description="May be left out if the cell has only one.")
    ] = None,
) -> Response:
    """The distances between runs from which a cell's RC_atom is computed. Also available while the job runs."""
    job = await find_job(services.engine, tenant, job_id)
    context = await services.contexts.get(tenant, job_id)
    wanted = CellChoice(model, persona, task, dimension)
    found = await read_run_distances(services.engine, job, context, wanted)
    return Response(found.model_dump_json(), media_type="application/json")


@router.get(
    "/{job_id}/instructions",
    operation_id="getResultsByInstruction",
    responses=answers_with(ByInstruction) | NOT_FOUND,
    summary="Read the results by persona instruction",
)
@needs(Scope.READ)
async def instructions(job_id: JobId, services: ServicesDep, tenant: TenantDep) -> Response:
    """The papers' metrics for each wording of the persona instruction; works while the job runs.

    Empty for a job whose texts have no known instruction, as with PersonaGym tasks alone.
    """
    job = await find_job(services.engine, tenant, job_id)
    context = await services.contexts.get(tenant, job_id)
    found = await read_by_instruction(services.engine, job, context)
    return Response(found.model_dump_json(exclude_unset=True), media_type="application/json")


@router.get(
    "/{job_id}/groups",
    operation_id="getModelGroups",
    responses=answers_with(ModelGroups) | NOT_FOUND,
    summary="Read the results by groups of models",
)
@needs(Scope.READ)
async def groups(job_id: JobId, services: ServicesDep, tenant: TenantDep) -> Response:
    """The models, alone and by the `attributes` that the job gives them, with ACC_atom of less and of more desired personas."""
    job = await find_job(services.engine, tenant, job_id)
    found = groups_of(job, await services.results.read_model(job))
    return Response(found.model_dump_json(exclude_unset=True), media_type="application/json")


@router.get(
    "/{job_id}/environments",
    operation_id="getEnvironments",
    responses=answers_with(Environments) | NOT_FOUND,
    summary="Read the personas' environments",
)
@needs(Scope.READ)
async def environments(job_id: JobId, services: ServicesDep, tenant: TenantDep) -> Response:
    """The environments in which PersonaGym's questions are set, by persona and counted; works while the job runs."""
    job = await find_job(services.engine, tenant, job_id)
    context = await services.contexts.get(tenant, job_id)
    found = await read_environments(services.engine, job, context)
    return Response(found.model_dump_json(), media_type="application/json")


@router.get(
    "/{job_id}/responses",
    operation_id="listResponses",
    responses=answers_with(ResponseList) | NOT_FOUND,
    summary="List responses",
)
@needs(Scope.READ)
async def responses(
    job_id: JobId,
    services: ServicesDep,
    tenant: TenantDep,
    model: Annotated[str | None, Query(max_length=300)] = None,
    persona: Annotated[str | None, Query(max_length=100)] = None,
    task: Annotated[str | None, Query(max_length=100)] = None,
    out_of_character: Annotated[
        bool, Query(description="Only those with a sentence out of character.")
    ] = False,
    judges_disagree: Annotated[
        bool,
        Query(
            description="Only those of which one judge finds a sentence in character and another finds it out of"
            " character, on the same dimension, or to which two judges gave grades two or more points apart."
        ),
    ] = False,
    suspicious: Annotated[
        bool, Query(description="Only those with a verdict or grade whose `suspicion` is not `null`.")
    ] = False,
    people_against_judges: Annotated[
        bool,
        Query(
            description="Only those to which, or to a sentence of which, people gave a mean score that lies `min_gap` or more points from the"
            " mean of the judges'."
        ),
    ] = False,
    min_gap: Annotated[
        float | None, Query(gt=0, le=10_000, description=f"Of `people_against_judges`; {APART} unless given.")
    ] = None,
    flagged: Annotated[bool, Query(description="Only those with a flag, or with one on a sentence.")] = False,
    arm: Annotated[
        Arm, Query(description="`control` for those without a persona, of a job with `control`.")
    ] = "persona",
    q: SearchedText = None,
    sort: Annotated[
        ResponseSort | None,
        Query(
            description="By `score` (the share of its scores in the persona's level, or its grade), by `gap` (the farthest that two judges are"
            " apart on a sentence and dimension, or in grades), or by `length` (sentences); from the least to the greatest, with `-` the other"
            " way round. Those without such a value come last."
        ),
    ] = None,
    after: After = None,
    limit: PageLimit = 50,
) -> Response:
    """Responses with their sentences, verdicts and the judges' replies. A page that would be too large ends early.

    With `out_of_character`, `judges_disagree`, `suspicious`, `people_against_judges` or `flagged`, a page searches 2,000 responses, so
    it can be short or empty although more follow; `has_more` tells.
    """
    job = await find_job(services.engine, tenant, job_id)
    context = await services.contexts.get(tenant, job_id)
    if min_gap is not None and not people_against_judges:
        raise wrong_field("/min_gap", "is for people_against_judges=true")
    gap = (min_gap or APART) if people_against_judges else None
    wanted = ResponseFilter(
        model, persona, task, out_of_character, judges_disagree, suspicious, gap, arm, q or None, flagged
    )
    page, cursor = await read_list(services, job, context, wanted, sort, after=after, limit=limit)
    shown = ResponseList(data=page, has_more=cursor is not None, next_cursor=cursor)
    return Response(shown.model_dump_json(), media_type="application/json")


@router.get(
    "/{job_id}/responses/{response_id}/side-by-side",
    operation_id="listSideBySide",
    responses=answers_with(ResponseList) | NOT_FOUND,
    summary="Read what several models answered to the same",
)
@needs(Scope.READ)
async def side_by_side(
    named: ResponsePlace,
    services: ServicesDep,
    tenant: TenantDep,
    with_: Annotated[
        str | None,
        Query(
            alias="with",
            max_length=100,
            description="Another job, whose models' responses are read instead of this job's.",
        ),
    ] = None,
) -> Response:
    """The response, then those of the other models to the same persona, task, item and run, as far as they make a page."""
    job, context, place = named
    other = None if with_ is None else await source_of(services, tenant, job_id_of(with_))
    found, more = await read_side_by_side(services.engine, Source(job, context), place, other)
    shown = ResponseList(data=found, has_more=more, next_cursor=None)
    return Response(shown.model_dump_json(), media_type="application/json")


@router.get(
    "/{job_id}/responses/{response_id}/judge-calls",
    operation_id="listJudgeCalls",
    responses=NOT_FOUND,
    summary="Read what judges were asked",
)
@needs(Scope.READ)
async def judge_calls(
    named: ResponsePlace,
    services: ServicesDep,
    unit: Annotated[
        int | None,
        Query(
            ge=0, le=32_767, description="The sentence, from 0; without it, the grades of the whole response."
        ),
    ] = None,
) -> JudgeCalls:
    """Each judge's prompt, word for word, and its reply as it came.

    Prompts are not stored: the code that made them for the calls makes them again from the stored job. `certain` says whether it is
    known to be the same code.
    """
    return await read_judge_calls(services.engine, *named, unit)


@router.get(
    "/{job_id}/report",
    operation_id="getReport",
    response_class=StreamingResponse,
    dependencies=[Depends(takes_a_stream)],
    responses=REPORTS | NOT_FOUND,
    summary="Download a report",
)
@needs(Scope.READ)
async def report(
    request: StrictRequest,
    job_id: JobId,
    services: ServicesDep,
    tenant: TenantDep,
    format_: Annotated[
        Literal[ReportFormat, "junit"],
        Query(
            alias="format",
            description="`html` is one self-contained file; the others are for programs. `junit` is the gate over the"
            " job's own `thresholds`.",
        ),
    ] = "json",
    level: Annotated[
        ReportLevel,
        Query(
            description="One row per verdict, per response and dimension, per cell of the results, per total and metric, per PersonaScore and task score, per judge and"
            " task of what checks several sentences a call, per judge, order and dimension of what checks the order of options, or"
            " per verdict on the texts without a persona."
        ),
    ] = "verdicts",
) -> Response:
    """The results as a file, streamed."""
    tables = [name for name, export in EXPORTS.items() if export.table]
    if level != "verdicts" and format_ not in tables:
        raise wrong_field("/query/level", f"only for the formats {', '.join(tables)}")
    return await report_of(request, services, tenant, job_id, format_, level)


async def report_of(
    request: Request,
    services: Services,
    tenant: str,
    job_id: str,
    format_: Literal[ReportFormat, "junit"],
    level: ReportLevel,
) -> Response:
    """A job's results as a file, streamed."""
    job = await find_job(services.engine, tenant, job_id)
    if format_ == "junit":
        return junit_answer(job_id, await gate_of(comparer_of(services), job, None, "personas"))
    context = await services.contexts.get(tenant, job_id)
    document = await services.results.read(job)
    calibrated, study = [], None
    if format_ == "html":
        calibrated = await services.results.calibration.models(job)
        study = await services.results.read_study(job)
    export = EXPORTS[format_]
    chunks: AsyncIterator[bytes] = export_report(
        services.engine,
        job,
        context,
        document,
        format_=format_,
        level=level,
        calibrated=calibrated,
        study=study,
        service=services.public_url or str(request.base_url).rstrip("/"),
    )
    name = f"{job_id}{'' if level == 'verdicts' else f'-{level}'}.{export.extension}"
    headers = {"Content-Disposition": f'{export.disposition}; filename="{name}"'}
    if format_ == "html":
        # Its own policy is in the page; a browser keeps to both, and takes this one's part from the header only.
        headers["Content-Security-Policy"] = f"base-uri 'none'; form-action 'none'; {FRAMED_BY_NOBODY}"
        headers["Vary"] = "Accept-Encoding"
        if takes_gzip(request):
            headers["Content-Encoding"] = "gzip"
            chunks = gzipped(chunks)
    return StreamingResponse(chunks, media_type=export.media_type, headers=headers)
