"""Keeps generated personas distinct (PersonaGym paper, section 4.1: beyond 200, generated personas overlap)."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean

from pydantic import Field

from app.domain.contract import Answer
from app.domain.personagym.similarity import jaccard, jaccard_of_pairs, normalised, shingles

SAME_ATTRIBUTES = 0.5
"""Jaccard similarity of two descriptions' content words from which they share most of their attributes.

Measured on the 1,225 pairs of the paper's 50 printed personas: the pairs that differ in age only have 1.00 (two of them),
those that differ in one further word 0.82 (two), those that share two of occupation, place and pursuit 0.50–0.67 (twelve);
the pairs that share a single one have 0.43 and less.
"""
SAME_WORDING = 0.7
"""Jaccard similarity of the shingles from which two descriptions are the same one reworded, for scripts without spaces
between words. On the paper's personas, 0.73 and more are found only among the pairs of :data:`SAME_ATTRIBUTES`, and 0.64 is
the highest of any other pair."""

_DIGITS = re.compile(r"\d+")
_FUNCTION_WORDS = """
a an the and or but nor of in on at to from for by with into over who whose whom which that this is are was were be been
being has have had his her hers him he she they them their theirs its it s year years yr old aged age while as also
"""
_WITHOUT_CONTENT = frozenset(_FUNCTION_WORDS.split())


@dataclass(frozen=True, slots=True)
class Likeness:
    """Why a description is not distinct.

    Attributes:
        description: The accepted description that it is too much like.
        attributes: Jaccard similarity of their content words, 0–1.
        wording: Jaccard similarity of their shingles, 0–1.
    """

    description: str
    attributes: float
    wording: float


class Diversity(Answer):
    """How similar generated personas are: Jaccard similarities, 0 to 1, over all pairs."""

    pairs: int
    highest_attributes: float = Field(description="Of two descriptions' content words.")
    mean_attributes: float
    highest_wording: float = Field(description="Of two descriptions' sequences of three characters.")
    mean_wording: float


@dataclass(frozen=True, slots=True)
class _Traces:
    words: frozenset[str]
    shingles: frozenset[str]


@lru_cache(maxsize=4096)  # a candidate is compared with every description that there is
def _traces(description: str) -> _Traces:
    """What remains of a description without its numbers, so that another age makes no other person."""
    plain = normalised(_DIGITS.sub(" ", description))
    return _Traces(frozenset(plain.split()) - _WITHOUT_CONTENT, shingles(plain))


def shared_words(descriptions: Iterable[str]) -> list[tuple[str, int]]:
    """The content words that several descriptions have, and in how many each is, the most frequent first (Figures 3 and 6)."""
    counts = Counter(word for each in descriptions for word in _traces(each).words)
    return sorted(
        ((word, count) for word, count in counts.items() if count > 1),
        key=lambda found: (-found[1], found[0]),
    )


def likeness(candidate: str, accepted: Iterable[str]) -> Likeness | None:
    """The first accepted description that a candidate is too much like, if there is one.

    Two descriptions are too much alike if their content words (without numbers, articles, prepositions and the like) or
    their shingles have at least the Jaccard similarity :data:`SAME_ATTRIBUTES` or :data:`SAME_WORDING`.

    Args:
        candidate: A persona's description. Untrusted.
        accepted: The descriptions from which it must differ.

    Returns:
        ``None`` for a distinct description. One without any content word is like every other.
    """
    own = _traces(candidate)
    for description in accepted:
        other = _traces(description)
        attributes = jaccard(own.words, other.words) if own.words else 1.0
        wording = jaccard(own.shingles, other.shingles)
        if attributes >= SAME_ATTRIBUTES or wording >= SAME_WORDING:
            return Likeness(description, attributes, wording)
    return None


def distinct(candidates: Iterable[str], accepted: Iterable[str] = ()) -> tuple[str, ...]:
    """The candidates, in their order, that are like neither an accepted description nor an earlier candidate kept."""
    known = list(accepted)
    start = len(known)
    for candidate in candidates:
        if likeness(candidate, known) is None:
            known.append(candidate)
    return tuple(known[start:])


def diversity(descriptions: Sequence[str]) -> Diversity | None:
    """How alike descriptions are, measured as :func:`likeness` does; ``None`` for fewer than two."""
    traces = [_traces(description) for description in descriptions]
    attributes = jaccard_of_pairs([one.words for one in traces])
    wording = jaccard_of_pairs([one.shingles for one in traces])
    if not attributes:
        return None
    return Diversity(
        pairs=len(attributes),
        highest_attributes=max(attributes),
        mean_attributes=fmean(attributes),
        highest_wording=max(wording),
        mean_wording=fmean(wording),
    )
