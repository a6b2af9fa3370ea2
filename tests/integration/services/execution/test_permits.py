"""Wherever a call is stopped that waits for its permit, and however it ends with one, nothing stays taken."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.execution.result_rows import ResultWriter
from app.db.execution.shards import Claim
from app.domain.jobs.budget import Budget
from app.domain.providers.model import ChatRequest, Model, Stage, Usage
from app.ports import FailureKind, ModelCallError, Price, ProviderUnreachableError, Slot
from app.services.execution.budget_reservations import BudgetKeeper
from app.services.execution.permits import Permit, Permits
from app.services.execution.result_writer import BatchWriter
from app.services.execution.stop_signal import StoppedError, StopReason, StopSignal, current_task
from app.services.identifiers import new_uuid
from tests.integration.jobs import claimed, new_job, scalar
from tests.integration.no_limits import NoLimits

WRITER = Model("writer", "simulated", "writer")
RESERVED = "SELECT count(*) FROM reservations"
STEPS = ("prepare", "turn", "room", "money", "slot", "confirmation")
"""Whatever a call may wait for, in order."""


@dataclass
class Outside(NoLimits):
    """The provider, the limiter and the prices; holds a call up at a step, or fails there."""

    held_at: str = ""
    error: Exception | None = None
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    inside: int = 0

    async def prepare(self, connection: str, tenant: str) -> None:
        await self._step("prepare")

    async def admit(self, connection: str, model: str, expected: Usage, tenant: str | None = None) -> Slot:
        await self._step("slot")
        self.inside += 1
        return self

    def release(self) -> None:
        self.inside -= 1

    def body_bytes(self, request: ChatRequest) -> int:
        return 100

    def price(self, model: Model, usage: Usage, *, batched: bool = False) -> Price:
        return Price(0.001, "operator")

    async def _step(self, step: str) -> None:
        if self.held_at == step:
            self.reached.set()
            if self.error is not None:
                raise self.error
            await asyncio.Event().wait()


class SlowBudgets(BudgetKeeper):
    """Reserves, and is stopped before whoever asked knows of it."""

    def __init__(self, engine: AsyncEngine, outside: Outside) -> None:
        super().__init__(engine)
        self._outside = outside

    async def reserve(self, wanted: Any, *, patient: bool) -> bool:
        try:
            paid = await super().reserve(wanted, patient=patient)
            await self._outside._step("money")
        except asyncio.CancelledError:
            self.refund(wanted)
            raise
        return paid


class Gates:
    """All that stands before a call of a job with a budget: one place, and room for one reply."""

    def __init__(self, engine: AsyncEngine, claim: Claim) -> None:
        self.claim = claim
        self.outside = Outside()
        self.writer = BatchWriter(ResultWriter(engine), most_unwritten=1)
        self.budgets = SlowBudgets(engine, self.outside)
        self.permits = Permits(
            chat=self.outside,  # type: ignore[arg-type] # nothing is sent
            limiter=self.outside,
            prices=self.outside,
            writer=self.writer,
            budgets=self.budgets,
            in_flight=lambda *_: 1,
        )

    def permit(self, stop: StopSignal, call: UUID | None = None, *, budgeted: bool = True) -> Permit:
        request = ChatRequest(WRITER, None, "Speak.", "a1", 7.0)
        claim = replace(self.claim, budgeted=budgeted)
        return self.permits.permit(
            request, call or new_uuid(), claim, Stage.GENERATION, Usage(1, 1), stop, current_task()
        )

    async def pass_through(self, stop: StopSignal) -> None:
        async with self.permit(stop):
            pass

    @property
    def taken(self) -> tuple[int, int, int]:
        """Turns, slots, and calls that count as on the wire."""
        queue = self.permits.gate(WRITER.connection, WRITER.name).queue
        return (0 if queue.is_idle else 1), self.outside.inside, self.writer.on_the_wire

    async def settled(self) -> None:
        """Until what was to be given back of the budget has been."""
        while self.budgets._tills:  # noqa: ASYNC110 - the keeper tells nobody
            await asyncio.sleep(0.01)


def active() -> StopSignal:
    stop = StopSignal()
    stop.seen_active(asyncio.get_running_loop().time() + 3600)
    return stop


@pytest.fixture
async def gates(engine: AsyncEngine) -> AsyncIterator[Gates]:
    job = await new_job(engine, budget=Budget(calls=100))
    gates = Gates(engine, await claimed(engine, job.id))
    async with gates.budgets.running():
        yield gates
        await gates.settled()


async def hold_up(gates: Gates, step: str, stop: StopSignal) -> None:
    """Has the next call wait at a step, for ever."""
    gates.outside.held_at = step
    if step == "room":
        gates.writer._unwritten = 1
        gates.writer._room.clear()
    elif step == "confirmation":
        stop.seen_active(float("-inf"))


def let_pass(gates: Gates) -> None:
    gates.outside.held_at = ""
    gates.writer._unwritten = 0
    gates.writer._room.set()


class TestStop:
    @pytest.mark.parametrize("step", STEPS)
    async def test_wherever_a_call_waits_nothing_of_it_stays_taken(
        self, engine: AsyncEngine, gates: Gates, step: str
    ) -> None:
        stop, before = active(), None
        if step == "turn":
            before = gates.permit(active())
            await before.__aenter__()
        await hold_up(gates, step, stop)
        waiting = asyncio.create_task(gates.pass_through(stop))
        done, _ = await asyncio.wait([waiting], timeout=0.2)
        assert not done
        stop.set(StopReason.JOB_INACTIVE)
        with pytest.raises(StoppedError):
            await asyncio.wait_for(waiting, 20)
        if before is not None:
            await before.__aexit__(None, None, None)
        let_pass(gates)
        assert gates.taken == (0, 0, 0)
        await gates.settled()
        assert await scalar(engine, RESERVED) == (1 if before is not None else 0)
        await asyncio.wait_for(gates.pass_through(active()), 20)  # the only place is free

    @pytest.mark.parametrize("moment", range(12))
    async def test_at_whatever_moment_it_comes(self, gates: Gates, moment: int) -> None:
        stop = active()
        passing = asyncio.create_task(gates.pass_through(stop))
        for _ in range(moment):  # from before its first wait to after the last
            await asyncio.sleep(0)
        stop.set(StopReason.SHUTDOWN)
        await asyncio.wait([passing], timeout=20)
        assert gates.taken == (0, 0, 0)
        assert passing.exception() is None or isinstance(passing.exception(), StoppedError)


class TestFailure:
    @pytest.mark.parametrize(
        ("step", "error"),
        [
            ("prepare", ModelCallError("none", kind=FailureKind.JOB, code="unknown_connection")),
            ("money", RuntimeError("the database refused it")),
            ("slot", ProviderUnreachableError("refused", 600.0)),
        ],
    )
    async def test_of_a_step_leaves_nothing_taken(
        self, engine: AsyncEngine, gates: Gates, step: str, error: Exception
    ) -> None:
        gates.outside.held_at, gates.outside.error = step, error
        with pytest.raises(type(error)):
            await gates.pass_through(active())
        let_pass(gates)
        assert gates.taken == (0, 0, 0)
        await gates.settled()
        if step != "money":  # there the keeper failed, and has nothing reserved
            assert await scalar(engine, RESERVED) == 0


class TestMoney:
    async def test_of_a_call_that_has_its_permit_stays_reserved_until_its_row_settles_it(
        self, engine: AsyncEngine, gates: Gates
    ) -> None:
        call = new_uuid()
        with contextlib.suppress(ZeroDivisionError):
            async with gates.permit(active(), call):
                assert gates.taken == (1, 1, 1)
                raise ZeroDivisionError
        assert gates.taken == (0, 0, 0)
        await gates.settled()
        assert await scalar(engine, "SELECT call_id FROM reservations") == call

    async def test_is_nothing_to_a_job_without_a_budget(self, engine: AsyncEngine, gates: Gates) -> None:
        async with gates.permit(active(), budgeted=False):
            assert await scalar(engine, RESERVED) == 0
