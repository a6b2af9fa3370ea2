"""`/v1/schedules`: jobs that are run again and again, and whether their figures have drifted."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Response
from pydantic import AfterValidator

from app.api.http import cursors
from app.api.http.access import Caller, needs
from app.api.http.answers import Party
from app.api.http.cursors import After, PageLimit
from app.api.http.dependencies import CallerDep, Services, ServicesDep, TenantDep, no_unknown_parameters
from app.api.http.openapi import NOT_FOUND, PROBLEMS
from app.api.http.path_ids import id_check
from app.api.http.strict_json import StrictRequest, StrictRoute
from app.api.jobs.job_route import job_of
from app.api.jobs.routes import IdempotencyKey
from app.api.results.figures import FIGURES, ThemeQuery, figure_answer
from app.domain.errors import FieldError, InvalidJobError
from app.domain.jobs.request import JobIn
from app.domain.keys.api_key import Scope
from app.domain.watching.contract import (
    Schedule,
    ScheduleChangeIn,
    ScheduleIn,
    ScheduleList,
    ScheduleRunList,
)
from app.services.errors import NotFoundError, WrongStateError
from app.services.idempotency import ClientKey
from app.services.identifiers import id_form
from app.services.jobs.clone import changed_body
from app.services.results.figures import FigureFormat
from app.services.watching.schedules import (
    change_schedule,
    create_schedule,
    delete_schedule,
    find_schedule,
    list_runs,
    list_schedules,
    made_schedule,
)
from app.services.watching.timeline import draw_timeline

router = APIRouter(
    prefix="/v1/schedules",
    tags=["schedules"],
    route_class=StrictRoute,
    dependencies=[Depends(no_unknown_parameters)],
    responses=PROBLEMS,
)

ScheduleId = Annotated[
    str, Path(description="A schedule's id."), AfterValidator(id_check("schedule", id_form("sched")))
]


@router.post("", operation_id="createSchedule", status_code=201, summary="Create a schedule")
@needs(Scope.SUBMIT)
async def create(
    request: StrictRequest,
    body: ScheduleIn,
    services: ServicesDep,
    tenant: TenantDep,
    caller: CallerDep,
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> Schedule:
    """Runs a job again whenever it is due, and watches one of its values.

    Each due time gets one run. A run is skipped while the previous one has not ended; runs that were due while the service was
    down are missed, except the last one of the last six hours. The rules by which texts are read stay as they are now. Runs
    count against the spending cap of the key that made or last changed the schedule, and end with it.

    After ten runs, the value is tested for a change after each run, with at most 5 % false alarms a year. With `anchors`, a
    change of the judge is told from one of the model. Webhooks report `drift.detected`, `schedule.run_missed`,
    `schedule.run_skipped` and `schedule.run_failed`.
    """
    key = ClientKey.of(idempotency_key, await request.sent())
    made = None if key is None else await made_schedule(services.engine, tenant, key)
    if made is None:
        made = await schedule_of(services, tenant, caller, body, key)
    response.headers["Location"] = f"/v1/schedules/{made.id}"
    return made


async def schedule_of(
    services: Services, tenant: str, caller: Caller, body: ScheduleIn, key: ClientKey | None = None
) -> Schedule:
    """Keeps a schedule; what is wrong with its job is told with the place in the schedule."""
    if body.clone is not None:
        place, sent = "/clone", await _cloned(services, tenant, body.clone)
    else:
        place, sent = "/job", body.job or {}
    try:
        job = await job_of(services.submission, tenant, JobIn, sent)
    except InvalidJobError as error:
        raise InvalidJobError(
            [FieldError(f"{place}{each.pointer}", each.message) for each in error.errors]
        ) from error
    return await create_schedule(services.submission, tenant, body, sent, job, caller.key_id, key)


async def _cloned(services: Services, tenant: str, job_id: str) -> dict[str, object]:
    try:
        return await changed_body(services.engine, tenant, job_id, {})
    except (NotFoundError, WrongStateError) as error:
        raise InvalidJobError([FieldError("/clone", str(error))]) from error
    except InvalidJobError as error:
        raise InvalidJobError(
            [FieldError("/clone", f"{each.pointer} {each.message}") for each in error.errors]
        ) from error


@router.get("", operation_id="listSchedules", summary="List schedules")
@needs(Scope.READ)
async def list_(
    services: ServicesDep, tenant: TenantDep, limit: PageLimit = 20, after: After = None
) -> ScheduleList:
    """Schedules, newest first, each with its last run."""
    found = await list_schedules(services.engine, tenant, limit=limit + 1, after=cursors.beginning(after))
    return cursors.newest_first(ScheduleList, found, limit)


@router.get("/{schedule_id}", operation_id="getSchedule", responses=NOT_FOUND, summary="Get a schedule")
@needs(Scope.READ)
async def get(schedule_id: ScheduleId, services: ServicesDep, tenant: TenantDep) -> Schedule:
    """A schedule with its last run."""
    return await find_schedule(services.engine, tenant, schedule_id)


@router.patch(
    "/{schedule_id}", operation_id="changeSchedule", responses=NOT_FOUND, summary="Change a schedule"
)
@needs(Scope.SUBMIT)
async def change(
    schedule_id: ScheduleId,
    body: ScheduleChangeIn,
    services: ServicesDep,
    tenant: TenantDep,
    caller: CallerDep,
) -> Schedule:
    """Changes the fields that are given; pauses a schedule or lets it go on. Runs under way go on."""
    return await change_schedule(services.submission, tenant, schedule_id, body, caller.key_id)


@router.delete(
    "/{schedule_id}",
    operation_id="deleteSchedule",
    status_code=204,
    responses=NOT_FOUND,
    summary="Delete a schedule",
)
@needs(Scope.SUBMIT)
async def delete(schedule_id: ScheduleId, services: ServicesDep, tenant: TenantDep) -> Response:
    """Deletes a schedule with its runs' values. Their jobs stay."""
    await delete_schedule(services.engine, tenant, schedule_id)
    return Response(status_code=HTTPStatus.NO_CONTENT)


@router.get(
    "/{schedule_id}/runs",
    operation_id="listScheduleRuns",
    responses=NOT_FOUND,
    summary="List a schedule's runs",
)
@needs(Scope.READ)
async def runs(
    schedule_id: ScheduleId,
    services: ServicesDep,
    tenant: TenantDep,
    limit: PageLimit = 20,
    after: After = None,
) -> ScheduleRunList:
    """Due times and what became of them, newest first: values, limits and alarms."""
    found = await list_runs(
        services.engine, tenant, schedule_id, limit=limit + 1, after=cursors.beginning(after)
    )
    return cursors.page(ScheduleRunList, found, limit, None, lambda run: cursors.of_moment(run.due, run.id))


@router.get(
    "/{schedule_id}/figures/timeline.{file_format}",
    operation_id="getScheduleFigure",
    response_class=Response,
    responses=FIGURES | NOT_FOUND,
    summary="Download a schedule's figure",
)
@needs(Scope.READ)
async def figure(
    schedule_id: ScheduleId,
    file_format: FigureFormat,
    services: ServicesDep,
    tenant: TenantDep,
    theme: ThemeQuery = None,
) -> Response:
    """The values of the last 400 due times with limits and alarms, and those of the anchors, as SVG or PNG.

    404 while there are no values. If too many figures are waiting to be drawn, the answer is 503 with `Retry-After`.
    """
    found = await find_schedule(services.engine, tenant, schedule_id)
    async with services.figure_turns.place(Party(tenant)):
        drawn = await draw_timeline(services.engine, services.readers, found, tenant, file_format, theme)
    if drawn is None:
        raise NotFoundError(f"schedule {schedule_id} has no values yet")
    return figure_answer(drawn, f"{schedule_id}-timeline", file_format)
