"""Correlations between metrics as a page shows them: Tables 4 and 8, and by length (atomic paper, section 6)."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from app.domain.metrics.metric import Metric
from app.domain.results.contract import Results
from app.domain.results.correlations import ATOMIC, COLUMNS, LENGTH_METRICS, RESPONSE
from app.domain.results.results import LengthEffect

ROWS = (*RESPONSE, *ATOMIC[:-1])


@dataclass(frozen=True, slots=True)
class Coefficients:
    """Correlations over a job's cells.

    Attributes:
        rows: For each of ``ROWS``, the correlation with each of ``COLUMNS``; ``None`` where the tables have none.
        lengths: For all tasks (``None``) and each task, for each of ``LENGTH_METRICS``, the correlation with the number of
            sentences and with that of scored ones.
    """

    rows: Sequence[tuple[str, Sequence[Metric | None]]]
    lengths: Sequence[tuple[str | None, Sequence[Metric | None]]]
    columns: Sequence[str] = COLUMNS
    length_metrics: Sequence[str] = LENGTH_METRICS


def coefficients(results: Results) -> Coefficients | None:
    """The correlations of a job; ``None`` where it has none, as with two cells."""
    pairs = {frozenset(found.metrics): found.r for found in results.correlations}
    if all(r.value is None for r in pairs.values()):
        return None
    lengths: dict[str | None, dict[str, LengthEffect]] = defaultdict(dict)
    for found in results.length_effects:
        lengths[found.task][found.metric] = found
    return Coefficients(
        rows=[
            # What stands in a row above is left out, as in Table 8.
            (row, [None if c in ROWS[: place + 1] else pairs.get(frozenset((row, c))) for c in COLUMNS])
            for place, row in enumerate(ROWS)
        ],
        lengths=[
            (task, [r for name in LENGTH_METRICS for r in _of_length(by.get(name))])
            for task, by in lengths.items()
        ],
    )


def _of_length(found: LengthEffect | None) -> tuple[Metric | None, Metric | None]:
    return (None, None) if found is None else (found.units, found.scored_units)
