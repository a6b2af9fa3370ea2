"""Splits a response into atomic units, which are sentences (atomic paper, section 4.2 and Appendix A.4)."""

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

WIDE_SIGNS = frozenset("\u3002\uff01\uff1f\uff61")
"""What ends Chinese and Japanese sentences."""

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
