"""Sentence segmentation by the Punkt algorithm (Kiss and Strunk 2006) with our own patterns and parameters.

The patterns and decisions are those of NLTK 3.10.4, reduced to the parameters that our data files have. They are kept here because
a released segmenter must not change with an installed library; a test compares them with NLTK.
"""

import re
import string
import sys
from bisect import bisect_left
from collections.abc import Iterator

from app.domain.instruments.segmentation import FINAL_SIGNS, WIDE_SIGNS, PunktRules, Unit, normalise

_END_SIGNS = frozenset(".?!")
_NOT_IN_WORDS = r"""[)";}\]*:@'({\[\u2018\u2019\u201c\u201d\xab\xbb?!]"""
_MULTIPLE = r"(?:-{2,}|\.{2,}|(?:\.\s){2,}\.)"
_WORD = re.compile(
    rf"""{_MULTIPLE}
    |[^("`{{\[:;&\#*@)}}\]\-,\s]\S*?(?=\s|$|{_NOT_IN_WORDS}|{_MULTIPLE}|,(?=$|\s|{_NOT_IN_WORDS}|{_MULTIPLE}))
    |\S""",
    re.VERBOSE,
)
_POSSIBLE_END = re.compile(rf"[.?!](?=(?P<after>{_NOT_IN_WORDS}|\s+(?P<next>\S+)))")
_CLOSING_SIGNS = re.compile(r"""["')\]}\u2018\u2019\u201c\u201d\xab\xbb]+?(?:\s+|(?=--)|$)""", re.MULTILINE)
_ELLIPSIS = re.compile(r"\.\.+$")
_NUMBER = re.compile(r"^-?[.,]?\d[\d,.-]*\.?$")
_INITIAL = re.compile(r"[^\W\d]\.$")
_INNER_PUNCTUATION = frozenset(";:,.!?")

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


class PunktSegmenter:
    """Sentences as NLTK's ``sent_tokenize`` gives them for our parameters.

    A line break alone ends no sentence, and the number of a list item (``1.``) stands alone. Safe to share between threads. The time
    taken is linear in the text's length.

    Attributes:
        name: Name and version.
    """

    def __init__(self, rules: PunktRules, name: str | None = None) -> None:
        self.name = name or rules.name
        self._never_final = rules.never_final
        self._abbreviations = rules.never_final | rules.sometimes_final
        self._starters = rules.sentence_starters

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
        for first, last in self._punkt_spans(text[start:stop]):
            yield start + first, start + last

    def _punkt_spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the slices, each with the closing quotation marks and brackets that begin the next one."""
        start = stop = 0
        for begin, end in self._slices(text):
            closing = _CLOSING_SIGNS.match(text, begin, end) if stop else None
            if closing is not None:
                yield start, begin + len(closing[0].rstrip())
                begin = closing.end()  # noqa: PLW2901 - the slice without them
            elif start < stop:
                yield start, stop
            start, stop = begin, end
        if start < stop:
            yield start, stop

    def _slices(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield what stands between two final signs, each slice with the sign that ends it."""
        start = 0
        for word, sign in _possible_ends(text):
            if self._has_end(word + sign[0] + sign["after"]):
                yield start, sign.end()
                start = sign.end() if sign["next"] is None else sign.start("next")
        yield start, len(text.rstrip())

    def _has_end(self, context: str) -> bool:
        """Return whether a sentence ends between a word with its signs and the token that follows."""
        tokens = [token for line in context.split("\n") for token in _WORD.findall(line)]
        return any(
            self._ends_sentence(token, tokens[place + 1])
            for place, token in enumerate(tokens[:-1])
            if token[-1] in _END_SIGNS
        )

    def _ends_sentence(self, token: str, following: str) -> bool:
        """Return Punkt's decision for one token that ends with a sign."""
        if token in ("?", "!"):
            return True
        if token[-1] != ".":
            return False
        word = _type_of(token)
        plain = word[:-1] if len(word) > 1 and word[-1] == "." else word
        ends = self._ends_at_period(token)
        next_word = _type_of(following)
        if next_word[-1] == "." and len(next_word) > 1 and self._ends_at_period(following):
            next_word = next_word[:-1]
        starter = next_word in self._starters
        if starter and plain in self._never_final:
            return False
        upper = following[0].isupper()
        initial = _INITIAL.match(token) is not None
        if initial or plain == "##number##":
            inside = following in _INNER_PUNCTUATION or following[0].islower()
            return ends and not inside and not (initial and upper and not starter)
        return ends or (upper and starter)

    def _ends_at_period(self, token: str) -> bool:
        """Return whether a token ends a sentence by itself: its period is neither an abbreviation's nor an ellipsis's."""
        if token in _END_SIGNS:
            return True
        if token[-1] != "." or token.endswith(".."):
            return False
        word = token[:-1].lower()
        return word not in self._abbreviations and word.split("-")[-1] not in self._abbreviations


def _type_of(token: str) -> str:
    return _NUMBER.sub("##number##", token.lower())


def _possible_ends(text: str) -> Iterator[tuple[str, re.Match[str]]]:
    """Yield each possible end with the word before it; of signs that no space separates only the last, with the others in the word."""
    start = stop = 0
    previous = None
    for sign in _POSSIBLE_END.finditer(text):
        space = max(text.rfind(each, stop, sign.start()) for each in string.whitespace)
        begin = space + 1 if space > stop else start
        if previous is not None and stop <= begin:
            yield text[start:stop], previous
        previous, start, stop = sign, begin, sign.start()
    if previous is not None:
        yield text[start:stop], previous


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
