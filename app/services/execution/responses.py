"""Makes and judges the responses of one claim: what atomic and PersonaGym tasks have in common.

A response is split and judged as soon as it is durable; nothing waits for other responses.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import structlog

from app.db.engine import single_statements
from app.db.execution import stored_rows
from app.db.execution.result_rows import ResponseRow, UnreadReplyRow, VerdictRow
from app.db.execution.shards import Claim
from app.domain.instruments.dimension import Dimension
from app.domain.instruments.refusal import Refusal
from app.domain.instruments.segmentation import Unit, runaway, units_at
from app.domain.instruments.task import Item
from app.domain.jobs.execution import Execution
from app.domain.jobs.judge_prompts import JudgePrompt, about_sentence, judge_model
from app.domain.jobs.plan import Cell
from app.domain.judging.prompt_injection import Suspicion, suspicion
from app.domain.judging.refusal_check import says_refusal
from app.domain.judging.repair import Turns
from app.domain.judging.text_notes import notes_on, split_text
from app.domain.judging.verdict import Verdict, VerdictStatus, repaired
from app.domain.providers.model import ChatReply, FinishReason, Message, Model, Stage
from app.services.execution.call_rows import CallKey
from app.services.execution.response_cache import Question
from app.services.execution.result_writer import Batch
from app.services.execution.retries import CallFailedError, CallFilteredError
from app.services.execution.shard_work import ShardDependencies, finish_all
from app.services.execution.stop_signal import StopSignal
from app.services.job_context import JobContext
from app.services.long_texts import LONG_CHARACTERS, read_text

log = structlog.get_logger(__name__)

Missing = tuple[Unit, int, Dimension, int]
"""What a verdict is missing of: unit, trait with its dimension, judge."""


class Judgement(NamedTuple):
    """What a judge said about a sentence: the verdict, its words if there are any, and what makes it doubtful."""

    verdict: Verdict
    raw: str | None = None
    suspicion: Suspicion | None = None
    error: str | None = None
    """Code and words of the failed call: the only one, or the follow-up."""
    finish_reason: str | None = None
    """Why the last reply ended, and what the judge thought before the first; see :class:`app.domain.providers.model.ChatReply`."""
    thoughts: str | None = None
    repair_raw: str | None = None
    """The reply to the follow-up request, if there was one."""


class JudgeAnswer(NamedTuple):
    """A judge's reply with its reading, and the reply to the follow-up request if there was one."""

    reply: ChatReply
    verdict: Verdict
    key_missing: bool
    repair: ChatReply | None = None
    error: str | None = None
    """Code and words of the follow-up if it failed."""

    def judgement(self, *, doubtful: bool) -> Judgement:
        """Return what the judge said about a text that addresses it or not."""
        # Who refuses to judge has not been talked into a score.
        swayed = self.key_missing and self.verdict.status not in REFUSALS
        found = suspicion(of_text=doubtful, of_reply=swayed)
        last = self.repair or self.reply
        return Judgement(
            self.verdict,
            self.reply.text,
            found,
            self.error,
            last.finish_reason,
            self.reply.thoughts,
            None if self.repair is None else self.repair.text,
        )


Read = Callable[[FinishReason, str], tuple[Verdict, bool]]
"""Reads a judge's reply that ended for a reason; also returns whether it lacks its key word."""


JUDGED = frozenset({"answered", "refused"})
"""Statuses of responses whose text is judged or, if it is a refusal, gets verdicts that say so."""


MAX_GENERATED_UNITS = 1_000
"""A model that writes more sentences than this has lost itself; judging them would cost a call each."""


class Responses(ABC):
    """The work of one claim on responses."""

    def __init__(
        self, deps: ShardDependencies, claim: Claim, stop: StopSignal, context: JobContext, cell: Cell
    ) -> None:
        self.deps = deps
        self.claim = claim
        self.stop = stop
        self.spec = context.spec
        self.rules = deps.rules.load(context.spec.instrument)
        self.cell = cell
        self.spares = context.spec.reuse.wanted
        self.recorded: set[tuple[int, int, int, int, int]] = set()
        self.unread: dict[str, ChatReply] = {}
        self._constrained: dict[tuple[int, tuple[int, ...], int], Model] = {}
        self.last_batch: Batch | None = None

    # -- what the kinds of tasks differ in ------------------------------------------------------------------------

    @abstractmethod
    async def run(self) -> None:
        """Does everything that is missing and waits until it is durable."""

    @abstractmethod
    def _model(self) -> Model:
        """Who writes."""

    @abstractmethod
    def _prompts(self, run: int, item: Item) -> tuple[str | None, str]:
        """System prompt, if there is one, and user prompt of a response."""

    @abstractmethod
    def _instruction(self, run: int) -> int | None:
        """Index of the persona instruction of a run; ``None`` without a persona."""

    @abstractmethod
    def _repetition(self, run: int) -> tuple[str | int, ...]:
        """Which of a cell's texts for one item a run's is, whatever else the job has."""

    def _verdicts_due(self, run: int, item: Item, status: str, units: int) -> int:  # noqa: ARG002 - all of them alike
        """Rows that a response of so many sentences has to get from its judges."""
        return units * len(item.dimensions) * len(self.spec.judges)

    # -- what they share ------------------------------------------------------------------------------------------

    async def _read_stored(self) -> dict[tuple[int, int], ResponseRow]:
        """The responses that there are, by run and item."""
        async with single_statements(self.deps.engine) as connection:
            stored = {(r.run, r.item): r for r in await stored_rows.stored_responses(connection, self.claim)}
            self.recorded = await stored_rows.stored_verdicts(connection, self.claim)
            # Only an earlier claim can have kept replies.
            if self.claim.token > 1 and self.spec.keeps_replies:
                self.unread = await stored_rows.unread_replies(connection, self.claim)
        return stored

    async def _all_durable(self) -> None:
        if self.last_batch is not None:
            await self.last_batch.durable(self.claim)

    async def _generate(self, run: int, item: Item) -> ResponseRow:
        model = self._model()
        if model.parameters.seed is not None:
            # One seed for all runs would make them the same text; consecutive ones keep them reproducible.
            model = replace(model, parameters=replace(model.parameters, seed=model.parameters.seed + run))
        key = CallKey(Stage.GENERATION, run, item.index)
        system, user = self._prompts(run, item)
        kept = await self._kept(key, run, item)
        try:
            reply = kept or await self._ask(
                model, system, user, key=key, usable=self._judgeable, place=self._place(run, item)
            )
        except CallFilteredError as error:
            row = self._response_row(run, item, "filtered", "", (), error=str(error))
        except CallFailedError as error:
            row = self._response_row(run, item, "failed", None, (), error=str(error))
        else:
            checked: ChatReply | None = None
            failed: str | None = None
            if self.spec.refusal_check is not None and self._needs_check(reply):
                if kept is None:
                    await self._keep_reply(key, reply)
                prompt = self.spec.refusal_check.prompt(user, reply.text)
                try:
                    checked = await self._check_refusal(prompt, run, item)
                except CallFailedError as error:
                    failed = f"refusal check: {error}"
                else:
                    if refused_by(checked) is not None or not checked.text.strip():
                        checked, failed = None, "refusal check: the judge gave no answer"
            row = await read_text(
                self.claim.tenant, reply.text, lambda _: self._answered_row(run, item, reply, checked)
            )
            row = row._replace(error=row.error or failed)
        return await self._store(row)

    async def _kept(self, key: CallKey, run: int, item: Item) -> ChatReply | None:
        """The reply with a text that was written before, if only its check is missing."""
        reply = self._unread_reply(key)
        if reply is None:
            return None
        async with single_statements(self.deps.engine) as connection:
            usage = await stored_rows.usage_of_text(connection, self.claim, run, item.index)
        return reply._replace(usage=usage)

    def _needs_check(self, reply: ChatReply) -> bool:
        if not reply.text.strip() or runaway(reply.text, MAX_GENERATED_UNITS) is not None:
            return False
        if self._status(reply)[0] != "answered":
            return False
        return self.spec.checks_every_text or self.rules.refusals.read(reply.text) is Refusal.UNSURE

    async def _check_refusal(self, prompt: str, run: int, item: Item) -> ChatReply:
        """Ask the first judge whether a text is a refusal.

        The text is durable before, so a worker that takes over asks only this.

        Raises:
            CallFailedError: If the call failed for good: the rules decide.
        """
        judge = self.spec.asked_judges[0]
        key = CallKey(Stage.REFUSAL_CHECK, run, item.index, judge=judge)
        try:
            return await self._ask(self.spec.judges[judge], None, prompt, key=key, usable=None)
        except CallFailedError as error:
            self._warn_of_failure(key, error)
            raise

    def _ask(
        self,
        model: Model,
        system: str | None,
        user: str,
        *,
        key: CallKey,
        usable: Callable[[ChatReply], bool] | None,
        place: tuple[str | int, ...] = (),
        turns: tuple[Message, ...] = (),
    ) -> Coroutine[Any, Any, ChatReply]:
        """A model's reply; if the job reuses replies and says which are ``usable``, perhaps an earlier one."""
        if usable is None or not self.spares:
            return self.deps.caller.call(
                model, system, user, key=key, claim=self.claim, stop=self.stop, turns=turns
            )
        question = Question(model, system, user, key, self.claim, place, usable, turns)
        return self.deps.replies.reply(question, self.spec.reuse, self.stop)

    async def _as_one_of_the_first(self, work: Coroutine[Any, Any, None]) -> None:
        """Writes a text and has it judged; few at a time until the judges have answered, as its cost is wasted if they can't.

        Raises:
            StoppedError: If the shard was stopped before.
        """
        texts = self.deps.first_calls.texts(self.claim.job_id, self.spec.judges)
        if texts.is_open or self.spec.execution is not Execution.DIRECT:
            await work
            return
        try:
            has_place = await texts.enter(self.stop)
        except BaseException:
            work.close()
            raise
        try:
            await work
            texts.through()
        finally:
            if has_place:
                texts.leave()

    def _place(self, run: int, item: Item) -> tuple[str | int, ...]:
        """What no other text of the job shares with this one, and the same text of another job does."""
        model, cell = self.spec.models[self.cell.model].label, self.cell
        return model, cell.persona.id, cell.task.id, item.id, *self._repetition(run)

    def _judgeable(self, reply: ChatReply) -> bool:
        """Whether a text is one in character or out of it: no refusal, not empty, and no runaway."""
        text = reply.text
        if runaway(text, MAX_GENERATED_UNITS) is not None:
            return False
        units = len(self.rules.segmenter.segment(text, MAX_GENERATED_UNITS))
        return 0 < units <= MAX_GENERATED_UNITS and not self.rules.refusals.is_refusal(text)

    async def _store(self, row: ResponseRow) -> ResponseRow:
        """Writes a response and waits for it: its verdicts may not outlive it."""
        batch = self.deps.writer.add(self.claim, row)
        await batch.durable(self.claim)
        return row

    def _answered_row(
        self, run: int, item: Item, reply: ChatReply, checked: ChatReply | None = None
    ) -> ResponseRow:
        why = runaway(reply.text, MAX_GENERATED_UNITS)
        if why is not None:
            return self._response_row(run, item, "failed", None, (), error=f"runaway: {why}")
        status, why = self._status(reply)
        if checked is not None and says_refusal(checked.text):
            status = "refused"
        ended = reply.finish_reason, reply.provider_finish_reason
        if status in JUDGED:
            units, notes = split_text(reply.text, self.rules, MAX_GENERATED_UNITS, ended)
        else:
            units, notes = (), notes_on(reply.text, (), self.rules, ended)
        if len(units) > MAX_GENERATED_UNITS:
            why = f"runaway: more than {MAX_GENERATED_UNITS:,} sentences"
            return self._response_row(run, item, "failed", None, (), error=why)
        row = self._response_row(run, item, status, reply.text, units, error=why)
        usage = reply.usage
        return row._replace(
            finish_reason=reply.finish_reason.value,
            input_tokens=usage.input_tokens if usage else None,
            output_tokens=usage.output_tokens if usage else None,
            reasoning_tokens=usage.reasoning_tokens if usage else None,
            thoughts=reply.thoughts,
            notes=(notes if checked is None else replace(notes, refusal_check=checked.text)).stored(),
        )

    def _status(self, reply: ChatReply) -> tuple[str, str | None]:
        """A reply's status as a response, and why there is nothing to be judged."""
        if reply.finish_reason is FinishReason.CONTENT_FILTER:
            return "filtered", "the provider's content filter stopped the text"
        if reply.finish_reason is FinishReason.REFUSAL or self.rules.refusals.is_refusal(reply.text):
            return "refused", None
        why = reply.no_answer
        return ("answered", None) if why is None else ("no_answer", why)

    def _response_row(
        self,
        run: int,
        item: Item,
        status: str,
        text: str | None,
        units: Sequence[Unit],
        *,
        error: str | None = None,
    ) -> ResponseRow:
        return ResponseRow(
            cell_id=self.claim.cell_id,
            run=run,
            item=item.index,
            tenant=self.claim.tenant,
            instruction=self._instruction(run),
            status=status,
            text=text,
            unit_starts=[unit.start for unit in units],
            unit_ends=[unit.end for unit in units],
            verdicts_due=self._verdicts_due(run, item, status, len(units)) if status in JUDGED else 0,
            finish_reason=None,
            error=error,
            input_tokens=None,
            output_tokens=None,
        )

    async def _judge_units(self, response: ResponseRow, item: Item) -> None:
        """Judges every unit of a durable response that has no verdict yet; a refusal's units are not sent."""
        if response.text is None or response.status not in JUDGED:
            return
        units = units_at(response.text, response.unit_starts, response.unit_ends)
        traits, judges = list(self.cell.traits_of(item)), self.spec.asked_judges
        missing = [
            (unit, trait, dimension, judge)
            for unit in units
            for trait, dimension in traits
            for judge in judges
            if (response.run, response.item, unit.index, trait, judge) not in self.recorded
        ]
        if response.status == "refused":
            refused = Verdict(VerdictStatus.REFUSED)
            for unit, trait, _, judge in missing:
                self._record(response, unit, trait, judge, Judgement(refused))
            return
        await finish_all(self._judgements(response, item, units, missing), self.stop)

    def _judgements(
        self,
        response: ResponseRow,
        item: Item,
        units: Sequence[Unit],  # noqa: ARG002 - for those that judge several at a time
        missing: Sequence[Missing],
    ) -> list[Coroutine[Any, Any, None]]:
        """What has to be asked so that no verdict is missing."""
        return [self._judge_unit(response, item, *one) for one in missing]

    async def _judge_unit(
        self,
        response: ResponseRow,
        item: Item,
        unit: Unit,
        trait: int,
        dimension: Dimension,
        judge: int,
    ) -> None:
        key = CallKey(Stage.JUDGING, response.run, response.item, unit.index, trait, judge)
        said = await self._ask_alone(key, item, dimension, unit, judge)
        self._record(response, unit, trait, judge, said)

    async def _ask_alone(
        self, key: CallKey, item: Item, dimension: Dimension, unit: Unit, judge: int
    ) -> Judgement:
        """What a judge says about a sentence by itself."""
        asked = about_sentence(self.spec, self.spec.judges[judge], self.cell, item, dimension, unit.text)
        doubtful = (  # by far the most texts are short: they need no coroutine
            self.rules.addresses_judge(unit.text)
            if len(unit.text) <= LONG_CHARACTERS
            else await read_text(self.claim.tenant, unit.text, self.rules.addresses_judge)
        )
        try:
            answer = await self._ask_judge(judge, asked, key, asked.read)
        except CallFailedError as error:
            self._warn_of_failure(key, error)
            found = suspicion(of_text=doubtful, of_reply=False)
            return Judgement(without_reply(error), None, found, str(error))
        return answer.judgement(doubtful=doubtful)

    async def _ask_judge(self, judge: int, asked: JudgePrompt, key: CallKey, read: Read) -> JudgeAnswer:
        """Ask a judge and, if its reply can't be read, ask it once more in the same conversation.

        Args:
            judge: Index of the judge.
            asked: The prompt.
            key: Identity of the first call.
            read: Reads a reply.

        Raises:
            CallFailedError: If the first call failed for good. A follow-up that fails leaves the reply unparsed.
        """
        model, system = self._called(judge, asked), asked.shown.system
        repair = self.spec.repair
        usable = partial(_is_reusable, read, repair is not None)
        first = self._unread_reply(key) or await self._ask(model, system, asked.user, key=key, usable=usable)
        verdict, key_missing = (  # by far the most replies are short, too
            _reading(first, read)
            if len(first.text) <= LONG_CHARACTERS
            else await self._read_reply(first, read)
        )
        if repair is None or verdict.status is not VerdictStatus.UNPARSED:
            return JudgeAnswer(first, verdict, key_missing)
        request = repair.about_grade if asked.dimension is None else repair.about_score
        turns = request(first.text, asked.numbers, asked.shown.key)
        usable = partial(_is_reusable, read, False)
        second = await self._ask_again(model, asked, key, first, turns, usable)
        if isinstance(second, CallFailedError):
            return JudgeAnswer(first, verdict, key_missing, error=str(second))
        again, key_missing_again = await self._read_reply(second, read)
        if again.status in USABLE:
            return JudgeAnswer(first, repaired(verdict, again), key_missing_again, second)
        return JudgeAnswer(first, verdict, key_missing, second)

    def _unread_reply(self, key: CallKey) -> ChatReply | None:
        """Return the reply to a call that waits for a further one, if an earlier claim has kept it."""
        return self.unread.get(key.path(self.claim.cell)) if self.unread else None

    async def _ask_again(
        self,
        model: Model,
        asked: JudgePrompt,
        key: CallKey,
        first: ChatReply,
        turns: Turns,
        usable: Callable[[ChatReply], bool] | None,
    ) -> ChatReply | CallFailedError:
        """Return the reply to a follow-up, or the error if that call failed for good.

        The first reply is durable before the follow-up is sent, so a worker that takes over asks only that.
        """
        if self._unread_reply(key) is None:
            await self._keep_reply(key, first)
        again = key.repair
        try:
            return await self._ask(
                model, asked.shown.system, asked.user, key=again, usable=usable, turns=turns
            )
        except CallFailedError as error:
            self._warn_of_failure(again, error)
            return error

    def _called(self, judge: int, asked: JudgePrompt, sentences: int = 1) -> Model:
        """Return a judge with the constraint on its reply; one object for equal constraints, so that each is encoded once."""
        model = self.spec.judges[judge]
        if self.spec.reply == "text":
            return model
        kind = judge, asked.numbers, sentences
        if kind not in self._constrained:
            self._constrained[kind] = judge_model(self.spec, model, asked, sentences)
        return self._constrained[kind]

    async def _read_reply(self, reply: ChatReply, read: Read) -> tuple[Verdict, bool]:
        return await read_text(self.claim.tenant, reply.text, lambda _: _reading(reply, read))

    async def _keep_reply(self, key: CallKey, reply: ChatReply) -> None:
        row = UnreadReplyRow(
            cell_id=self.claim.cell_id,
            run=key.run or 0,
            path=key.path(self.claim.cell),
            tenant=self.claim.tenant,
            raw=reply.text,
            finish_reason=reply.finish_reason.value,
            thoughts=reply.thoughts,
            provider_finish_reason=reply.provider_finish_reason,
        )
        await self.deps.writer.add(self.claim, row).durable(self.claim)

    def _warn_of_failure(self, key: CallKey, error: CallFailedError) -> None:
        path = key.path(self.claim.cell)
        log.warning("verdict failed", path=path, code=str(error).partition(":")[0])

    def _record(
        self,
        response: ResponseRow,
        unit: Unit,
        trait: int,
        judge: int,
        said: Judgement,
    ) -> None:
        row = self._verdict_row(response, unit, trait, judge, said)
        self.last_batch = self.deps.writer.add(self.claim, row)

    def _verdict_row(
        self,
        response: ResponseRow,
        unit: Unit,
        trait: int,
        judge: int,
        said: Judgement,
        group_size: int = 1,
    ) -> VerdictRow:
        return VerdictRow(
            cell_id=self.claim.cell_id,
            run=response.run,
            item=response.item,
            unit=unit.index,
            trait=trait,
            judge=judge,
            tenant=self.claim.tenant,
            status=said.verdict.status,
            score=said.verdict.score,
            raw=said.raw,
            group_size=group_size,
            suspicion=said.suspicion,
            error=said.error,
            finish_reason=said.finish_reason,
            thoughts=said.thoughts,
            unread=said.verdict.unread,
            repair_raw=said.repair_raw,
        )


USABLE = frozenset({VerdictStatus.SCORED, VerdictStatus.NOT_APPLICABLE})
REFUSALS = frozenset({VerdictStatus.REFUSED, VerdictStatus.FILTERED})
"""Verdicts without a judgement, because the judge or its provider's content filter refused."""


def refused_by(reply: ChatReply) -> Verdict | None:
    """The verdict of a judge's reply that its provider marks as a refusal; ``None`` for one that has to be read."""
    if reply.finish_reason is FinishReason.CONTENT_FILTER:
        return Verdict(VerdictStatus.FILTERED)
    return Verdict(VerdictStatus.REFUSED) if reply.finish_reason is FinishReason.REFUSAL else None


def without_reply(error: CallFailedError) -> Verdict:
    """The verdict where a judge's call failed for good."""
    filtered = isinstance(error, CallFilteredError)
    return Verdict(VerdictStatus.FILTERED if filtered else VerdictStatus.FAILED)


def _reading(reply: ChatReply, read: Read) -> tuple[Verdict, bool]:
    verdict, key_missing = read(reply.finish_reason, reply.text)
    return refused_by(reply) or verdict, key_missing


def _is_reusable(read: Read, is_repaired: bool, reply: ChatReply) -> bool:
    """Return whether another call may use a judge's reply: it can be read, or a follow-up leads to one that can."""
    status = read(reply.finish_reason, reply.text)[0].status
    return status in USABLE or (is_repaired and status is VerdictStatus.UNPARSED)
