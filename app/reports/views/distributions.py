"""Score distributions by model and level, and by cell."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.domain.results.contract import CellResult
from app.reports.views.level_bounds import LevelBound, LevelBounds


@dataclass(frozen=True, slots=True)
class Bar:
    """One score's share.

    Attributes:
        score: The score.
        count: Verdicts with it.
        share: Of the distribution's verdicts, 0–1.
        in_level: Whether it lies in the personas' level.
    """

    score: int
    count: int
    share: float
    in_level: bool


@dataclass(frozen=True, slots=True)
class Distribution:
    """The scores of one model for all personas of one level on scales of one length.

    Attributes:
        model: The model's label.
        bound: The level.
        bars: One for each score of the scale, lowest first.
        total: Verdicts in all.
    """

    model: str
    bound: LevelBound
    bars: tuple[Bar, ...]
    total: int


def distributions(
    cells: Sequence[CellResult], level_bounds: LevelBounds, models: Sequence[str]
) -> list[tuple[LevelBound, list[Distribution]]]:
    """Every level, the highest first, with a distribution for each of ``models`` that has scores there."""
    counts: dict[tuple[LevelBound, str], Counter[int]] = defaultdict(Counter)
    for cell in cells:
        bound = level_bounds.find(cell.dimension, cell.level)
        scores = _scores(cell)
        if bound is not None and any(scores.values()):
            counts[bound, cell.model].update(scores)
    return [
        (
            bound,
            [
                Distribution(model, bound, _bars(counts[bound, model], bound), counts[bound, model].total())
                for model in models
                if (bound, model) in counts
            ],
        )
        for bound in sorted({bound for bound, _ in counts}, key=_order)
    ]


def cell_bars(cell: CellResult, level_bounds: LevelBounds) -> tuple[Bar, ...]:
    """One cell's scores, lowest first; empty where it has none."""
    bound, scores = level_bounds.find(cell.dimension, cell.level), _scores(cell)
    return () if bound is None or not any(scores.values()) else _bars(scores, bound)


def _scores(cell: CellResult) -> dict[int, int]:
    """How many verdicts have each score."""
    return {int(score): count for score, count in cell.scores.items()}


def _bars(counts: Mapping[int, int], bound: LevelBound) -> tuple[Bar, ...]:
    total = sum(counts.values())
    return tuple(
        Bar(score, counts.get(score, 0), counts.get(score, 0) / total, bound.contains(score))
        for score in range(bound.minimum, bound.maximum + 1)
    )


def _order(bound: LevelBound) -> tuple[int, int, int]:
    return bound.maximum - bound.minimum, bound.minimum, -bound.rank
