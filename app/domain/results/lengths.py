"""How long responses are, and which share of their sentences has a score (atomic paper, Tables 6 and 15)."""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from app.domain.results.contract import CellResult


class Length(NamedTuple):
    """Of one model's responses in one task.

    Attributes:
        sentences: Of a response that was judged, on average.
        scored: The share of them that has a score, 0–1.
        responses: Judgements of responses that these are over; 0 in a paper.
    """

    sentences: float
    scored: float
    responses: int


def lengths(cells: Iterable[CellResult]) -> dict[tuple[str, str], Length]:
    """By model and task; without those of which nothing was judged.

    All counts are of judgements, so that several judges and dimensions cancel out.
    """
    counts: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for cell in cells:
        own = counts[cell.model, cell.task]
        own[0] += cell.responses["total"]
        own[1] += cell.units.total
        own[2] += cell.units.scored
    return {
        key: Length(units / responses, scored / units, responses)
        for key, (responses, units, scored) in sorted(counts.items())
        if responses and units
    }
