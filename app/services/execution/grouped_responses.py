"""Judges several sentences per call if the job asks for it, and a sample of them alone as a check.

A reply about several sentences becomes durable as a whole: its usable verdicts, and a second verdict for each sentence of
which nothing could be used. So the rows say whether a group has been asked about, and what is still missing of it is
asked about sentence by sentence, by whoever goes on. A refusal, or a call that failed for good, may be one sentence's
doing: each sentence of such a group is asked about alone.
"""

from collections.abc import Coroutine, Sequence
from typing import Any, NamedTuple

from app.db.execution.result_rows import ResponseRow
from app.domain.instruments.segmentation import Unit
from app.domain.instruments.task import Item
from app.domain.jobs.judge_prompts import about_sentences
from app.domain.judging.grouped_reply import GroupedReading, read_grouped, unusable
from app.domain.judging.grouping import GroupedWords, groups_of
from app.domain.judging.prompt_injection import Suspicion, suspicion
from app.domain.judging.verdict import Unread, unparsed
from app.domain.providers.model import ChatReply, Stage
from app.services.execution.call_rows import CallKey
from app.services.execution.checked_responses import Asked, CheckedResponses
from app.services.execution.responses import Judgement, Missing, refused_by, without_reply
from app.services.execution.retries import CallFailedError
from app.services.execution.shard_work import finish_all
from app.services.long_texts import read_text


class _Read(NamedTuple):
    """What a reply about several sentences says of each, what makes all of it doubtful, and the reply itself if one came."""

    readings: Sequence[GroupedReading]
    suspicion: Suspicion | None = None
    reply: ChatReply | None = None

    def judgement(self, number: int) -> Judgement:
        """What was said about one of the sentences. The first has the thoughts before the reply: they are of all."""
        reading, reply = self.readings[number], self.reply
        said = Judgement(reading.verdict, reading.raw, self.suspicion)
        if reply is None:
            return said
        return said._replace(
            finish_reason=reply.finish_reason.value, thoughts=reply.thoughts if number == 0 else None
        )


class GroupedResponses(CheckedResponses):
    """The work of one claim on responses whose sentences may be judged several at a time."""

    def _verdicts_due(self, run: int, item: Item, status: str, units: int) -> int:
        due = super()._verdicts_due(run, item, status, units)
        return 2 * due if status == "answered" and self._is_checked(run, item.index, units) else due

    def _is_checked(self, run: int, item: int, units: int) -> bool:
        grouping = None if self.cell.control else self.spec.grouping
        return grouping is not None and grouping.checks(self.claim.cell, run, item, units)

    def _judgements(
        self, response: ResponseRow, item: Item, units: Sequence[Unit], missing: Sequence[Missing]
    ) -> list[Coroutine[Any, Any, None]]:
        grouping = self.spec.grouping
        if grouping is None:
            return super()._judgements(response, item, units, missing)
        asked = self._asked(response, item)
        groups = groups_of(units, grouping.sentences)
        work = [self._judge_group(grouping.words, one, group) for one in asked for group in groups]
        if self._is_checked(response.run, response.item, len(units)):
            work += [self._check_unit(one, unit) for one in asked for unit in units]
        return work

    async def _judge_group(self, words: GroupedWords, asked: Asked, group: Sequence[Unit]) -> None:
        """Judges what of a group has no verdict yet."""
        open_ = [unit for unit in group if self._key(asked, unit) not in self.recorded]
        if open_ and len(group) > 1 and not self._was_asked(asked, group):
            open_ = self._keep(asked, group, await self._ask_about(words, asked, group))
        await finish_all(
            [self._judge_unit(asked.response, asked.item, unit, *asked[2:]) for unit in open_], self.stop
        )

    @staticmethod
    def _key(asked: Asked, unit: Unit) -> tuple[int, int, int, int, int]:
        return asked.response.run, asked.response.item, unit.index, asked.trait, asked.judge

    def _was_asked(self, asked: Asked, group: Sequence[Unit]) -> bool:
        """Whether the judge has been asked about the group: then there is a row of at least one of its sentences."""
        keys = [self._key(asked, unit) for unit in group]
        return any(key in self.recorded or (*key, False) in self.second for key in keys)

    async def _ask_about(self, words: GroupedWords, asked: Asked, group: Sequence[Unit]) -> _Read:
        response, item, trait, dimension, judge = asked
        first, last = group[0].index, group[-1].index
        key = CallKey(Stage.JUDGING, response.run, response.item, first, trait, judge, last_unit=last)
        about = about_sentences(self.spec, self.cell, item, dimension, group, words)
        shown = about.shown
        try:
            reply = await self.deps.caller.call(
                self._called(judge, about, len(group)),
                shown.system,
                about.user,
                key=key,
                claim=self.claim,
                stop=self.stop,
            )
        except CallFailedError as error:
            self._warn_of_failure(key, error)
            return _Read(unusable(None, len(group), without_reply(error)))
        refused = refused_by(reply)
        if refused is not None:
            return _Read(unusable(reply.text, len(group), refused), None, reply)
        cut_off = reply.finish_reason.cuts_off

        def read(text: str) -> tuple[list[GroupedReading], bool]:
            answer = shown.read(text)
            if not answer.text:
                return unusable(text, len(group), unparsed(Unread.EMPTY)), answer.key_missing
            return read_grouped(answer.text, len(group), dimension, cut_off=cut_off), answer.key_missing

        tenant = self.claim.tenant
        readings, key_missing = await read_text(tenant, reply.text, read)
        # What one sentence says to the judge may be heard in its verdicts on all.
        doubtful = any([await read_text(tenant, unit.text, self.rules.addresses_judge) for unit in group])
        return _Read(readings, suspicion(of_text=doubtful, of_reply=key_missing), reply)

    def _keep(self, asked: Asked, group: Sequence[Unit], read: _Read) -> list[Unit]:
        """Writes what a reply says of its sentences, all in one batch.

        Returns:
            The sentences of which it says nothing that can be used.
        """
        response, _, trait, _, judge = asked
        rows = [
            self._verdict_row(response, unit, trait, judge, read.judgement(n), len(group))
            if read.readings[n].usable
            else self._second_row(asked, unit, judge, read.judgement(n), alone=False)
            for n, unit in enumerate(group)
        ]
        self.last_batch = self.deps.writer.add(self.claim, *rows)
        return [unit for unit, reading in zip(group, read.readings, strict=True) if not reading.usable]

    async def _check_unit(self, asked: Asked, unit: Unit) -> None:
        """Judges a sentence alone too, for the figures on how far the two ways agree and for no other."""
        said = await self._judge_again(asked, unit, asked.judge)
        if said is not None:
            self._record_again(asked, unit, asked.judge, said)
