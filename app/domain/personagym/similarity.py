"""How alike two short texts are in their wording, whatever their language or script."""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain, combinations

_NO_WORD = re.compile(r"[\W_]+")
_SHINGLE = 3


def normalised(text: str) -> str:
    """The text's words in one case, with plain forms of letters and single spaces, without punctuation."""
    return _NO_WORD.sub(
        " ", unicodedata.normalize("NFKC", text).casefold().replace("'", "").replace("’", "")
    ).strip()


def shingles(text: str) -> frozenset[str]:
    """All sequences of three characters in the normalised text, its ends marked by a space."""
    padded = f" {normalised(text)} "
    return frozenset(padded[n : n + _SHINGLE] for n in range(max(1, len(padded) - _SHINGLE + 1)))


def jaccard(first: frozenset[str], second: frozenset[str]) -> float:
    """The share of the elements of either set that both have, 0–1; 1 for two empty sets."""
    return _jaccard(len(first & second), len(first), len(second))


def jaccard_of_pairs(sets: Sequence[frozenset[str]]) -> list[float]:
    """:func:`jaccard` of all pairs of these sets, much quicker than one by one: half a million pairs in seconds."""
    uses = Counter(chain.from_iterable(sets))
    # What is in a single set is in no intersection.
    places = {element: place for place, element in enumerate(e for e, count in uses.items() if count > 1)}
    members = [(_bits(one, places), len(one)) for one in sets]
    return [
        _jaccard((first & second).bit_count(), size, other)
        for (first, size), (second, other) in combinations(members, 2)
    ]


def _jaccard(common: int, first: int, second: int) -> float:
    union = first + second - common
    return common / union if union else 1.0


def _bits(elements: frozenset[str], places: Mapping[str, int]) -> int:
    """A number with a bit for each of the elements that has a place."""
    found = bytearray(len(places) // 8 + 1)
    for element in elements:
        place = places.get(element)
        if place is not None:
            found[place // 8] |= 1 << place % 8
    return int.from_bytes(found, "little")
