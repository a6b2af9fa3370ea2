"""Sentences by NLTK's Punkt with our own parameters. Importing it takes a third of a second: where sentences are split only."""

import re
import sys
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product

from app.domain.instruments.segmentation import WIDE_SIGNS, PunktRules, Unit, normalise


@contextmanager
def _as_if_not_installed(*modules: str) -> Iterator[None]:
    """Has imports of modules fail that nobody has imported yet."""
    hidden = [module for module in modules if sys.modules.setdefault(module, None) is None]  # type: ignore[arg-type] # Python's own way
    try:
        yield
    finally:
        for module in hidden:
            del sys.modules[module]


# NLTK does without them, and tries to import them for measures and parsers of which nothing is used here: five sixths of its time.
with _as_if_not_installed("scipy.stats", "scipy.sparse"):
    from nltk.tokenize.punkt import PunktLanguageVars, PunktParameters, PunktSentenceTokenizer, PunktToken

_SEEN_IN_LOWER_CASE = 1 << 5
"""Punkt's orthographic context of a word that was seen inside a sentence in lower case."""

_END_BEFORE_WORD = re.compile(r"[.?!](?=([ \n]+)[A-Za-z0-9])")
_PLAIN_WORD = re.compile(r"(?:[A-Za-z]+-)*([A-Za-z]{2,})")
"""Nothing but letters, perhaps with hyphens between them; none that may be an initial."""

_SENTENCE_END = re.compile("[.?!]")

_SIGNS = re.compile("[!?\u3002\uff01\uff1f\uff61]+")
_WIDE_LETTER = re.compile("[\u3041-\u30ff\u3400-\u9fff]")
_OPENING = "「『【《〈“([\uff08\u3014"
_CLOSING = "」』】》〉”)]\uff09\u3015"
_NO_PAIR = sys.maxsize, sys.maxsize
_BRACKET = re.compile(f"[{re.escape(_OPENING + _CLOSING)}\n]")
_CLOSED = re.compile(f"[{re.escape(_CLOSING)}]*")
_GOES_ON = re.compile("[ \u3000]*(?:と|って|など|なんて|の|を|が|に|も|[、,\uff0c])")
"""What after a closing bracket carries the sentence on: a particle, as after a quotation that somebody "said", or a comma."""


class _Token(PunktToken):  # type: ignore[misc] # nltk has no types
    """A token whose patterns run on ``re``: three times as fast as NLTK's, which check a wall-clock limit."""

    __slots__ = ()
    _RE_ELLIPSIS = re.compile(r"\.\.+$")
    _RE_NUMERIC = re.compile(r"^-?[.,]?\d[\d,.-]*\.?$")
    _RE_INITIAL = re.compile(r"[^\W\d]\.$")


class _English(PunktLanguageVars):  # type: ignore[misc] # nltk has no types
    """NLTK's default patterns on ``re``, for the same reason, and so that a busy machine fails no match."""

    re_boundary_realignment = re.compile(PunktLanguageVars.re_boundary_realignment.pattern, re.MULTILINE)

    def __init__(self) -> None:
        self._re_word_tokenizer = re.compile(self._word_tokenizer_re().pattern, re.VERBOSE)
        self._re_period_context = re.compile(self.period_context_re().pattern, re.VERBOSE)


class _WordContexts(dict[str, int]):
    """Orthographic contexts by word. Punkt's own adds every word that it looks up, and so would grow for ever."""

    def __missing__(self, word: str) -> int:
        return 0


class PunktSegmenter:
    """Sentences by the Punkt algorithm (Kiss and Strunk 2006, in NLTK's implementation).

    As with NLTK's ``sent_tokenize``, a line break alone ends no sentence, and the number of a list item
    (``1.``) stands alone. Safe to share between threads. The time taken is linear in the text's length.

    Attributes:
        name: The rules' name.
    """

    def __init__(self, rules: PunktRules) -> None:
        parameters = PunktParameters()
        parameters.abbrev_types = set(rules.never_final | rules.sometimes_final)
        parameters.sent_starters = set(rules.sentence_starters)
        parameters.ortho_context = _WordContexts.fromkeys(rules.sentence_starters, _SEEN_IN_LOWER_CASE)
        parameters.collocations = set(product(rules.never_final, rules.sentence_starters))
        self.name = rules.name
        self._abbreviations = parameters.abbrev_types
        self._punkt = PunktSentenceTokenizer(parameters, lang_vars=_English(), token_cls=_Token)

    def segment(self, text: str, most: int) -> tuple[Unit, ...]:
        """The sentences of a raw response, normalised, with their spans in the raw text; at most ``most + 1``."""
        normalised = normalise(text)
        # Each — became two characters; how many of the second ones precede an offset is how far it has moved.
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
        """What Punkt's ``span_tokenize`` gives for a whole text, in a sixth of its time for ordinary prose.

        A sentence ends after a plain word that is no abbreviation and before another word, whatever else is around. So what stands
        between two such ends can be split by itself, and need not be where it holds no other sign that may end a sentence.
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
        """The spans of what stands between two ends of sentences; the second one may be the text's own."""
        if _SENTENCE_END.search(text, start, stop - 1) is None:
            yield start, stop
            return
        for first, last in self._punkt.span_tokenize(text[start:stop]):
            yield start + first, start + last


class WidePunktSegmenter(PunktSegmenter):
    """The same, and sentences also end at the wide signs of Chinese and Japanese, which no space follows.

    What stands in brackets or quotation marks that are closed in the same paragraph is not cut; after them a sentence ends that ended
    in them, unless a particle or a comma carries it on. Of other texts it makes the same as Punkt.
    """

    def __init__(self, rules: PunktRules, name: str) -> None:
        super().__init__(rules)
        self.name = name

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        begun = 0
        for end in (*_wide_ends(text), len(text)):
            for start, stop in super()._spans(text[begun:end]):
                yield begun + start, begun + stop
            begun = end


def _wide_ends(text: str) -> Iterator[int]:
    """Where sentences end at wide signs, or at others that a wide letter follows."""
    if _SIGNS.search(text) is None:
        return
    pairs = iter(_brackets(text).items())
    opened, closed = next(pairs, _NO_PAIR)
    for found in _SIGNS.finditer(text):
        if WIDE_SIGNS.isdisjoint(found[0]) and _WIDE_LETTER.match(text, found.end()) is None:
            continue
        while closed < found.start():
            opened, closed = next(pairs, _NO_PAIR)
        quoted = _CLOSED.match(text, found.end())
        end = found.end() if quoted is None else quoted.end()
        within = opened < found.start() and end <= closed
        if not within and not (end > found.end() and _GOES_ON.match(text, end)):
            yield end


def _brackets(text: str) -> dict[int, int]:
    """Where each outermost bracket opens that is closed in its paragraph, and where it is closed."""
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
