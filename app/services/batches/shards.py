"""Shards in batch execution: run with the answers so far, then parked until more arrive."""

import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import structlog
from sqlalchemy.ext.asyncio import AsyncConnection

from app.db.batches import calls as batch_calls
from app.db.batches import forming
from app.db.batches.forming import Group, Waiting
from app.db.execution.shards import AnyClaim, Claim
from app.db.jobs import bounds, budgets, jobs
from app.db.jobs.budgets import CapOf
from app.domain.jobs.budget import Amount
from app.domain.jobs.execution import Execution
from app.services.batches.caller import BatchCaller, DeferredError, by_path
from app.services.execution.budget_reservations import pause_exhausted
from app.services.execution.result_writer import StaleClaimError
from app.services.execution.retries import JobMustStopError
from app.services.execution.shard_work import ShardDependencies
from app.services.job_context import JobContext

log = structlog.get_logger(__name__)

FIRST_WAIT_SECONDS = 30.0
"""How long a batch waits of whose calls one has met a rate limit; each further time in a row twice as long."""

LONGEST_WAIT_SECONDS = 600.0


@contextlib.asynccontextmanager
async def calling_as_asked(
    deps: ShardDependencies, claim: AnyClaim, context: JobContext
) -> AsyncIterator[ShardDependencies]:
    """What a shard is worked on with. If its calls go out in batches, what is missing is asked for on leaving.

    Raises:
        StaleClaimError: On leaving, if the claim was no longer valid.
        JobMustStopError: On leaving, if another round of calls would fail like this one.
    """
    if not isinstance(claim, Claim) or context.spec.execution is Execution.DIRECT:
        yield deps
        return
    async with deps.engine.connect() as connection:
        known = by_path(await batch_calls.known_calls(connection, claim))
    caller = BatchCaller(deps.batching.chat, deps.batching.prices, deps.writer, deps.first_calls, known)
    try:
        yield replace(deps, caller=caller)
    except DeferredError:
        await _keep(deps, claim, caller)
        if (hopeless := await caller.hopeless()) is not None:
            raise hopeless from None
        raise
    except JobMustStopError:
        await _keep(deps, claim, caller)
        raise
    await _keep(deps, claim, caller)
    if (hopeless := await caller.hopeless()) is not None:
        raise hopeless


async def _keep(deps: ShardDependencies, claim: Claim, caller: BatchCaller) -> None:
    """Exchanges the answers, once their rows are durable, for further wishes.

    A run that broke off by an internal error does not come here: its answers are read once more.
    """
    await caller.durable(claim)
    async with deps.engine.begin() as connection:
        await jobs.lock_job(connection, claim.job_id)
        kept = await batch_calls.replace(connection, claim, caller.read, caller.wanted)
    if not kept:
        raise StaleClaimError


class Due(NamedTuple):
    """A batch to form: its model, the number of its calls, and what is reserved for each at least."""

    group: Group
    calls: int
    largest: Amount | None = None


async def form_batches(connection: AsyncConnection, job_id: str, most_calls: int) -> list[int]:
    """Puts the calls of a locked, active job that wait into batches: full ones, and the rest once no shard can add to it.

    A batch is cut to what the job's budget allows, once nothing else is on its way. A job of which nothing is on its way, and of whose budget not enough
    is left for one call, is paused.

    Returns:
        The batches to tell the queue of, after the transaction has committed.
    """
    groups = await forming.waiting(connection, job_id)
    complete = bool(groups) and await forming.all_parked(connection, job_id)
    due = [
        Due(group, size) for group in groups for size in _sizes(group.calls, most_calls, complete=complete)
    ]
    if not due:
        return []
    account = await budgets.lock_account(connection, job_id)
    if account is not None and not account.may_call:  # a model kept exceeding its bound
        return []
    if account is not None and account.is_slowed:
        slowed = await bounds.lock_exceeded(connection, job_id, {group.name for group in groups})
        due = [
            each if largest is None else Due(each.group, 1, largest)
            for each, largest in bounds.due(due, slowed, lambda each: each.group.name)
        ]
    beside = Amount()
    cap: CapOf | None = None
    formed: list[int] = []
    short: dict[Group, Amount] = {}
    for group, size, largest in due:
        if group in short:
            continue
        calls = await forming.first_waiting(connection, job_id, group, size)
        amounts = [call.most if largest is None else call.most.at_least(largest) for call in calls]
        count = len(calls) if account is None else account.affordable(amounts, beside)
        if account is not None and count < len(calls):
            short[group] = amounts[0]
            cap = account.capped_by(amounts[0], beside)
            if await budgets.any_outstanding(connection, job_id, cap):
                continue  # what is on its way at its worst case comes back cheaper, and pays for a larger batch
        if count:
            beside = sum(amounts[:count], beside)
            cut = count < len(calls)
            formed.append(await _form(connection, job_id, group, calls[:count], largest, cut=cut))
    if short and not formed and not await budgets.any_outstanding(connection, job_id, cap):
        await _pause_unless_affordable(connection, job_id, list(short.values()))
    return formed


async def _pause_unless_affordable(
    connection: AsyncConnection, job_id: str, wanted: Sequence[Amount]
) -> None:
    """Pauses a job none of whose calls can be paid for, with nothing on its way.

    What was on its way when the account was read may have been recorded since, for less than its worst case; then the sweeper
    forms the batch.
    """
    account = await budgets.lock_account(connection, job_id)
    if account is not None and not any(account.affordable([amount]) for amount in wanted):
        await pause_exhausted(connection, job_id, account.capped_by(wanted[-1]))


async def _form(
    connection: AsyncConnection,
    job_id: str,
    group: Group,
    calls: Sequence[Waiting],
    largest: Amount | None,
    *,
    cut: bool,
) -> int:
    """Forms a batch, which waits the longer the more often in a row a call of it met a rate limit."""
    if cut:
        log.warning("batch cut for a budget", job=job_id, calls=len(calls), waiting=group.calls)
    waits = max(call.waits for call in calls)
    seconds = min(LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2.0 ** min(waits - 1, 10)) if waits else 0.0
    ids = [call.id for call in calls]
    return await forming.form(connection, job_id, group, ids, seconds=seconds, cut=cut, largest=largest)


def _sizes(calls: int, most: int, *, complete: bool) -> list[int]:
    """How many calls each batch has: all that are full and, of a complete round, the rest."""
    full, rest = divmod(calls, most)
    return [most] * full + ([rest] if rest and complete else [])
