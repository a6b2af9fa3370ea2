"""Reads stored replies of judges with the current rules."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from app.domain.instruments.dimension import Dimension, Scale
from app.domain.jobs.judge_prompts import read_reply
from app.domain.jobs.specification import JobSpec
from app.domain.judging import order_check
from app.domain.judging.grouped_reply import USABLE, label_of_part, read_part
from app.domain.judging.hardening import AS_IN_THE_PAPERS, KeyedReply, Showing, showing
from app.domain.judging.order_check import Order
from app.domain.judging.verdict import Unread, Verdict, VerdictStatus, repaired, unparsed
from app.domain.providers.model import FinishReason, Model

Row = Mapping[str, Any]
_Read = Callable[[str, bool], Verdict]
_MARKED = frozenset({FinishReason.REFUSAL, FinishReason.CONTENT_FILTER})
"""Reasons that decide a verdict whatever the reply says."""


class Reading(NamedTuple):
    """A verdict read from stored replies.

    Attributes:
        verdict: The verdict; `unread` is the reason why the first reply can't be read.
        key_missing: Whether the reply that gave the verdict lacks the key word that the judge was asked to begin with.
    """

    verdict: Verdict
    key_missing: bool = False


class StoredReplies:
    """Reads the replies in rows of ``verdicts``, ``second_verdicts`` and ``grades``.

    Each method returns ``None`` for a row whose verdict does not come from a reply.

    Args:
        spec: The job's specification.
    """

    def __init__(self, spec: JobSpec) -> None:
        self._spec = spec

    def verdict(self, row: Row, asked: Dimension | Scale, sentence: str = "") -> Reading | None:
        """Read a verdict on a sentence; of a reply about several sentences, the part about this one."""
        if row.get("group_size", 1) != 1:
            return self._part(row, asked)
        return self._reading(row, self._alone(row, asked), showing(self._spec.hardening, [sentence]))

    def check(self, row: Row, dimension: Dimension, sentence: str = "") -> Reading | None:
        """Read a second verdict. A grouped reply that could not be used keeps its reading: the sentence was judged alone."""
        if not row["alone"]:
            return None
        judges, check = len(self._spec.judges), self._spec.order_check
        if row["judge"] < judges or check is None:
            return self.verdict(row, dimension, sentence)
        order: Order = order_check.order_of(row["judge"], judges)
        place = (row["cell"], row["run"], row["item"], row["unit"])
        shown = order_check.asked(dimension, order, check.seed, *place)
        found = self.verdict(row, shown.dimension, sentence)
        return None if found is None else found._replace(verdict=shown.meant(found.verdict))

    def grade(self, row: Row, text: str = "") -> Reading | None:
        """Read the grade of a response."""
        return self._reading(row, self._alone(row, None), showing(self._spec.hardening, [text]))

    def _judge(self, row: Row) -> Model:
        number: int = row["judge"]
        return self._spec.judges[number % len(self._spec.judges)]

    def _alone(self, row: Row, asked: Dimension | Scale | None) -> _Read:
        profile, form = self._spec.profile_of(self._judge(row)), self._spec.reply
        return lambda reply, cut_off: read_reply(reply, asked, profile, form, cut_off=cut_off)

    def _part(self, row: Row, asked: Dimension | Scale) -> Reading | None:
        """Read a part of a grouped reply and, if it can't be read, the follow-up's part."""
        raw, repair = row.get("raw"), row.get("repair_raw")
        if not isinstance(repair, str):
            return self._reading(row, lambda part, _: read_part(part, asked), AS_IN_THE_PAPERS)
        unread = Unread(row.get("unread") or Unread.NO_ANSWER)
        if isinstance(raw, str) and unread is not Unread.CUT_OFF and _is_part(raw, repair, row["group_size"]):
            first = read_part(raw, asked)
            if first.status in USABLE:
                return Reading(first)
        return Reading(repaired(unparsed(unread), read_part(repair, asked)))

    def _reading(self, row: Row, read: _Read, shown: Showing) -> Reading | None:
        """Read the first reply and, if it can't be read, the reply to the follow-up request."""
        raw, repair = row.get("raw"), row.get("repair_raw")
        raw, repair = (each if isinstance(each, str) else None for each in (raw, repair))
        if self._judge(row).imported is not None or (raw is None and repair is None):
            return None
        ended = FinishReason(row.get("finish_reason") or FinishReason.STOP)  # the last reply's
        if repair is None:
            if ended in _MARKED:
                return None
            cut_off = ended.cuts_off
        else:
            cut_off = row.get("unread") == Unread.CUT_OFF
        if raw is None:  # the first reply says nothing of this sentence
            first, verdict = KeyedReply(""), unparsed(Unread(row.get("unread") or Unread.NO_ANSWER))
        else:
            first = shown.read(raw)
            verdict = read(first.text, cut_off)
        if repair is None or verdict.status is not VerdictStatus.UNPARSED or ended in _MARKED:
            return Reading(verdict, first.key_missing)
        second = shown.read(repair)
        again = read(second.text, ended.cuts_off)
        if again.status in USABLE:
            return Reading(repaired(verdict, again), second.key_missing)
        return Reading(verdict, first.key_missing)


def _is_part(raw: str, repair: str, group_size: int) -> bool:
    """Return whether a first reply is one sentence's part; an unusable reply is stored whole with the first sentence."""
    label, again = label_of_part(raw), label_of_part(repair)
    return label is not None and 1 <= label <= group_size and again in {None, label}
