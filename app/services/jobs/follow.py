"""Follows a job: its states as they change, until it is over."""

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.jobs import jobs
from app.domain.jobs.contract import JobDetail
from app.domain.jobs.status import JobStatus
from app.services.jobs.progress import RecentProgress
from app.services.jobs.view import Holds, view_job

LOOK_SECONDS = 1.0
"""How soon a change shows."""

STATUS_SECONDS = 0.25
"""How soon another status shows, above all the last one; to look for it costs a tenth of a whole look."""


@dataclass(frozen=True, slots=True)
class JobState:
    """A job at one moment.

    Attributes:
        tag: Names the state by a hash of everything that it shows.
        body: The job as JSON text on one line.
        view: The job.
    """

    tag: str
    body: str
    view: JobDetail

    @property
    def is_last(self) -> bool:
        """Whether nothing will happen to the job any more."""
        return self.view.status.is_terminal


async def read_state(
    engine: AsyncEngine,
    tenant: str,
    job_id: str,
    recent: RecentProgress | None = None,
    holds: Holds | None = None,
) -> JobState:
    """A job's state now; see :func:`app.services.jobs.view.view_job`.

    Raises:
        NotFoundError: If the tenant has no such job.
    """
    view = await view_job(engine, tenant, job_id, recent, holds)
    body = view.model_dump_json(ensure_ascii=True)
    tag = hashlib.sha256(body.encode()).hexdigest()[:32]
    return JobState(tag, body, view)


async def states_after(
    engine: AsyncEngine,
    tenant: str,
    job_id: str,
    first: JobState,
    seen: str | None,
    recent: RecentProgress | None = None,
    holds: Holds | None = None,
) -> AsyncIterator[JobState | None]:
    """A job's states from ``first`` on, each change once; ``None`` where there is none to tell of after a while.

    Args:
        engine: Where to look.
        tenant: Whose job it is.
        job_id: Which job.
        first: Its state now.
        seen: The tag of the state that the reader knows already, if any.
        recent: See :func:`app.services.jobs.view.view_job`.
        holds: See there.

    Raises:
        NotFoundError: If the job is deleted meanwhile.
    """
    state = first
    while True:
        changed = state.tag != seen
        yield state if changed else None
        if state.is_last:
            return
        seen = state.tag
        await _other_status(engine, tenant, job_id, state.view.status)
        with contextlib.suppress(SQLAlchemyError, OSError):  # away for a moment: the reader need not notice
            state = await read_state(engine, tenant, job_id, recent, holds)


async def _other_status(engine: AsyncEngine, tenant: str, job_id: str, status: JobStatus) -> None:
    """Waits until the job has another status, for :data:`LOOK_SECONDS` at most."""
    clock = asyncio.get_running_loop().time
    until = clock() + LOOK_SECONDS
    while clock() < until:
        await asyncio.sleep(STATUS_SECONDS)
        with contextlib.suppress(SQLAlchemyError, OSError):
            if await jobs.find_status(engine, tenant, job_id) is not status:
                return
