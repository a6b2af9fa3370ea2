"""`/jobs/{id}/share`: a job's share links; `/shared/{token}`: what whoever has one reads, without a key."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from math import ceil
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import RedirectResponse

from app.api.console.forms import typed_by
from app.api.console.job_form import Typed, number_of
from app.api.console.summaries import summary
from app.api.http.access import needs
from app.api.http.answers import Reader
from app.api.http.dependencies import JobId, Services, ServicesDep, TenantDep, no_unknown_parameters
from app.api.http.pages import page
from app.api.http.problems import ProblemError, validated
from app.api.jobs.reports import report_of
from app.api.jobs.share_links import ShareLinkId
from app.db.jobs.share_links import ShareLinkRow
from app.db.row_level_security import act_for
from app.domain.errors import FieldError, InvalidJobError
from app.domain.jobs.share_links import MOST_DAYS, SHARED, USUAL_DAYS, NewShareLink, ShareLinkIn
from app.domain.keys.api_key import Scope
from app.services.errors import NotFoundError
from app.services.jobs.share_links import create_link, list_links, revoke_link
from app.services.jobs.view import find_job, show_job
from app.services.results.reports import ReportFormat, ReportLevel

router = APIRouter(include_in_schema=False, dependencies=[Depends(no_unknown_parameters)])

REQUESTS_PER_MINUTE = 120
"""Of one link, whoever has it."""
CONFINED = {"Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex, nofollow, noarchive"}
"""The address is the secret: no other site is told of it, and nobody lists it."""

FILES: Mapping[str, tuple[ReportFormat, bool]] = {
    "report.html": ("html", False),
    "results.json": ("json", False),
    "cells.csv": ("csv", False),
    "responses.csv": ("csv", True),
    "responses.jsonl": ("jsonl", True),
}
"""What a link gives: the report's format, and whether the link must give all responses for it."""


@router.get("/jobs/{job_id}/share")
@needs(Scope.READ)
async def links(request: Request, job_id: JobId, services: ServicesDep, tenant: TenantDep) -> Response:
    """A job's share links, and the form that makes one."""
    return await _listed(request, services, tenant, job_id, Typed({"days": [str(USUAL_DAYS)]}))


@router.post("/jobs/{job_id}/share")
@needs(Scope.SUBMIT)
async def create(request: Request, job_id: JobId, services: ServicesDep, tenant: TenantDep) -> Response:
    """Makes a link and shows it, or what is wrong with what was typed."""
    typed = await typed_by(request)
    body: dict[str, Any] = {
        "days": number_of(typed.text("days"), int),
        "responses": bool(typed.all("responses")),
        "description": typed.text("description") or None,
    }
    try:
        made = await create_link(services.engine, tenant, job_id, validated(ShareLinkIn, body))
    except InvalidJobError as error:
        wrong = error.errors
    else:
        return await _listed(request, services, tenant, job_id, typed, made=made)
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    return await _listed(request, services, tenant, job_id, typed, status, errors=wrong)


@router.post("/jobs/{job_id}/share/{link_id}/revoke")
@needs(Scope.SUBMIT)
async def revoke(job_id: JobId, link_id: ShareLinkId, services: ServicesDep, tenant: TenantDep) -> Response:
    """Ends a link for good, and shows the others."""
    await revoke_link(services.engine, tenant, job_id, link_id)
    return RedirectResponse(f"/jobs/{job_id}/share", HTTPStatus.SEE_OTHER)


async def _listed(
    request: Request,
    services: Services,
    tenant: str,
    job_id: str,
    typed: Typed,
    status: HTTPStatus = HTTPStatus.OK,
    *,
    made: NewShareLink | None = None,
    errors: Sequence[FieldError] = (),
) -> Response:
    address = services.public_url or str(request.base_url).rstrip("/")
    return page(
        "share.html.j2",
        status,
        job=await find_job(services.engine, tenant, job_id),
        links=await list_links(services.engine, tenant, job_id),
        link_made=None if made is None else address + made.path,
        typed=typed,
        errors=errors,
        most_days=MOST_DAYS,
    )


async def _shown_link(request: Request, token: str, services: ServicesDep) -> ShareLinkRow:
    """The link that a path names; from here on the request sees the rows of its tenant alone."""
    found = await services.share_links.find(token)
    seconds = await services.request_rates.wait_for(f"share link {found.id}", REQUESTS_PER_MINUTE)
    if seconds:
        detail = f"this link's rate limit is {REQUESTS_PER_MINUTE} requests per minute"
        headers = {"Retry-After": str(ceil(seconds))} | CONFINED
        raise ProblemError(HTTPStatus.TOO_MANY_REQUESTS, "rate_limited", detail, headers=headers)
    act_for(found.tenant)
    request.state.reader = Reader(found.tenant, found.id)
    return found


LinkDep = Annotated[ShareLinkRow, Depends(_shown_link)]


@router.get(f"{SHARED}{{token}}")
async def shared(token: str, link: LinkDep, services: ServicesDep) -> Response:
    """What a link gives: a job's name and state, and its files."""
    job = await find_job(services.engine, link.tenant, link.job_id)
    shown = page(
        "shared.html.j2",
        job=show_job(job).model_dump(mode="json"),
        summary=summary(job.request),
        link=link,
        path=f"{SHARED}{token}",
    )
    shown.headers.update(CONFINED)
    return shown


@router.get(f"{SHARED}{{token}}/{{file}}")
async def shared_file(
    request: Request,
    link: LinkDep,
    services: ServicesDep,
    file: Literal["report.html", "results.json", "cells.csv", "responses.csv", "responses.jsonl"],
) -> Response:
    """A file of the job that a link shows.

    Raises:
        NotFoundError: If the link does not give all responses.
    """
    format_, needs_responses = FILES[file]
    if needs_responses and not link.responses:
        raise NotFoundError("this link does not give the responses")
    level: ReportLevel = "cells" if file == "cells.csv" else "verdicts"
    sent = await report_of(request, services, Reader(link.tenant, link.id), link.job_id, format_, level)
    sent.headers.update(CONFINED)
    return sent
