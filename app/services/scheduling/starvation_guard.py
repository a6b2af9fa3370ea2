"""The starvation guard: lets a fully occupied worker take shards of jobs that no worker serves.

Its messages fill a worker's places, and shards with slow calls hold them for minutes. So a full worker takes up first
shards beside its places: every tenant's very first one, and, up to a bound, a tenant's next few and each job's first. Jobs that
wait only to be finalized need no place at all.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import structlog

from app.db.engine import single_statements
from app.db.execution.shards import Among
from app.db.jobs import jobs
from app.services.execution.background_tasks import FINALIZATION, BackgroundTasks, Finalize
from app.services.execution.shard_work import ShardDependencies
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

UNFINALIZED_SECONDS = 1.0
"""How long a job's message that it can be finalized may wait for a place."""

BESIDE = "a shard beside the places"


@contextlib.asynccontextmanager
async def guard_against_starvation(
    deps: ShardDependencies, background: BackgroundTasks, finalize: Finalize, places: int
) -> AsyncIterator[None]:
    """Looks after the waiting jobs in the background, whenever all places are taken."""

    async def repeat() -> None:
        while True:
            await asyncio.sleep(GUARD_SECONDS)
            if deps.leases.held >= places and not deps.leases.stopping:
                try:
                    await start_waiting_shards(deps, background, finalize, places)
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
        unsettled = await jobs.unsettled_jobs(connection, UNFINALIZED_SECONDS)
    for job_id in unsettled:
        background.begin(finalize(job_id), FINALIZATION)


def _beside(number: int, places: int) -> Among:
    """Which shards a full worker may take up that has a number of them beside its places."""
    few = min(FIRST_SHARDS, places) if number < places + JOBS_BESIDE else 1
    return Among(QUIET_SECONDS, of_tenant_below=few, of_job_below=int(number < JOBS_BESIDE))
