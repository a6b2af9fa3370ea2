"""`/v1/bundles`: reproduction bundles of other installations."""

from http import HTTPStatus
from typing import Any

from fastapi import Depends, Request, Response

from app.api.http.abandoned import while_connected
from app.api.http.access import needs
from app.api.http.dependencies import CallerDep, ServicesDep, TenantDep, takes_a_stream
from app.api.http.problems import ProblemError
from app.api.http.resources import resource
from app.domain.jobs.bundle import ImportedJob
from app.domain.keys.api_key import Scope
from app.services.jobs.view import show_job

router = resource("/bundles", "jobs")

ZIP_TYPE = "application/zip"
BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {ZIP_TYPE: {"schema": {"type": "string", "format": "binary"}}},
    }
}


@router.post(
    "",
    operation_id="importBundle",
    status_code=HTTPStatus.CREATED,
    dependencies=[Depends(takes_a_stream)],
    openapi_extra=BODY,
    summary="Import a reproduction bundle",
)
@needs(Scope.SUBMIT)
async def import_(
    request: Request, services: ServicesDep, tenant: TenantDep, caller: CallerDep, response: Response
) -> ImportedJob:
    """Writes the job of a bundle with all its rows, computes its results again from them, and refuses it if they differ: all or nothing.

    The job gets a new id, and `imported_from` has the old one. Nothing is called. It keeps its budget. What a retry spends counts
    against the caps of the API key that imports it and of the tenant.
    """
    # Imported when needed, as reports are.
    from app.services.results.bundle_import import import_bundle  # noqa: PLC0415

    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != ZIP_TYPE:
        detail = f"send the bundle as {ZIP_TYPE}"
        raise ProblemError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", detail)
    submission = services.submission
    async with services.bundles.receive(request, tenant) as (file, sha256):
        work = import_bundle(
            services.engine,
            services.readers,
            tenant,
            file,
            sha256,
            max_planned_calls=submission.max_planned_calls,
            secret=submission.catalog.hardened.secret,
            capped_key=caller.capped_key,
        )
        found = await while_connected(request, work)
    response.headers["Location"] = f"/v1/jobs/{found.job.id}"
    rows = found.rows
    return ImportedJob(
        job=show_job(found.job), responses=rows["responses"], verdicts=rows["verdicts"], calls=rows["calls"]
    )
