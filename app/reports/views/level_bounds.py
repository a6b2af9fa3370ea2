"""The bounds of a persona's level on a scale, and how far scores lie outside."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from app.domain.instruments.dimension import Scale
from app.domain.judging.judged_response import JudgedUnit, UnitVerdict
from app.domain.results.contract import CellResult


@dataclass(frozen=True, slots=True)
class LevelBound:
    """The range in which a persona's scores on one dimension should lie.

    Attributes:
        minimum: Lowest score of the scale.
        maximum: Highest score of the scale.
        level: The level's name.
        rank: The level's position on the scale, from 0 at the lowest.
        lower: The level's lower bound, inclusive.
        upper: The level's upper bound, exclusive but for the highest level.
        scores: The lowest and the highest score in the level.
    """

    minimum: int
    maximum: int
    level: str
    rank: int
    lower: float
    upper: float
    scores: tuple[int, int]

    def deviation(self, score: int) -> float:
        """Signed distance to the nearest score in the level, in widths of the scale: 0 in it, negative below it."""
        outside = min(0, score - self.scores[0]) or max(0, score - self.scores[1])
        return outside / (self.maximum - self.minimum)

    def contains(self, score: float) -> bool:
        """Whether a score, or a mean of scores, lies in the level."""
        return self.lower <= score and (score < self.upper or score == self.upper == self.maximum)


class LevelBounds:
    """The bounds of every dimension and level of a job, each with its scale."""

    def __init__(self, scales: Mapping[tuple[str, str], Scale]) -> None:
        self._found = {key: _level_bound(scale, key[1]) for key, scale in scales.items()}

    @classmethod
    def of(cls, cells: Iterable[CellResult]) -> Self:
        """Those of a job's results."""
        return cls(
            {
                (cell.dimension, cell.level): Scale(
                    cell.scale.minimum,
                    cell.scale.maximum,
                    tuple(cell.scale.levels),
                    not_applicable=cell.scale.minimum - 1,
                )
                for cell in cells
            }
        )

    def find(self, dimension: str, level: str) -> LevelBound | None:
        """The bounds of a persona's level; ``None`` where no score of the scale lies in a level of that name."""
        return self._found.get((dimension, level))

    def deviation(self, verdict: UnitVerdict, levels: Mapping[str, str]) -> float:
        """A verdict's signed distance to the persona's level (:meth:`LevelBound.deviation`); 0 without a score."""
        bound = self.find(verdict.dimension, levels[verdict.dimension])
        return 0.0 if bound is None or verdict.score is None else bound.deviation(verdict.score)

    def worst(self, unit: JudgedUnit, levels: Mapping[str, str]) -> tuple[UnitVerdict, float] | None:
        """A sentence's verdict farthest out of character, and its deviation; ``None`` if every one is in character."""
        outside = [
            (verdict, self.deviation(verdict, levels))
            for verdict in unit.verdicts
            if verdict.in_character is False
        ]
        return max(outside, key=lambda found: abs(found[1]), default=None)


def _level_bound(scale: Scale, level: str) -> LevelBound | None:
    minimum, maximum = scale.minimum, scale.maximum
    scores = [score for score in range(minimum, maximum + 1) if scale.level_of(score) == level]
    if not scores:
        return None
    rank = scale.levels.index(level)
    return LevelBound(minimum, maximum, level, rank, *scale.bounds()[rank], (scores[0], scores[-1]))
