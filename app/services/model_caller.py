"""One call to a model, with everything around it: permits, deadline, retries, accounting."""

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from http import HTTPStatus
from typing import NamedTuple
from uuid import UUID

from app.db.budgets import Wanted
from app.db.shards import AnyClaim
from app.db.writer import CallRow
from app.domain.model import ChatReply, ChatRequest, Model, ProviderLimits, Stage
from app.ports import (
    ChatModel,
    FailureKind,
    LimiterUnavailableError,
    ModelCallError,
    PriceBook,
    RateLimiter,
)
from app.services.batch_writer import BatchWriter
from app.services.budget_keeper import BudgetKeeper
from app.services.call_rows import (
    Attempt,
    CallKey,
    answered_row,
    lost_row,
    unanswered_row,
    worst_case,
)
from app.services.fair_queue import FairQueue, Turn
from app.services.identifiers import new_uuid
from app.services.stop_signal import AbandonedError, StopSignal, current_task
from app.telemetry.metrics import LIMITER_UNAVAILABLE, calls_of, count_pause, waiting
from app.telemetry.tallies import Calls

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

MOST_IDLE = 1000
"""Of how many models what is only known of them, and not needed at the moment, is kept."""

NEWEST_SHARE = 0.05
"""Weight of the newest reply in the mean length of a model's replies."""


class JobMustStopError(Exception):
    """The provider's answer means that no further call of this kind can succeed.

    Attributes:
        code: The provider's error code.
        model: ``connection/name`` of the model.
    """

    def __init__(self, code: str, message: str, model: str) -> None:
        super().__init__(message)
        self.code = code
        self.model = model


class CallFailedError(Exception):
    """The item's call failed for good; the job goes on."""


class _Way(NamedTuple):
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
    ) -> None:
        self._chat = chat
        self._limiter = limiter
        self._prices = prices
        self._writer = writer
        self._attempts = attempts
        self._deadline = deadline_seconds
        self._in_flight = in_flight
        self._budgets = budgets
        self._ways: dict[tuple[str, str], _Way] = {}
        self._written: dict[tuple[str, str, Stage], float] = {}
        self._telling: set[asyncio.Task[None]] = set()

    async def call(
        self,
        model: Model,
        system: str | None,
        user: str,
        *,
        key: CallKey,
        claim: AnyClaim,
        stop: StopSignal,
    ) -> ChatReply:
        """The model's reply, after as many attempts as it takes.

        Raises:
            StoppedError: If the shard was stopped before an attempt started.
            CallFailedError: If the item can't succeed, or did not within the attempts allowed.
            JobMustStopError: If the provider says that nothing can succeed.
        """
        path = f"{claim.job_id}/{key.path(claim.place)}"
        tried = failures = 0
        while True:
            tried += 1
            attempt = claim.attempts_before + tried
            request = ChatRequest(model, system, user, f"{path}/a{attempt}", self._deadline)
            try:
                return await self._attempt(request, key, claim, stop, attempt)
            except ModelCallError as error:
                if error.kind is FailureKind.JOB:
                    name = f"{model.connection}/{model.name}"
                    fatal = JobMustStopError(error.code, str(error), name)
                    stop.fail(fatal)
                    raise fatal from error
                limited = error.status == HTTPStatus.TOO_MANY_REQUESTS
                failures += not limited
                exhausted = failures >= self._attempts or tried >= MAX_RATE_LIMITED_ATTEMPTS
                if error.kind is FailureKind.ITEM or exhausted:
                    raise CallFailedError(f"{error.code}: {error}") from error
                if error.limits is not None:
                    self._heed(model, error.limits)
                if limited:
                    # Everybody waits, not only this call, and slows down afterwards: the limit is the connection's.
                    with stop.interruptible():
                        await self._pause(model, error.retry_after or 0.0)
                known = limited and error.retry_after is not None
                # A wait of its own, which begins with a look at the signal: the Redis client can swallow a cancellation.
                with stop.interruptible():
                    await _back_off(error, failures if known else tried)

    async def _attempt(
        self, request: ChatRequest, key: CallKey, claim: AnyClaim, stop: StopSignal, attempt: int
    ) -> ChatReply:
        """One attempt. Once it has been sent it is awaited and accounted for, even if the shard is stopped.

        Only that of a job that is over, or of a worker that must go, is not awaited for long; it is accounted for as one
        that may be paid.
        """
        model, call, task = request.model, new_uuid(), current_task()
        tokens = self._expected_tokens(request, key.stage)
        turn = await self._clear(request, claim, call, tokens, stop, task)
        try:
            sent = Attempt(call, model, key, claim, attempt, datetime.now(UTC))
            reply = await self._send(request, sent, stop, task)
        finally:
            self._step_back(model, turn)
        self._take_note(model, key.stage, tokens, reply)
        return reply

    async def _send(
        self, request: ChatRequest, sent: Attempt, stop: StopSignal, task: asyncio.Task[object]
    ) -> ChatReply:
        """Sends a call, and accounts for it whatever becomes of it: its reservation is settled by its row."""
        counted = self._way(request.model).counted
        started = time.perf_counter()
        counted.in_flight += 1
        try:
            with stop.on_the_wire(task):
                reply = await self._chat.complete(request)
        except AbandonedError:
            self._account(lost_row(sent, _milliseconds(started), ABANDONED), sent, counted)
            raise
        except ModelCallError as error:
            self._account(unanswered_row(sent, _milliseconds(started), error), sent, counted)
            raise
        except Exception:
            self._account(lost_row(sent, _milliseconds(started), INTERNAL_ERROR), sent, counted)
            raise
        finally:
            counted.in_flight -= 1
        self._account(answered_row(sent, _milliseconds(started), reply, self._prices), sent, counted)
        return reply

    def _account(self, row: CallRow, sent: Attempt, counted: Calls) -> None:
        self._writer.add(sent.claim, row)
        counted.ended(row.stage, row.outcome, row.latency_ms / 1000, row.usd)

    async def _clear(
        self,
        request: ChatRequest,
        claim: AnyClaim,
        call: UUID,
        tokens: int,
        stop: StopSignal,
        task: asyncio.Task[object],
    ) -> Turn:
        """Waits for a call's turn, the limiter's permits and, if the job has a budget, the money.

        Returns:
            The turn, for :meth:`_step_back` when the call is over.
        """
        with stop.interruptible(task):
            # Before its price and its limits are asked for.
            await self._chat.prepare(request.model.connection, claim.tenant)
            if not claim.budgeted:
                turn = await self._take_turn(request.model, claim)
                await self._pass(request.model, tokens, stop, turn)
                return turn
        wanted = Wanted(call, claim, worst_case(self._prices, request))
        paid = short = False
        try:
            while True:
                # Money that may yet come free is not waited for with a turn in hand, which others can use.
                if not paid and (short or self._budgets.is_short(claim.job_id)):
                    with stop.interruptible():
                        paid = await self._budgets.reserve(wanted, patient=True)
                with stop.interruptible():
                    turn = await self._take_turn(request.model, claim)
                if not paid:
                    paid = await self._reserve_in_turn(request.model, wanted, stop, turn)
                if paid:
                    with stop.interruptible():
                        await self._pass(request.model, tokens, stop, turn)
                    return turn
                short = True
        except BaseException:
            if paid:
                self._budgets.refund(wanted)
            raise

    async def _take_turn(self, model: Model, claim: AnyClaim) -> Turn:
        """Waits for a call's turn in this process and a place among the calls in flight of all processes."""
        if not self._writer.has_room:
            with waiting("writer", self._way(model).counted):
                await self._writer.wait_for_room()
        queue, counted = self._way(model)  # not before the wait: what is idle may be forgotten
        turn = queue.turn_at_once()
        if turn is None:
            with waiting("process", counted):
                turn = await queue.turn_in_line(claim.tenant, claim.job_id, claim.priority)
        if self._limiter.bounds(model.connection, model.name):
            try:
                with waiting("shared", counted):
                    await self._patiently(lambda: self._limiter.enter(model.connection, model.name))
            except BaseException:
                turn.end()
                raise
        return turn

    def _step_back(self, model: Model, turn: Turn) -> None:
        """Gives back what :meth:`_take_turn` gave."""
        self._limiter.leave(model.connection, model.name)
        turn.end()

    async def _reserve_in_turn(self, model: Model, wanted: Wanted, stop: StopSignal, turn: Turn) -> bool:
        """Whether there is money for a call; if not, it steps back."""
        paid = False
        try:
            with stop.interruptible():
                paid = await self._budgets.reserve(wanted, patient=False)
        finally:
            if not paid:
                self._step_back(model, turn)
        return paid

    async def _pass(self, model: Model, tokens: int, stop: StopSignal, turn: Turn) -> None:
        """Waits for the rate limiter's permit; without it, the call steps back."""
        if not (stop.is_confirmed and self._limiter.lets_all_pass(model.connection, model.name)):
            try:
                await self._permitted(model, tokens, stop)
            except BaseException:
                self._step_back(model, turn)
                raise
        turn.passed()

    async def _permitted(self, model: Model, tokens: int, stop: StopSignal) -> None:
        """Waits for the rate limiter's permit, until one comes while the job is known to be active.

        A permit is for the moment. One that has grown old while the job was looked at lapses, and another is asked for:
        calls that go out late would come to the provider in a bunch.
        """
        clock = asyncio.get_running_loop().time
        while True:
            if not self._limiter.lets_all_pass(model.connection, model.name):
                with waiting("rate", self._way(model).counted):
                    await self._patiently(lambda: self._limiter.acquire(model.connection, model.name, tokens))
            granted = clock()
            await stop.confirmed()
            stop.check()  # a cancellation can get lost on its way through a client of Redis
            if clock() - granted <= PERMIT_SECONDS:
                return

    def _way(self, model: Model) -> _Way:
        name = (model.connection, model.name)
        way = self._ways.get(name)
        if way is None:
            if len(self._ways) >= MOST_IDLE:
                self._ways = {other: way for other, way in self._ways.items() if not way.queue.is_idle}
            way = self._ways[name] = _Way(FairQueue(self._in_flight(*name)), calls_of(*name))
        return way

    async def _patiently(self, permit: Callable[[], Awaitable[None]]) -> None:
        """Asks for a permit until the limiter can be reached."""
        while True:
            try:
                return await permit()
            except LimiterUnavailableError:
                LIMITER_UNAVAILABLE.inc()
                await asyncio.sleep(LONGEST_WAIT_FOR_LIMITER_SECONDS * random.uniform(0.5, 1))  # noqa: S311

    def _expected_tokens(self, request: ChatRequest, stage: Stage) -> int:
        """Tokens that a call will take: of the prompt by its length, of the reply at worst, or else as lately."""
        model = request.model
        characters = len(request.user) + len(request.system or "")
        written = model.parameters.max_tokens
        if written is None:
            written = round(self._written.get((model.connection, model.name, stage), 0.0))
        return characters // CHARACTERS_PER_TOKEN + written

    def _take_note(self, model: Model, stage: Stage, tokens: int, reply: ChatReply) -> None:
        """Learns from a reply what such calls take, and what the provider says of its limits."""
        if reply.usage is not None:
            name = (model.connection, model.name, stage)
            mean = self._written.get(name)
            if mean is None:
                if len(self._written) >= MOST_IDLE:
                    self._written.clear()
                mean = float(reply.usage.output_tokens)
            self._written[name] = mean + NEWEST_SHARE * (reply.usage.output_tokens - mean)
            beyond = reply.usage.input_tokens + reply.usage.output_tokens - tokens
            if beyond > 0:
                self._limiter.spent(model.connection, model.name, beyond)
        if reply.limits is not None:
            self._heed(model, reply.limits)

    def _heed(self, model: Model, limits: ProviderLimits) -> None:
        """Lets all processes keep the limits that a provider names, and wait until what is used up is there again.

        What was answered does not wait until the others have been told.
        """
        self._limiter.learn(model.connection, model.name, limits)
        if limits.exhausted_seconds:
            self._limiter.hold(model.connection, model.name, limits.exhausted_seconds)
            telling = asyncio.create_task(self._pause(model, limits.exhausted_seconds))
            self._telling.add(telling)
            telling.add_done_callback(self._telling.discard)

    async def _pause(self, model: Model, seconds: float) -> None:
        count_pause(model.connection, model.name)
        with contextlib.suppress(LimiterUnavailableError):  # this process waits all the same
            await self._limiter.pause(model.connection, model.name, seconds)


def _milliseconds(started: float) -> float:
    return (time.perf_counter() - started) * 1000


async def _back_off(error: ModelCallError, steps: int) -> None:
    """Waits what the provider asked for, and at random up to a bound that doubles with every step."""
    ceiling = min(LONGEST_BACKOFF_SECONDS, FIRST_BACKOFF_SECONDS * 2 ** min(steps, 10))
    await asyncio.sleep((error.retry_after or 0) + random.uniform(0, ceiling))  # noqa: S311 - jitter
