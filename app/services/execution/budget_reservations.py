"""Reserves the worst case of every call of a job with a budget before it is sent.

While one transaction is on its way, the calls that come meanwhile gather for the next, so a statement serves many
calls when there are many. Nothing is reserved beyond the calls that are about to be sent: a budget is used up to its
last affordable call, and a worker that dies leaves no more reserved than what it had on the wire.
"""

import asyncio
import contextlib
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field, replace
from operator import attrgetter
from uuid import UUID

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.db.health import is_away
from app.db.jobs import bounds, budgets, jobs
from app.db.jobs.budgets import Account, CapOf, Wanted
from app.db.reasons import reason
from app.domain.jobs.contract import JobError
from app.domain.jobs.status import JobStatus
from app.services.execution.stop_signal import StoppedError, StopReason
from app.telemetry.vital import start_vital

log = structlog.get_logger(__name__)

BUDGET_EXHAUSTED = "budget_exhausted"
CAP_REACHED = "spending_cap_reached"

SHORT_SECONDS = 0.1
"""How often calls that could not be paid for look whether others on the wire took less than their worst case.

A tenant's jobs look in turns: each so many times more rarely as there are such jobs.
"""
LONGEST_SHORT_SECONDS = 2.0
"""Most time between two looks of a job; refunds and calls that don't wait are served at once."""
TRANSACTIONS_AT_A_TIME = 2
"""Of a tenant: its reservations wait for each other's locks, with a connection each."""

AWAY_SECONDS = 0.5
"""How often a database that is away is asked again."""


@dataclass(slots=True, eq=False)
class _PendingReservation:
    """A call that waits to be paid for."""

    wanted: Wanted
    patient: bool
    paid: asyncio.Future[bool] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


@dataclass(slots=True)
class _JobReservations:
    """The calls of one job at which this process is."""

    tenant: str
    waiting: deque[_PendingReservation] = field(default_factory=deque)
    unsent: list[UUID] = field(default_factory=list)
    short: bool = False
    awake: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None


class BudgetKeeper:
    """One a process."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._tills: dict[str, _JobReservations] = {}
        self._places: dict[str, asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(TRANSACTIONS_AT_A_TIME)
        )

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """On leaving, what was reserved and not sent has been given back, if the database can be reached."""
        try:
            yield
        finally:
            tasks = [till.task for till in self._tills.values() if till.task is not None]
            if tasks:
                await asyncio.wait(tasks, timeout=2 * AWAY_SECONDS)
            for task in tasks:
                task.cancel()

    def is_short(self, job_id: str) -> bool:
        """Whether calls of the job wait for others to turn out cheaper than their worst case."""
        till = self._tills.get(job_id)
        return till is not None and till.short

    async def reserve(self, wanted: Wanted, *, patient: bool) -> bool:
        """Reserves what a call takes at worst.

        Args:
            wanted: The call.
            patient: Whether to wait while the calls on the wire may leave enough for it.

        Returns:
            Whether it is reserved; always if the caller is patient.

        Raises:
            StoppedError: If the budget is exhausted, and the job is paused for it, or the job may not call for another reason.
        """
        customer = _PendingReservation(wanted, patient)
        till = self._till(wanted)
        till.waiting.append(customer)
        if not patient:
            till.awake.set()
        self._serve(wanted.claim.job_id, till)
        try:
            return await customer.paid
        except asyncio.CancelledError:
            # With the last step of it, the reservation may have been made all the same.
            self.refund(wanted)
            raise

    def refund(self, wanted: Wanted) -> None:
        """Gives back what was reserved for a call that will not be sent."""
        till = self._till(wanted)
        till.unsent.append(wanted.call_id)
        till.awake.set()
        self._serve(wanted.claim.job_id, till)

    def _till(self, wanted: Wanted) -> _JobReservations:
        claim = wanted.claim
        till = self._tills.get(claim.job_id)
        if till is None:
            till = self._tills[claim.job_id] = _JobReservations(claim.tenant)
        return till

    def _serve(self, job_id: str, till: _JobReservations) -> None:
        if till.task is None:
            till.task = start_vital(f"budget of {job_id}", self._serve_all(job_id, till), may_return=True)

    async def _serve_all(self, job_id: str, till: _JobReservations) -> None:
        try:
            while till.waiting or till.unsent:
                try:
                    async with self._places[till.tenant]:
                        await self._serve_those_here(job_id, till)
                except Exception as error:
                    if is_away(error):
                        # It may have been committed all the same; nothing of it has been sent.
                        till.unsent += [customer.wanted.call_id for customer in till.waiting]
                        log.warning("budget not reached; trying again", job=job_id, reason=reason(error))
                    else:
                        _fail_all(till.waiting, error)
                        log.exception("budget not kept", job=job_id)
                    await asyncio.sleep(AWAY_SECONDS)
                else:
                    if till.short:
                        looking = sum(t.short for t in self._tills.values() if t.tenant == till.tenant)
                        with contextlib.suppress(TimeoutError):
                            async with asyncio.timeout(min(looking * SHORT_SECONDS, LONGEST_SHORT_SECONDS)):
                                await till.awake.wait()
                till.waiting = deque(c for c in till.waiting if not c.paid.done())
        finally:
            del self._tills[job_id]
            for customer in till.waiting:
                customer.paid.cancel()

    async def _serve_those_here(self, job_id: str, till: _JobReservations) -> None:
        till.awake.clear()
        here, unsent = [c for c in till.waiting if not c.paid.done()], list(till.unsent)
        paid: set[UUID] = set()
        async with self._engine.begin() as connection:
            if unsent:
                await budgets.refund(connection, unsent)
            account = await budgets.lock_account(connection, job_id)
            exhausted = True  # a job that is gone, or stands still
            if account is not None and account.may_call:
                paid, exhausted = await self._reserve(connection, job_id, account, [c.wanted for c in here])
        del till.unsent[: len(unsent)]
        till.short = len(paid) < len(here) and not exhausted
        for customer in here:
            if customer.paid.done():  # it was stopped meanwhile
                continue
            if customer.wanted.call_id in paid:
                customer.paid.set_result(True)
            elif exhausted:
                customer.paid.set_exception(StoppedError(StopReason.JOB_INACTIVE))
            elif not customer.patient:
                customer.paid.set_result(False)

    @staticmethod
    async def _reserve(
        connection: AsyncConnection, job_id: str, account: Account, wanted: list[Wanted]
    ) -> tuple[set[UUID], bool]:
        """Return the ids of the calls that are paid for, and whether the job was paused for want of more."""
        if account.is_slowed and wanted:
            models = {w.model for w in wanted}
            exceeded = await bounds.lock_exceeded(connection, job_id, models)
            wanted = [
                call if largest is None else replace(call, most=call.most.at_least(largest), alone=True)
                for call, largest in bounds.due(wanted, exceeded, attrgetter("model"))
            ]
        count = account.affordable([w.most for w in wanted])
        if wanted and not count:
            cap = account.capped_by(wanted[0].most)
            if await budgets.any_outstanding(connection, job_id, cap):
                return set(), False
            # What was still on its way when the account was read may have been recorded since, for less than its worst case.
            account = await budgets.lock_account(connection, job_id) or account
            count = account.affordable([w.most for w in wanted])
            if not count:
                await pause_exhausted(connection, job_id, account.capped_by(wanted[0].most))
                return set(), True
        if count:
            await budgets.reserve(connection, job_id, wanted[:count])
        return {w.call_id for w in wanted[:count]}, False


async def pause_exhausted(connection: AsyncConnection, job_id: str, cap: CapOf | None = None) -> None:
    """Pauses a job whose budget does not suffice for one call more, or a cap that it has to keep."""
    reason = BUDGET_EXHAUSTED if cap is None else CAP_REACHED
    whose = "the budget" if cap is None else f"the {cap}'s spending cap"
    paused = await jobs.move(
        connection,
        job_id,
        to=JobStatus.PAUSED,
        reason=reason,
        error=JobError(code=reason, detail=f"the next call may cost more than {whose} leaves"),
    )
    if paused:
        log.warning("budget exhausted", job=job_id, reason=reason)


def _fail_all(customers: Iterable[_PendingReservation], error: Exception) -> None:
    """Tells those who wait of an error that asking again would not mend; for none of them anything is reserved."""
    for customer in customers:
        if not customer.paid.done():
            customer.paid.set_exception(error)
