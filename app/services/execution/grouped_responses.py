"""Judges several sentences per call if the job asks for it, and a sample of them alone as a check.

Sentences whose numbers a reply lacks are asked about once more in the same conversation, all at once. Then the verdicts
become durable as a whole: the usable ones, and a second verdict for each sentence without one. So the rows say whether a
group has been asked about, and the next worker asks about what is still missing, sentence by sentence. A refusal, or a call
that failed for good, may be one sentence's doing: each sentence of such a group is asked about alone.
"""

from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from app.db.execution.result_rows import ResponseRow
from app.domain.instruments.dimension import Dimension
from app.domain.instruments.segmentation import Unit
from app.domain.instruments.task import Item
from app.domain.jobs.judge_prompts import about_sentences
from app.domain.judging.grouped_reply import GroupedReading, read_grouped, unusable
from app.domain.judging.grouping import GroupedWords, groups_of
from app.domain.judging.hardening import Showing
from app.domain.judging.prompt_injection import Suspicion, suspicion
from app.domain.judging.verdict import Unread, VerdictStatus, repaired, unparsed
from app.domain.providers.model import ChatReply, FinishReason, Stage
from app.services.execution.call_rows import CallKey
from app.services.execution.checked_responses import Asked, CheckedResponses
from app.services.execution.responses import (
    USABLE,
    Judgement,
    Missing,
    refused_by,
    without_reply,
)
from app.services.execution.retries import CallFailedError
from app.services.execution.shard_work import finish_all
from app.services.long_texts import read_text

GroupRead = Callable[[FinishReason, str], tuple[list[GroupedReading], bool]]
"""Reads a reply that ended for a reason; also returns whether it lacks its key word."""


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

    async def _ask_about(self, words: GroupedWords, asked: Asked, group: Sequence[Unit]) -> list[Judgement]:
        """Return what a judge says about each sentence. The first has the thoughts before the reply about all."""
        response, item, trait, dimension, judge = asked
        start, last = group[0].index, group[-1].index
        key = CallKey(Stage.JUDGING, response.run, response.item, start, trait, judge, last_unit=last)
        about = about_sentences(self.spec, self.cell, item, dimension, group, words)
        model, shown = self._called(judge, about, len(group)), about.shown
        try:
            first = self._unread_reply(key) or await self._ask(
                model, shown.system, about.user, key=key, usable=None
            )
        except CallFailedError as error:
            self._warn_of_failure(key, error)
            return [Judgement(without_reply(error), error=str(error)) for _ in group]
        read = partial(_read, shown, len(group), dimension)
        readings, suspicious = await self._group_reading(first, read, group)
        said = [
            Judgement(reading.verdict, reading.raw, suspicious, None, first.finish_reason.value)
            for reading in readings
        ]
        said[0] = said[0]._replace(thoughts=first.thoughts)
        labels = [n for n, each in enumerate(said, 1) if each.verdict.status is VerdictStatus.UNPARSED]
        repair = self.spec.repair
        if repair is None or not labels:
            return said
        turns = repair.about_sentences(first.text, about.numbers, labels, shown.key)
        second = await self._ask_again(model, about, key, first, turns, None)
        if isinstance(second, CallFailedError):
            for label in labels:
                said[label - 1] = said[label - 1]._replace(error=str(second))
            return said
        again, suspicious = await self._group_reading(second, partial(read, labels=labels), group)
        for label, reading in zip(labels, again, strict=True):
            kept = said[label - 1]._replace(repair_raw=reading.raw, finish_reason=second.finish_reason.value)
            if reading.usable:
                kept = kept._replace(verdict=repaired(kept.verdict, reading.verdict), suspicion=suspicious)
            said[label - 1] = kept
        return said

    async def _group_reading(
        self, reply: ChatReply, read: GroupRead, group: Sequence[Unit]
    ) -> tuple[list[GroupedReading], Suspicion | None]:
        tenant = self.claim.tenant
        readings, key_missing = await read_text(tenant, reply.text, partial(read, reply.finish_reason))
        refused = refused_by(reply)
        if refused is not None:
            return unusable(reply.text, len(readings), refused), None
        # What one sentence says to the judge may be heard in its verdicts on all.
        doubtful = any([await read_text(tenant, unit.text, self.rules.addresses_judge) for unit in group])
        return readings, suspicion(of_text=doubtful, of_reply=key_missing)

    def _keep(self, asked: Asked, group: Sequence[Unit], said: Sequence[Judgement]) -> list[Unit]:
        """Writes what a reply says of its sentences, all in one batch.

        Returns:
            The sentences of which it says nothing that can be used.
        """
        response, _, trait, _, judge = asked
        rows = [
            self._verdict_row(response, unit, trait, judge, of_unit, len(group))
            if of_unit.verdict.status in USABLE
            else self._second_row(asked, unit, judge, of_unit, alone=False)
            for unit, of_unit in zip(group, said, strict=True)
        ]
        self.last_batch = self.deps.writer.add(self.claim, *rows)
        return [
            unit for unit, of_unit in zip(group, said, strict=True) if of_unit.verdict.status not in USABLE
        ]

    async def _check_unit(self, asked: Asked, unit: Unit) -> None:
        """Judges a sentence alone too, for the figures on how far the two ways agree and for no other."""
        said = await self._judge_again(asked, unit, asked.judge)
        if said is not None:
            self._record_again(asked, unit, asked.judge, said)


def _read(
    shown: Showing,
    count: int,
    dimension: Dimension,
    finish_reason: FinishReason,
    text: str,
    labels: Sequence[int] | None = None,
) -> tuple[list[GroupedReading], bool]:
    answer = shown.read(text)
    if answer.text:
        found = read_grouped(answer.text, count, dimension, cut_off=finish_reason.cuts_off, labels=labels)
    else:
        found = unusable(text, count if labels is None else len(labels), unparsed(Unread.EMPTY))
    return found, answer.key_missing
