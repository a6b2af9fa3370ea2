"""Accounting of calls: their purpose, worst case and rows, for direct calls and batches."""

from datetime import datetime
from http import HTTPStatus
from typing import NamedTuple
from uuid import UUID

from app.db.execution.result_rows import CallRow
from app.db.execution.shards import AnyClaim, Claim
from app.domain.jobs.budget import Amount, most_input_tokens, nanos_of
from app.domain.providers.failure import PRICE_UNKNOWN
from app.domain.providers.model import (
    LONGEST_TOKEN,
    SHORT_TEXT,
    ChatReply,
    ChatRequest,
    Model,
    Stage,
    Usage,
)
from app.domain.providers.parameters import most_output_tokens
from app.ports import BY_PROVIDER, FailureKind, ModelCallError, PriceBook
from app.services.execution.result_writer import Batch, BatchWriter
from app.services.providers.call_rules import has_price
from app.telemetry.metrics import Calls
from app.telemetry.tracing import call_ended

_OK = HTTPStatus.OK.value


class CallKey(NamedTuple):
    """What a call is for.

    Attributes:
        stage: Which stage.
        run: The response's run; none while a persona is prepared.
        item: The response's item, or the question whose exemplars are made.
        unit: The judged unit, when judging a sentence.
        trait: The judged trait, when judging a sentence.
        judge: The judge, when judging or grading; of a reading in another order its number (:mod:`app.domain.judging.order_check`).
        last_unit: The last of several judged units, of which ``unit`` is the first.
        task: The task for which a persona is prepared; of a repair the stage of the first call.
        ask: How many times the reasoner has been asked, this time included.
    """

    stage: Stage
    run: int | None = None
    item: int | None = None
    unit: int | None = None
    trait: int | None = None
    judge: int | None = None
    last_unit: int | None = None
    task: str | None = None
    ask: int | None = None

    @property
    def repair(self) -> "CallKey":
        """The key of the request that follows this call's unreadable reply."""
        return self._replace(stage=Stage.REPAIRING, task=self.stage.value)

    @property
    def first_stage(self) -> Stage:
        """The stage; of a repair that of the call whose reply could not be read."""
        return self.stage if self.stage is not Stage.REPAIRING else Stage(self.task or "")

    @property
    def is_about_text(self) -> bool:
        """Whether the call made a text, or decided about it, and did not judge it."""
        return self.first_stage not in {Stage.JUDGING, Stage.CHECKING}

    def is_dispensable(self, error: ModelCallError) -> bool:
        """Return whether an error concerns only this call, a follow-up or refusal check without which the work goes on."""
        return error.kind is FailureKind.ITEM and self.stage in {Stage.REPAIRING, Stage.REFUSAL_CHECK}

    def path(self, place: int) -> str:
        """The same identity as a path, equal in every job of the same specification.

        Args:
            place: The cell's ordinal, or the persona's index while it is prepared.
        """
        units = self.unit if self.last_unit is None else f"{self.unit}-{self.last_unit}"
        answer = (self.run, self.item, units, self.trait, self.judge)
        parts = (self.stage, place, self.task, *answer, self.ask)
        return "/".join([str(part) for part in parts if part is not None])


def priced_worst_case(
    prices: PriceBook, request: ChatRequest, body: int, claim: AnyClaim, *, batched: bool = False
) -> Amount:
    """Return what a call takes at worst whose encoded body has ``body`` bytes.

    Raises:
        ModelCallError: If its job has a limit in dollars and the model's price is not known any more.
    """
    model = request.model
    if claim.dollars and not has_price(prices, model):
        raise ModelCallError(
            f"the job has a limit in dollars, and no price is known for {model.full_name}",
            kind=FailureKind.JOB,
            code=PRICE_UNKNOWN,
        )
    return worst_case(prices, request, body, batched=batched)


def worst_case(prices: PriceBook, request: ChatRequest, body: int, *, batched: bool = False) -> Amount:
    """What a call takes at worst whose encoded body has ``body`` bytes, counting nothing for an unknown price."""
    model = request.model
    sent, returned = most_input_tokens(body), most_output_tokens(model)
    # A user's own field may have the provider store the prompt, which it may charge for.
    stored = sent if "cache_control" in model.parameters.extra else 0
    worst = Usage(sent, returned, written_input_tokens=stored)
    price = prices.price(model, worst, batched=batched)
    return Amount(1, sent + returned, nanos_of(price.usd or 0))


def is_free(prices: PriceBook, model: Model) -> bool:
    """Return whether the model's price is known to be 0."""
    return prices.price(model, Usage(1, 1)).usd == 0


class Attempt(NamedTuple):
    """An attempt at a call.

    Attributes:
        id: Of its row.
        model: Who was called.
        key: What for.
        claim: Under which claim.
        number: Which attempt it is, from 1.
        started_at: When it was sent.
        batch_id: Of the batch in which it was sent.
    """

    id: UUID
    model: Model
    key: CallKey
    claim: AnyClaim
    number: int
    started_at: datetime
    batch_id: int | None = None


def unanswered_row(
    attempt: Attempt, latency_ms: float, error: ModelCallError, prices: PriceBook, request: ChatRequest
) -> CallRow:
    """Row of a call that gave no answer."""
    usage = believed_usage(error.usage, request)
    return _row(attempt, latency_ms, None, usage, _cost(attempt.model, usage, prices))._replace(
        outcome=error.kind.value,
        code=error.code,
        http_status=error.status,
        maybe_paid=error.maybe_paid or error.usage is not None,
        detail=str(error),
    )


def lost_row(attempt: Attempt, latency_ms: float, code: str, prices: PriceBook) -> CallRow:
    """Row of a call whose result is unknown; unless its model is free, it may be paid."""
    usd = _cost(attempt.model, None, prices)
    return _row(attempt, latency_ms, None, None, usd)._replace(outcome=FailureKind.RETRY.value, code=code)


def believed(reply: ChatReply, request: ChatRequest) -> ChatReply:
    """Return a reply without its counts if these have too few tokens for the prompt; the call's cost is unknown then."""
    if reply.usage is None or believed_usage(reply.usage, request) is not None:
        return reply
    return reply._replace(usage=None, reported_usd=reply.usage.reported_usd)


def believed_usage(usage: Usage | None, request: ChatRequest) -> Usage | None:
    """Return a call's counts, or ``None`` if they have too few tokens for the prompt."""
    if usage is None or request.characters > LONGEST_TOKEN * usage.input_tokens + SHORT_TEXT:
        return None
    return usage


def answered_row(attempt: Attempt, latency_ms: float, reply: ChatReply, prices: PriceBook) -> CallRow:
    """The row of a call that was answered, with its cost."""
    usd = cost_of_answer(reply, attempt.model, prices, batched=attempt.batch_id is not None)
    return _row(attempt, latency_ms, reply, reply.usage, usd)


def cost_of_answer(
    reply: ChatReply, model: Model, prices: PriceBook, *, batched: bool = False
) -> float | None:
    """Return the cost of an answered call; ``None`` if it is unknown."""
    if reply.usage is not None and reply.reported_usd is None:  # by far the most
        return prices.price(model, reply.usage, batched=batched).usd
    usd = _cost(model, reply.usage, prices, batched=batched)
    if reply.reported_usd is None:
        return usd
    # Without usable counts; it must not lower a cost that is unknown.
    reported = prices.price(model, Usage(0, 0, reported_usd=reply.reported_usd))
    return reported.usd if reported.source == BY_PROVIDER else usd


def _cost(model: Model, usage: Usage | None, prices: PriceBook, *, batched: bool = False) -> float | None:
    if usage is None:
        return 0.0 if is_free(prices, model) else None
    return prices.price(model, usage, batched=batched).usd


def account(writer: BatchWriter, row: CallRow, attempt: Attempt, counted: Calls) -> Batch:
    """Has an attempt's row written, and counts and traces it. Returns the rows with which it becomes durable."""
    batch = writer.add(attempt.claim, row)
    counted.ended(row.stage, row.outcome, row.latency_ms / 1000, row.usd)
    counted.took(row.input_tokens, row.output_tokens)
    call_ended(row)
    return batch


def _row(
    attempt: Attempt, latency_ms: float, reply: ChatReply | None, usage: Usage | None, usd: float | None
) -> CallRow:
    call, model, key, claim, number, started_at, batch_id = attempt
    return CallRow(
        id=call,
        tenant=claim.tenant,
        job_id=claim.job_id,
        shard_id=claim.shard_id,
        stage=key.stage,
        connection=model.connection,
        model=model.name,
        cell_id=claim.cell_id if isinstance(claim, Claim) else None,
        run=key.run,
        item=key.item,
        unit=key.unit,
        trait=key.trait,
        judge=key.judge,
        attempt=number,
        outcome="ok",
        code=None,
        http_status=None if reply is None else _OK,
        input_tokens=None if usage is None else usage.input_tokens,
        output_tokens=None if usage is None else usage.output_tokens,
        cached_input_tokens=None if usage is None else usage.cached_input_tokens,
        usd=usd,
        maybe_paid=True,
        latency_ms=latency_ms,
        finish_reason=None if reply is None else reply.finish_reason,
        model_snapshot=None if reply is None else reply.model_snapshot,
        system_fingerprint=None if reply is None else reply.system_fingerprint,
        provider_request_id=None if reply is None else reply.provider_request_id,
        started_at=started_at,
        persona=None if isinstance(claim, Claim) else claim.persona,
        task=key.task,
        last_unit=key.last_unit,
        batch_id=batch_id,
        reasoning_tokens=None if usage is None else usage.reasoning_tokens,
    )
