"""`/v1/jobs/{id}/report`: a job's results as a file."""

from collections.abc import AsyncIterator
from typing import Annotated, Literal

from fastapi import Depends, Query, Request, Response
from fastapi.responses import StreamingResponse

from app.api.http.access import needs
from app.api.http.answer_headers import FRAMED_BY_NOBODY
from app.api.http.dependencies import JobId, Services, ServicesDep, TenantDep, takes_a_stream
from app.api.http.openapi import NOT_FOUND, Responses
from app.api.http.packing import gzipped, takes_gzip
from app.api.http.problems import wrong_field
from app.api.http.resources import resource
from app.api.http.strict_json import StrictRequest
from app.api.results.routes import JUNIT_TYPE, comparer_of, junit_answer
from app.domain.keys.api_key import Scope
from app.services.jobs.view import find_job
from app.services.results.baseline_figures import beside_job
from app.services.results.gate import gate_of, held
from app.services.results.reports import EXPORTS, ReportFormat, ReportLevel, export_report

router = resource("/jobs", "jobs")

REPORTS: Responses = {
    200: {"content": {export.media_type: {} for export in EXPORTS.values()} | {JUNIT_TYPE: {}}}
}


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
    *,
    alone: bool = False,
) -> Response:
    """A job's results as a file, streamed; ``alone`` if its readers may know of no other job."""
    job = await find_job(services.engine, tenant, job_id)
    if format_ == "junit":
        return junit_answer(job_id, await gate_of(comparer_of(services), job, None, "personas"))
    context = await services.contexts.get(tenant, job_id)
    document = await services.results.read(job)
    calibrated, study, against, named = [], None, None, []
    if format_ == "html":
        against = await held(comparer_of(services), job, alone=alone)
        named = [] if alone else await beside_job(comparer_of(services), job)
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
        held=against,
        named=named,
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
