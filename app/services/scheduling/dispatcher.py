"""The dispatcher: decides what a worker does next.

A message only says that there is work. One about shards keeps a place of the worker for the shard whose turn it is; others name
a job, a batch or a file, which tenants take in turns, and need no place.

Shards with slow calls hold places for minutes. So a full worker takes up first shards beside its places: every tenant's very
first one, and, up to a bound, a tenant's next few and each job's first. The newest jobs have a few places of their own, so that
a small job progresses beside thousands of slow ones of its tenant.
"""

import asyncio
import contextlib
import importlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from app import clock
from app.db.batches import batches, files
from app.db.engine import single_statements
from app.db.execution import shards
from app.db.execution.shards import ALL, Among, AnyClaim
from app.db.health import is_away
from app.db.jobs import jobs
from app.db.reasons import reason
from app.domain.jobs.status import ENDING
from app.services.batches.advance import advance_batch
from app.services.batches.files import delete_batch_file
from app.services.execution.shard_work import ShardDependencies
from app.services.execution.stop_signal import StopReason
from app.services.scheduling.run_shard import Claimed, run_claimed
from app.services.tenant_turns import TenantTurns, TurnedWork
from app.telemetry.vital import vital_tasks

log = structlog.get_logger(__name__)

FINALIZATIONS_AT_A_TIME = 2
"""Each holds a connection of the shards' pool and, while it computes, all scores of its job."""
BATCHES_AT_A_TIME = 16
"""Batches, and files, under way at a time; an upload may take half an hour."""

LOOK_SECONDS = 0.2
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
"""How long a job's message that it can be finalized may wait for a full worker."""

FEW_SHARDS = 4
"""A process that holds fewer shards claims the next one at once, whatever it has to do."""
BUSY_SECONDS = 0.003
"""An event loop whose turns take longer is busy: each step of a shard waits for so long."""
EASE_SECONDS, TURNS_WATCHED = 0.02, 5
"""Pause before each look at the event loop, and number of turns that it takes."""
BUSIEST_SECONDS = 1.0
"""A busy process claims a further shard after so long all the same."""

BESIDE, FINALIZATION, BATCH = "shard beside the places", "finalization", "batch"
"""Kinds of work that are counted or ended together."""
NEWEST = "shard of a newest job"

Key = TypeVar("Key")


class Dispatcher:
    """One a process.

    Args:
        deps: What shards need.
        places: Messages about shards that this process works on at a time.
    """

    def __init__(self, deps: ShardDependencies, places: int) -> None:
        self._deps = replace(deps, finalize=self.finalize)
        self._few = min(FIRST_SHARDS, places)
        self._most_beside = places + JOBS_BESIDE
        self._places = asyncio.Semaphore(places)
        self._newest: dict[AnyClaim, float] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._finalizations = self._in_turns(FINALIZATIONS_AT_A_TIME, jobs.tenant_of_unended, self._finalize)
        advance, delete = partial(advance_batch, self._deps), partial(delete_batch_file, self._deps)
        self._batches = self._in_turns(BATCHES_AT_A_TIME, batches.tenant_of_unended, advance)
        self._files = self._in_turns(BATCHES_AT_A_TIME, files.tenant_of, delete)

    # -- messages -----------------------------------------------------------------------------------------------------

    async def run_shard(self, shard_id: int) -> None:
        """Run the shard whose turn it is, see :func:`run_next`, once there is a place."""
        async with self._places:
            await run_next(self._deps, shard_id)

    async def finalize(self, job_id: str) -> None:
        """Begin to finalize a job; a process that is about to stop tells the others instead."""
        if self._deps.leases.stopping:
            await self._deps.queue.announce_finalize(job_id)
        else:
            self._begin(self._finalizations(job_id), FINALIZATION)

    async def advance_batch(self, batch_id: int) -> None:
        """Begin to advance a batch; in a process that is about to stop it stays due."""
        if not self._deps.leases.stopping:
            self._begin(self._batches(batch_id), BATCH)

    async def delete_batch_file(self, file_id: str) -> None:
        """Begin to delete a batch file at its provider; in a process that is about to stop it stays due."""
        if not self._deps.leases.stopping:
            self._begin(self._files(UUID(file_id)), BATCH)

    # -- its own looks ------------------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Look at the database in the background; at the end wait for all that was begun."""
        async with vital_tasks(dispatcher=self._look_often()):
            yield
        await self.ended()

    async def ended(self) -> None:
        """Wait for all that was begun."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def stop(self) -> None:
        """Take up nothing more, and give back what is held once its calls on the wire have ended."""
        log.info("the worker stops", shards=self._deps.leases.held)
        self._deps.leases.stop_all(StopReason.SHUTDOWN)
        # An upload may take half an hour; the next worker goes on from the batch's state.
        for task in self._tasks:
            if task.get_name() == BATCH:
                task.cancel()

    def abandon(self) -> None:
        """Give up the calls that are still on the wire after :meth:`stop`."""
        if calls := self._deps.leases.cut_all():
            log.warning("calls abandoned", calls=calls)

    async def _look_often(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if self._places.locked() and not self._deps.leases.stopping:
                try:
                    await self.look()
                except Exception as error:
                    if not is_away(error):
                        log.exception("waiting jobs not looked after; trying again")
                    else:
                        log.warning("waiting jobs not looked after; trying again", reason=reason(error))

    async def look(self) -> None:
        """Take up what may run beside the places, and finalize jobs that wait for no more than that."""
        await self.take_first_shards()
        await self.take_newest()
        async with single_statements(self._deps.engine) as connection:
            unsettled = await jobs.unsettled_jobs(connection, UNFINALIZED_SECONDS, ENDING)
        for job_id in unsettled:
            await self.finalize(job_id)

    async def take_first_shards(self) -> None:
        """Take up first shards of tenants and jobs."""
        while (claimed := await self._claim_beside(self._among_first())) is not None:
            self._begin(run_claimed(self._deps, claimed), BESIDE)

    def _among_first(self) -> Among:
        """Which shards may run beside the places now."""
        number = sum(task.get_name() == BESIDE for task in self._tasks)
        few = self._few if number < self._most_beside else 1
        return Among(QUIET_SECONDS, of_tenant_below=few, of_job_below=int(number < JOBS_BESIDE))

    async def take_newest(self) -> None:
        """Take up the first shards of the newest jobs of which no shard is held; the oldest of them gives way to a newer job's."""
        leases, now = self._deps.leases, asyncio.get_running_loop().time
        while True:
            self._newest = {claim: at for claim, at in self._newest.items() if leases.is_working(claim)}
            among = Among(QUIET_SECONDS, of_tenant_below=0, of_job_below=1, newest_first=True)
            oldest = min(self._newest, key=lambda claim: claim.job_id, default=None)
            if oldest is not None and len(self._newest) >= NEWEST_JOBS:
                if now() - self._newest[oldest] < GIVE_WAY_SECONDS:
                    return
                among = among._replace(newer_than=oldest.job_id)
            else:
                oldest = None
            claimed = await self._claim_beside(among)
            if claimed is None:
                return
            if oldest is not None:
                leases.stop(oldest, StopReason.GIVING_WAY)
            self._newest[claimed.claim] = now()
            self._begin(run_claimed(self._deps, claimed), NEWEST)
            await asyncio.sleep(0)  # now it is held

    async def _claim_beside(self, among: Among) -> Claimed | None:
        """Claim a shard for a place beside the others; none for a worker that stops, which would only give it back."""
        return None if self._deps.leases.stopping else await claim_next(self._deps, among)

    # -- what was begun -----------------------------------------------------------------------------------------------

    def _begin(self, work: Coroutine[Any, Any, None], kind: str) -> None:
        """Begin something that ends by itself; an error is logged, and what it left undone is found again."""
        task = asyncio.create_task(_logged(work, kind), name=kind)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _in_turns(
        self,
        places: int,
        tenant_of: Callable[[AsyncConnection, Key], Awaitable[str | None]],
        work: Callable[[Key], Awaitable[None]],
    ) -> TurnedWork[Key]:
        async def find_tenant(key: Key) -> str | None:
            async with single_statements(self._deps.engine) as connection:
                return await tenant_of(connection, key)

        return TurnedWork(TenantTurns(places), find_tenant, work)

    async def _finalize(self, job_id: str) -> None:
        """Finalize a job. It needs scipy, which the first one imports on a thread so that no call waits for the import."""
        if not self._deps.leases.stopping:
            module = await asyncio.to_thread(importlib.import_module, "app.services.results.finalize")
            await module.finalize_job(self._deps.engine, self._deps.contexts, job_id)


async def _logged(work: Coroutine[Any, Any, None], kind: str) -> None:
    structlog.contextvars.clear_contextvars()  # those of the shard during which it was begun
    try:
        await work
    except Exception:
        log.exception("left to the sweeper", kind=kind)


async def run_next(deps: ShardDependencies, shard_id: int) -> None:
    """Run the shard whose turn it is, if there is one: a message says that there is work, and names this one.

    While the database is away, or other transactions hold locks for too long, the shard is left to the sweeper.
    """
    try:
        claimed = await claim_next(deps, shard_id=shard_id) or await _claim_locked(deps, shard_id)
        if claimed is not None:
            await run_claimed(deps, claimed)
    except Exception as error:
        if not is_away(error):
            raise
        log.warning("shard left to the sweeper", shard=shard_id, reason=reason(error))


async def claim_next(
    deps: ShardDependencies, among: Among = ALL, shard_id: int | None = None
) -> Claimed | None:
    """Claim the shard whose turn it is; see :func:`app.db.execution.shards.claim_next`. One at a time, so that each counts for the next."""
    async with deps.leases.claiming:
        if deps.leases.held >= FEW_SHARDS:
            await _keeping_up()
        async with single_statements(deps.engine) as connection:
            asked = clock.monotonic()
            claim = await shards.claim_next(
                connection, deps.owner, deps.lease_seconds, among, shard_id, held=deps.leases.shard_ids
            )
    return None if claim is None else Claimed(claim, asked)


async def _keeping_up() -> None:
    """Wait until the event loop keeps up with its work, so that a small job's steps do not wait behind those of many shards."""
    now = asyncio.get_running_loop().time
    until = now() + BUSIEST_SECONDS
    while now() < until:
        await asyncio.sleep(EASE_SECONDS)
        begun = now()
        for _ in range(TURNS_WATCHED):
            await asyncio.sleep(0)
        if now() - begun < TURNS_WATCHED * BUSY_SECONDS:
            return


async def _claim_locked(deps: ShardDependencies, shard_id: int) -> Claimed | None:
    """Claim a shard that was passed over because it or its job was locked, once it is not.

    Not only the one that the message names: another shard's message may have claimed that one.
    """
    while True:
        async with single_statements(deps.engine) as connection:
            found = await shards.first_claimable(connection, shard_id, held=deps.leases.shard_ids)
            if found is None:
                return None
            asked = clock.monotonic()
            claim = await shards.claim(connection, found, deps.owner, deps.lease_seconds)
        if claim is not None:
            return Claimed(claim, asked)
