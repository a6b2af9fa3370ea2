"""Verdicts that were given elsewhere, by a judge that a job never calls."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

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
    for unit in units:
        start = text.find(unit, end)
        if start >= 0:
            end = start + len(unit)
        else:
            found = _like(unit).search(text, end)
            if found is None:
                yield None
                return
            start, end = found.span()
        yield start, end


def _like(unit: str) -> re.Pattern[str]:
    words = (
        re.escape(word.replace("\u2019", "'").replace("\u2014", "--"))
        .replace("'", "['\u2019]")
        .replace(r"\-\-", "(?:--|\u2014)")
        for word in unit.split()
    )
    return re.compile(r"\s+".join(words))
