"""`/v1/jobs/{id}/events`: a job's states as server-sent events."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from http import HTTPStatus
from typing import Annotated

from fastapi import Depends, Header, Response
from fastapi.responses import StreamingResponse

from app import clock
from app.api.http.access import needs
from app.api.http.dependencies import JobId, ServicesDep, TenantDep, takes_a_stream
from app.api.http.openapi import NOT_FOUND, Responses
from app.api.http.resources import resource
from app.domain.keys.api_key import Scope
from app.services.errors import NotFoundError
from app.services.jobs.follow import JobState

router = resource("/jobs", "jobs")

RECONNECT_MILLISECONDS = 2000
KEEP_ALIVE_SECONDS = 15.0
"""Proxies close connections on which nothing comes for long."""

STREAM: Responses = {
    200: {
        "description": "Events named `job`: `data` is the job as `GET /v1/jobs/{id}` shows it, `id` names its state. "
        "The stream ends with the job.",
        "content": {
            "text/event-stream": {
                "example": 'id: 3f6c0d…\nevent: job\ndata: {"id": "job_…", "status": …}\n\n'
            }
        },
    },
    204: {"description": "The job is over and its last state is known: there is nothing to reconnect for."},
}

LastEventId = Annotated[
    str | None,
    Header(
        alias="Last-Event-ID",
        max_length=200,
        description="The `id` of the last event that was received: what it told is not repeated.",
    ),
]


@router.get(
    "/{job_id}/events",
    operation_id="streamEvents",
    response_class=StreamingResponse,
    dependencies=[Depends(takes_a_stream)],
    responses=STREAM | NOT_FOUND,
    summary="Stream a job's events",
)
@needs(Scope.READ)
async def events(
    job_id: JobId, services: ServicesDep, tenant: TenantDep, last_event_id: LastEventId = None
) -> Response:
    """Sends the job's state now and on every change: at most once a second, a new status within a quarter of a second."""
    first = await services.follower.read(tenant, job_id)
    if first.is_last and first.tag == last_event_id:
        return Response(status_code=HTTPStatus.NO_CONTENT)
    states = services.follower.states_after(tenant, job_id, first, last_event_id)
    # Nothing between us and the reader may hold events back or keep them.
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_stream(states), media_type="text/event-stream", headers=headers)


async def _stream(states: AsyncGenerator[JobState | None]) -> AsyncIterator[str]:
    yield f"retry: {RECONNECT_MILLISECONDS}\n\n"
    told = clock.monotonic()
    try:
        async with aclosing(states):
            async for state in states:
                if state is not None:
                    yield f"id: {state.tag}\nevent: job\ndata: {state.body}\n\n"
                elif clock.monotonic() - told >= KEEP_ALIVE_SECONDS:
                    yield ": still here\n\n"
                else:
                    continue
                told = clock.monotonic()
    except NotFoundError:
        return  # deleted meanwhile: who reconnects is told so
