"""Models by rank, each with its difference from the highest on one axis."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.domain.results.ranking import ComparisonOfModels, PairDifference, Ranking, differ


@dataclass(frozen=True, slots=True)
class RankedRow:
    """A model as a page shows it.

    Attributes:
        name: Its name.
        rank: The best and the worst rank that it may have.
        value: By the primary metric.
        said: Its difference from the highest, in words.
        apart: Whether it can be told apart from the highest.
        point: Where that difference lies, 0 to 100.
        ends: Where its interval lies; ``None`` without one.
        zero: Where no difference lies.
        others: Value and ranks by each exploratory metric.
    """

    name: str
    rank: tuple[int, int]
    value: float
    said: str
    apart: bool
    point: float
    ends: tuple[float, float] | None
    zero: float
    others: Sequence[tuple[float, tuple[int, int]]]


def tied_with_first(ranking: Ranking) -> list[str]:
    """The models that cannot be distinguished from the highest."""
    return [pair.b for pair in _of_first(ranking) if not differ(pair.p_value_corrected)]


def picture(found: ComparisonOfModels) -> list[RankedRow]:
    """The models by the primary metric, the highest first."""
    ranking = found.rankings[0]
    pairs = {pair.b: pair for pair in _of_first(ranking)}
    # What is less than the highest lies to its left.
    places: list[float] = [-end for pair in pairs.values() for end in (pair.difference, *(pair.ci95 or ()))]
    low, high = min(0.0, *places), max(0.0, *places)
    room = 0.05 * (high - low) or 1.0
    low, width = low - room, high - low + 2 * room

    def place(value: float) -> float:
        return round(100 * (value - low) / width, 2)

    by_metric = [{each.name: each for each in other.models} for other in found.rankings[1:]]
    rows = []
    for model in ranking.models:
        pair = pairs.get(model.name)
        ends = None if pair is None or pair.ci95 is None else (place(-pair.ci95[1]), place(-pair.ci95[0]))
        rows.append(
            RankedRow(
                name=model.name,
                rank=model.rank,
                value=model.value,
                said="highest" if pair is None else _in_words(pair),
                apart=pair is not None and differ(pair.p_value_corrected),
                point=place(0.0 if pair is None else -pair.difference),
                ends=ends,
                zero=place(0.0),
                others=[(each[model.name].value, each[model.name].rank) for each in by_metric],
            )
        )
    return rows


def _of_first(ranking: Ranking) -> list[PairDifference]:
    return [pair for pair in ranking.differences if pair.a == ranking.models[0].name]


def _in_words(pair: PairDifference) -> str:
    value = f"{-pair.difference:+.2f}"
    if pair.ci95 is not None:
        value += f" [{-pair.ci95[1]:+.2f}, {-pair.ci95[0]:+.2f}]"
    return value.replace("-", "−").replace("+0.00", "0.00").replace("−0.00", "0.00")
