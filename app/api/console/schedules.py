"""`/schedules`: what is run again and again, its values over time, alarms and runs; how to make one, pause and delete it."""

import base64
from collections.abc import Sequence
from http import HTTPStatus
from typing import Literal

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import RedirectResponse

from app.api.console.forms import typed_by
from app.api.console.job_form import Typed
from app.api.http import cursors
from app.api.http.access import needs
from app.api.http.answers import Party
from app.api.http.cursors import After
from app.api.http.dependencies import (
    CallerDep,
    Services,
    ServicesDep,
    TenantDep,
    no_unknown_parameters,
)
from app.api.http.pages import page
from app.api.http.problems import validated
from app.api.watching.routes import ScheduleId, schedule_of
from app.domain.errors import FieldError, InvalidJobError
from app.domain.keys.api_key import Scope
from app.domain.watching.contract import Schedule, ScheduleChangeIn, ScheduleIn
from app.reports.views.alarm_words import words_of
from app.services.errors import BusyError
from app.services.watching.schedules import (
    MOST_SCHEDULES,
    change_schedule,
    delete_schedule,
    find_schedule,
    list_runs,
    list_schedules,
)
from app.services.watching.timeline import draw_timeline

router = APIRouter(include_in_schema=False, dependencies=[Depends(no_unknown_parameters)])

RUNS_A_PAGE = 50

ScheduleAction = Literal["pause", "resume", "delete"]


@router.get("/schedules")
@needs(Scope.READ)
async def list_(services: ServicesDep, tenant: TenantDep) -> Response:
    """The schedules, newest first, and the form that makes one."""
    return await _listed(services, tenant, Typed({"time_zone": ["UTC"]}))


@router.post("/schedules")
@needs(Scope.SUBMIT)
async def create(request: Request, services: ServicesDep, tenant: TenantDep, caller: CallerDep) -> Response:
    """Makes a schedule of an existing job and shows it, or what is wrong with what was typed."""
    typed = await typed_by(request)
    body: dict[str, object] = {
        name: typed.text(name)
        for name in ("name", "cron", "time_zone", "clone", "figure")
        if typed.text(name)
    }
    if typed.text("anchors"):
        body["anchors"] = {"job": typed.text("anchors")}
    try:
        limits = {name: _usd(typed, name) for name in ("run_usd", "total_usd") if typed.text(name)}
        wanted = validated(ScheduleIn, body | ({"budget": limits} if limits else {}))
        made = await schedule_of(services, tenant, caller, wanted)
    except InvalidJobError as error:
        return await _listed(services, tenant, typed, HTTPStatus.UNPROCESSABLE_ENTITY, errors=error.errors)
    return RedirectResponse(f"/schedules/{made.id}", HTTPStatus.SEE_OTHER)


def _usd(typed: Typed, name: str) -> float:
    try:
        return float(typed.text(name))
    except ValueError:
        raise InvalidJobError([FieldError(f"/budget/{name}", "must be a number")]) from None


@router.get("/schedules/{schedule_id}")
@needs(Scope.READ)
async def one(
    schedule_id: ScheduleId, services: ServicesDep, tenant: TenantDep, after: After = None
) -> Response:
    """A schedule's values over time, its alarms and its runs, newest first."""
    found = await find_schedule(services.engine, tenant, schedule_id)
    listed = await list_runs(
        services.engine, tenant, schedule_id, limit=RUNS_A_PAGE + 1, after=cursors.beginning(after)
    )
    runs, following = cursors.cut(listed, RUNS_A_PAGE, lambda run: cursors.of_moment(run.due, run.id))
    return page(
        "schedule.html.j2",
        here="/schedules",
        schedule=found,
        runs=runs,
        figure=None if after is not None else await _figure(services, tenant, found),
        words_of=words_of,
        later=after is not None,
        following=following,
    )


@router.post("/schedules/{schedule_id}/{schedule_action}")
@needs(Scope.SUBMIT)
async def act(
    schedule_id: ScheduleId,
    schedule_action: ScheduleAction,
    services: ServicesDep,
    tenant: TenantDep,
    caller: CallerDep,
) -> Response:
    """Pauses a schedule, lets it go on, or deletes it."""
    if schedule_action == "delete":
        await delete_schedule(services.engine, tenant, schedule_id)
        return RedirectResponse("/schedules", HTTPStatus.SEE_OTHER)
    changes = ScheduleChangeIn(paused=schedule_action == "pause")
    await change_schedule(services.submission, tenant, schedule_id, changes, caller.key_id)
    return RedirectResponse(f"/schedules/{schedule_id}", HTTPStatus.SEE_OTHER)


async def _figure(services: Services, tenant: str, schedule: Schedule) -> str | None:
    """The address of the figure, which holds all of it; ``None`` without values, or if too many figures wait to be drawn."""
    try:
        async with services.figure_turns.place(Party(tenant)):
            drawn = await draw_timeline(services.engine, services.readers, schedule, tenant)
    except BusyError:
        return None
    return None if drawn is None else f"data:image/svg+xml;base64,{base64.b64encode(drawn).decode()}"


async def _listed(
    services: Services,
    tenant: str,
    typed: Typed,
    status: HTTPStatus = HTTPStatus.OK,
    *,
    errors: Sequence[FieldError] = (),
) -> Response:
    found = await list_schedules(services.engine, tenant, limit=MOST_SCHEDULES)
    return page("schedules.html.j2", status, here="/schedules", schedules=found, typed=typed, errors=errors)
