"""How often each score was given, for each model and level: counted over every response, shown or not."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.domain.judged import JudgedResponse
from app.reports.targets import Target, Targets


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


class Distributions:
    """Counts scores response by response."""

    def __init__(self, targets: Targets) -> None:
        self._targets = targets
        self._counts: Counter[tuple[Target, str, int]] = Counter()

    def add(self, response: JudgedResponse) -> None:
        """Counts a response's scores."""
        for unit in response.units:
            for verdict in unit.verdicts:
                target = self._targets.find(verdict.dimension, response.levels[verdict.dimension])
                if target is not None and verdict.score is not None:
                    self._counts[target, response.model, verdict.score] += 1

    def groups(self, models: Sequence[str]) -> list[tuple[Target, list[Distribution]]]:
        """Every level, the highest first, with a distribution for each of ``models`` that has scores there."""
        pairs = {(target, model) for target, model, _ in self._counts}
        targets = sorted({target for target, _ in pairs}, key=_order)
        return [
            (target, [self._distribution(target, model) for model in models if (target, model) in pairs])
            for target in targets
        ]

    def _distribution(self, target: Target, model: str) -> Distribution:
        scores: Iterable[int] = range(target.minimum, target.maximum + 1)
        counts = {score: self._counts[target, model, score] for score in scores}
        total = sum(counts.values())
        bars = (Bar(score, count, count / total, target.contains(score)) for score, count in counts.items())
        return Distribution(model, target, tuple(bars), total)


def _order(target: Target) -> tuple[int, int, int]:
    return target.maximum - target.minimum, target.minimum, -target.rank
