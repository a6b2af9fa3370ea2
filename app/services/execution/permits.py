"""The permit to send one call: everything that a call waits for before it is sent, and gives back when it is over.

In this order: its connection is ready; it has a turn among the calls of this process; not too many replies wait to be
written; a job with a budget has paid its worst case; the limiter has given it a slot and a moment of the rate; and its
job was seen to be active just now. A stop ends all this waiting at once. Whatever happens, what was taken is given
back here and nowhere else.
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn, Self
from uuid import UUID

from app.db.execution.result_rows import CallRow
from app.db.execution.shards import AnyClaim
from app.db.jobs.budgets import Wanted
from app.domain.jobs.budget import nanos_of
from app.domain.providers.model import ChatRequest, Stage, Usage
from app.ports import ChatModel, LimiterUnavailableError, PriceBook, RateLimiter, Slot
from app.services.execution.budget_reservations import BudgetKeeper
from app.services.execution.call_rows import priced_worst_case
from app.services.execution.fair_queue import FairQueue, Turn
from app.services.execution.first_calls import Kind
from app.services.execution.result_writer import BatchWriter
from app.services.execution.stop_signal import StopSignal
from app.services.providers.connection_book import is_of_tenant
from app.telemetry.metrics import LIMITER_UNAVAILABLE, Calls, calls_of, waiting

LONGEST_WAIT_FOR_LIMITER_SECONDS = 1.0
SLOT_SECONDS = 0.1
"""How long after the limiter gave it a slot may be used: calls that go out late would come to the provider in a bunch."""

MOST_IDLE = 1000
"""Of how many models without a call the queues are kept."""


class HeldBackError(Exception):
    """The call has to wait for a trial: the provider refused the last ones."""


class _ModelGate(NamedTuple):
    """Where the calls to a model wait for their turn, and where they are counted."""

    queue: FairQueue
    counted: Calls


@dataclass(kw_only=True)
class Permits:
    """Gives permits to send calls. One a process.

    Attributes:
        chat: Makes connections ready, and knows how long a request is.
        limiter: Shared by all workers.
        prices: Knows what calls cost.
        writer: Keeps the accounting.
        budgets: Pays for the calls of jobs that have a budget.
        in_flight: Most calls in flight to a (connection, model), in this process.
    """

    chat: ChatModel
    limiter: RateLimiter
    prices: PriceBook
    writer: BatchWriter
    budgets: BudgetKeeper
    in_flight: Callable[[str, str], int]
    _models: dict[tuple[str, str], _ModelGate] = field(default_factory=dict)

    def permit(
        self,
        request: ChatRequest,
        call_id: UUID,
        claim: AnyClaim,
        stage: Stage,
        expected: Usage,
        stop: StopSignal,
        task: asyncio.Task[object],
        kind: Kind | None = None,
    ) -> "Permit":
        """The permit to send a call, for as long as the call is on the wire: ``async with permits.permit(…) as permit``.

        Args:
            request: What is to be sent.
            call_id: Under which it will be recorded; a reservation carries the same id.
            claim: Of its shard.
            stage: Of the call; each stage of a job has its own line.
            expected: Tokens that it will take, about.
            stop: Of its shard.
            task: The current one.
            kind: Holds the call back while its refusals are doubted; ``None`` for a call on trial.
        """
        queue, counted = self.gate(request.model.connection, request.model.name)
        return Permit(self, request, call_id, claim, stage, expected, stop, task, kind, queue, counted)

    def gate(self, connection: str, model: str) -> _ModelGate:
        """The queue and the counters of a model."""
        gate = self._models.get((connection, model))
        if gate is None:
            if len(self._models) >= MOST_IDLE:
                self._models = {name: one for name, one in self._models.items() if not one.queue.is_idle}
            queue = FairQueue(self.in_flight(connection, model))
            gate = self._models[connection, model] = _ModelGate(queue, calls_of(connection, model))
        return gate


@dataclass(slots=True, eq=False)
class Permit:
    """To be entered once.

    Entering raises :class:`app.services.execution.stop_signal.StoppedError` if the shard was stopped before,
    :class:`app.ports.ProviderUnreachableError` if the server has been away for too long, and :class:`HeldBackError`;
    then nothing is held.

    Attributes:
        counted: Where the calls to the model are counted.
    """

    _permits: Permits
    _request: ChatRequest
    _call_id: UUID
    _claim: AnyClaim
    _stage: Stage
    _expected: Usage
    _stop: StopSignal
    _task: asyncio.Task[object]
    _kind: Kind | None
    _queue: FairQueue
    counted: Calls
    _turn: Turn | None = None
    _slot: Slot | None = None
    _reserved: Wanted | None = None

    async def __aenter__(self) -> Self:
        permits = self._permits
        try:
            with self._stop.interruptible(self._task):
                # Before its price and its limits are asked for.
                await permits.chat.prepare(self._request.model.connection, self._claim.tenant)
                turn = await (self._take_turn_and_pay() if self._claim.budgeted else self._take_turn())
                kind = self._kind
                if kind is not None and kind.is_doubted:
                    _hold_back()
                await self._take_slot()
                if kind is not None and kind.is_doubted:
                    _hold_back()
                model = self._request.model
                turn.passed(by_time=permits.limiter.is_full(model.connection, model.name))
        except BaseException:
            if self._reserved is not None:  # it will not be sent
                permits.budgets.refund(self._reserved)
            self._give_back()
            raise
        self.counted.in_flight += 1
        permits.writer.on_the_wire += 1
        return self

    async def __aexit__(self, *_: object) -> None:
        # A reservation is settled by the call's row, whatever became of the call.
        self.counted.in_flight -= 1
        self._permits.writer.on_the_wire -= 1
        self._give_back()

    def is_exceeded_by(self, row: CallRow) -> bool:
        """Return whether the call was billed more than was reserved for it."""
        if self._reserved is None:
            return False
        most = self._reserved.most
        tokens = (row.input_tokens or 0) + (row.output_tokens or 0)
        return tokens > most.tokens or (self._claim.dollars and nanos_of(row.usd or 0) > most.nanos)

    def _give_back(self) -> None:
        if self._slot is not None:
            self._slot.release()
        if self._turn is not None:
            self._turn.end()

    async def _take_turn(self) -> Turn:
        """Waits for a turn in this process, and with it for the replies before to be written.

        So no more calls are lost with the worker than may have a turn and may be unwritten, however many stand in line.
        """
        claim, writer = self._claim, self._permits.writer
        turn = self._queue.turn_at_once(claim.tenant)
        if turn is None:
            with waiting("process", self.counted):
                turn = await self._queue.turn_in_line(
                    claim.tenant, f"{claim.job_id}/{self._stage}", claim.priority
                )
        self._turn = turn
        if not writer.has_room:
            with waiting("writer", self.counted):
                await writer.wait_for_room()
        return turn

    async def _take_turn_and_pay(self) -> Turn:
        """Waits for a turn and the money for the call's worst case.

        Money comes after the turn, so that no more is reserved than what is about to be sent. Money that may yet come
        free is not waited for with a turn in hand, which others can use.
        """
        budgets, request = self._permits.budgets, self._request
        body = self._permits.chat.body_bytes(request)
        most = priced_worst_case(self._permits.prices, request, body, self._claim)
        wanted, is_short = Wanted(self._call_id, self._claim, most, request.model.full_name), False
        while True:
            if is_short or budgets.is_short(self._claim.job_id):
                await budgets.reserve(wanted, patient=True)
                self._reserved = wanted
            turn = await self._take_turn()
            if self._reserved is None and await budgets.reserve(wanted, patient=False):
                self._reserved = wanted
            if self._reserved is not None:
                return turn
            is_short, self._turn = True, None
            turn.end()

    async def _take_slot(self) -> None:
        """Waits for a slot of the limiter while the job is known to be active; one that grew old meanwhile is given back."""
        model, claim = self._request.model, self._claim
        tenant = claim.tenant if claim.shared and not is_of_tenant(model.connection) else None
        while True:
            try:
                self._slot = await self._permits.limiter.admit(
                    model.connection, model.name, self._expected, tenant
                )
            except LimiterUnavailableError:
                LIMITER_UNAVAILABLE.inc()
                await asyncio.sleep(LONGEST_WAIT_FOR_LIMITER_SECONDS * random.uniform(0.5, 1))  # noqa: S311
                continue
            # Also whether it was stopped: what comes with the last step of a wait shows only now.
            if self._stop.is_confirmed or await self._confirmed_in_time():
                return
            slot, self._slot = self._slot, None
            slot.release()

    async def _confirmed_in_time(self) -> bool:
        """Whether the job is known to be active before the slot has grown old."""
        clock = asyncio.get_running_loop().time
        granted = clock()
        await self._stop.confirmed()
        return clock() - granted <= SLOT_SECONDS


def _hold_back() -> NoReturn:
    raise HeldBackError
