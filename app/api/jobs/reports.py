"""`/v1/jobs/{id}/report`: a job's results as a file."""

import asyncio
import gzip
from typing import Annotated, Literal

from fastapi import Query, Request, Response
from fastapi.responses import StreamingResponse

from app.api.http.access import needs
from app.api.http.answer_headers import FRAMED_BY_NOBODY
from app.api.http.answers import Download, Reader, count_answer
from app.api.http.dependencies import JobId, Services, ServicesDep, TenantDep
from app.api.http.openapi import NOT_FOUND, Responses
from app.api.http.packing import takes_gzip
from app.api.http.problems import wrong_field
from app.api.http.resources import resource
from app.api.http.strict_json import StrictRequest
from app.api.results.routes import JUNIT_TYPE, comparer_of, junit_answer
from app.db.jobs.jobs import JobRow
from app.domain.keys.api_key import Scope
from app.services.jobs.view import find_job
from app.services.results.baseline_figures import beside_job
from app.services.results.gate import gate_of, held
from app.services.results.reports import (
    EXPORTS,
    PAGED_LEVELS,
    ReportContent,
    ReportFormat,
    ReportLevel,
    result_table,
    stream_table,
)

router = resource("/jobs", "jobs")

REPORTS: Responses = {
    200: {"content": {export.media_type: {} for export in EXPORTS.values()} | {JUNIT_TYPE: {}}}
}


@router.get(
    "/{job_id}/report",
    operation_id="getReport",
    response_class=StreamingResponse,
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
    """The results as a file."""
    tables = [name for name, export in EXPORTS.items() if export.table]
    if level != "verdicts" and format_ not in tables:
        raise wrong_field("/query/level", f"only for the formats {', '.join(tables)}")
    return await report_of(request, services, Reader(tenant), job_id, format_, level)


async def report_of(
    request: Request,
    services: Services,
    reader: Reader,
    job_id: str,
    format_: Literal[ReportFormat, "junit"],
    level: ReportLevel,
) -> Response:
    """A job's results as a file. Visitors learn nothing about other jobs."""
    job = await find_job(services.engine, reader.tenant, job_id)
    if format_ == "html":
        async with services.report_turns.place(reader.party):
            return await _page(request, services, reader, job)
    if format_ == "junit":
        async with services.large_answers.place(reader.party):
            return junit_answer(job_id, await gate_of(comparer_of(services), job, None, "personas"))
    export = EXPORTS[format_]
    name = f"{job_id}{'' if level == 'verdicts' else f'-{level}'}.{export.extension}"
    headers = {"Content-Disposition": f'{export.disposition}; filename="{name}"'}
    if export.table and level in PAGED_LEVELS:
        count_answer(request, reader)
        context = await services.contexts.get(reader.tenant, job_id)
        chunks = stream_table(services.engine, job, context, format_, level)
        return Download(chunks, media_type=export.media_type, headers=headers)
    async with services.large_answers.place(reader.party):
        results = await services.results.read(job)
        table = await asyncio.to_thread(result_table, results, format_, level) if export.table else results
        return Response(table, media_type=export.media_type, headers=headers)


async def _page(request: Request, services: Services, reader: Reader, job: JobRow) -> Response:
    context = await services.contexts.get(job.tenant, job.id)
    comparer = comparer_of(services)
    is_visitor = reader.link is not None
    content = ReportContent(
        results=await services.results.read(job),
        calibrated=await services.results.calibration.models(job),
        study=await services.results.read_study(job),
        held=await held(comparer, job, alone=is_visitor),
        named=[] if is_visitor else await beside_job(comparer, job),
        service=services.public_url or str(request.base_url).rstrip("/"),
    )
    page = await services.reports.packed(job, context, content)
    export = EXPORTS["html"]
    headers = {
        "Content-Disposition": f'{export.disposition}; filename="{job.id}.{export.extension}"',
        # Its own policy is in the page; a browser keeps to both, and takes this one's part from the header only.
        "Content-Security-Policy": f"base-uri 'none'; form-action 'none'; {FRAMED_BY_NOBODY}",
        "Vary": "Accept-Encoding",
    }
    if takes_gzip(request):
        headers["Content-Encoding"] = "gzip"
    else:
        page = await asyncio.to_thread(gzip.decompress, page)
    return Response(page, media_type=export.media_type, headers=headers)
