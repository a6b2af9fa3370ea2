"""Keeps a worker whose places are all taken open to those at whose jobs nobody works.

Its messages fill a worker's places, and shards with slow calls hold them for minutes. A tenant's first shards need none of
these places, nor does a job's first one, up to some beside; where those are taken too, one of the big jobs' shards gives way: what was
on the wire in it is awaited and kept, and the shard is taken up again later. Jobs that wait only to be finalized need no place at all.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import structlog

from app.db.engine import single_statements
from app.db.execution import shards
from app.db.execution.shards import MOST, Among
from app.db.jobs import jobs
from app.services.execution.background_tasks import FINALIZATION, Aside, Finalize
from app.services.execution.shard_work import ShardDependencies
from app.services.scheduling.run_shard import claim_next, run_claimed

log = structlog.get_logger(__name__)

RELIEF_SECONDS = 0.2
"""How often a full worker looks for jobs that wait."""

QUIET_SECONDS = 0.3
"""How long an announced shard is left to a worker that has a place."""

FIRST_SHARDS = 4
"""Shards of a tenant, of all jobs and in all workers, that a full worker takes up all the same.

The very first of each; of all tenants' others, at most as many as it has places.
"""

PLACES_BESIDE = 4
"""Jobs' first shards that a full worker takes up all the same."""

UNFINALIZED_SECONDS = 1.0
"""How long a job's message that it can be finalized may wait for a place."""

OF_TENANT = "a tenant's shard beside"
OF_JOB = "a job's shard beside"


@contextlib.asynccontextmanager
async def relieving(
    deps: ShardDependencies, aside: Aside, finalize: Finalize, places: int
) -> AsyncIterator[None]:
    """Looks after the waiting jobs in the background, whenever all places are taken."""

    async def repeat() -> None:
        while True:
            await asyncio.sleep(RELIEF_SECONDS)
            if deps.leases.held >= places and not deps.leases.stopping:
                try:
                    await relieve(deps, aside, finalize, places)
                except Exception:
                    log.exception("waiting jobs not looked after; trying again")

    task = asyncio.create_task(repeat(), name="relief")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def relieve(deps: ShardDependencies, aside: Aside, finalize: Finalize, places: int) -> None:
    """Takes up what waits, as far as there are places beside, and finalizes jobs that wait for no more than that."""
    of_new, of_few = (Among(QUIET_SECONDS, of_tenant_below=below) for below in (1, min(FIRST_SHARDS, places)))
    of_jobs = Among(QUIET_SECONDS, of_job_below=1)
    await _take_up(deps, aside, OF_TENANT, of_new, MOST)  # however many other tenants' there are
    await _take_up(deps, aside, OF_TENANT, of_few, places)
    await _take_up(deps, aside, OF_JOB, of_jobs, PLACES_BESIDE)
    async with single_statements(deps.engine) as connection:
        if (
            aside.number(OF_JOB) >= PLACES_BESIDE
            and await shards.next_in_turn(connection, of_jobs) is not None
        ):
            deps.leases.give_way()
        unsettled = await jobs.unsettled_jobs(connection, UNFINALIZED_SECONDS)
    for job_id in unsettled:
        aside.begin(finalize(job_id), FINALIZATION)


async def _take_up(deps: ShardDependencies, aside: Aside, kind: str, among: Among, most: int) -> None:
    while aside.number(kind) < most and (claimed := await claim_next(deps, among)) is not None:
        aside.begin(run_claimed(deps, claimed), kind)
