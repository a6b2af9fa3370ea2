"""Runs one shard: claims it, does what in it is still missing, and ends it or gives it back.

A response is split and judged as soon as it is durable; nothing waits for other responses. Everything that decides
what to do is read from the database after the claim, so a shard may be run any number of times, by anybody.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any

import structlog
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db import jobs, shards
from app.db.shards import Claim, StoredResponse
from app.db.writer import ResponseRow, VerdictRow
from app.domain.dimension import Dimension
from app.domain.model import ChatReply, FinishReason, Model, Stage
from app.domain.plan import Cell
from app.domain.prompts import scoring_prompt, system_prompt, user_prompt
from app.domain.refusal import RefusalRules
from app.domain.segmentation import Segmenter, Unit, units_at
from app.domain.status import ACTIVE, JobStatus
from app.domain.task import Item
from app.domain.verdict import Verdict, VerdictStatus, parse_verdict
from app.ports import Queue
from app.services.batch_writer import Batch, BatchWriter, StaleClaimError
from app.services.job_context import JobContext, JobContexts
from app.services.lease_keeper import LeaseKeeper
from app.services.model_caller import CallFailedError, CallKey, JobMustStopError, ModelCaller
from app.services.stop_signal import StoppedError, StopReason, StopSignal

log = structlog.get_logger(__name__)

MAX_GENERATED_UNITS = 1_000
"""A model that writes more sentences than this has lost itself; judging them would cost a call each."""

MAX_SHARD_FAILURES = 5
"""After so many errors of ours in one shard the job is paused instead of trying for ever."""

ENDING = frozenset({JobStatus.CANCELLING, JobStatus.FINALIZING})
REFUSING = frozenset({FinishReason.REFUSAL, FinishReason.CONTENT_FILTER})


@dataclass(frozen=True, slots=True)
class ShardDependencies:
    """What running shards takes; built once a process."""

    engine: AsyncEngine
    writer: BatchWriter
    caller: ModelCaller
    leases: LeaseKeeper
    contexts: JobContexts
    queue: Queue
    segmenter: Segmenter
    refusals: RefusalRules
    owner: str
    lease_seconds: float
    window: int


async def run_shard(deps: ShardDependencies, shard_id: int) -> None:
    """Runs a shard if it can be claimed; does nothing otherwise."""
    async with deps.engine.begin() as connection:
        claim = await shards.claim(connection, shard_id, deps.owner, deps.lease_seconds)
    if claim is None:
        return
    stop = StopSignal()
    with deps.leases.holding(claim, stop):
        await _work(deps, claim, stop)


async def _work(deps: ShardDependencies, claim: Claim, stop: StopSignal) -> None:
    """Does the work of a claimed shard and ends it or gives it back."""
    try:
        async with deps.engine.begin() as connection:
            await shards.start_job(connection, claim.job_id)
        context = await deps.contexts.get(claim.tenant, claim.job_id)
        await _ShardRun(deps, claim, stop, context).run()
        await _finish(deps, claim)
    except (StoppedError, StaleClaimError):
        await _give_back(deps, claim)
    except JobMustStopError as error:
        await _give_back(deps, claim, await _halt(deps, claim, error))
    except Exception as error:
        # Whatever it is, the shard goes back: what is recorded stays, what is missing is found by the next claim.
        log.exception("shard failed", job=claim.job_id, shard=claim.shard_id)
        await _give_back(deps, claim, error)


async def _finish(deps: ShardDependencies, claim: Claim) -> None:
    async with deps.engine.begin() as connection:
        status = await jobs.lock_job(connection, claim.job_id)
        if not await shards.finish(connection, claim):
            raise RuntimeError("the shard's rows are not all there, or its claim is gone")
        announced: list[int] = []
        if status in ACTIVE:
            announced = await shards.refill(connection, claim.job_id, deps.window)
        settled = await settle(connection, claim.job_id, status)
    await deps.queue.announce_shards(announced)
    if settled:
        await deps.queue.announce_finalize(claim.job_id)


async def settle(connection: AsyncConnection, job_id: str, status: JobStatus | None) -> bool:
    """Whether a locked job can be finalized now; moves it to ``finalizing`` where its shards are all done.

    A job that ends early, cancelled or failed, waits for its last lease: calls on the wire are still recorded.
    """
    open_, leased = await jobs.open_work(connection, job_id)
    if status in ENDING:
        return leased == 0
    if open_ == 0:
        return await jobs.move(connection, job_id, leave=list(ACTIVE), to=JobStatus.FINALIZING)
    return False


async def _give_back(deps: ShardDependencies, claim: Claim, error: Exception | None = None) -> None:
    """Gives an unfinished shard back, and does what its job now needs.

    An active job's shards are announced again; after an error of ours only by the sweeper, which makes a pause between
    the attempts. A job that ends early ends with its last lease.
    """
    announced: list[int] = []
    async with deps.engine.begin() as connection:
        status = await jobs.lock_job(connection, claim.job_id)
        failures = await shards.release(connection, claim, failed=error is not None)
        settled = status in ENDING and await settle(connection, claim.job_id, status)
        if failures >= MAX_SHARD_FAILURES:
            await jobs.move(
                connection,
                claim.job_id,
                leave=list(ACTIVE),
                to=JobStatus.PAUSED,
                reason="internal_error",
                error={"code": "internal_error", "detail": type(error).__name__, "shard": claim.shard_id},
            )
        elif status in ACTIVE and error is None:
            announced = await shards.refill(connection, claim.job_id, deps.window)
    await deps.queue.announce_shards(announced)
    if settled:
        await deps.queue.announce_finalize(claim.job_id)


async def _halt(deps: ShardDependencies, claim: Claim, error: JobMustStopError) -> Exception | None:
    """Stops the job.

    A job that has got somewhere is paused: what is paid for is kept, and it can be resumed once the cause is mended.
    One whose very first calls are turned down (a misspelt model, a wrong key) fails at once.

    Returns:
        What kept it from being stopped, if anything did.
    """
    detail = {"code": error.code, "detail": str(error), "model": error.model}
    try:
        async with deps.engine.begin() as connection:
            hopeless = not await jobs.any_call_succeeded(connection, claim.job_id)
            await jobs.move(
                connection,
                claim.job_id,
                leave=list(ACTIVE),
                to=JobStatus.FINALIZING if hopeless else JobStatus.PAUSED,
                reason=error.code,
                error=detail,
            )
    except SQLAlchemyError as failure:
        log.exception("job not stopped", job=claim.job_id, code=error.code)
        return failure
    log.warning("job stopped", job=claim.job_id, failed=hopeless, **detail)
    return None


class _ShardRun:
    """The work of one claim."""

    def __init__(self, deps: ShardDependencies, claim: Claim, stop: StopSignal, context: JobContext) -> None:
        self.deps = deps
        self.claim = claim
        self.stop = stop
        self.spec = context.spec
        self.cell: Cell = context.cells[claim.cell]
        self.model: Model = context.spec.models[self.cell.model]
        self.recorded: set[tuple[int, int, int, int, int]] = set()
        self.last_batch: Batch | None = None

    async def run(self) -> None:
        """Does everything that is missing and waits until it is durable."""
        async with self.deps.engine.connect() as connection:
            stored = {(r.run, r.item): r for r in await shards.stored_responses(connection, self.claim)}
            self.recorded = await shards.stored_verdicts(connection, self.claim)
        if self.spec.provided:
            work = [self._judge_response(response) for response in stored.values()]
        else:
            work = [
                self._respond(run, item, stored.get((run, item.index)))
                for run in range(self.claim.run_start, self.claim.run_stop)
                for item in self.cell.items
            ]
        await _all(work, self.stop)
        if self.last_batch is not None:
            await self.last_batch.durable(self.claim)

    async def _respond(self, run: int, item: Item, stored: StoredResponse | None) -> None:
        if stored is None:
            stored = await self._generate(run, item)
        await self._judge_response(stored)

    async def _generate(self, run: int, item: Item) -> StoredResponse:
        instruction = self.spec.instruction_of(run)
        model = self.model
        if model.parameters.seed is not None:
            # One seed for all runs would make them the same text; consecutive ones keep them reproducible.
            model = replace(model, parameters=replace(model.parameters, seed=model.parameters.seed + run))
        try:
            reply = await self.deps.caller.call(
                model,
                system_prompt(self.spec.instructions[instruction], self.cell.persona),
                user_prompt(self.cell.task, item),
                key=CallKey(Stage.GENERATION, run, item.index),
                claim=self.claim,
                stop=self.stop,
            )
        except CallFailedError as error:
            row = self._response_row(run, item, instruction, "failed", None, (), error=str(error))
        else:
            row = self._answered_row(run, item, instruction, reply)
        batch = self.deps.writer.add(self.claim, row)
        await batch.durable(self.claim)  # its verdicts may not outlive it
        return StoredResponse(run, item.index, row.status, row.text, row.unit_starts, row.unit_ends)

    def _answered_row(self, run: int, item: Item, instruction: int, reply: ChatReply) -> ResponseRow:
        text = reply.text
        refused = reply.finish_reason in REFUSING or self.deps.refusals.is_refusal(text)
        units = self.deps.segmenter.segment(text)
        if len(units) > MAX_GENERATED_UNITS:
            why = f"runaway: {len(units):,} sentences; at most {MAX_GENERATED_UNITS:,} are judged"
            return self._response_row(run, item, instruction, "failed", None, (), error=why)
        row = self._response_row(run, item, instruction, "refused" if refused else "answered", text, units)
        usage = reply.usage
        return row._replace(
            finish_reason=reply.finish_reason.value,
            input_tokens=usage.input_tokens if usage else None,
            output_tokens=usage.output_tokens if usage else None,
        )

    def _response_row(
        self,
        run: int,
        item: Item,
        instruction: int,
        status: str,
        text: str | None,
        units: Sequence[Unit],
        *,
        error: str | None = None,
    ) -> ResponseRow:
        return ResponseRow(
            cell_id=self.claim.cell_id,
            run=run,
            item=item.index,
            tenant=self.claim.tenant,
            instruction=instruction,
            status=status,
            text=text,
            unit_starts=[unit.start for unit in units],
            unit_ends=[unit.end for unit in units],
            verdicts_due=len(units) * len(item.dimensions) * len(self.spec.judges),
            finish_reason=None,
            error=error,
            input_tokens=None,
            output_tokens=None,
        )

    async def _judge_response(self, response: StoredResponse) -> None:
        """Judges every unit of a durable response that has no verdict yet; a refusal's units are not sent."""
        if response.text is None:
            return
        item = self.cell.items[response.item]
        units = units_at(response.text, response.unit_starts, response.unit_ends)
        missing = [
            (unit, trait, dimension, judge)
            for unit in units
            for trait, dimension in self.cell.traits_of(item)
            for judge in range(len(self.spec.judges))
            if (response.run, response.item, unit.index, trait, judge) not in self.recorded
        ]
        if response.status == "refused":
            refused = Verdict(VerdictStatus.REFUSED)
            for unit, trait, _, judge in missing:
                self._record(response, unit, trait, judge, refused, None)
            return
        await _all(
            [
                self._judge_unit(response, item, unit, trait, dimension, judge)
                for unit, trait, dimension, judge in missing
            ],
            self.stop,
        )

    async def _judge_unit(
        self,
        response: StoredResponse,
        item: Item,
        unit: Unit,
        trait: int,
        dimension: Dimension,
        judge: int,
    ) -> None:
        key = CallKey(Stage.JUDGING, response.run, response.item, unit.index, trait, judge)
        prompt = scoring_prompt(self.cell.task, dimension, item, unit.text)
        try:
            reply = await self.deps.caller.call(
                self.spec.judges[judge], None, prompt, key=key, claim=self.claim, stop=self.stop
            )
        except CallFailedError as error:
            log.warning(
                "verdict failed", job=self.claim.job_id, path=key.path(self.claim.cell), error=str(error)
            )
            self._record(response, unit, trait, judge, Verdict(VerdictStatus.FAILED), None)
            return
        raw = reply.text
        if reply.finish_reason in REFUSING:
            verdict = Verdict(VerdictStatus.REFUSED)
        else:
            verdict = parse_verdict(raw, dimension.scale)
        self._record(response, unit, trait, judge, verdict, raw)

    def _record(
        self,
        response: StoredResponse,
        unit: Unit,
        trait: int,
        judge: int,
        verdict: Verdict,
        raw: str | None,
    ) -> None:
        row = VerdictRow(
            cell_id=self.claim.cell_id,
            run=response.run,
            item=response.item,
            unit=unit.index,
            trait=trait,
            judge=judge,
            tenant=self.claim.tenant,
            status=verdict.status.value,
            score=verdict.score,
            raw=raw,
        )
        self.last_batch = self.deps.writer.add(self.claim, row)


async def _all(work: Sequence[Coroutine[Any, Any, None]], stop: StopSignal) -> None:
    """Awaits everything, also when some of it fails: what is on the wire is paid for and must be recorded.

    Raises:
        JobMustStopError: If any call said so; it stops the others first.
        StoppedError: If the shard was stopped.
        Exception: The first of any other errors.
    """

    async def guarded(coroutine: Coroutine[Any, Any, None]) -> None:
        try:
            await coroutine
        except (StoppedError, asyncio.CancelledError):
            raise
        except BaseException:
            stop.set(StopReason.JOB_INACTIVE)
            raise

    outcomes = await asyncio.gather(*(guarded(c) for c in work), return_exceptions=True)
    errors = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    for error in sorted(errors, key=_rank):
        raise error


def _rank(error: BaseException) -> int:
    """What a failed shard is told apart by: the most telling error first."""
    if isinstance(error, JobMustStopError):
        return 0
    return 2 if isinstance(error, StoppedError) else 1
