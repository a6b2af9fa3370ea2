"""`/v1/jobs/{id}/exports`: a job in other tools' formats."""

from typing import Annotated

from fastapi import Query, Request, Response
from fastapi.responses import StreamingResponse

from app.api.http.access import needs
from app.api.http.answers import DOWNLOAD_BYTES, Download, Reader, count_answer
from app.api.http.dependencies import (
    JobId,
    ServicesDep,
    TenantDep,
)
from app.api.http.openapi import CONFLICT, NOT_FOUND, Responses
from app.api.http.resources import resource
from app.domain.keys.api_key import Scope
from app.services.jobs.view import find_job
from app.services.results.exports import (
    EXPORT_FORMS,
    ExportFormat,
    ExportOptions,
    TextUnit,
    export_job,
)

router = resource("/jobs", "jobs")

EXPORTS: Responses = {200: {"content": {form.media_type: {} for form in EXPORT_FORMS.values()}}}


PREFERENCES_BYTES = 4 * DOWNLOAD_BYTES
"""Pairs are made of all texts of a persona and task."""


@router.get(
    "/{job_id}/exports/{format}",
    operation_id="exportJob",
    response_class=StreamingResponse,
    responses=EXPORTS | NOT_FOUND | CONFLICT,
    summary="Export a job for another tool",
)
@needs(Scope.READ)
async def export(
    request: Request,
    job_id: JobId,
    format: ExportFormat,  # noqa: A002 - the contract's name
    services: ServicesDep,
    tenant: TenantDep,
    unit: Annotated[
        TextUnit | None,
        Query(description="`preferences`: pairs of whole responses, or of sentences. [response]"),
    ] = None,
    minimum_margin: Annotated[
        float | None,
        Query(
            ge=0,
            le=1,
            description="`preferences`: the least difference of the scores, as a share of the scale. [0]",
        ),
    ] = None,
    judge: Annotated[
        str | None,
        Query(
            max_length=300,
            description="`preferences`, `rewards`: the only judge whose scores count. [all; pairs need them to be of one mind]",
        ),
    ] = None,
    raw_replies: Annotated[
        bool | None, Query(description="`bundle`: whether it has what judges said, word for word. [true]")
    ] = None,
) -> Response:
    """Streamed. `every_eval_ever`, `inspect` (a log of Inspect AI for each model) and `dataset` (for the Hugging Face Hub) are zip files.

    `preferences` has pairs for DPO as TRL reads them, `rewards` a reward for each sentence and judge; both are JSON Lines.

    `bundle` has everything from which another installation computes the same results again (`POST /v1/bundles`); the job must be over.
    The others are there while a job runs, too: then of what is there.
    """
    count_answer(request, Reader(tenant), PREFERENCES_BYTES if format == "preferences" else DOWNLOAD_BYTES)
    job = await find_job(services.engine, tenant, job_id)
    context = await services.contexts.get(tenant, job_id)
    options = ExportOptions(unit, minimum_margin, judge, raw_replies)
    chunks = await export_job(services.results, job, context, format, options, services.engine)
    form = EXPORT_FORMS[format]
    headers = {"Content-Disposition": f'attachment; filename="{job_id}-{format}.{form.extension}"'}
    return Download(chunks, media_type=form.media_type, headers=headers)
