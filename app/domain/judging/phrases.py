"""Compiles lists of words into searches whose time hardly depends on the number of words."""

import re
from collections.abc import Iterable, Iterator
from importlib.resources import files
from typing import Any

import yaml

WORDS: dict[str, Any] = yaml.safe_load(
    files(__package__).joinpath("reply_words.yaml").read_text(encoding="utf-8")
)

_SPACED = re.compile(r"[\W\w]*[a-z\u00c0-\u04ff]")
"""Matches a word of a script that separates words by spaces."""


_LITERAL = re.compile(r"[^\W_](?![?*{])")
"""Matches a pattern that begins with a letter or a digit."""
_GROUP = re.compile(r"\(\?:([^()]*)\)(?![?*{])(.*)", re.DOTALL)
"""Matches a pattern that begins with alternatives."""


def one_of(words: Iterable[str]) -> str:
    """Return a pattern of alternatives, also within words."""
    return _alternatives(_grouped(_expanded(words)))


def _alternatives(patterns: Iterable[str]) -> str:
    return f"(?:{'|'.join(patterns)})"


def _grouped(words: Iterable[str], before: str = "", after: str = "") -> list[str]:
    """Return alternatives grouped by their first letter, so that a search skips all groups but one.

    Args:
        words: The alternatives.
        before: What must hold before a word, given behind its first letter, ``{}``: a search for a letter is several times as fast.
        after: What must follow a word.
    """
    groups: dict[str, list[str]] = {}
    for word in sorted(words, key=len, reverse=True):
        groups.setdefault(word[0] if _LITERAL.match(word) else "", []).append(word)
    others = groups.pop("", [])
    found = [
        f"{letter}{before.format(letter)}(?:{'|'.join(word[1:] for word in words)}){after}"
        for letter, words in groups.items()
    ]
    return found + ([f"{before.format('')}(?:{'|'.join(others)}){after}"] if others else [])


def all_words(kind: str) -> list[str]:
    """Return the words of all languages."""
    return [word for words in WORDS[kind].values() for word in words]


def by_script(words: Iterable[str]) -> tuple[list[str], list[str]]:
    """Separate words of scripts with spaces from words of scripts without."""
    spaced: list[str] = []
    unspaced: list[str] = []
    for word in words:
        (spaced if _SPACED.match(word) else unspaced).append(word)
    return spaced, unspaced


_UNLESS_WITHIN, _UNLESS_BEGUN = r"(?<!\w{})", r"(?!\w)"
"""Keep a word from matching within another word."""


def whole_words(words: Iterable[str]) -> str:
    """Return a pattern of alternatives as whole words; scripts without spaces have no word boundary."""
    spaced, unspaced = by_script(_expanded(words))
    return _alternatives([*_grouped(spaced, _UNLESS_WITHIN, _UNLESS_BEGUN), *_grouped(unspaced)])


_BEFORE_WORD = r"[^a-z0-9_\u00df-\u04ff]"


class Phrases:
    """Searches for phrases that begin and end as words do; in time that hardly depends on their number."""

    def __init__(self, phrases: Iterable[str]) -> None:
        spaced, unspaced = by_script(_expanded(phrases))
        self._spaced = re.compile(rf"{_BEFORE_WORD}{_alternatives(_grouped(spaced))}(?!\w)")
        self._unspaced = re.compile(_alternatives(_grouped(unspaced)) if unspaced else "(?!)")

    def in_(self, text: str) -> bool:
        """Tell whether a text that begins with no letter has one of the phrases."""
        return self._spaced.search(text) is not None or (
            not text.isascii() and self._unspaced.search(text) is not None
        )

    def found_in(self, text: str) -> Iterator[re.Match[str]]:
        """Yield where a text that begins with no letter has a phrase; a match begins with the character before it."""
        yield from self._spaced.finditer(text)
        if not text.isascii():
            yield from self._unspaced.finditer(text)


class Stems:
    """Tells whether a text may have one of several phrases: whether it has the letters with which one begins."""

    def __init__(self, phrases: Iterable[str]) -> None:
        stems = set(map(_stem, phrases))
        stems = {stem for stem in stems if not any(other in stem for other in stems - {stem})}
        self._plain = tuple(filter(str.isascii, stems))
        self._foreign = tuple(stem for stem in stems if not stem.isascii())

    def may_be_in(self, text: str) -> bool:
        """Tell whether a text may have a phrase, in a tenth of the time of a search."""
        return has_any(text, self._plain) or (not text.isascii() and has_any(text, self._foreign))


def _stem(pattern: str) -> str:
    """Return the plain text with which a word's pattern begins."""
    pattern = re.sub(r"^\(\?<![^)]*\)", "", pattern)
    found = re.match(r"[^\\\[\](?*+|{.]*(?![?*{])", pattern)
    return found[0] if found else ""


def has_any(text: str, words: Iterable[str]) -> bool:
    """Tell whether a text has one of several pieces, also within words."""
    for word in words:  # noqa: SIM110 - any() with a generator takes twice the time
        if word in text:
            return True
    return False


def has_digit(text: str) -> bool:
    """Tell whether a plain text has a digit; a sixth of the time of a search."""
    return has_any(text, "0123456789")


def _expanded(phrases: Iterable[str]) -> Iterator[str]:
    """Yield phrases that begin with alternatives once for each of these."""
    for phrase in phrases:
        found = _GROUP.fullmatch(phrase)
        yield from (word + found[2] for word in found[1].split("|")) if found else (phrase,)
