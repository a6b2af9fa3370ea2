"""How alike two short texts are in their wording, whatever their language or script."""

import re
import unicodedata

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
    union = len(first | second)
    return len(first & second) / union if union else 1.0
