"""Splits a response into atomic units, which are sentences (atomic paper, section 4.2 and Appendix A.4)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(slots=True)
class Unit:
    """One atomic unit of a response. Not frozen, as a big export makes hundreds of thousands; nobody changes one.

    Attributes:
        index: Position in the response, from 0.
        start: Offset of its first character in the raw response.
        end: Offset after its last character in the raw response.
        text: The sentence as the judge reads it: ``normalise(raw[start:end])``, never empty, no space around it.
    """

    index: int
    start: int
    end: int
    text: str


class Segmenter(Protocol):
    """Splits responses into units."""

    @property
    def name(self) -> str:
        """Method and data with their version, for the manifest."""
        ...

    def segment(self, text: str, most: int) -> tuple[Unit, ...]:
        """The units of a raw response, in order, without overlap; none for a text without visible characters.

        Args:
            text: The raw response. Untrusted.
            most: The unit limit: splitting stops at the first unit beyond it, so that many have ``most + 1``.
        """
        ...


@dataclass(frozen=True, slots=True)
class PunktRules:
    """Language data for Punkt; all words in lower case, abbreviations without their final period.

    Attributes:
        name: Name and version, for example ``"punkt-en-v1"``.
        never_final: Abbreviations that do not end a sentence, whatever follows.
        sometimes_final: Abbreviations that end a sentence where a sentence starter follows in upper case.
        sentence_starters: Words that begin sentences and inside them stand in lower case.
    """

    name: str
    never_final: frozenset[str]
    sometimes_final: frozenset[str]
    sentence_starters: frozenset[str]


FIRST_SEGMENTER = "punkt-en-v1"
"""The segmenter of the first jobs."""

WIDE_SIGNS = "\u3002\ufe12\ufe15\ufe16\ufe56\ufe57\uff01\uff0e\uff1f\uff61"
"""Final signs of Chinese and Japanese, which no space follows."""
FINAL_SIGNS = (
    "\u0589\u061d-\u061f\u06d4\u0700-\u0702\u07f9\u0837\u0839\u083d\u083e\u0964\u0965\u104b\u1362\u1367\u1368\u166e"
    "\u1735\u1736\u17d4\u17d5\u1803\u1809\u1944\u1945\u1aa8-\u1aab\u1b4e\u1b4f\u1b5a\u1b5b\u1b5e\u1b5f\u1b7d-\u1b7f\u1c3b\u1c3c"
    "\u1c7e\u1c7f\u203c\u203d\u2047-\u2049\u2cf9-\u2cfb\u2e2e\u2e3c\u2e53\u2e54\u2e60\u2e61\ua4ff\ua60e\ua60f\ua6f3\ua6f7\ua876"
    "\ua877\ua8ce\ua8cf\ua92f\ua9c8\ua9c9\uaa5d-\uaa5f\uaaf0\uaaf1\uabeb"
)
"""Final signs of other scripts, as a character class: Sentence_Terminal of https://www.unicode.org/Public/17.0.0/ucd/PropList.txt in the
basic plane, without the signs above, ``.?!``, their small and one-dot forms, and U+104A, which separates clauses in Burmese."""
UNCUT_SIGNS = re.compile(f"[{WIDE_SIGNS}{FINAL_SIGNS}]|\u1361\u1361")
"""Ends of sentences that :data:`FIRST_SEGMENTER` does not know; two Ethiopic word spaces often stand for a full stop."""

MAX_CHARACTERS = 200_000
"""Longest text of a model that is split or read."""
SIGNS_PER_UNIT = 5
"""Full stops, exclamation and question marks for each allowed unit; English prose has between one and two."""


def runaway(text: str, most: int) -> str | None:
    """Why a text must not be split, found without splitting it; ``None`` for one that may be.

    Splitting takes about 8 µs for each sign that may end a sentence, whether or not it does.

    Args:
        text: The raw response. Untrusted, of any length.
        most: How many units it may have.
    """
    if len(text) > MAX_CHARACTERS:
        return f"{len(text):,} characters; at most {MAX_CHARACTERS:,}"
    signs = sum(map(text.count, ".?!"))
    if signs > SIGNS_PER_UNIT * most:
        return f"{signs:,} signs that may end a sentence; at most {SIGNS_PER_UNIT * most:,}"
    return None


def normalise(text: str) -> str:
    """Replaces what the paper replaces before it splits: U+2019 by ``'`` and the em dash by ``--``."""
    return text.replace("\u2019", "'").replace("\u2014", "--")


def units_at(text: str, starts: Sequence[int], ends: Sequence[int]) -> tuple[Unit, ...]:
    """The units of a raw response whose spans are known, without splitting it again.

    A stored response keeps its units for ever, whatever a later version of the splitter would make of it.

    Args:
        text: The raw response.
        starts: Offset of each unit's first character.
        ends: Offset after each unit's last character.
    """
    spans = zip(starts, ends, texts_at(text, starts, ends), strict=True)
    return tuple([Unit(index, *span) for index, span in enumerate(spans)])


def texts_at(text: str, starts: Sequence[int], ends: Sequence[int]) -> list[str]:
    """The texts alone of the units that :func:`units_at` finds."""
    raw = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    return (
        raw if normalise(text) == text else [normalise(each) for each in raw]
    )  # mostly there is nothing to replace
