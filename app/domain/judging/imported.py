"""Verdicts that were given elsewhere, by a judge that a job never calls."""

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

from app.domain.errors import FieldError
from app.domain.instruments.dimension import Scale
from app.domain.judging.verdict import Verdict, VerdictStatus

Unscored = Literal["not_applicable", "refused", "unparsed", "filtered"]
"""What a judge can have said instead of a score."""
Score = int | Unscored | None
"""An imported judge's verdict on a sentence; ``None`` where there is none."""

NOT_GIVEN = "not_given: the imported judge has no verdict on it"
"""The ``error`` of verdicts that are missing."""

GivenUnits = Literal["sentences", "responses"]
"""What imported verdicts are about where our segmenter does not decide it: sentences as they were given, or whole responses."""

Span = tuple[int, int]

_PLAIN = {"\u2019": "'", "\u2014": "--"}
_OTHER = re.compile(r"\s+|[\u2019\u2014]")


@dataclass(frozen=True, slots=True)
class ImportedScores:
    """What one imported judge said of a response on one trait.

    Attributes:
        judge: Index among the job's judges.
        trait: Index among the persona's traits.
        scores: One a sentence, in their order.
        field: JSON pointer to them in the request; empty for those that were not given.
    """

    judge: int
    trait: int
    scores: Sequence[Score]
    field: str = ""


@lru_cache(maxsize=256)
def readings(scale: Scale) -> Mapping[Score, Verdict]:
    """Every score that an imported judge can have given on a scale, and the verdict that it is.

    The number of the filtering option means the same as its name.
    """
    numbers = range(scale.minimum, scale.maximum + 1)
    scored: dict[Score, Verdict] = {score: Verdict(VerdictStatus.SCORED, score) for score in numbers}
    words: dict[Score, Verdict] = {word: Verdict(VerdictStatus(word)) for word in get_args(Unscored)}
    missing = Verdict(VerdictStatus.FAILED)
    return scored | words | {scale.not_applicable: words["not_applicable"], None: missing}


def judged(scores: Sequence[Score]) -> bool:
    """Whether a judge took a sentence for one that can be judged, so that the text is no refusal."""
    return any(score == "not_applicable" or isinstance(score, int) for score in scores)


def refused_elsewhere(given: Sequence[ImportedScores]) -> bool | None:
    """Whether a response is a refusal by what imported judges said of it; ``None`` where its text decides."""
    if any(judged(each.scores) for each in given):
        return False
    scores = [score for each in given for score in each.scores]
    return True if scores and all(score == "refused" for score in scores) else None


@dataclass(frozen=True, slots=True)
class GivenText:
    """A text as far as it was given, and its sentences if the segmenter is not to find them."""

    text: str
    spans: Sequence[Span] | None


def given_text(
    answer: str | None, units: Sequence[str], verdicts: Sequence[ImportedScores]
) -> GivenText | FieldError:
    """What is to be stored of a response's text, or which of its sentences is wrong.

    Args:
        answer: The text without thoughts; ``None`` where none was given.
        units: Its sentences, if they were given.
        verdicts: What imported judges said of it.
    """
    if units:
        if answer is None:
            return GivenText(*joined(units))
        places = list(places_of(units, answer))
        found = [place for place in places if place is not None]
        if len(found) < len(places):
            return FieldError(f"/units/{len(places) - 1}", "is not in the text after the sentences before it")
        return GivenText(answer, found)
    if answer is None:
        # Sentences without words: how many there are is all that is known of them.
        return GivenText("", [(0, 0)] * max((len(each.scores) for each in verdicts), default=0))
    return GivenText(answer, None)


def whole(answer: str) -> list[Span]:
    """A text as one sentence, or none if there is nothing in it."""
    start = len(answer) - len(answer.lstrip())
    return [(start, len(answer.rstrip()))] if answer.strip() else []


def count_problems(
    verdicts: Sequence[ImportedScores], sentences: int, *, text: bool, units: bool
) -> Iterator[FieldError]:
    """The imported verdicts that are more or fewer than the sentences.

    Args:
        verdicts: They.
        sentences: How many there are.
        text: Whether the text was given.
        units: Whether its sentences were given.
    """
    known = "its units are" if units else "the text has" if text else "other verdicts are on"
    hint = "; if they are on other sentences, give these in units" if known == "the text has" else ""
    for given in verdicts:
        if len(given.scores) != sentences:
            yield FieldError(
                given.field, f"{len(given.scores):,} scores, but {known} {sentences:,} sentences{hint}"
            )


def joined(units: Sequence[str]) -> tuple[str, list[Span]]:
    """A text of these sentences, with the place of each."""
    spans: list[Span] = []
    start = 0
    for unit in units:
        spans.append((start, start + len(unit)))
        start += len(unit) + 1
    return " ".join(units), spans


def places_of(units: Sequence[str], text: str) -> Iterator[Span | None]:
    """Where in a text each of its sentences is, one after another; ends with ``None`` at the first that is not there.

    White space, quotes and dashes may differ as they do where texts were normalised before they were split.
    """
    end = 0
    plain: _PlainText | None = None
    for unit in units:
        start = text.find(unit, end) if plain is None else -1
        if start >= 0:
            end = start + len(unit)
        else:
            plain = _PlainText(text) if plain is None else plain
            found = plain.find(unit, end)
            if found is None:
                yield None
                return
            start, end = found
        yield start, end


class _PlainText:
    """A text as it is compared, with the place of each character in the text; both are read once, however many sentences there are.

    Args:
        text: The text.
    """

    def __init__(self, text: str) -> None:
        parts: list[str] = []
        self._places = array("L")
        end = 0
        for other in _OTHER.finditer(text):
            plain = _PLAIN.get(other[0], " ")
            parts += (text[end : other.start()], plain)
            self._places.extend(range(end, other.start()))
            self._places.extend([other.start()] * len(plain))
            end = other.end()
        parts.append(text[end:])
        self._places.extend(range(end, len(text)))
        self._text = "".join(parts)

    def find(self, unit: str, begin: int) -> Span | None:
        """Where in the text a sentence is, from a place in it on."""
        words = " ".join(unit.split())
        for other, plain in _PLAIN.items():
            words = words.replace(other, plain)
        start = self._text.find(words, bisect_left(self._places, begin))
        if start < 0 or not words:
            return None
        return self._places[start], self._places[start + len(words) - 1] + 1
