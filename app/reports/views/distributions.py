"""How often each score was given: by model and level, and cell by cell."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.reports.views.level_bounds import Target, Targets

Json = Mapping[str, Any]


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
        target: The level.
        bars: One for each score of the scale, lowest first.
        total: Verdicts in all.
    """

    model: str
    target: Target
    bars: tuple[Bar, ...]
    total: int


def distributions(
    cells: Sequence[Json], targets: Targets, models: Sequence[str]
) -> list[tuple[Target, list[Distribution]]]:
    """Every level, the highest first, with a distribution for each of ``models`` that has scores there."""
    counts: dict[tuple[Target, str], Counter[int]] = defaultdict(Counter)
    for cell in cells:
        target = targets.find(cell["dimension"], cell["level"])
        scores = _scores(cell)
        if target is not None and any(scores.values()):
            counts[target, cell["model"]].update(scores)
    return [
        (
            target,
            [
                Distribution(
                    model, target, _bars(counts[target, model], target), counts[target, model].total()
                )
                for model in models
                if (target, model) in counts
            ],
        )
        for target in sorted({target for target, _ in counts}, key=_order)
    ]


def cell_bars(cell: Json, targets: Targets) -> tuple[Bar, ...]:
    """One cell's scores, lowest first; empty where it has none."""
    target, scores = targets.find(cell["dimension"], cell["level"]), _scores(cell)
    return () if target is None or not any(scores.values()) else _bars(scores, target)


def _scores(cell: Json) -> dict[int, int]:
    """How many verdicts have each score; results of an earlier release do not say."""
    return {int(score): count for score, count in cell.get("scores", {}).items()}


def _bars(counts: Mapping[int, int], target: Target) -> tuple[Bar, ...]:
    total = sum(counts.values())
    return tuple(
        Bar(score, counts.get(score, 0), counts.get(score, 0) / total, target.contains(score))
        for score in range(target.minimum, target.maximum + 1)
    )


def _order(target: Target) -> tuple[int, int, int]:
    return target.maximum - target.minimum, target.minimum, -target.rank
