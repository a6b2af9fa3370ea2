"""What calls are for, what they take at worst, and the rows that account for them, however they are sent."""

from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from uuid import UUID

from app.db.shards import AnyClaim, Claim
from app.db.writer import CallRow
from app.domain.budget import Amount, most_tokens, nanos_of
from app.domain.model import ChatReply, ChatRequest, Model, Stage, Usage
from app.ports import ModelCallError, PriceBook


@dataclass(frozen=True, slots=True)
class CallKey:
    """What a call is for.

    Attributes:
        stage: Which stage.
        run: The response's run; none while a persona is prepared.
        item: The response's item, or the question whose exemplars are made.
        unit: The judged unit, when judging a sentence.
        trait: The judged trait, when judging a sentence.
        judge: The judge, when judging or grading.
        last_unit: The last of several judged units, of which ``unit`` is the first.
        task: The task for which a persona is prepared.
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

    def path(self, place: int) -> str:
        """The same identity as a path, equal in every job of the same specification.

        Args:
            place: The cell's ordinal, or the persona's index while it is prepared.
        """
        units = self.unit if self.last_unit is None else f"{self.unit}-{self.last_unit}"
        answer = (self.run, self.item, units, self.trait, self.judge)
        parts = (self.stage.value, place, self.task, *answer, self.ask)
        return "/".join(str(part) for part in parts if part is not None)


def worst_case(prices: PriceBook, request: ChatRequest, *, batched: bool = False) -> Amount:
    """What a call takes at worst."""
    model = request.model
    sent, returned = most_tokens(request.system, request.user, model.parameters.max_tokens)
    # A user's own field may have the provider store the prompt, which it may charge for.
    stored = sent if "cache_control" in model.parameters.extra else 0
    worst = Usage(sent, returned, written_input_tokens=stored)
    price = prices.price(model.connection, model.name, worst, batched=batched)
    return Amount(1, sent + returned, nanos_of(price.usd or 0))


def new_call_row(
    call: UUID,
    model: Model,
    key: CallKey,
    claim: AnyClaim,
    attempt: int,
    started_at: datetime,
    latency_ms: float,
    batch_id: int | None = None,
) -> CallRow:
    """The row of a call of which nothing is known yet but that it was made."""
    return CallRow(
        id=call,
        tenant=claim.tenant,
        job_id=claim.job_id,
        shard_id=claim.shard_id,
        stage=key.stage.value,
        connection=model.connection,
        model=model.name,
        cell_id=claim.cell_id if isinstance(claim, Claim) else None,
        run=key.run,
        item=key.item,
        unit=key.unit,
        trait=key.trait,
        judge=key.judge,
        attempt=attempt,
        outcome="ok",
        code=None,
        http_status=None,
        input_tokens=None,
        output_tokens=None,
        cached_input_tokens=None,
        usd=None,
        maybe_paid=True,
        latency_ms=latency_ms,
        finish_reason=None,
        model_snapshot=None,
        system_fingerprint=None,
        provider_request_id=None,
        started_at=started_at,
        persona=None if isinstance(claim, Claim) else claim.persona,
        task=key.task,
        last_unit=key.last_unit,
        batch_id=batch_id,
    )


def with_failure(row: CallRow, error: ModelCallError) -> CallRow:
    """The row of a call that gave no answer."""
    return row._replace(
        outcome=error.kind.value, code=error.code, http_status=error.status, maybe_paid=error.maybe_paid
    )


def with_reply(row: CallRow, reply: ChatReply, prices: PriceBook) -> CallRow:
    """The row of a call that was answered, with its cost."""
    usage: Usage | None = reply.usage
    batched = row.batch_id is not None
    price = None if usage is None else prices.price(row.connection, row.model, usage, batched=batched)
    return row._replace(
        http_status=HTTPStatus.OK.value,
        input_tokens=usage.input_tokens if usage else None,
        output_tokens=usage.output_tokens if usage else None,
        cached_input_tokens=usage.cached_input_tokens if usage else None,
        usd=price.usd if price else None,
        finish_reason=reply.finish_reason.value,
        model_snapshot=reply.model_snapshot,
        system_fingerprint=reply.system_fingerprint,
        provider_request_id=reply.provider_request_id,
    )
