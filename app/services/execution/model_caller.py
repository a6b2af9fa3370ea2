"""One call to a model: permit, send, read, record; and what follows from a failed attempt."""

import asyncio
import random
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

import structlog

from app import clock
from app.db.execution.result_rows import CallRow
from app.db.execution.shards import AnyClaim
from app.domain.providers.model import ChatReply, ChatRequest, Message, Model
from app.ports import (
    CallOutcome,
    ChatModel,
    ModelCallError,
    Observation,
    PriceBook,
    ProviderUnreachableError,
    RateLimiter,
    SuspectReplyError,
)
from app.services.execution.budget_reservations import BudgetKeeper
from app.services.execution.call_outcomes import Blame, outcome_of
from app.services.execution.call_rows import (
    Attempt,
    CallKey,
    account,
    answered_row,
    believed,
    lost_row,
    unanswered_row,
)
from app.services.execution.expected_tokens import ExpectedTokens, beyond
from app.services.execution.first_calls import FIRST_CALLS, FirstCalls, Kind
from app.services.execution.permits import HeldBackError, Permit, Permits
from app.services.execution.result_writer import Batch, BatchWriter
from app.services.execution.retries import (
    PROVIDER_UNREACHABLE,
    Attempts,
    CallFailedError,
    JobMustStopError,
    Next,
    failed_for_good,
    is_rate_limited,
    longest_wait,
    must_stop,
)
from app.services.execution.stop_signal import AbandonedError, StopSignal, current_task
from app.services.identifiers import new_uuid

log = structlog.get_logger(__name__)

FIRST_BACKOFF_SECONDS = 0.5
LONGEST_BACKOFF_SECONDS = 60.0

ABANDONED = "abandoned"
"""Code of an attempt that was still on the wire when its job was over, or its worker's time to stop was up."""

INTERNAL_ERROR = "internal_error"
"""Code of an attempt in which something of ours broke: whether it was sent is unknown."""


class ModelCaller:
    """Makes calls for shards. One a process.

    Args:
        chat: Makes one attempt.
        limiter: Shared by all workers.
        prices: Knows what calls cost.
        writer: Keeps the accounting.
        attempts: Most attempts at a call, waits for a rate limit not counted.
        deadline_seconds: Wall-clock limit of an attempt.
        in_flight: Most calls in flight to a (connection, model), in this process.
        budgets: Pays for the calls of jobs that have a budget.
        first_calls: Knows which kinds of calls have been answered.
    """

    def __init__(
        self,
        *,
        chat: ChatModel,
        limiter: RateLimiter,
        prices: PriceBook,
        writer: BatchWriter,
        attempts: int,
        deadline_seconds: float,
        in_flight: Callable[[str, str], int],
        budgets: BudgetKeeper,
        first_calls: FirstCalls,
    ) -> None:
        self._chat = chat
        self._limiter = limiter
        self._blame = Blame(chat, limiter)
        self._prices = prices
        self._writer = writer
        self._attempts = attempts
        self._deadline = deadline_seconds
        self._permits = Permits(
            chat=chat, limiter=limiter, prices=prices, writer=writer, budgets=budgets, in_flight=in_flight
        )
        self._first_calls = first_calls
        self._tokens = ExpectedTokens()

    def call(
        self,
        model: Model,
        system: str | None,
        user: str,
        *,
        key: CallKey,
        claim: AnyClaim,
        stop: StopSignal,
        turns: tuple[Message, ...] = (),
    ) -> Coroutine[Any, Any, ChatReply]:
        """The model's reply, after as many attempts as it takes.

        Raises:
            StoppedError: If the shard was stopped before an attempt started.
            CallFailedError: If the item can't succeed, or did not within the attempts allowed.
            JobMustStopError: If the provider says that nothing can succeed, or the first calls of the kind all fail alike.
        """
        kind = self._first_calls.kind(claim.job_id, model, key.first_stage)
        making = self._call(model, system, user, key, claim, stop, kind, turns)
        # Of a kind that was answered nothing more is noted: it costs such calls nothing.
        return making if kind.failures is None else self._noted(making, kind, key, stop)

    async def _noted(
        self, making: Coroutine[Any, Any, ChatReply], kind: Kind, key: CallKey, stop: StopSignal
    ) -> ChatReply:
        """Makes a call of a kind of which none of the job was answered when it was asked for."""
        try:
            has_place = await kind.enter(stop)
        except BaseException:
            making.close()
            raise
        try:
            reply = await making
        except CallFailedError as failed:
            if key.is_dispensable(failed.error) or not await self._first_calls.stops(kind, failed.error):
                raise
            raise stop.fail(must_stop(failed.error, kind.model, kind.stage, alike=FIRST_CALLS)) from failed
        except JobMustStopError:
            if has_place:
                has_place = False
                kind.leave_later()
            raise
        else:
            self._first_calls.answered(kind)
            return reply
        finally:
            if has_place:
                kind.leave()

    async def _call(
        self,
        model: Model,
        system: str | None,
        user: str,
        key: CallKey,
        claim: AnyClaim,
        stop: StopSignal,
        kind: Kind,
        turns: tuple[Message, ...],
    ) -> ChatReply:
        """Makes a call, attempt after attempt."""
        path = f"{claim.job_id}/{key.path(claim.place)}"
        attempts = Attempts(self._attempts)
        while True:
            attempts.made += 1
            number = claim.attempts_before + attempts.made
            request = ChatRequest(
                model, system, user, f"{path}/a{number}", self._deadline, turns, claim.tenant
            ).placed()
            is_doubted = kind.is_doubted
            try:
                if is_doubted:
                    return await self._on_trial(request, key, claim, stop, kind, number)
                return await self._attempt(request, key, claim, stop, kind, number, on_trial=False)
            except HeldBackError:
                attempts.made -= 1
            except ProviderUnreachableError as error:
                raise stop.fail(_unreachable(error, model)) from error
            except ModelCallError as error:
                if not is_doubted:  # else it was decided while the call was on trial
                    await self._end_run(error, kind, key, stop)
                # An outage is the connection's failure and not this call's.
                away = await self._blame.is_of_outage(error, model, claim.tenant, stop, attempts.unreached)
                attempts.unreached += away
                attempts.rate_limited += is_rate_limited(error)
                follows = attempts.after(error)
                if follows is Next.STOP_JOB:
                    raise stop.fail(must_stop(error, model, key.stage)) from error
                if follows is Next.FAIL_ITEM:
                    raise failed_for_good(error) from error
                await self._back_off(error, attempts, stop)

    async def _on_trial(
        self,
        request: ChatRequest,
        key: CallKey,
        claim: AnyClaim,
        stop: StopSignal,
        kind: Kind,
        number: int,
    ) -> ChatReply:
        """Make an attempt after refusals in a row: one at a time, and with it decide whether the job stops."""
        on_trial = await kind.starts_trial(stop)
        try:
            return await self._attempt(request, key, claim, stop, kind, number, on_trial=on_trial)
        except ModelCallError as error:
            await self._end_run(error, kind, key, stop)
            raise
        finally:
            if on_trial:
                kind.account.trial.release()

    async def _end_run(self, error: ModelCallError, kind: Kind, key: CallKey, stop: StopSignal) -> None:
        """Stop the job if refusals in a row end it."""
        if error.unexplained and await self._first_calls.ends_run(kind):
            raise stop.fail(must_stop(error, kind.model, key.stage, alike=FIRST_CALLS)) from error

    async def _attempt(
        self,
        request: ChatRequest,
        key: CallKey,
        claim: AnyClaim,
        stop: StopSignal,
        kind: Kind,
        number: int,
        *,
        on_trial: bool,
    ) -> ChatReply:
        """One attempt. Once it has been sent it is awaited and accounted for, even if the shard is stopped: its reservation is settled by its row.

        Only that of a job that is over, or of a worker that must go, is not awaited for long; it is accounted for as one
        that may be paid. The limiter learns of every end but one that is ours.
        """
        model, call, task = request.model, new_uuid(), current_task()
        expected = self._tokens.of(request, key.stage)
        held_back = None if on_trial else kind
        async with self._permits.permit(
            request, call, claim, key.stage, expected, stop, task, held_back
        ) as permit:
            sent = Attempt(call, model, key, claim, number, clock.now())
            started = clock.monotonic()
            try:
                with stop.on_the_wire(task):
                    reply = believed(await self._chat.complete(request), request)
            except AbandonedError:
                account(
                    self._writer,
                    lost_row(sent, clock.milliseconds_since(started), ABANDONED, self._prices),
                    sent,
                    permit.counted,
                )
                raise
            except ModelCallError as error:
                took = clock.milliseconds_since(started)
                exceeded = self._record(
                    unanswered_row(sent, took, error, self._prices, request), sent, permit
                )
                if exceeded is not None:
                    await asyncio.shield(exceeded.done)
                self._limiter.observe(model.connection, model.name, _observed_failure(error, request, took))
                if error.unexplained and not key.is_dispensable(error):
                    kind.refused(error, sent.started_at)
                raise
            except Exception:
                account(
                    self._writer,
                    lost_row(sent, clock.milliseconds_since(started), INTERNAL_ERROR, self._prices),
                    sent,
                    permit.counted,
                )
                raise
            kind.answered(sent.started_at)
            took = clock.milliseconds_since(started)
            row = answered_row(sent, took, reply, self._prices)
            delivery, suspect = reply.delivery, None
            if delivery is not None and not (
                stop.uses(delivery, key, model.connection)
                or await stop.accepts(delivery, key, model.connection)
            ):
                suspect = SuspectReplyError()
                row = row._replace(outcome=suspect.kind.value, code=suspect.code, detail=str(suspect))
            exceeded = self._record(row, sent, permit)
            if exceeded is not None:
                await asyncio.shield(exceeded.done)
            if suspect is not None:
                raise suspect
            more = beyond(model, expected, reply.usage)
            seen = Observation(CallOutcome.ANSWERED, took / 1000, reply.usage, more, reply.limits)
            self._limiter.observe(model.connection, model.name, seen)
        if reply.usage is not None:
            self._tokens.learn(request, key.stage, reply.usage)
        return reply

    def _record(self, row: CallRow, sent: Attempt, permit: Permit) -> Batch | None:
        """Account for an attempt.

        Returns:
            The row's batch after a bill beyond the reservation: no other call may take its turn before all workers can know.
        """
        batch = account(self._writer, row, sent, permit.counted)
        if not permit.is_exceeded_by(row):
            return None
        log.warning(
            "call billed beyond its reservation", job=row.job_id, connection=row.connection, model=row.model
        )
        return batch

    @staticmethod
    async def _back_off(error: ModelCallError, attempts: Attempts, stop: StopSignal) -> None:
        """Waits what the provider asked for, and at random up to a bound that doubles with every failure."""
        if is_rate_limited(error):
            return  # how long to wait is the limiter's to say: the limit is the connection's, not this call's
        longest = longest_wait(FIRST_BACKOFF_SECONDS, LONGEST_BACKOFF_SECONDS, attempts.failed)
        # A wait of its own, which begins with a look at the signal: a stop does not end a call on the wire.
        with stop.interruptible():
            await asyncio.sleep((error.retry_after or 0) + random.uniform(0, longest))  # noqa: S311 - jitter


def _unreachable(error: ProviderUnreachableError, model: Model) -> JobMustStopError:
    lasted = timedelta(seconds=round(error.seconds))
    words = f"the provider's server could not be reached for {lasted} (h:mm:ss): {error}"
    return JobMustStopError(PROVIDER_UNREACHABLE, words, model.full_name)


def _observed_failure(error: ModelCallError, request: ChatRequest, took_ms: float) -> Observation:
    return Observation(
        outcome_of(error),
        took_ms / 1000,
        limits=error.limits,
        retry_after=error.retry_after,
        reason=str(error),
        call=request.request_id.rpartition("/")[0],
    )
