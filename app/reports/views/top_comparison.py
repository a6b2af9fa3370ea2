"""The comparison of the two highest-ranked models."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.domain.results.comparison import PERSONA_SCORE, Difference, compare, figures_of, primary_of
from app.domain.results.contract import Results
from app.domain.results.coverage import GRADES, MINIMUM_COVERAGE, VERDICTS

SIGNIFICANT = 0.05
"""p-value below which a difference is significant, if its interval excludes 0 as well."""


@dataclass(frozen=True, slots=True)
class TopComparison:
    """The highest-ranked model compared with the second.

    Attributes:
        first: The former's label.
        second: The latter's.
        row: The first's value minus the second's, paired; ``None`` without a pair.
        left_out: Unpaired values of the same metric.
        too_little: The coverage of those of the two models that have too little of it.
    """

    first: str
    second: str
    row: Difference | None
    left_out: int
    too_little: Mapping[str, float]

    @property
    def shown(self) -> bool:
        """Whether the first is significantly ahead, with enough coverage."""
        return not self.too_little and self.row is not None and decides(self.row) and self.row.difference > 0

    @property
    def verdict(self) -> str:
        """How sure the ranking of the first model is, in a few words."""
        if self.too_little:
            return "Too little data"
        if self.row is None:
            return "No common personas or tasks"
        if not self.row.ci95:
            return "Too few personas"
        if self.shown:
            return "Clear lead"
        return "No clear lead" if decides(self.row) else "Too close to call"


def compare_top(results: Results, ranked: Sequence[str], metric: str) -> TopComparison | None:
    """Compare the first two ranked models; ``None`` for fewer than two.

    Args:
        results: The job's.
        ranked: The models that have the metric, highest first.
        metric: The metric of the ranking.
    """
    if not ranked[1:]:
        return None
    first, second = ranked[:2]
    found = compare(figures_of(results, first), figures_of(results, second))
    left_out = [each for each in found.left_out if each.metric == metric]
    row = _over_all(found.differences).get(metric)
    return TopComparison(first, second, row, len(left_out), too_little_of(results, ranked[:2], metric))


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

    That test alone is chosen before there are figures, and so needs no correction for the number of the other tests. Nor does
    it for the number of models: that the two highest are chosen by their figures makes it no easier for the first to be ahead
    of the second (Gutmann and Maymin 1987, "Is the selected population the best?"). Of equal models, the more there are, the
    closer together the two highest are.
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
