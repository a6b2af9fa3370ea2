"""`/`: the jobs, newest first unless the reader orders them otherwise, as they go on."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy.exc import SQLAlchemyError

from app import clock
from app.api.console.forms import typed_by
from app.api.console.live import Parts, live
from app.api.console.summaries import summary, whole
from app.api.http.access import needs
from app.api.http.cursors import After
from app.api.http.dependencies import (
    Services,
    ServicesDep,
    TenantDep,
    job_id_of,
    no_unknown_parameters,
    takes_a_stream,
)
from app.api.http.pages import page, render
from app.api.jobs.listing import JobFilterDep, Sort, cursor_of, place_in
from app.db.jobs.listing import tags_of
from app.domain.jobs.contract import ListedJob
from app.domain.jobs.listing import JobFilter, JobSort
from app.domain.jobs.request import JobChangeIn
from app.domain.jobs.status import JobStatus
from app.domain.keys.api_key import Scope
from app.services.errors import NotFoundError
from app.services.jobs.control import change_job
from app.services.jobs.listing import list_jobs
from app.services.jobs.view import view_job

router = APIRouter(include_in_schema=False, dependencies=[Depends(no_unknown_parameters)])

JOBS_A_PAGE = 20
LOOK_SECONDS = 1.0
"""How soon a change shows."""
LOOK_SHARE = 0.05
"""Of the time: more of it is not spent on looking, where that takes long."""
ASKED_TOGETHER = 4
"""Jobs at work that are looked at at a time, each over a connection of its own."""

Json = dict[str, Any]


async def _asked(
    request: Request,
    wanted: JobFilterDep,  # noqa: ARG001 - checks what it takes, as the next
    sort: Sort = "-created",  # noqa: ARG001
) -> list[tuple[str, str]]:
    """What the address of a list says; anything else is refused."""
    return [(name, value) for name, value in request.query_params.multi_items() if value]


AskedDep = Annotated[list[tuple[str, str]], Depends(_asked)]


def _address(asked: Sequence[tuple[str, str]], **changes: str | None) -> str:
    """The address of a list with changes, from its first page on; ``None`` leaves a parameter out."""
    kept = [(name, value) for name, value in asked if name not in {"after", *changes}]
    kept += [(name, value) for name, value in changes.items() if value]
    return f"/?{urlencode(kept)}" if kept else "/"


class Listing:
    """One page of jobs, read again and again."""

    def __init__(
        self,
        services: Services,
        tenant: str,
        wanted: JobFilter,
        sort: JobSort,
        after: str | None,
        asked: Sequence[tuple[str, str]],
    ) -> None:
        self._services = services
        self._asked = asked
        self._tenant = tenant
        self._wanted = wanted
        self._sort = sort
        self._after: tuple[datetime | str | float, str] | None = place_in(sort, after)
        self._room = asyncio.Semaphore(ASKED_TOGETHER)

    async def read(self) -> Json:
        """What the templates show."""
        found = await list_jobs(
            self._services.engine,
            self._tenant,
            self._wanted,
            limit=JOBS_A_PAGE + 1,
            sort=self._sort,
            after=self._after,
        )
        shown, more = found[:JOBS_A_PAGE], len(found) > JOBS_A_PAGE
        views = await asyncio.gather(*(self._view(entry.job) for entry in shown))
        return {
            "jobs": [view for view in views if view is not None],
            "following": cursor_of(shown[-1]) if more else None,
            "at": partial(_address, self._asked),
            "filtered": self._wanted != JobFilter() or self._after is not None,
        }

    async def _view(self, job: ListedJob) -> Json | None:
        """A job as the list shows it, with its progress while it is at work; ``None`` if it was deleted just now."""
        view = job.model_dump(mode="json") | {"summary": summary(job.spec), "whole": None}
        if job.status.is_terminal:
            return view
        async with self._room:
            try:
                found = await view_job(self._services.engine, self._tenant, job.id)
            except NotFoundError:
                return None
        return view | {"whole": whole(found.model_dump(mode="json")["progress"])}


@router.get("/")
@needs(Scope.READ)
async def job_list(
    asked: AskedDep,
    services: ServicesDep,
    tenant: TenantDep,
    wanted: JobFilterDep,
    sort: Sort = "-created",
    after: After = None,
) -> Response:
    """A page of jobs."""
    found = await Listing(services, tenant, wanted, sort, after, asked).read()
    async with services.engine.connect() as connection:
        tags = await tags_of(connection, tenant)
    return page(
        "jobs.html.j2",
        **found,
        here="/",
        live=f"/live/jobs?{urlencode(asked)}",
        asked=dict(asked),
        wanted=wanted,
        sort=sort,
        later=after is not None,
        tags=tags,
        statuses=[each.value for each in JobStatus],
    )


@router.post("/jobs/archive")
@needs(Scope.SUBMIT)
async def archive(request: Request, services: ServicesDep, tenant: TenantDep, asked: AskedDep) -> Response:
    """Archives the chosen jobs, or takes them back, and shows the list again."""
    typed = await typed_by(request)
    change = JobChangeIn(archived=typed.text("archived") == "true")
    # The list's boxes are named for the page that compares models.
    for job_id in dict.fromkeys(map(job_id_of, typed.all("model"))):
        await change_job(services.control, tenant, job_id, change)
    return RedirectResponse(_address(asked), HTTPStatus.SEE_OTHER)


@router.get("/live/jobs", dependencies=[Depends(takes_a_stream)])
@needs(Scope.READ)
async def live_list(
    asked: AskedDep,
    services: ServicesDep,
    tenant: TenantDep,
    wanted: JobFilterDep,
    sort: Sort = "-created",
    after: After = None,
) -> Response:
    """The same page, as it changes."""
    return live(_lists(Listing(services, tenant, wanted, sort, after, asked)))


async def _lists(listing: Listing) -> AsyncIterator[Parts]:
    took = 0.0
    while True:
        await asyncio.sleep(max(LOOK_SECONDS, took / LOOK_SHARE))
        began = clock.monotonic()
        try:
            found = await listing.read()
        except (SQLAlchemyError, OSError):
            continue  # away for a moment: the reader need not notice
        finally:
            took = clock.monotonic() - began
        yield {"jobs": render("job_list.html.j2", **found)}
