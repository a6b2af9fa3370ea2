"""What all kinds of shards share: their dependencies, and awaiting many calls."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.execution.shards import AnyClaim
from app.domain.instruments.rules import RuleBook
from app.domain.providers.model import ChatReply, FinishReason, Message, Model
from app.ports import BatchModel, PriceBook, Queue
from app.services.execution.call_rows import CallKey
from app.services.execution.first_calls import FirstCalls
from app.services.execution.leases import LeaseKeeper
from app.services.execution.response_cache import SharedReplies
from app.services.execution.result_writer import BatchWriter
from app.services.execution.retries import JobMustStopError
from app.services.execution.stop_signal import StoppedError, StopReason, StopSignal
from app.services.execution.suspect_replies import LateSuspects
from app.services.job_context import JobContexts
from app.services.providers.call_rules import CallRules
from app.services.tenant_turns import TenantTurns

CHANGES_AT_A_TIME = 2
"""Shards that a process begins or ends at a time, each in a few short statements."""

REFUSING = frozenset({FinishReason.REFUSAL, FinishReason.CONTENT_FILTER})


class Caller(Protocol):
    """Makes the calls of shards."""

    async def call(
        self,
        model: Model,
        system: str | None,
        user: str,
        *,
        key: CallKey,
        claim: AnyClaim,
        stop: StopSignal,
        turns: tuple[Message, ...] = (),
    ) -> ChatReply:
        """The model's reply; see :class:`app.services.execution.model_caller.ModelCaller`."""
        ...


@dataclass(frozen=True, slots=True)
class Batching:
    """What calling in batches takes.

    Attributes:
        chat: The providers' batch endpoints.
        prices: Knows what calls cost.
        poll_seconds: How often a provider is asked whether a batch has ended.
        most_calls: Most calls of a batch.
    """

    chat: BatchModel
    prices: PriceBook
    poll_seconds: float
    most_calls: int


@dataclass(frozen=True, slots=True)
class ShardDependencies:
    """What running shards takes; built once a process.

    Attributes:
        finalize: Has a job finalized whose work is over.
        changes: Places in which shards begin and end: many small shards of a tenant do not delay another's.
    """

    engine: AsyncEngine
    writer: BatchWriter
    caller: Caller
    replies: SharedReplies
    first_calls: FirstCalls
    batching: Batching
    leases: LeaseKeeper
    late_suspects: LateSuspects
    contexts: JobContexts
    queue: Queue
    finalize: Callable[[str], Awaitable[None]]
    rules: RuleBook
    call_rules: CallRules
    owner: str
    lease_seconds: float
    window: int
    changes: TenantTurns = field(default_factory=lambda: TenantTurns(CHANGES_AT_A_TIME))


class ShardWork(Protocol):
    """The work of one claim."""

    async def run(self) -> None:
        """Does everything that is missing and waits until it is durable."""
        ...


async def finish_all(work: Sequence[Coroutine[Any, Any, None]], stop: StopSignal) -> None:
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

    start = asyncio.get_running_loop().create_task
    outcomes = await asyncio.gather(*[start(guarded(one)) for one in work], return_exceptions=True)
    errors = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    for error in sorted(errors, key=_rank):
        raise error


def _rank(error: BaseException) -> int:
    """What a failed shard is told apart by: the most telling error first."""
    if isinstance(error, JobMustStopError):
        return 0
    return 2 if isinstance(error, StoppedError) else 1
