"""One call to a model, with everything around it: permits, deadline, retries, accounting."""

import asyncio
import random
import time
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any, NamedTuple
from uuid import UUID

from app.db.execution.result_rows import CallRow
from app.db.execution.shards import AnyClaim
from app.db.jobs.budgets import Wanted
from app.domain.providers.model import ChatReply, ChatRequest, Model, Stage, Usage
from app.ports import (
    CallOutcome,
    ChatModel,
    FailureKind,
    LimiterUnavailableError,
    ModelCallError,
    Observation,
    Permit,
    PriceBook,
    ProviderUnreachableError,
    RateLimiter,
)
from app.services.execution.budget_reservations import BudgetKeeper
from app.services.execution.call_outcomes import Blame, outcome_of
from app.services.execution.call_rows import (
    Attempt,
    CallKey,
    answered_row,
    lost_row,
    unanswered_row,
    worst_case,
)
from app.services.execution.fair_queue import FairQueue, Turn
from app.services.execution.first_calls import FirstCalls, Kind
from app.services.execution.result_writer import BatchWriter
from app.services.execution.stop_signal import AbandonedError, StopSignal, current_task
from app.services.identifiers import new_uuid
from app.services.providers.connection_book import is_of_tenant
from app.telemetry.metrics import LIMITER_UNAVAILABLE, calls_of, waiting
from app.telemetry.tallies import Calls
from app.telemetry.tracing import call_ended

FIRST_BACKOFF_SECONDS = 0.5
LONGEST_BACKOFF_SECONDS = 60.0
MAX_RATE_LIMITED_ATTEMPTS = 200
"""Being told to wait is not a failure of the item, but waiting for ever is."""

ABANDONED = "abandoned"
"""Code of an attempt that was still on the wire when its job was over, or its worker's time to stop was up."""

INTERNAL_ERROR = "internal_error"
"""Code of an attempt in which something of ours broke: whether it was sent is unknown."""

CHARACTERS_PER_TOKEN = 4
LONGEST_WAIT_FOR_LIMITER_SECONDS = 1.0
PERMIT_SECONDS = 0.1
"""How long after it was given a permit of the rate limiter may be used."""

PROVIDER_UNREACHABLE = "provider_unreachable"
"""Why a job is paused whose provider's server has been away for too long."""

MOST_IDLE = 1000
"""Of how many models what is only known of them, and not needed at the moment, is kept."""

NEWEST_SHARE = 0.05
"""Weight of the newest reply in the mean length of a model's replies."""


HOPELESS = frozenset({FailureKind.ITEM, FailureKind.FILTERED})
"""Failures after which the same call is not sent again, while the job goes on."""


class JobMustStopError(Exception):
    """The provider's answer means that no further call of this kind can succeed.

    Attributes:
        code: The provider's error code.
        model: ``connection/name`` of the model.
        stage: Of the calls; ``None`` where it is not about a call.
        status: HTTP status of the answer, if there was one.
        all_alike: Whether it follows from the first calls of the kind, which all failed alike, and not from this answer alone.
    """

    def __init__(
        self,
        code: str,
        message: str,
        model: str,
        stage: Stage | None = None,
        status: int | None = None,
        *,
        all_alike: bool = False,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.model = model
        self.stage = stage
        self.status = status
        self.all_alike = all_alike


def must_stop(
    error: ModelCallError, model: Model, stage: Stage, *, all_alike: bool = False
) -> JobMustStopError:
    """What a call ends with after whose answer no call of its kind can succeed."""
    name = f"{model.connection}/{model.name}"
    return JobMustStopError(error.code, str(error), name, stage, error.status, all_alike=all_alike)


class CallFailedError(Exception):
    """The item's call failed for good; the job goes on.

    Attributes:
        error: Of the last attempt.
    """

    def __init__(self, error: ModelCallError) -> None:
        super().__init__(f"{error.code}: {error}")
        self.error = error


class CallFilteredError(CallFailedError):
    """The provider's content filter refused the item's prompt."""


def failed_for_good(error: ModelCallError) -> CallFailedError:
    """What a call ends with whose last attempt ended with ``error``."""
    kind = CallFilteredError if error.kind is FailureKind.FILTERED else CallFailedError
    return kind(error)


class _ModelState(NamedTuple):
    """What all calls to a model pass.

    Attributes:
        queue: Where they wait for their turn.
        counted: Where they are counted.
    """

    queue: FairQueue
    counted: Calls


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
        self._in_flight = in_flight
        self._budgets = budgets
        self._first_calls = first_calls
        self._ways: dict[tuple[str, str], _ModelState] = {}
        self._written: dict[tuple[str, ...], float] = {}
        self._density: dict[tuple[str, ...], float] = {}

    def call(
        self,
        model: Model,
        system: str | None,
        user: str,
        *,
        key: CallKey,
        claim: AnyClaim,
        stop: StopSignal,
    ) -> Coroutine[Any, Any, ChatReply]:
        """The model's reply, after as many attempts as it takes.

        Raises:
            StoppedError: If the shard was stopped before an attempt started.
            CallFailedError: If the item can't succeed, or did not within the attempts allowed.
            JobMustStopError: If the provider says that nothing can succeed, or the first calls of the kind all fail alike.
        """
        kind = self._first_calls.kind(claim.job_id, model, key.stage)
        making = self._call(model, system, user, key, claim, stop)
        # Of a kind that was answered nothing more is noted: it costs such calls nothing.
        return making if kind.failures is None else self._noted(making, kind, stop)

    async def _noted(self, making: Coroutine[Any, Any, ChatReply], kind: Kind, stop: StopSignal) -> ChatReply:
        """Makes a call of a kind of which none of the job was answered when it was asked for."""
        try:
            has_place = await kind.enter(stop)
        except BaseException:
            making.close()
            raise
        try:
            reply = await making
        except CallFailedError as failed:
            if not await self._first_calls.stops(kind, failed.error):
                raise
            fatal = must_stop(failed.error, kind.model, kind.stage, all_alike=True)
            stop.fail(fatal)
            raise fatal from failed
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
    ) -> ChatReply:
        """Makes a call, attempt after attempt."""
        path = f"{claim.job_id}/{key.path(claim.place)}"
        tried = failures = unreached = 0
        while True:
            tried += 1
            attempt = claim.attempts_before + tried
            request = ChatRequest(model, system, user, f"{path}/a{attempt}", self._deadline)
            try:
                return await self._attempt(request, key, claim, stop, attempt)
            except ProviderUnreachableError as error:
                name = f"{model.connection}/{model.name}"
                lasted = timedelta(seconds=round(error.seconds))
                words = f"the provider's server could not be reached for {lasted} (h:mm:ss): {error}"
                fatal = JobMustStopError(PROVIDER_UNREACHABLE, words, name)
                stop.fail(fatal)
                raise fatal from error
            except ModelCallError as error:
                if error.kind is FailureKind.JOB:
                    fatal = must_stop(error, model, key.stage)
                    stop.fail(fatal)
                    raise fatal from error
                limited = error.status == HTTPStatus.TOO_MANY_REQUESTS
                # An outage is the connection's failure and not this call's; how long to wait for its end is the limiter's to say.
                away = await self._blame.is_of_outage(error, model, claim.tenant, stop, unreached)
                unreached += away
                failures += not (limited or away)
                most = (
                    self._attempts
                    if error.most_attempts is None
                    else min(self._attempts, error.most_attempts)
                )
                exhausted = failures >= most or tried - unreached >= MAX_RATE_LIMITED_ATTEMPTS
                if error.kind in HOPELESS or exhausted:
                    raise failed_for_good(error) from error
                if limited:
                    continue  # how long to wait is the limiter's to say: the limit is the connection's, not this call's
                # A wait of its own, which begins with a look at the signal: the Redis client can swallow a cancellation.
                with stop.interruptible():
                    await _back_off(error, failures)

    async def _attempt(
        self, request: ChatRequest, key: CallKey, claim: AnyClaim, stop: StopSignal, attempt: int
    ) -> ChatReply:
        """One attempt. Once it has been sent it is awaited and accounted for, even if the shard is stopped.

        Only that of a job that is over, or of a worker that must go, is not awaited for long; it is accounted for as one
        that may be paid.
        """
        model, call, task = request.model, new_uuid(), current_task()
        expected = self._expected_tokens(request, key.stage)
        turn, permit = await self._clear(request, claim, call, expected, stop, task)
        try:
            sent = Attempt(call, model, key, claim, attempt, datetime.now(UTC))
            reply = await self._send(request, sent, expected, stop, task)
        finally:
            permit.release()
            turn.end()
        if reply.usage is not None:
            self._learn_lengths(request, key.stage, reply.usage)
        return reply

    async def _send(
        self,
        request: ChatRequest,
        sent: Attempt,
        expected: Usage,
        stop: StopSignal,
        task: asyncio.Task[object],
    ) -> ChatReply:
        """Sends a call, and accounts for it whatever becomes of it: its reservation is settled by its row.

        The limiter learns of every end but one that is ours.
        """
        counted = self._way(request.model).counted
        started = time.perf_counter()
        counted.in_flight += 1
        self._writer.on_the_wire += 1
        try:
            with stop.on_the_wire(task):
                reply = await self._chat.complete(request)
        except AbandonedError:
            self._account(lost_row(sent, _milliseconds(started), ABANDONED), sent, counted)
            raise
        except ModelCallError as error:
            took = _milliseconds(started)
            self._account(unanswered_row(sent, took, error), sent, counted)
            self._observe(request.model, _observed_failure(error, request, took / 1000))
            raise
        except Exception:
            self._account(lost_row(sent, _milliseconds(started), INTERNAL_ERROR), sent, counted)
            raise
        finally:
            counted.in_flight -= 1
            self._writer.on_the_wire -= 1
        took = _milliseconds(started)
        self._account(answered_row(sent, took, reply, self._prices), sent, counted)
        self._observe(
            request.model,
            Observation(
                CallOutcome.ANSWERED,
                took / 1000,
                reply.usage,
                _beyond(request.model, expected, reply.usage),
                reply.limits,
            ),
        )
        return reply

    def _observe(self, model: Model, observation: Observation) -> None:
        self._limiter.observe(model.connection, model.name, observation)

    def _account(self, row: CallRow, sent: Attempt, counted: Calls) -> None:
        self._writer.add(sent.claim, row)
        counted.ended(row.stage, row.outcome, row.latency_ms / 1000, row.usd)
        counted.took(row.input_tokens, row.output_tokens)
        call_ended(row)

    async def _clear(
        self,
        request: ChatRequest,
        claim: AnyClaim,
        call: UUID,
        expected: Usage,
        stop: StopSignal,
        task: asyncio.Task[object],
    ) -> tuple[Turn, Permit]:
        """Waits for a call's turn, the limiter's permit and, if the job has a budget, the money.

        Returns:
            The turn and the permit, to be given back when the call is over.
        """
        model = request.model
        with stop.interruptible(task):
            # Before its price and its limits are asked for.
            await self._chat.prepare(model.connection, claim.tenant)
            if not claim.budgeted:
                turn = await self._take_turn(model, claim)
                return turn, await self._permit(model, expected, claim, stop, turn)
        wanted = Wanted(call, claim, worst_case(self._prices, request, self._chat.body_bytes(request)))
        paid = short = False
        try:
            while True:
                # Money that may yet come free is not waited for with a turn in hand, which others can use.
                if not paid and (short or self._budgets.is_short(claim.job_id)):
                    with stop.interruptible():
                        paid = await self._budgets.reserve(wanted, patient=True)
                with stop.interruptible():
                    turn = await self._take_turn(model, claim)
                if not paid:
                    paid = await self._reserve_in_turn(wanted, stop, turn)
                if paid:
                    with stop.interruptible():
                        permit = await self._permit(model, expected, claim, stop, turn)
                    return turn, permit
                short = True
        except BaseException:
            if paid:
                self._budgets.refund(wanted)
            raise

    async def _take_turn(self, model: Model, claim: AnyClaim) -> Turn:
        """Waits for a call's turn in this process, and in it for the calls before to be written.

        So no more calls are lost with the worker than may have a turn and may be unwritten, however many stand in line.
        """
        queue, counted = self._way(model)
        turn = queue.turn_at_once(claim.tenant)
        if turn is None:
            with waiting("process", counted):
                turn = await queue.turn_in_line(claim.tenant, claim.job_id, claim.priority)
        if not self._writer.has_room:
            try:
                with waiting("writer", counted):
                    await self._writer.wait_for_room()
            except BaseException:
                turn.end()
                raise
        return turn

    async def _reserve_in_turn(self, wanted: Wanted, stop: StopSignal, turn: Turn) -> bool:
        """Whether there is money for a call; if not, its turn ends."""
        paid = False
        try:
            with stop.interruptible():
                paid = await self._budgets.reserve(wanted, patient=False)
        finally:
            if not paid:
                turn.end()
        return paid

    async def _permit(
        self, model: Model, expected: Usage, claim: AnyClaim, stop: StopSignal, turn: Turn
    ) -> Permit:
        """Waits for the limiter's permit, until one comes while the job is known to be active; without it, the turn ends.

        A permit is for the moment. One that has grown old while the job was looked at is given back, and another is asked
        for: calls that go out late would come to the provider in a bunch.
        """
        tenant = claim.tenant if claim.shared and not is_of_tenant(model.connection) else None
        try:
            while True:
                permit = await self._permit_when_reachable(model, expected, tenant)
                if stop.is_confirmed or await _confirmed_in_time(stop, permit):
                    turn.passed()
                    return permit
        except BaseException:
            turn.end()
            raise

    def _way(self, model: Model) -> _ModelState:
        name = (model.connection, model.name)
        way = self._ways.get(name)
        if way is None:
            if len(self._ways) >= MOST_IDLE:
                self._ways = {other: way for other, way in self._ways.items() if not way.queue.is_idle}
            way = self._ways[name] = _ModelState(FairQueue(self._in_flight(*name)), calls_of(*name))
        return way

    async def _permit_when_reachable(self, model: Model, expected: Usage, tenant: str | None) -> Permit:
        while True:
            try:
                return await self._limiter.permit(model.connection, model.name, expected, tenant)
            except LimiterUnavailableError:
                LIMITER_UNAVAILABLE.inc()
                await asyncio.sleep(LONGEST_WAIT_FOR_LIMITER_SECONDS * random.uniform(0.5, 1))  # noqa: S311

    def _expected_tokens(self, request: ChatRequest, stage: Stage) -> Usage:
        """Tokens that a call will take: of the prompt by its length and lately's tokens a character, of the reply at worst, or else as lately."""
        model = request.model
        density = self._density.get((model.connection, model.name), 1 / CHARACTERS_PER_TOKEN)
        written = model.parameters.max_tokens
        if written is None:
            written = round(self._written.get((model.connection, model.name, stage), 0.0))
        return Usage(round(density * _characters(request)), written)

    def _learn_lengths(self, request: ChatRequest, stage: Stage, usage: Usage) -> None:
        """Keeps the mean length of a model's replies, and how many tokens it makes of a character."""
        model = request.model
        _learn(self._written, (model.connection, model.name, stage), usage.output_tokens)
        density = usage.input_tokens / max(1, _characters(request))
        _learn(self._density, (model.connection, model.name), density)


def _characters(request: ChatRequest) -> int:
    return len(request.user) + len(request.system or "")


def _learn(means: dict[tuple[str, ...], float], name: tuple[str, ...], newest: float) -> None:
    """Takes a value into the mean of the latest ones."""
    if name not in means and len(means) >= MOST_IDLE:
        means.clear()
    mean = means.get(name, newest)
    means[name] = mean + NEWEST_SHARE * (newest - mean)


async def _confirmed_in_time(stop: StopSignal, permit: Permit) -> bool:
    """Whether the job is known to be active before a permit has grown old; if not, the permit is released."""
    clock = asyncio.get_running_loop().time
    granted, in_time = clock(), False
    try:
        await stop.confirmed()
        stop.check()  # a cancellation can get lost on its way through a client of Redis
        in_time = clock() - granted <= PERMIT_SECONDS
    finally:
        if not in_time:
            permit.release()
    return in_time


def _beyond(model: Model, expected: Usage, usage: Usage | None) -> tuple[int, int] | None:
    """Tokens that count against limits beyond those expected; below 0 where it were fewer.

    What is left of `max_tokens` counts all the same: providers reckon with it when a call arrives
    (https://platform.openai.com/docs/guides/rate-limits).
    """
    if usage is None:
        return None
    written = usage.output_tokens - expected.output_tokens
    if written < 0 and model.parameters.max_tokens is not None:
        written = 0
    return usage.input_tokens - expected.input_tokens, written


def _observed_failure(error: ModelCallError, request: ChatRequest, latency_seconds: float) -> Observation:
    return Observation(
        outcome_of(error),
        latency_seconds,
        limits=error.limits,
        retry_after=error.retry_after,
        reason=str(error),
        call=request.request_id.rpartition("/")[0],
    )


def _milliseconds(started: float) -> float:
    return (time.perf_counter() - started) * 1000


async def _back_off(error: ModelCallError, steps: int) -> None:
    """Waits what the provider asked for, and at random up to a bound that doubles with every step."""
    ceiling = min(LONGEST_BACKOFF_SECONDS, FIRST_BACKOFF_SECONDS * 2 ** min(steps, 10))
    await asyncio.sleep((error.retry_after or 0) + random.uniform(0, ceiling))  # noqa: S311 - jitter
