"""Sentence segmentation by NLTK's Punkt (Kiss and Strunk 2006) with our own patterns and parameters.

A released segmenter must not change with the installed NLTK, so the patterns of 3.10.4 are kept here. Importing NLTK takes a third of a
second: import this module only where sentences are split.
"""

import re
import sys
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product

from app.domain.instruments.segmentation import FINAL_SIGNS, WIDE_SIGNS, PunktRules, Unit, normalise


@contextmanager
def _as_if_not_installed(*modules: str) -> Iterator[None]:
    """Make imports of these modules fail unless they are loaded already."""
    hidden = [module for module in modules if sys.modules.setdefault(module, None) is None]  # type: ignore[arg-type] # Python's own way
    try:
        yield
    finally:
        for module in hidden:
            del sys.modules[module]


# NLTK imports them for measures and parsers that are not used here, which takes five sixths of its import time.
with _as_if_not_installed("scipy.stats", "scipy.sparse"):
    from nltk.tokenize.punkt import PunktLanguageVars, PunktParameters, PunktSentenceTokenizer, PunktToken

_SEEN_IN_LOWER_CASE = 1 << 5
"""Punkt's orthographic context of a word that was seen inside a sentence in lower case."""

_NOT_IN_WORDS = r"""[)";}\]*:@'({\[\u2018\u2019\u201c\u201d\xab\xbb?!]"""
_MULTIPLE = r"(?:-{2,}|\.{2,}|(?:\.\s){2,}\.)"

_END_BEFORE_WORD = re.compile(r"[.?!](?=([ \n]+)[A-Za-z0-9])")
_PLAIN_WORD = re.compile(r"(?:[A-Za-z]+-)*([A-Za-z]{2,})")
"""Nothing but letters, perhaps with hyphens between them; an initial has only one letter."""
_SENTENCE_END = re.compile("[.?!]")

_SIGNS = re.compile(
    f"(?:\uff0e(?![0-9\uff10-\uff19])|[!?{WIDE_SIGNS.replace(chr(0xFF0E), '')}]|[{FINAL_SIGNS}](?<!\u17d4(?=\u179b\u17d4))|\u1361\u1361)+"
)
"""Runs of signs that may end a sentence; the Khmer sign is not one in its abbreviation of "and so on"."""
_SPACED_SIGNS = re.compile(f"[{FINAL_SIGNS}\u1361]")
_WIDE_LETTER = re.compile("[\u3041-\u30ff\u3400-\u9fff]")
_OPENING = "「『【《〈“([\uff08\u3014"
_CLOSING = "」』】》〉”)]\uff09\u3015"
_NO_PAIR = sys.maxsize, sys.maxsize
_BRACKET = re.compile(f"[{re.escape(_OPENING + _CLOSING)}\n]")
_CLOSED = re.compile(f"[{re.escape(_CLOSING)}]*")
_CLOSED_SPACED = re.compile(f"[{re.escape(_CLOSING)}\"'\u2019\xbb]*")
_GOES_ON = re.compile("[ \u3000]*(?:と|って|など|なんて|の|を|が|に|も|[、,\uff0c])")
"""Particles and commas that carry a sentence on after a closing bracket, as after a quotation that somebody "said"."""


class _Token(PunktToken):  # type: ignore[misc] # nltk has no types
    """A token whose patterns run on ``re``: three times as fast as NLTK's, which check a wall-clock limit."""

    __slots__ = ()
    _RE_ELLIPSIS = re.compile(r"\.\.+$")
    _RE_NUMERIC = re.compile(r"^-?[.,]?\d[\d,.-]*\.?$")
    _RE_INITIAL = re.compile(r"[^\W\d]\.$")
    _RE_ALPHA = re.compile(r"[^\W\d]+$")


class _English(PunktLanguageVars):  # type: ignore[misc] # nltk has no types
    """The patterns of NLTK 3.10.4, on ``re`` for the same reason."""

    sent_end_chars = (".", "?", "!")
    internal_punctuation = ",:;"
    re_boundary_realignment = re.compile(
        r"""["')\]}\u2018\u2019\u201c\u201d\xab\xbb]+?(?:\s+|(?=--)|$)""", re.MULTILINE
    )

    def __init__(self) -> None:
        self._re_word_tokenizer = re.compile(
            rf"""{_MULTIPLE}
            |[^("`{{\[:;&\#*@)}}\]\-,\s]\S*?(?=\s|$|{_NOT_IN_WORDS}|{_MULTIPLE}|,(?=$|\s|{_NOT_IN_WORDS}|{_MULTIPLE}))
            |\S""",
            re.VERBOSE,
        )
        self._re_period_context = re.compile(rf"[.?!](?=(?P<after_tok>{_NOT_IN_WORDS}|\s+(?P<next_tok>\S+)))")


class _WordContexts(dict[str, int]):
    """Orthographic contexts by word; Punkt's own adds every word that it looks up, and so would grow for ever."""

    def __missing__(self, word: str) -> int:
        return 0


class PunktSegmenter:
    """Segmenter that returns what NLTK's ``sent_tokenize`` gives for our parameters.

    A line break alone ends no sentence, and the number of a list item (``1.``) stands alone. Safe to share between threads. The time
    taken is linear in the text's length.

    Attributes:
        name: Name and version.
    """

    def __init__(self, rules: PunktRules, name: str | None = None) -> None:
        parameters = PunktParameters()
        parameters.abbrev_types = set(rules.never_final | rules.sometimes_final)
        parameters.sent_starters = set(rules.sentence_starters)
        parameters.ortho_context = _WordContexts.fromkeys(rules.sentence_starters, _SEEN_IN_LOWER_CASE)
        parameters.collocations = set(product(rules.never_final, rules.sentence_starters))
        self.name = name or rules.name
        self._abbreviations = parameters.abbrev_types
        self._starters = rules.sentence_starters
        self._punkt = PunktSentenceTokenizer(parameters, lang_vars=_English(), token_cls=_Token)

    def segment(self, text: str, most: int) -> tuple[Unit, ...]:
        """Return the sentences of a raw response, normalised, with their spans in the raw text; at most ``most + 1``."""
        normalised = normalise(text)
        # Each — became two characters: an offset moves by the number of second characters before it.
        added = [match.start() + count for count, match in enumerate(re.finditer("—", text), 1)]
        units: list[Unit] = []
        for start, end in self._spans(normalised):
            sentence = normalised[start:end].strip()
            if sentence:
                first = normalised.index(sentence, start)
                last = first + len(sentence)
                span = (first - bisect_left(added, first), last - bisect_left(added, last))
                units.append(Unit(len(units), *span, sentence))
                if len(units) > most:
                    break
        return tuple(units)

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the spans that Punkt finds in a whole text, in a sixth of its time for ordinary prose.

        A sentence ends after a plain word that is no abbreviation and before another word, whatever else is around. The text between
        two such ends is split by itself, and only if it holds another sign that may end a sentence.
        """
        start = looked = 0
        for end in _END_BEFORE_WORD.finditer(text):
            stop = end.start()
            space = max(text.rfind(" ", looked, stop), text.rfind("\n", looked, stop))
            looked = end.end()
            word = _PLAIN_WORD.fullmatch(text, space + 1, stop)
            if word is not None and self._abbreviations.isdisjoint((word[0].lower(), word[1].lower())):
                yield from self._spans_between(text, start, looked)
                start = end.end(1)
        yield from self._spans_between(text, start, len(text.rstrip()))

    def _spans_between(self, text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
        if _SENTENCE_END.search(text, start, stop - 1) is None:
            yield start, stop
            return
        for first, last in self._punkt.span_tokenize(text[start:stop]):
            yield start + first, start + last


class WidePunktSegmenter(PunktSegmenter):
    """Punkt, and sentences also end at the final signs of other scripts.

    Chinese and Japanese put no space after them. Text in brackets or quotation marks that are closed in the same paragraph is not cut
    there; after it a sentence ends if one ended inside, unless a particle or a comma carries it on. In other scripts quotations are
    cut as Punkt cuts English ones. Texts without these signs give the same sentences as Punkt.
    """

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        begun = 0
        for end in (*_wide_ends(text), len(text)):
            for start, stop in super()._spans(text[begun:end]):
                yield begun + start, begun + stop
            begun = end


def _wide_ends(text: str) -> Iterator[int]:
    if _SIGNS.search(text) is None:
        return
    pairs = iter(_brackets(text).items())
    opened, closed = next(pairs, _NO_PAIR)
    for found in _SIGNS.finditer(text):
        if _SPACED_SIGNS.search(found[0]) is not None:
            yield _end_of(_CLOSED_SPACED, text, found.end())
            continue
        if not any(sign in WIDE_SIGNS for sign in found[0]) and not _WIDE_LETTER.match(text, found.end()):
            continue
        while closed < found.start():
            opened, closed = next(pairs, _NO_PAIR)
        end = _end_of(_CLOSED, text, found.end())
        within = opened < found.start() and end <= closed
        if not within and not (end > found.end() and _GOES_ON.match(text, end)):
            yield end


def _end_of(closing: re.Pattern[str], text: str, place: int) -> int:
    match = closing.match(text, place)
    return place if match is None else match.end()


def _brackets(text: str) -> dict[int, int]:
    """Map each outermost opening bracket that is closed in its paragraph to its closing one."""
    found: dict[int, int] = {}
    depth = opened = 0
    for bracket in _BRACKET.finditer(text):
        if bracket[0] == "\n":
            depth = 0
        elif bracket[0] in _OPENING:
            opened = opened if depth else bracket.start()
            depth += 1
        elif depth:
            depth -= 1
            if not depth:
                found[opened] = bracket.start()
    return found
