"""Follows a job: its states as they change, until it is over."""

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, field

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


@dataclass(slots=True)
class _Watch:
    """The looks at one job, shared by its readers.

    Attributes:
        state: The job at the last look.
        looks: Number of looks so far.
        looked: Result of the next look.
        readers: Number of readers.
        task: The task that looks.
    """

    state: JobState
    looks: int = 0
    looked: "asyncio.Future[None]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    readers: int = 0
    task: "asyncio.Task[None] | None" = None


class JobFollower:
    """Follows jobs for all readers of a process: a job is looked at once, however many streams show it."""

    def __init__(
        self, engine: AsyncEngine, recent: RecentProgress | None = None, holds: Holds | None = None
    ) -> None:
        self._engine = engine
        self._recent = recent
        self._holds = holds
        self._watches: dict[tuple[str, str], _Watch] = {}

    async def read(self, tenant: str, job_id: str) -> JobState:
        """Return a job's state now; see :func:`app.services.jobs.view.view_job`.

        Raises:
            NotFoundError: If the tenant has no such job.
        """
        view = await view_job(self._engine, tenant, job_id, self._recent, self._holds)
        body = view.model_dump_json(ensure_ascii=True)
        tag = hashlib.sha256(body.encode()).hexdigest()[:32]
        return JobState(tag, body, view)

    async def states_after(
        self, tenant: str, job_id: str, first: JobState, seen: str | None
    ) -> AsyncGenerator[JobState | None]:
        """Yield a job's states from ``first`` on, each change once; ``None`` after a look that found no change.

        Args:
            tenant: The job's tenant.
            job_id: The job's id.
            first: Its state now.
            seen: The tag of the state that the reader already has, if any.

        Raises:
            NotFoundError: If the job is deleted meanwhile.
        """
        yield None if first.tag == seen else first
        if first.is_last:
            return
        seen = first.tag
        with self._watching(tenant, job_id, first) as watch:
            looks = watch.looks  # the look before may be older than the first state
            while True:
                if looks == watch.looks:
                    await asyncio.shield(watch.looked)
                state, looks = watch.state, watch.looks
                yield None if state.tag == seen else state
                if state.is_last:
                    return
                seen = state.tag

    @contextlib.contextmanager
    def _watching(self, tenant: str, job_id: str, first: JobState) -> Iterator[_Watch]:
        name = (tenant, job_id)
        watch = self._watches.get(name)
        if watch is None:
            watch = self._watches[name] = _Watch(first)
            watch.task = asyncio.create_task(self._look(name, watch))
        watch.readers += 1
        try:
            yield watch
        finally:
            watch.readers -= 1
            if not watch.readers and watch.task is not None:
                watch.task.cancel()
                self._forget(name, watch)

    def _forget(self, name: tuple[str, str], watch: _Watch) -> None:
        if self._watches.get(name) is watch:
            del self._watches[name]

    async def _look(self, name: tuple[str, str], watch: _Watch) -> None:
        """Look at a job until it is over or deleted."""
        try:
            while not watch.state.is_last:
                await _other_status(self._engine, *name, watch.state.view.status)
                with contextlib.suppress(
                    SQLAlchemyError, OSError
                ):  # away for a moment: no reader need notice
                    watch.state = await self.read(*name)
                watch.looks += 1
                looked, watch.looked = watch.looked, asyncio.get_running_loop().create_future()
                looked.set_result(None)
        except Exception as error:  # noqa: BLE001 - the readers raise it
            watch.looked.set_exception(error)
            watch.looked.exception()  # a reader that is busy may never ask
        finally:
            self._forget(name, watch)


async def _other_status(engine: AsyncEngine, tenant: str, job_id: str, status: JobStatus) -> None:
    """Waits until the job has another status, for :data:`LOOK_SECONDS` at most."""
    clock = asyncio.get_running_loop().time
    until = clock() + LOOK_SECONDS
    while clock() < until:
        await asyncio.sleep(STATUS_SECONDS)
        with contextlib.suppress(SQLAlchemyError, OSError):
            if await jobs.find_status(engine, tenant, job_id) is not status:
                return
