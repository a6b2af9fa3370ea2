"""What the atomic paper's released code writes: `atomic_scores.txt`, a judge's scores by run, item and sentence, without texts."""

from collections.abc import Iterator, Sequence
from typing import Any

from app.domain.jobs.verdicts_request import MOST_UNITS
from app.domain.judging.imported import Score
from app.importers.content import Document, Form
from app.importers.records import Record, Refused, Scored

JUDGE = "atomic_scores"
"""The file does not name its judge."""
_SCALE = range(1, 6)
_CODES: dict[int, Score] = {9: "not_applicable", 99: "refused", 999: "unparsed"}
"""By `evaluate.py`: none of the options, a text with a key word of refusals, a reply without a score."""


def is_scores(document: Document) -> bool:
    """Whether a file is such a list: its first sentence has a number."""
    value = document.value
    for _ in range(3):
        if document.form is not Form.JSON or not isinstance(value, list) or not value:
            return False
        value = value[0]
    return type(value) is int


def is_fidelity(document: Document) -> bool:
    """Whether a file is the `fidelity_scores.json` that is computed of such a list."""
    value = document.value
    return document.form is Form.JSON and isinstance(value, dict) and {"acc_atom", "ic_atom"} <= value.keys()


def read_scores(document: Document) -> Iterator[Record]:
    """The scores of each response."""
    if not isinstance(document.value, list):
        yield Refused("", "must be a list of runs")
        return
    for run, items in enumerate(document.value):
        if not isinstance(items, list) or not items:
            yield Refused(f"/{run}", "must be a list of a run's responses")
            continue
        for item, numbers in enumerate(items):
            yield _scored(f"/{run}/{item}", numbers, run, item, len(items))


def _scored(place: str, numbers: Any, run: int, item: int, items: int) -> Record:
    if not isinstance(numbers, list) or not all(type(each) is int for each in numbers):
        return Refused(place, "must be a list of whole numbers")
    if not all(each in _CODES or each in _SCALE for each in numbers) or len(numbers) > MOST_UNITS:
        return Refused(place, "must have scores from 1 to 5, 9, 99 or 999, of at most 32,767 sentences")
    scores: Sequence[Score] = [_CODES.get(number, number) for number in numbers]
    return Scored(place, scores, run, item if items > 1 else None)
