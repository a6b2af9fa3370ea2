"""The comparison of the highest-ranked model with the second, and with all others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from app.domain.results.comparison import (
    PERSONA_SCORE,
    Difference,
    Figures,
    compare,
    figures_of,
    primary_of,
)
from app.domain.results.contract import Results
from app.domain.results.coverage import GRADES, MINIMUM_COVERAGE, VERDICTS
from app.domain.results.ranking import Ranking, differ, rank_by, shared_places

SIGNIFICANT = 0.05
"""p-value below which a difference is significant, if its interval excludes 0 as well."""


class Lead(NamedTuple):
    """The first model's value minus the second's, among several models; see :class:`~app.domain.results.comparison.Difference`.

    Attributes:
        difference: On average over what all models have.
        ci95: For all pairs of models at once.
        ci95_reason: Why there is none.
        p_value: Corrected for all pairs.
        pairs: Of values.
        personas: That they come from.
        population: Of whom interval and p speak.
        of_pairs: Pairs of models.
    """

    difference: float
    ci95: tuple[float, float] | None
    ci95_reason: str | None
    p_value: float | None
    pairs: int
    personas: int
    population: str
    of_pairs: int


@dataclass(frozen=True, slots=True)
class TopComparison:
    """The highest-ranked model compared with the second, and with all others where there are more.

    Attributes:
        first: The former's label.
        second: The latter's.
        row: The first's value minus the second's, paired; ``None`` without a pair.
        left_out: Unpaired values of the same metric.
        too_little: The coverage of those of the two models that have too little of it.
        ranks: Of more than two models, by the metric: the best and the worst rank that each may have.
        tied: Of more than two models, those that cannot be told from the first.
    """

    first: str
    second: str
    row: Difference | Lead | None
    left_out: int
    too_little: Mapping[str, float]
    ranks: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    tied: Sequence[str] = ()

    @property
    def shown(self) -> bool:
        """Whether the first is significantly ahead of all others, with enough coverage."""
        if self.too_little or self.row is None or self.row.difference <= 0:
            return False
        return decides(self.row) if isinstance(self.row, Difference) else not self.tied

    @property
    def verdict(self) -> str:
        """How sure the ranking of the first model is, in a few words."""
        if self.too_little:
            return "Too little data"
        if self.row is None:
            return "No common personas or tasks"
        if self.shown:
            return "Clear lead"
        if not self.row.ci95:
            return "Too few personas"
        behind = decides(self.row) if isinstance(self.row, Difference) else not self.tied
        return "No clear lead" if behind else "Too close to call"


def compare_top(results: Results, ranked: Sequence[str], metric: str) -> TopComparison | None:
    """Compare the first ranked model with the others; ``None`` for fewer than two.

    Args:
        results: The job's.
        ranked: The models that have the metric, highest first.
        metric: The metric of the ranking.
    """
    if not ranked[1:]:
        return None
    first, second = ranked[:2]
    too_little = too_little_of(results, ranked[:2], metric)
    figures = {model: figures_of(results, model) for model in ranked}
    places = shared_places(figures, metric) if ranked[2:] else []
    if places:
        return _among_several(rank_by(figures, metric, places), ranked, too_little, _places(figures, metric))
    found = compare(figures[first], figures[second])
    left_out = [each for each in found.left_out if each.metric == metric]
    row = _over_all(found.differences).get(metric)
    return TopComparison(first, second, row, len(left_out), too_little)


def _among_several(
    ranking: Ranking, ranked: Sequence[str], too_little: Mapping[str, float], places: int
) -> TopComparison:
    first, second = ranked[:2]
    of_first = {
        frozenset((each.a, each.b)): each for each in ranking.differences if first in {each.a, each.b}
    }
    found = of_first[frozenset((first, second))]
    # The order is that of the report's figures, which a model without any can make another one.
    turned = found.a != first
    row = Lead(
        difference=-found.difference if turned else found.difference,
        ci95=(-found.ci95[1], -found.ci95[0]) if turned and found.ci95 else found.ci95,
        ci95_reason=found.ci95_reason,
        p_value=found.p_value_corrected,
        pairs=ranking.values,
        personas=ranking.personas,
        population=ranking.population,
        of_pairs=len(ranking.differences),
    )
    tied = [
        model for model in ranked[1:] if not differ(of_first[frozenset((first, model))].p_value_corrected)
    ]
    ranks = {each.name: each.rank for each in ranking.models}
    return TopComparison(first, second, row, places - ranking.values, too_little, ranks, tied)


def _places(figures: Mapping[str, Figures], metric: str) -> int:
    return len({place for own in figures.values() for name, place in own if name == metric})


def too_little_of(results: Results, models: Sequence[str], metric: str) -> dict[str, float]:
    """The models with too little coverage to compare them by a metric, with their coverage."""
    of = GRADES if metric == PERSONA_SCORE else VERDICTS
    shares = {model: results.coverage_of(model, [of]) for model in models}
    return {model: share for model, share in shares.items() if share is not None and share < MINIMUM_COVERAGE}


def main_row(differences: Sequence[Difference]) -> Difference | None:
    """The difference that decides: that of the metric by which models are ordered, over all tasks."""
    rows = _over_all(differences)
    primary = primary_of(rows)
    return None if primary is None else rows[primary]


def is_shown(row: Difference) -> bool:
    """Whether a difference is significant after correction for multiple tests."""
    return _is_beyond_chance(row, row.p_value_holm)


def decides(row: Difference) -> bool:
    """Whether the difference of the main metric over all tasks is significant.

    That test alone is chosen before there are figures, and so needs no correction for the number of the other tests.
    """
    return _is_beyond_chance(row, row.p_value)


def _is_beyond_chance(row: Difference, p_value: float | None) -> bool:
    ends = row.ci95
    if p_value is None or ends is None or p_value >= SIGNIFICANT:
        return False
    return bool(ends[0] > 0 or ends[1] < 0)


def _over_all(differences: Sequence[Difference]) -> dict[str, Difference]:
    """The differences over all tasks, by metric."""
    return {row.metric: row for row in differences if row.task is None}
