"""Notes on texts: signs that a text needs a second look, found when it is split, and sentences that a job leaves out of judging."""

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, get_args

from pydantic import ConfigDict, Field

from app.domain.instruments.rules import Rules
from app.domain.instruments.segmentation import FINAL_SIGNS, WIDE_SIGNS, Unit
from app.domain.judging.refusal_check import says_refusal
from app.domain.judging.thoughts import unknown_marks
from app.domain.providers.model import FinishReason

Span = tuple[int, int]
TextNote = Literal[
    "unknown_tags", "unknown_finish_word", "cut_off", "repeated_sentences", "role_breaks", "refusal_check"
]
TEXT_NOTES: tuple[TextNote, ...] = get_args(TextNote)
LeftOut = Literal["cut_off", "repeated_sentences"]
"""Notes whose sentences a job can leave out of judging."""


@dataclass(frozen=True, slots=True)
class TextNotes:
    """What is odd about one text."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    unknown_tags: Annotated[
        tuple[str, ...],
        Field(
            description="Unknown tags or special tokens that stayed in the text: parts of it may be thoughts."
        ),
    ] = ()
    unknown_finish_word: Annotated[
        str | None,
        Field(description="The provider's word for why the model stopped, if its meaning is not known."),
    ] = None
    cut_off: Annotated[
        Span | None, Field(description="Offsets of the last sentence if its end is missing.")
    ] = None
    repeated_sentences: Annotated[
        tuple[Span, ...], Field(description="Offsets of sentences that repeat an earlier one of the text.")
    ] = ()
    role_breaks: Annotated[
        tuple[Span, ...],
        Field(description="Offsets of sentences in which the model says that it is one, or leaves its role."),
    ] = ()
    refusal_check: Annotated[
        str | None,
        Field(
            description="The judge's reply to whether the text is a refusal, if it was asked. Untrusted text."
        ),
    ] = None

    @property
    def is_refusal_told_by_judge(self) -> bool:
        """Whether a judge's reply decided whether the text is a refusal; an empty one stands for a reply that a bundle left out."""
        reply = self.refusal_check
        return reply == "" or (reply is not None and says_refusal(reply) is not None)

    def left_out(self, leave_out: Collection[str]) -> dict[Span, LeftOut]:
        """Return the sentences that are not judged if those with these notes are left out."""
        found: dict[Span, LeftOut] = {}
        if "repeated_sentences" in leave_out:
            found |= dict.fromkeys(self.repeated_sentences, "repeated_sentences")
        if "cut_off" in leave_out and self.cut_off is not None:
            found[self.cut_off] = "cut_off"
        return found

    def stored(self) -> str | None:
        """Return the notes as JSON text for the database; ``None`` if there are none."""
        found = {name: value for name in TEXT_NOTES if (value := getattr(self, name)) not in (None, ())}
        return json.dumps(found, ensure_ascii=False) if found else None

    @classmethod
    def of(cls, stored: Mapping[str, Any] | None) -> "TextNotes | None":
        """Return the notes as they were stored."""
        if not stored:
            return None
        repeated, breaks = (
            tuple([(start, end) for start, end in stored.get(name, ())])
            for name in ("repeated_sentences", "role_breaks")
        )
        cut_off = stored.get("cut_off")
        return cls(
            tuple(stored.get("unknown_tags", ())),
            stored.get("unknown_finish_word"),
            None if cut_off is None else (cut_off[0], cut_off[1]),
            repeated,
            breaks,
            stored.get("refusal_check"),
        )


class Split(NamedTuple):
    """A text's sentences and the notes on it."""

    units: tuple[Unit, ...]
    notes: TextNotes


Ending = tuple[FinishReason | None, str | None]
"""Why the model stopped, ``None`` if unknown, and the provider's word for it if that is not known or means that it did not finish."""
UNKNOWN_ENDING: Ending = (None, None)


def split_text(text: str, rules: Rules, most: int, ending: Ending = UNKNOWN_ENDING) -> Split:
    """Split a text into sentences and note what is odd about it.

    Args:
        text: The text without thoughts. Untrusted.
        rules: The job's.
        most: Maximum number of sentences; one more means that the text has too many.
        ending: Why the model stopped.
    """
    units = rules.segmenter.segment(text, most)
    notes = notes_on(text, units, rules, ending)
    return Split(units if len(units) > most else judged_units(units, notes, rules.leave_out), notes)


def judged_units(units: tuple[Unit, ...], notes: TextNotes, leave_out: Collection[str]) -> tuple[Unit, ...]:
    """Return the sentences that are judged, numbered anew."""
    left = notes.left_out(leave_out) if leave_out else {}
    if not left:
        return units
    kept = (unit for unit in units if (unit.start, unit.end) not in left)
    return tuple([Unit(index, unit.start, unit.end, unit.text) for index, unit in enumerate(kept)])


def notes_on(text: str, units: Sequence[Unit], rules: Rules, ending: Ending = UNKNOWN_ENDING) -> TextNotes:
    """Note what is odd about a text that is split already; see :func:`split_text`."""
    finish, word = ending
    units = units if text else ()  # sentences without words: only verdicts were imported
    cut_off = _cut_off(text, units, finish) if units else None
    word = word if finish is FinishReason.UNSTATED else None
    breaks = tuple([(each.start, each.end) for each in rules.refusals.breaks(text, units)])
    return TextNotes(unknown_marks(text), word, cut_off, _repeated(units, cut_off), breaks)


def _repeated(units: Sequence[Unit], cut_off: Span | None) -> tuple[Span, ...]:
    """Return the spans of sentences that were said before, in whatever case, spacing and punctuation."""
    if len(units) < 2:  # noqa: PLR2004 - nothing to repeat
        return ()
    last_words = [(unit.text.lower().strip(_SIGNS) or "-").rsplit(None, 1)[-1] for unit in units]
    if len(set(last_words)) == len(units):
        return ()
    often = Counter(last_words)
    seen: set[str] = set()
    spans = []
    for unit, word in zip(units, last_words, strict=True):
        if often[word] == 1:  # normalising takes ten times as long as comparing last words
            continue
        said = unit.text.casefold().translate(_IGNORED) or unit.text
        if said in seen and (unit.start, unit.end) != cut_off:
            spans.append((unit.start, unit.end))
        seen.add(said)
    return tuple(spans)


_SIGNS = " \t\n\r.,;:!?'\"()[]*_~`-\u2013\u2026\u201c\u201d\u2018\u2019"
_IGNORED = dict.fromkeys(map(ord, _SIGNS))

_END = re.compile(
    rf"[.?!\u2026{WIDE_SIGNS}{FINAL_SIGNS}\"'\u201d\u2019\xbb\u300d\u300f)\]}}*_~`>\u2600-\u27bf\ufe0f\u200d\U0001f000-\U0001faff]"
)
"""Last character of a finished text: a final sign, the end of a quotation, a bracket or an action, or an emoji."""
_LIST_SIGN = re.compile(r"[ \t]*(?:\(?\d{1,3}[.)]|[-*\u2022])")
_TAG_OR_LINK = re.compile(r"#\w+|https?://\S+|@\w+")
_WORDS_OF_A_SENTENCE = 4
"""A shorter last line may be a signature or a title."""


def _cut_off(text: str, units: Sequence[Unit], finish: FinishReason | None) -> Span | None:
    """Return the last sentence's span if its end is missing.

    A model that stopped by itself has finished. Where nobody knows why it stopped, only a further sentence without a final sign
    counts.
    """
    if finish is not None and finish is not FinishReason.UNSTATED and not finish.cuts_off:
        return None
    last = units[-1].start, units[-1].end
    end = text.rstrip()
    ended = _END.match(end[-1]) is not None
    known = finish is not None and finish.cuts_off
    if not known and (ended or len(units) == 1):
        return None
    line = end[end.rfind("\n") + 1 :]
    if known:
        number = line.strip() == units[-1].text and _LIST_SIGN.fullmatch(line)
        return None if ended and not number else last
    words = line.split()
    return None if len(words) < _WORDS_OF_A_SENTENCE or _TAG_OR_LINK.fullmatch(words[-1]) else last
