"""The response cache: reuses replies from this process, another one or an earlier job.

Of those in a process that need the same reply, the first asks and the others wait. A reply that can't be
used, or none, is not shared: then each asks separately.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, auto

from app import clock
from app.db.execution.response_cache import KeptReply, ReplyRow, ReusedRow, Wish
from app.db.execution.shards import Claim
from app.domain.instruments.segmentation import MAX_CHARACTERS
from app.domain.providers.model import ChatReply, ChatRequest, FinishReason, Message, Model, Stage
from app.domain.providers.reuse import ReplyOrigin, Reuse, ReuseScope, reply_key
from app.ports import ModelCallError, PriceBook, RequestFingerprints
from app.services.execution.cache_lookup import ReplyDesk
from app.services.execution.call_rows import CallKey
from app.services.execution.model_caller import ModelCaller
from app.services.execution.result_writer import Batch, BatchWriter
from app.services.execution.retries import CallFailedError
from app.services.execution.stop_signal import StopSignal
from app.services.long_texts import read_text


@dataclass(frozen=True, slots=True)
class Question:
    """What a model is asked.

    Attributes:
        model: Which model.
        system: System prompt; ``None`` for none.
        user: User prompt.
        key: What the call is for.
        claim: Under which claim.
        place: See :func:`app.domain.providers.reuse.reply_key`.
        usable: Whether a reply says what was asked for. Others are neither kept nor used again.
        turns: See :class:`app.domain.providers.model.ChatRequest`.
    """

    model: Model
    system: str | None
    user: str
    key: CallKey
    claim: Claim
    place: tuple[str | int, ...]
    usable: Callable[[ChatReply], bool]
    turns: tuple[Message, ...] = ()

    async def takes(self, reply: ChatReply) -> bool:
        """Whether a reply can serve as the answer to this, whoever asked."""
        if reply.finish_reason is not FinishReason.STOP or len(reply.text) > MAX_CHARACTERS:
            return False
        return await read_text(self.claim.tenant, reply.text, lambda _: self.usable(reply))


class _Nothing(Enum):
    """Why there is no reply to be shared."""

    STOPPED = auto()
    """The request was stopped before its reply came."""
    UNUSABLE = auto()


_Outcome = KeptReply | _Nothing


class SharedReplies:
    """One a process.

    Args:
        desk: Where replies are looked up.
        caller: Makes the calls.
        requests: Tells which requests are the same.
        prices: Knows what a call would have cost.
        writer: Keeps replies, and the accounting of what was spared.
    """

    def __init__(
        self,
        *,
        desk: ReplyDesk,
        caller: ModelCaller,
        requests: RequestFingerprints,
        prices: PriceBook,
        writer: BatchWriter,
    ) -> None:
        self._desk = desk
        self._caller = caller
        self._requests = requests
        self._prices = prices
        self._writer = writer
        self._asking: dict[tuple[str, bytes], asyncio.Future[_Outcome]] = {}

    async def reply(self, question: Question, reuse: Reuse, stop: StopSignal) -> ChatReply:
        """A reply, from a call of our own or from one to an equal request; of the latter the accounting is on its way.

        Raises:
            StoppedError: If the shard was stopped before there was one.
            CallFailedError: As of a call.
            JobMustStopError: As of a call.
        """
        wish = await self._key_of(question, reuse, stop)
        if wish is None:
            return await self._call(question, stop)
        while (asking := self._asking.get(wish.name)) is not None:
            with stop.interruptible():
                outcome = await asyncio.shield(asking)
            if isinstance(outcome, KeptReply) and await question.takes(outcome.reply):
                if _too_old(wish, outcome):
                    continue  # whose it was is gone by now, and the desk finds nothing that is so old
                return self._use(question, outcome)
            if outcome is not _Nothing.STOPPED:
                return (await self._ask(question, wish, stop))[0]
        return await self._ask_for_all(question, wish, stop)

    async def _key_of(self, question: Question, reuse: Reuse, stop: StopSignal) -> Wish | None:
        """What is to be looked for; nothing where the stage uses none again, or a judge's reply is drawn by chance."""
        scope = reuse.of(question.key.first_stage)
        if scope is ReuseScope.OFF:
            return None
        request = ChatRequest(
            question.model, question.system, question.user, "", turns=question.turns
        ).placed()
        try:
            with stop.interruptible():
                await self._requests.prepare(question.model.connection, question.claim.tenant)
            same = self._requests.fingerprint(request)
        except ModelCallError:  # the call will meet it too, and make what is right of it
            return None
        if question.key.first_stage is Stage.JUDGING and same.temperature != 0:
            return None
        shared = scope is ReuseScope.ACROSS_JOBS
        only_job = None if shared else question.claim.job_id
        key = reply_key(same.digest, only_job=only_job, place=question.place)
        return Wish(key, question.claim, shared, reuse.max_age_days)

    async def _ask_for_all(self, question: Question, wish: Wish, stop: StopSignal) -> ChatReply:
        """Looks the reply up or else asks for it, while whoever wishes for the same waits."""
        asking = self._asking[wish.name] = asyncio.get_running_loop().create_future()
        outcome: _Outcome = _Nothing.STOPPED
        ours, kept_in = False, None
        try:
            with stop.interruptible():
                kept = await self._desk.look_up(wish)
            if kept is not None:
                outcome = kept
                if await question.takes(kept.reply):
                    return self._use(question, kept)
                return await self._call(question, stop)
            ours = True
            reply, kept_in = await self._ask(question, wish, stop)
            ours = kept_in is None
            outcome = _Nothing.UNUSABLE if ours else KeptReply(reply, wish.claim.job_id, clock.now())
        except CallFailedError:
            outcome = _Nothing.UNUSABLE
            raise
        else:
            return reply
        finally:
            if ours:
                self._desk.release(wish)
            asking.set_result(outcome)
            if kept_in is None:
                del self._asking[wish.name]
            else:  # until the database knows it, who wishes for it learns it here
                kept_in.done.add_done_callback(lambda _: self._asking.pop(wish.name))

    async def _ask(self, question: Question, wish: Wish, stop: StopSignal) -> tuple[ChatReply, Batch | None]:
        """The reply to a call of our own, and the rows with which it is kept; none if it can't be used."""
        reply = await self._call(question, stop)
        if not await question.takes(reply):
            return reply, None
        return reply, self._writer.add(wish.claim, _kept(wish, reply))

    async def _call(self, question: Question, stop: StopSignal) -> ChatReply:
        return await self._caller.call(
            question.model,
            question.system,
            question.user,
            key=question.key,
            claim=question.claim,
            stop=stop,
            turns=question.turns,
        )

    def _use(self, question: Question, kept: KeptReply) -> ChatReply:
        """Accounts for a call that need not be made."""
        claim, key, reply = question.claim, question.key, kept.reply
        model, usage = question.model, reply.usage
        same_job = kept.job_id == claim.job_id
        row = ReusedRow(
            tenant=claim.tenant,
            shard_id=claim.shard_id,
            stage=key.stage.value,
            connection=model.connection,
            model=model.name,
            cell_id=claim.cell_id,
            run=key.run,
            item=key.item,
            unit=key.unit,
            trait=key.trait,
            judge=key.judge,
            origin=(ReplyOrigin.SAME_JOB if same_job else ReplyOrigin.OTHER_JOB).value,
            input_tokens=usage.input_tokens if usage else None,
            output_tokens=usage.output_tokens if usage else None,
            usd=self._prices.price(model, usage).usd if usage else None,
            model_snapshot=reply.model_snapshot,
            system_fingerprint=reply.system_fingerprint,
            asked_at=kept.asked_at,
        )
        self._writer.add(claim, row)
        return reply


def _too_old(wish: Wish, kept: KeptReply) -> bool:
    """Whether a reply that somebody else may use is none for this wish; in a job its own replies have no age."""
    return wish.shared and clock.now() - kept.asked_at > timedelta(days=wish.max_age_days)


def _kept(wish: Wish, reply: ChatReply) -> ReplyRow:
    usage = reply.usage
    return ReplyRow(
        tenant=wish.claim.tenant,
        key=wish.key,
        job_id=wish.claim.job_id,
        shared=wish.shared,
        shard_id=wish.claim.shard_id,
        lease_token=wish.claim.token,
        text=reply.text,
        input_tokens=usage.input_tokens if usage else None,
        output_tokens=usage.output_tokens if usage else None,
        cached_input_tokens=usage.cached_input_tokens if usage else None,
        model_snapshot=reply.model_snapshot,
        system_fingerprint=reply.system_fingerprint,
        thoughts=reply.thoughts,
    )
