"""A shard's calls in batch execution: requested now, answered hours later, when the shard runs again."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from uuid import UUID

from app import clock
from app.db.batches.calls import KnownCall, WantedCall
from app.db.execution.result_rows import CallRow
from app.db.execution.shards import AnyClaim
from app.domain.providers.model import ChatReply, ChatRequest, Message, Model
from app.ports import BATCH_LOST, BatchModel, FailureKind, ModelCallError, PriceBook
from app.services.execution.call_rows import (
    Attempt,
    CallKey,
    account,
    answered_row,
    believed,
    priced_worst_case,
    unanswered_row,
)
from app.services.execution.first_calls import FIRST_CALLS, FirstCalls, Kind
from app.services.execution.result_writer import Batch, BatchWriter
from app.services.execution.retries import (
    Attempts,
    JobMustStopError,
    Next,
    failed_for_good,
    is_rate_limited,
    must_stop,
)
from app.services.execution.stop_signal import StoppedError, StopReason, StopSignal
from app.services.identifiers import new_uuid
from app.services.long_texts import read_text
from app.telemetry.metrics import calls_of

MOST_ROUNDS = 4
"""Attempts at a call that fails in a way that may pass, rate limits not counted: each is a batch, and may take a day."""

MOST_CUSTOM_ID = 64
"""Characters that Anthropic takes; it takes letters, digits, ``_`` and ``-`` only."""


_UNTRIED = frozenset({"batch_expired", "batch_canceled", "batch_cancelled", BATCH_LOST})
"""Codes of calls that the provider did not come to, or whose answers are lost: they say nothing about the next round."""


class DeferredError(StoppedError):
    """Raised in the place where a call's reply is still to come with a batch."""


@dataclass(slots=True)
class _Round:
    """The answers to one kind of call that a run of a shard read.

    Attributes:
        answered: Whether any of the calls was answered with a reply.
        failures: The failures of the others.
        attempts: The fewest attempts that one of these calls has had.
    """

    answered: bool = False
    failures: list[ModelCallError] = field(default_factory=list)
    attempts: int = MOST_ROUNDS


@dataclass(slots=True)
class BatchCaller:
    """Answers the calls of one claim from the batches that have ended, and notes those that are still to be asked.

    Attributes:
        chat: Knows the wire formats.
        prices: Knows what calls cost.
        writer: Keeps the accounting.
        first_calls: Knows which kinds of calls have been answered.
        known: What the shard has asked for before, by path.
        wanted: Calls to be asked for.
        written: Where the rows of what was given out are.
        rounds: The answers that were read, by kind of call.
    """

    chat: BatchModel
    prices: PriceBook
    writer: BatchWriter
    first_calls: FirstCalls
    known: dict[str, KnownCall]
    wanted: list[WantedCall] = field(default_factory=list)
    written: dict[int, Batch] = field(default_factory=dict)
    rounds: dict[Kind, _Round] = field(default_factory=dict)

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
        """The model's reply, if its batch has ended.

        Raises:
            DeferredError: If it has not.
            CallFailedError: If the item can't succeed, or did not within :data:`MOST_ROUNDS`.
            JobMustStopError: If the provider says that nothing can succeed.
        """
        path = key.path(claim.place)
        await self.chat.prepare(model.connection, claim.tenant)
        known = self.known.get(path)
        if known is None:
            self._want(model, system, user, turns, key, claim, stop, claim.attempts_before + 1, waits=0)
            raise DeferredError(StopReason.BATCH)
        if known.answer is None:
            raise DeferredError(StopReason.BATCH)
        try:
            request = ChatRequest(model, system, user, path, turns=turns)
            return await self._read(known, known.answer, request, key, claim)
        except ModelCallError as error:
            waits = known.waits + is_rate_limited(error)
            attempts = Attempts(MOST_ROUNDS, known.attempt - claim.attempts_before, rate_limited=waits)
            if not key.is_dispensable(error):
                kind = self.first_calls.kind(claim.job_id, model, key.first_stage)
                self._note_failure(error, attempts.failed, kind)
            follows = attempts.after(error)
            if follows is Next.FAIL_ITEM:
                raise failed_for_good(error) from error
            self._want(model, system, user, turns, key, claim, stop, known.attempt + 1, waits=waits)
            if follows is Next.STOP_JOB:
                raise stop.fail(must_stop(error, model, key.stage)) from error
            raise DeferredError(StopReason.BATCH) from error

    @property
    def read(self) -> list[UUID]:
        """The calls whose answers a whole run has made rows of, this time or before it was interrupted."""
        return [call.id for call in self.known.values() if call.answer is not None]

    def _note_failure(self, error: ModelCallError, attempts: int, kind: Kind) -> None:
        if is_rate_limited(error) or error.kind is FailureKind.FILTERED or error.code in _UNTRIED:
            return
        read = self.rounds.setdefault(kind, _Round())
        read.failures.append(error)
        read.attempts = min(read.attempts, attempts)

    async def hopeless(self) -> JobMustStopError | None:
        """Return the reason to stop the job if the next round of calls would most likely fail as this one did.

        The rows of the answers must be durable.
        """
        for kind, read in self.rounds.items():
            if read.failures and not read.answered and await self._repeats(kind, read):
                alike = len(read.failures)
                return must_stop(read.failures[0], kind.model, kind.stage, alike=alike)
        return None

    async def _repeats(self, kind: Kind, read: _Round) -> bool:
        """Return whether many calls failed alike, or few failed for the second time and none of the kind was ever answered."""
        is_alike = len({(each.code, each.status) for each in read.failures}) == 1
        if is_alike and read.attempts == 1 and len(read.failures) >= FIRST_CALLS:
            return True
        for error in read.failures:
            if await self.first_calls.stops(kind, error):
                return True
        return read.attempts > 1 and not await self.first_calls.any_answer(kind)

    async def durable(self, claim: AnyClaim) -> None:
        """Waits until what was made of the answers is committed.

        Raises:
            StaleClaimError: If the claim was no longer valid.
            Exception: If the database refused rows or stayed away.
        """
        last = self.writer.add(claim)
        for batch in (*self.written.values(), last):
            await batch.durable(claim)

    async def _read(
        self, known: KnownCall, answer: str, request: ChatRequest, key: CallKey, claim: AnyClaim
    ) -> ChatReply:
        model = request.model
        submitted_at, passed = known.submitted_at or clock.now(), (known.seconds or 0.0) * 1000
        attempt = Attempt(known.id, model, key, claim, known.attempt, submitted_at, known.batch_id)
        try:
            reply = await read_text(claim.tenant, answer, partial(self.chat.decode, model.connection))
        except ModelCallError as error:
            self._account(unanswered_row(attempt, passed, error, self.prices, request), attempt)
            raise
        reply = believed(reply, request)
        self._account(answered_row(attempt, passed, reply, self.prices), attempt)
        kind = self.first_calls.kind(claim.job_id, model, key.first_stage)
        self.first_calls.answered(kind)
        self.rounds.setdefault(kind, _Round()).answered = True
        return reply

    def _account(self, row: CallRow, attempt: Attempt) -> None:
        batch = account(self.writer, row, attempt, calls_of(row.connection, row.model))
        self.written[id(batch)] = batch

    def _want(
        self,
        model: Model,
        system: str | None,
        user: str,
        turns: tuple[Message, ...],
        key: CallKey,
        claim: AnyClaim,
        stop: StopSignal,
        attempt: int,
        *,
        waits: int,
    ) -> None:
        path = key.path(claim.place)
        request = ChatRequest(model, system, user, f"{claim.job_id}/{path}/a{attempt}", turns=turns).placed()
        call = new_uuid()
        try:
            words = self.chat.encode(request)
        except ModelCallError as error:
            raise failed_for_good(error) from error
        try:
            most = priced_worst_case(self.prices, request, len(words.encode()), claim, batched=True)
        except ModelCallError as error:
            raise stop.fail(must_stop(error, model, key.stage)) from error
        self.wanted.append(
            WantedCall(
                id=call,
                connection=model.connection,
                model=model.name,
                path=path,
                custom_id=_custom_id(request.request_id, call),
                attempt=attempt,
                waits=waits,
                request=words,
                tokens=most.tokens,
                nanos=most.nanos,
            )
        )


def by_path(known: Sequence[KnownCall]) -> dict[str, KnownCall]:
    """Calls by what they are for."""
    return {call.path: call for call in known}


def _custom_id(request_id: str, call: UUID) -> str:
    """The same identity as a direct call's, in the characters that batches allow, where it is not too long."""
    custom_id = request_id.replace("-", "_").replace("/", "-")
    return custom_id if len(custom_id) <= MOST_CUSTOM_ID else f"call-{call.hex}"
