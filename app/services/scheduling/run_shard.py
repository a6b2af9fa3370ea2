"""Runs one claimed shard: does its missing work, and ends it or gives it back.

Everything that decides what to do is read from the database after the claim, so a shard may be run any number of
times, by anybody.
"""

import asyncio
import contextlib
from typing import NamedTuple

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.engine import single_statements
from app.db.execution import response_cache, shards
from app.db.execution.shards import AnyClaim, Claim, PreparationClaim
from app.db.health import is_away
from app.db.jobs import jobs, preparations
from app.db.reasons import reason
from app.domain.instruments.rules import UnknownVersionError
from app.domain.jobs.contract import JobError
from app.domain.jobs.execution import Execution
from app.domain.jobs.plan import GymCell, atomic
from app.domain.jobs.specification import JobSpec
from app.domain.jobs.status import ACTIVE, ENDING, JobStatus
from app.domain.judging.reply_claims import reader
from app.domain.personagym.task import GRADE_SCALE
from app.domain.providers.extra import EXTRA_FIELDS
from app.domain.providers.failure import remedy
from app.services.batches.caller import DeferredError
from app.services.batches.shards import calling_as_asked, form_batches
from app.services.errors import CallNotAllowedError
from app.services.execution.atomic_responses import AtomicResponses
from app.services.execution.generate_personas import MakingPersonas
from app.services.execution.personagym_answers import GymAnswers
from app.services.execution.prepare_persona import Preparation
from app.services.execution.result_writer import StaleClaimError
from app.services.execution.retries import JobMustStopError
from app.services.execution.shard_work import ShardDependencies, ShardWork
from app.services.execution.stop_signal import StoppedError, StopReason, StopSignal
from app.services.execution.stopping import MAX_SHARD_FAILURES, halt_job, internal_error, not_allowed, settle
from app.services.execution.suspect_replies import ask_again, report_surplus
from app.services.job_context import JobContext
from app.services.keys.tenant_limits import is_resumed
from app.services.sets.freeze import freeze_made
from app.telemetry.metrics import SHARD_FAILURES
from app.telemetry.tracing import shard_span

log = structlog.get_logger(__name__)

SHUTDOWN_SECONDS = 10.0
"""How long a worker that goes down waits for a database that does not take a shard's last rows."""

UNKNOWN_VERSION = "unknown_version"


class Claimed(NamedTuple):
    """A claim, and a moment of the monotonic clock before it was made."""

    claim: AnyClaim
    asked: float


async def run_claimed(deps: ShardDependencies, claimed: Claimed) -> None:
    """Runs a shard that was claimed."""
    claim, stop = claimed.claim, StopSignal()
    with (
        structlog.contextvars.bound_contextvars(job=claim.job_id, shard=claim.shard_id),
        deps.leases.holding(claim, stop, claimed.asked),
    ):
        await _work(deps, claim, stop)
        deps.late_suspects.watch(claim, stop)
        if stop.surplus_from:
            async with deps.engine.begin() as connection:
                await report_surplus(connection, claim.tenant, claim.job_id, stop.surplus_from)


async def _work(deps: ShardDependencies, claim: AnyClaim, stop: StopSignal) -> None:
    """Does the work of a claimed shard and ends it or gives it back."""
    halt = _EarlyHalt(deps, claim)
    stop.on_failure = halt.begin
    try:
        async with deps.changes.of(claim.tenant):
            if claim.waited:
                async with single_statements(deps.engine) as connection:
                    await shards.start_job(connection, claim.job_id)
            context = await deps.contexts.get(claim.tenant, claim.job_id)
            await asyncio.to_thread(_load_rules, deps, context)
            await _require_allowed_calls(deps, claim, context.spec)
        stop.holds_replies = isinstance(claim, PreparationClaim) or context.spec.reuse.wanted
        with shard_span(context.traceparent, claim.queued_seconds, _traced(claim)):
            async with calling_as_asked(deps, claim, context) as ready:
                await _work_of(ready, claim, stop, context).run()
            if await stop.suspects():
                await _give_back(deps, claim, stop)
            else:
                await _finish(deps, claim, context)
    except DeferredError:
        await _park(deps, claim)
    except (StoppedError, StaleClaimError):
        await _give_back(deps, claim, stop)
    except JobMustStopError as error:
        await halt.done()
        failure = await halt_job(deps.engine, claim.job_id, error, claimed_at=claim.claimed_at)
        await _give_back(deps, claim, stop, failure)
    except Exception as error:
        if is_away(error):  # no fault of the shard's: its time comes when the database is back
            log.warning("shard given back", reason=reason(error))
            await _give_back(deps, claim, stop)
            return
        if isinstance(error, UnknownVersionError | CallNotAllowedError):
            log.warning("job not continued", reason=str(error))
            await _give_back(deps, claim, stop, error)
            return
        # Whatever it is, the shard goes back: what is recorded stays, what is missing is found by the next claim.
        log.exception("shard failed")
        SHARD_FAILURES.inc()
        await _give_back(deps, claim, stop, error)


def _traced(claim: AnyClaim) -> dict[str, str | int]:
    """What its span says of a shard."""
    kind = "preparation" if isinstance(claim, PreparationClaim) else "responses"
    return {
        "assay.tenant": claim.tenant,
        "assay.job.id": claim.job_id,
        "assay.shard.id": claim.shard_id,
        "assay.shard.kind": kind,
    }


def _load_rules(deps: ShardDependencies, context: JobContext) -> None:
    """Load what a job's texts and replies are read by, which takes a second the first time.

    Refuses a job before anything of it is paid for, where this release can't keep what it was promised.

    Raises:
        UnknownVersionError: If it lacks a version that the job names.
    """
    spec = context.spec
    deps.rules.load(spec.instrument)
    for model in spec.called:
        if model.takes is not None:
            EXTRA_FIELDS.load(model.takes.extra_fields)
    for asked in (*context.dimensions, *([] if spec.gym is None else [GRADE_SCALE])):
        reader(asked)


async def _require_allowed_calls(deps: ShardDependencies, claim: AnyClaim, spec: JobSpec) -> None:
    """Refuse a shard whose calls are not allowed today; those of a batch are checked before it is submitted.

    Raises:
        CallNotAllowedError: With the reason.
    """
    rules = deps.call_rules
    is_direct = isinstance(claim, PreparationClaim) or spec.execution is Execution.DIRECT
    if is_direct and not rules.were_checked(claim.job_id):
        async with single_statements(deps.engine) as connection:
            await rules.check(connection, claim.tenant, claim.job_id, spec)
        rules.note_check(claim.job_id)


def _work_of(deps: ShardDependencies, claim: AnyClaim, stop: StopSignal, context: JobContext) -> ShardWork:
    """What a claim is a claim to do."""
    if isinstance(claim, PreparationClaim):
        if context.spec.generation is not None:
            return MakingPersonas(deps, claim, stop, context.spec.generation)
        return Preparation(deps, claim, stop, context)
    cell = context.cell(claim.cell)
    if isinstance(cell, GymCell):
        return GymAnswers(deps, claim, stop, context, cell)
    return AtomicResponses(deps, claim, stop, context, atomic([cell])[0])


async def _finish(deps: ShardDependencies, claim: AnyClaim, context: JobContext) -> None:
    async with deps.changes.of(claim.tenant), deps.engine.begin() as connection:
        status = await jobs.lock_job(connection, claim.job_id)
        if isinstance(claim, PreparationClaim):
            finished = await _finish_preparation(connection, claim, context)
        else:
            finished = await shards.finish(connection, claim)
        if finished and context.spec.reuse.wanted:
            await response_cache.store_reuse(connection, claim.shard_id)
        if not finished:
            if not await shards.holds(connection, claim):
                raise StaleClaimError  # this machine stood still, and another worker has the shard
            raise RuntimeError("the shard's rows are not all there")
        announced: list[int] = []
        if status in ACTIVE:
            announced = await shards.refill(connection, claim.job_id, deps.window)
        settled = await settle(connection, claim.job_id, status)
    deps.leases.given_back(claim)
    await deps.queue.announce_shards(announced)
    if settled:
        await deps.finalize(claim.job_id)


async def _park(deps: ShardDependencies, claim: AnyClaim) -> None:
    """Gives a shard back that waits for batches, and forms those that nothing can be added to."""
    if not isinstance(claim, Claim):
        raise TypeError("what is prepared is called directly")
    announced: list[int] = []
    formed: list[int] = []
    async with deps.engine.begin() as connection:
        status = await jobs.lock_job(connection, claim.job_id)
        await shards.park(connection, claim)
        if status in ACTIVE:
            announced = await shards.refill(connection, claim.job_id, deps.window)
            formed = await form_batches(connection, claim.job_id, deps.batching.most_calls)
        settled = status in ENDING and await settle(connection, claim.job_id, status)
    deps.leases.given_back(claim)
    await deps.queue.announce_shards(announced)
    await deps.queue.announce_batches(formed)
    if settled:
        await deps.finalize(claim.job_id)


async def _finish_preparation(
    connection: AsyncConnection, claim: PreparationClaim, context: JobContext
) -> bool:
    """Ends a preparation; the one that ends last freezes the job's questions, or the personas that it made up."""
    finished = await shards.finish_preparation(connection, claim)
    if finished and await preparations.all_done(connection, claim.job_id):
        await freeze_made(connection, claim.tenant, claim.job_id, context.spec)
    return finished


async def _until_written(deps: ShardDependencies, claim: AnyClaim, stop: StopSignal) -> None:
    """Waits until what was answered is on disk: who claims the shard next asks anew for all that is not."""
    seconds = SHUTDOWN_SECONDS if stop.reason is StopReason.SHUTDOWN else None
    with contextlib.suppress(Exception):  # rows that were refused or lost are among those asked for anew
        async with asyncio.timeout(seconds):
            await deps.writer.add(claim).durable(claim)


async def _give_back(
    deps: ShardDependencies, claim: AnyClaim, stop: StopSignal, error: Exception | None = None
) -> None:
    """Gives an unfinished shard back, once all its rows are written, and does what its job now needs.

    What was made of suspect replies is deleted. An active job's shards are announced again; after an internal error only by
    the sweeper, which makes a pause between the attempts. A job that ends early ends with its last lease. One whose version
    this release lacks, or whose calls are not allowed today, is paused at once.
    """
    await _until_written(deps, claim, stop)
    announced: list[int] = []
    suspects = await stop.suspects()
    async with deps.changes.of(claim.tenant), deps.engine.begin() as connection:
        status = await jobs.lock_job(connection, claim.job_id)
        faulty = None
        if suspects and await shards.holds(connection, claim):
            faulty = await ask_again(connection, claim, suspects)
        if isinstance(error, CallNotAllowedError) and await is_resumed(connection, claim.tenant, error):
            error = None
        failures = await shards.release(connection, claim, failed=error is not None)
        settled = status in ENDING and await settle(connection, claim.job_id, status)
        why = faulty if error is None else _pause_error(error, failures, claim)
        if why is not None:
            await jobs.move(
                connection,
                claim.job_id,
                to=JobStatus.PAUSED,
                reason=why.code,
                error=why,
            )
        elif status in ACTIVE and error is None:
            announced = await shards.refill(connection, claim.job_id, deps.window)
    deps.leases.given_back(claim)
    await deps.queue.announce_shards(announced)
    if settled:
        await deps.finalize(claim.job_id)


def _pause_error(error: Exception, failures: int, claim: AnyClaim) -> JobError | None:
    """The ``error`` of a job that is paused because of one of a shard's; ``None`` where the shard is tried again."""
    if isinstance(error, UnknownVersionError):
        return JobError(code=UNKNOWN_VERSION, detail=str(error), remedy=remedy(UNKNOWN_VERSION))
    if isinstance(error, CallNotAllowedError):
        return not_allowed(error)
    if failures < MAX_SHARD_FAILURES:
        return None
    return internal_error(error, shard=claim.shard_id)


class _EarlyHalt:
    """Stops a job at the first error that says it must stop, while other calls of the shard are still on the wire.

    One that has got nowhere yet is left to the end of the shard, when it is known whether there was any reply.
    """

    def __init__(self, deps: ShardDependencies, claim: AnyClaim) -> None:
        self._deps = deps
        self._claim = claim
        self._task: asyncio.Task[None] | None = None

    def begin(self, error: Exception) -> None:
        """Stops the job's shards in this process now, and those of other processes as soon as the database knows."""
        if self._task is None and isinstance(error, JobMustStopError):
            self._task = asyncio.create_task(self._run(error))

    async def done(self) -> None:
        """Waits until it is done."""
        if self._task is not None:
            await self._task

    async def _run(self, error: JobMustStopError) -> None:
        with self._deps.leases.halting(self._claim.job_id):
            with contextlib.suppress(Exception):  # the job is to be stopped all the same
                # What was answered before is known to the database before it is asked.
                await self._deps.writer.add(self._claim).durable(self._claim)
            claim = self._claim
            await halt_job(self._deps.engine, claim.job_id, error, early=True, claimed_at=claim.claimed_at)
