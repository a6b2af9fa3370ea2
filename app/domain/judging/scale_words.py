"""Recognises words for the ends of a dimension's scale, and for a text that has nothing to do with the dimension."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from app.domain.instruments.dimension import Scale
from app.domain.judging.phrases import WORDS, Phrases, Stems, all_words, has_any, one_of, whole_words


class Ends(NamedTuple):
    """Patterns of words for the ends of a dimension.

    Attributes:
        words: Cognates of the options' words for the lower and the upper end.
        signs: These and other words, among them the trait's name with a direction ("low extraversion").
        limits: The lowest and the highest score.
        stems: How the words, signs and traits' names begin.
    """

    words: tuple[re.Pattern[str], re.Pattern[str]]
    signs: tuple[Phrases, Phrases]
    limits: tuple[int, int]
    stems: Stems

    def may_name(self, text: str) -> bool:
        """Tell whether a text may have one of the signs or a trait's name."""
        return self.stems.may_be_in(text)

    def contradict(self, words: str, number: int) -> bool:
        """Tell whether words about a number state the other end of the scale, another degree or the middle."""
        middle, degree = sum(self.limits), _DEGREE.match(words)
        side = (2 * number > middle) - (2 * number < middle)
        named = self.may_name(words)
        low, high = (named and any(_undenied("\n" + words, signs)) for signs in self.signs)
        if number not in range(self.limits[0], self.limits[1] + 1):
            return low != high
        if side == 0 and not _NEUTRAL.match(words):
            start = degree.end() if degree else 0
            return low != high and any(pattern.match(words, start) for pattern in self.words)
        if side and (low, high) == ((True, False) if side > 0 else (False, True)):
            return True
        if _NEUTRAL.match(words):
            return side != 0 and not (low or high)
        if degree is None or self.words[side > 0].match(words, degree.end()) is None:
            return False
        return (degree["strong"] is not None) != (number in self.limits)

    def name(self, words: str, number: int) -> bool:
        """Tell whether words are a degree and an end, in any language, and fit a number."""
        degree = _DEGREE.match(words)
        start = degree.end() if degree else 0
        ends = [found.end() for pattern in self.words if (found := pattern.match(words, start))]
        named = any(len(words) - end <= _LONGEST_ENDING for end in ends) or _NEUTRAL.fullmatch(words)
        return bool(named) and not self.contradict(words, number)


def _undenied(words: str, signs: Phrases) -> Iterator[bool]:
    for found in signs.found_in(words):
        yield _DENIED_END.search(words, max(0, found.start() - 40), found.start()) is None


_DENIED_END = re.compile(
    rf"(?:n't\b|{whole_words([*WORDS['denials'], 'neither', 'nor', 'than', 'less', 'without', 'or'])})[^.;:]*$"
)
_LONGEST_ENDING = 3
"""Characters that may follow a stem, as in 内向的です or "introvertierte"."""
_NEUTRAL = re.compile(rf"{whole_words(WORDS['neutral'])}(?=\W|$)")
_DEGREE = re.compile(rf"(?:(?P<strong>{one_of(WORDS['strong'])})|{one_of(WORDS['mild'])})\s?")


@lru_cache(maxsize=256)
def ends_of(names: frozenset[str], scale: Scale) -> Ends | None:
    """Return the words for the ends of a known dimension."""
    found = next((ends for name, ends in WORDS["poles"].items() if name in names), None)
    if found is None:
        return None
    much, little = (
        f"(?:{'|'.join(WORDS[kind])}) (?:(?:in|on|levels? of|degree of) )?" for kind in ("much", "little")
    )
    is_much = f" is {one_of(WORDS['much'])}"
    low, high = one_of(found["low_trait"]), one_of(found["high_trait"])
    signs = (
        [*found["low"], *found["low_signs"], much + low, little + high, low + is_much],
        [*found["high"], *found["high_signs"], much + high, little + low, high + is_much],
    )
    return Ends(
        (re.compile(whole_words(found["low"])), re.compile(whole_words(found["high"]))),
        (Phrases(signs[0]), Phrases(signs[1])),
        (scale.minimum, scale.maximum),
        Stems(word for kind in found.values() for word in kind),
    )


_TURN = re.compile(
    rf"{whole_words([*WORDS['concessions']['turns'], *WORDS['qualifiers']])}|^\W*{whole_words(WORDS['concessions']['clauses'])}"
)
"""Matches a word that turns a sentence: "…, but she sounds cheerful", "nothing explicit about …"."""
_LONGEST_TURN = 40
_AROUND_NUMBER = 20
_RU_ENDING = re.compile("[яь]$")
"""Matches a letter that declension replaces."""


class OffTopic(NamedTuple):
    """Recognises statements that the judged text has nothing to do with a dimension.

    Attributes:
        signs: Texts of which a statement contains one.
        phrases: The statements; ``None`` for a rubric, whose score they may explain.
        not_applicable: The number of the option for such texts.
    """

    signs: tuple[str, ...]
    phrases: Phrases | None
    not_applicable: str

    def is_stated_in(self, text: str) -> bool:
        """Tell whether a text makes such a statement and does not turn from it or explain the option."""
        if self.phrases is None or not has_any(text, self.signs):
            return False
        text = "\n" + text
        for found in self.phrases.found_in(text):
            if self.not_applicable in text[max(0, found.start() - _AROUND_NUMBER) : found.end() + 4]:
                continue
            start = max(text.rfind(sign, 0, found.start() + 1) for sign in ".\n") + 1
            if _TURN.search(text[start : found.end() + _LONGEST_TURN]) is None:
                return True
        return False


@lru_cache(maxsize=256)
def off_topic(names: frozenset[str], not_applicable: int) -> OffTopic:
    """Return the statements about a dimension with these names."""
    traits = [*names, *WORDS["traits"]]
    words = (_RU_ENDING.sub(r"\\w*", re.escape(trait)) for trait in traits)
    trait = f"(?:{'|'.join(words)})"
    about = rf"(?:(?:the|this|that|any|his|her|their) (?:[\w']+ ){{0,2}}?)?{trait}"
    phrases = [
        re.sub("^<trait>", lambda _: trait, phrase).replace("<trait>", about)
        for phrase in all_words("irrelevant")
    ]
    signs = (*(_RU_ENDING.sub("", trait) for trait in traits), *WORDS["inapplicable"])
    return OffTopic(
        signs, Phrases([*phrases, *WORDS["inapplicable"]]) if names else None, str(not_applicable)
    )
