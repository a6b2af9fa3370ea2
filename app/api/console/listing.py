"""`/`: the jobs, newest first, as they go on."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Response
from sqlalchemy.exc import SQLAlchemyError

from app.api.console.live import Parts, live
from app.api.console.summaries import summary, whole
from app.api.http import cursors
from app.api.http.access import needs
from app.api.http.dependencies import (
    NameFilter,
    Services,
    ServicesDep,
    TenantDep,
    no_unknown_parameters,
    takes_a_stream,
)
from app.api.http.pages import page, render
from app.db.jobs import jobs
from app.db.jobs.jobs import JobRow
from app.domain.jobs.status import JobStatus
from app.domain.keys.api_key import Scope
from app.services.errors import NotFoundError
from app.services.jobs.view import view_job

router = APIRouter(include_in_schema=False, dependencies=[Depends(no_unknown_parameters)])

JOBS_A_PAGE = 20
LOOK_SECONDS = 1.0
"""How soon a change shows."""
ASKED_TOGETHER = 4
"""Jobs that are looked at at a time, each over a connection of its own."""

Json = dict[str, Any]

After = Annotated[str | None, Query(max_length=200)]
Status = Annotated[JobStatus | None, Query()]


class Listing:
    """One page of jobs, read again and again; what is known of a job that is over is not asked for again."""

    def __init__(
        self, services: Services, tenant: str, status: JobStatus | None, after: str | None, name: str | None
    ) -> None:
        self._services = services
        self._tenant = tenant
        self._status = status
        self._name = name or None
        self._after = cursors.beginning(after)
        self._over: dict[tuple[str, datetime | None], Json] = {}
        self._room = asyncio.Semaphore(ASKED_TOGETHER)

    async def read(self) -> Json:
        """What the templates show."""
        async with self._services.engine.connect() as connection:
            found = await jobs.list_jobs(
                connection,
                self._tenant,
                limit=JOBS_A_PAGE + 1,
                after=self._after,
                status=self._status,
                metadata={},
                name=self._name,
            )
        shown, more = found[:JOBS_A_PAGE], len(found) > JOBS_A_PAGE
        views = await asyncio.gather(*(self._view(job) for job in shown))
        last = shown[-1] if more else None
        return {
            "jobs": [view for view in views if view is not None],
            "following": None if last is None else cursors.of_moment(last.created_at, last.id),
            "filtered": any(each is not None for each in (self._status, self._after, self._name)),
        }

    async def _view(self, job: JobRow) -> Json | None:
        """A job as the list shows it; ``None`` if it was deleted just now."""
        key = (job.id, job.finished_at)
        if job.status.is_terminal and key in self._over:
            return self._over[key]
        async with self._room:
            try:
                found = await view_job(self._services.engine, self._tenant, job.id)
            except NotFoundError:
                return None
        view = found.model_dump(mode="json")
        view |= {"whole": whole(view["progress"]), "summary": summary(view["spec"])}
        if job.status.is_terminal:
            self._over[key] = view
        return view


@router.get("/")
@needs(Scope.READ)
async def job_list(
    services: ServicesDep,
    tenant: TenantDep,
    status: Status = None,
    after: After = None,
    name: NameFilter = None,
) -> Response:
    """A page of jobs."""
    found = await Listing(services, tenant, status, after, name).read()
    asked = {"status": status and status.value, "name": name, "after": after}
    query = urlencode({key: value for key, value in asked.items() if value})
    return page(
        "jobs.html.j2",
        **found,
        here="/",
        live=f"/live/jobs?{query}",
        chosen=status,
        named=name or "",
        later=after is not None,
        statuses=[each.value for each in JobStatus],
    )


@router.get("/live/jobs", dependencies=[Depends(takes_a_stream)])
@needs(Scope.READ)
async def live_list(
    services: ServicesDep,
    tenant: TenantDep,
    status: Status = None,
    after: After = None,
    name: NameFilter = None,
) -> Response:
    """The same page, as it changes."""
    return live(_lists(Listing(services, tenant, status, after, name)))


async def _lists(listing: Listing) -> AsyncIterator[Parts]:
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        try:
            found = await listing.read()
        except (SQLAlchemyError, OSError):
            continue  # away for a moment: the reader need not notice
        yield {"jobs": render("job_list.html.j2", **found)}
