"""Keeps a worker whose places are all taken open to the jobs that wait for one.

A big job's shards can fill a worker for minutes. A job at which nobody works gets one of their places then; what was on
the wire in it is awaited and kept, and the shard is taken up again later. Jobs that wait only to be finalized need
no place at all.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import structlog

from app.db import jobs, shards
from app.services.run_shard import NEGLECTED_SECONDS
from app.services.shard_work import ShardDependencies

log = structlog.get_logger(__name__)

RELIEF_SECONDS = 0.5
"""How often a full worker looks for jobs that wait."""

UNFINALIZED_SECONDS = 1.0
"""How long a job's message that it can be finalized may wait for a place."""


@contextlib.asynccontextmanager
async def relieving(deps: ShardDependencies, places: int) -> AsyncIterator[None]:
    """Looks after the waiting jobs in the background, whenever all places are taken."""

    async def repeat() -> None:
        while True:
            await asyncio.sleep(RELIEF_SECONDS)
            if deps.leases.held >= places:
                try:
                    await relieve(deps)
                except Exception:
                    log.exception("waiting jobs not looked after; trying again")

    task = asyncio.create_task(repeat(), name="relief")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def relieve(deps: ShardDependencies) -> None:
    """Lets one waiting job have a place, and finalizes those that wait for no more than that."""
    from app.services.finalize_job import finalize_job  # noqa: PLC0415 - scipy: not while the worker starts

    async with deps.engine.begin() as connection:
        neglected = await shards.neglected(connection, NEGLECTED_SECONDS)
        unsettled = await jobs.unsettled_jobs(connection, UNFINALIZED_SECONDS)
    if neglected is not None:
        deps.leases.give_way()
    for job_id in unsettled:
        await finalize_job(deps.engine, deps.contexts, job_id)
