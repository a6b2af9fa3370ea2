"""The starvation guard: lets a fully occupied worker take shards of jobs that no worker serves.

Messages fill a worker's places, and shards with slow calls hold them for minutes. So a full worker takes up first
shards beside its places: every tenant's very first one, and, up to a bound, a tenant's next few and each job's first.
The newest jobs have a few places of their own, so that a small job progresses beside thousands of slow ones of its
tenant. Finalizations need no place.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import structlog

from app.db.engine import single_statements
from app.db.execution.shards import Among, AnyClaim
from app.db.jobs import jobs
from app.domain.jobs.status import ENDING
from app.services.execution.background_tasks import FINALIZATION, BackgroundTasks, Finalize
from app.services.execution.shard_work import ShardDependencies
from app.services.execution.stop_signal import StopReason
from app.services.scheduling.run_shard import claim_next, run_claimed
from app.telemetry.vital import vital_tasks

log = structlog.get_logger(__name__)

GUARD_SECONDS = 0.2
"""How often a full worker looks for jobs that wait."""

QUIET_SECONDS = 0.3
"""How long an announced shard is left to a worker that has a place."""

FIRST_SHARDS = 4
"""Shards of a tenant, of all jobs and in all workers, that a full worker takes up beside its places."""

JOBS_BESIDE = 16
"""With so many shards beside its places a full worker takes up no job's first one, and with as many more as it has places only tenants' very first."""

NEWEST_JOBS = 4
"""Shards of the newest jobs that a full worker takes up besides, each the first of its job."""

GIVE_WAY_SECONDS = 5.0
"""How long such a shard keeps its place from the first shard of a newer job."""

UNFINALIZED_SECONDS = 1.0
"""How long a job's message that it can be finalized may wait for a place."""

BESIDE = "a shard beside the places"
NEWEST = "a shard of a newest job"


@contextlib.asynccontextmanager
async def guard_against_starvation(
    deps: ShardDependencies,
    background: BackgroundTasks,
    finalize: Finalize,
    places: int,
    busy: Callable[[], int],
) -> AsyncIterator[None]:
    """Looks after the waiting jobs in the background while all places are taken.

    Args:
        deps: What shards need.
        background: Runs what is taken up.
        finalize: Finalizes a job.
        places: Messages about shards that this process works on at a time.
        busy: Counts those it is working on.
    """
    newest = NewestJobs(deps, background)

    async def repeat() -> None:
        while True:
            await asyncio.sleep(GUARD_SECONDS)
            if busy() >= places and not deps.leases.stopping:
                try:
                    await start_waiting_shards(deps, background, finalize, places)
                    await newest.start()
                except Exception:
                    log.exception("waiting jobs not looked after; trying again")

    async with vital_tasks(starvation_guard=repeat()):
        yield


async def start_waiting_shards(
    deps: ShardDependencies, background: BackgroundTasks, finalize: Finalize, places: int
) -> None:
    """Takes up what may run beside the places, and finalizes jobs that wait for no more than that."""
    while (claimed := await claim_next(deps, _beside(background.number(BESIDE), places))) is not None:
        background.begin(run_claimed(deps, claimed), BESIDE)
    async with single_statements(deps.engine) as connection:
        unsettled = await jobs.unsettled_jobs(connection, UNFINALIZED_SECONDS, ENDING)
    for job_id in unsettled:
        background.begin(finalize(job_id), FINALIZATION)


class NewestJobs:
    """Places for the first shards of the newest jobs; the oldest of them gives way to a newer job's."""

    def __init__(self, deps: ShardDependencies, background: BackgroundTasks) -> None:
        self._deps = deps
        self._background = background
        self._since: dict[AnyClaim, float] = {}

    async def start(self) -> None:
        """Take up the first shards of the newest jobs of which no shard is held, as far as there is room."""
        leases, now = self._deps.leases, asyncio.get_running_loop().time
        while True:
            self._since = {claim: at for claim, at in self._since.items() if leases.is_working(claim)}
            among = Among(QUIET_SECONDS, of_tenant_below=0, of_job_below=1, newest_first=True)
            oldest = min(self._since, key=lambda claim: claim.job_id, default=None)
            if oldest is not None and len(self._since) >= NEWEST_JOBS:
                if now() - self._since[oldest] < GIVE_WAY_SECONDS:
                    return
                among = among._replace(newer_than=oldest.job_id)
            else:
                oldest = None
            claimed = await claim_next(self._deps, among)
            if claimed is None:
                return
            if oldest is not None:
                leases.stop(oldest, StopReason.GIVING_WAY)
            self._since[claimed.claim] = now()
            self._background.begin(run_claimed(self._deps, claimed), NEWEST)
            await asyncio.sleep(0)  # now it is held


def _beside(number: int, places: int) -> Among:
    """Which shards a full worker may take up that has a number of them beside its places."""
    few = min(FIRST_SHARDS, places) if number < places + JOBS_BESIDE else 1
    return Among(QUIET_SECONDS, of_tenant_below=few, of_job_below=int(number < JOBS_BESIDE))
