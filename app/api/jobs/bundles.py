"""`/v1/bundles`: reproduction bundles of other installations."""

import asyncio
import tempfile
from http import HTTPStatus
from pathlib import Path
from typing import Any

from fastapi import Depends, Request, Response

from app.api.http.access import needs
from app.api.http.dependencies import ServicesDep, TenantDep, takes_a_stream
from app.api.http.limits import STALLED_SECONDS
from app.api.http.problems import ProblemError
from app.api.http.resources import resource
from app.domain.jobs.bundle import MOST_BYTES, ImportedJob
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
    request: Request, services: ServicesDep, tenant: TenantDep, response: Response
) -> ImportedJob:
    """Writes the job of a bundle with all its rows, computes its results again from them, and refuses it if they differ: all or nothing.

    The job has `imported_from`, and its old id if no job here has that. Nothing is called.
    """
    # Imported when needed, as reports are.
    from app.services.results.bundle_import import import_bundle  # noqa: PLC0415

    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != ZIP_TYPE:
        detail = f"send the bundle as {ZIP_TYPE}"
        raise ProblemError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", detail)
    with tempfile.TemporaryDirectory(prefix="assay-bundle-") as directory:
        path = Path(directory) / "bundle.zip"
        await _receive(request, path)
        submission = services.submission
        found = await import_bundle(
            services.engine,
            tenant,
            path,
            max_planned_calls=submission.max_planned_calls,
            secret=submission.catalog.hardened.secret,
        )
    response.headers["Location"] = f"/v1/jobs/{found.job.id}"
    rows = found.rows
    return ImportedJob(
        job=show_job(found.job), responses=rows["responses"], verdicts=rows["verdicts"], calls=rows["calls"]
    )


async def _receive(request: Request, path: Path) -> None:
    """Puts the body into a file as it arrives."""
    length = 0
    chunks = aiter(request.stream())
    with await asyncio.to_thread(path.open, "wb") as file:
        while True:
            try:
                async with asyncio.timeout(STALLED_SECONDS):
                    chunk = await anext(chunks, None)
            except TimeoutError as error:
                detail = f"nothing has arrived for {STALLED_SECONDS:g} s"
                headers = {"Connection": "close"}
                raise ProblemError(
                    HTTPStatus.REQUEST_TIMEOUT, "body_too_slow", detail, headers=headers
                ) from error
            if chunk is None:
                return
            length += len(chunk)
            if length > MOST_BYTES:
                detail = f"a bundle may have at most {MOST_BYTES:,} bytes"
                raise ProblemError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body_too_large", detail)
            await asyncio.to_thread(file.write, chunk)
