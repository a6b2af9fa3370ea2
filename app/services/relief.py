"""Keeps a worker whose places are all taken open to the jobs that wait for one.

A big job's shards can fill a worker for minutes. A job at which nobody works gets a place beside them then; where
those are taken too, one of the big job's shards gives way: what was on the wire in it is awaited and kept, and the shard
is taken up again later. Jobs that wait only to be finalized need no place at all.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import structlog

from app.db import jobs, shards
from app.db.engine import single_statements
from app.services.aside import FINALIZATION, Aside, Finalize
from app.services.run_shard import NEGLECTED_SECONDS, run_one
from app.services.shard_work import ShardDependencies

log = structlog.get_logger(__name__)

RELIEF_SECONDS = 0.2
"""How often a full worker looks for jobs that wait."""

PLACES_BESIDE = 4
"""Shards of waiting jobs that a full worker takes up all the same."""

UNFINALIZED_SECONDS = 1.0
"""How long a job's message that it can be finalized may wait for a place."""

NEGLECTED = "neglected shard"


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
                    await relieve(deps, aside, finalize)
                except Exception:
                    log.exception("waiting jobs not looked after; trying again")

    task = asyncio.create_task(repeat(), name="relief")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def relieve(deps: ShardDependencies, aside: Aside, finalize: Finalize) -> None:
    """Lets waiting jobs have a place each, as far as there are any, and finalizes those that wait for no more than that."""
    places = PLACES_BESIDE - aside.number(NEGLECTED)
    async with single_statements(deps.engine) as connection:
        neglected = await shards.neglected(connection, NEGLECTED_SECONDS, max(1, places))
        unsettled = await jobs.unsettled_jobs(connection, UNFINALIZED_SECONDS)
    if neglected and not places:
        deps.leases.give_way()
    for shard_id in neglected[:places]:
        aside.begin(run_one(deps, shard_id), NEGLECTED)
    for job_id in unsettled:
        aside.begin(finalize(job_id), FINALIZATION)
