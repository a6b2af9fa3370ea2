"""Totals over cells, and the whole of a job's results from its cells."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from statistics import fmean

import numpy as np

from app.domain.metrics.cell import UnitCounts
from app.domain.metrics.definition import UNIT_RANGE
from app.domain.metrics.metric import Metric
from app.domain.metrics.registry import METRICS, range_of
from app.domain.providers.model import Provenance
from app.domain.results.correlations import correlations, length_effects
from app.domain.results.coverage import Coverage
from app.domain.results.missing import Corrected
from app.domain.results.results import JudgeResult, Measured, MeasuredCell, ResponseStatuses, Total
from app.domain.statistics.cells import fewest_wordings, shape_of, without_intervals
from app.domain.statistics.design import DesignCell, Population, Shape, Stratum, components, error, interval
from app.domain.statistics.groups import PersonaSample
from app.domain.statistics.variability import Variability

GROUPINGS = (
    ("model",),
    ("model", "task"),
    ("model", "level"),
    ("model", "dimension"),
    ("model", "task", "level"),
    ("model", "task", "dimension"),
    ("model", "level", "dimension"),
    ("model", "persona", "dimension", "level"),
)
"""The groupings of which totals are made: the first is Table 16's, (model, task) and (model, task, level) are the
total column and rows of Table 5 (atomic paper)."""

NO_CELL = "no_cell: no cell of the group has the metric"
NO_MATCH = "no_match: there is no cell of which every model has the metric"
MIXED_SCALES = (
    "mixed_scales: the group's cells are scored on different scales, so their means have no common unit"
)


INTERVALS = {
    "ci95": Population.PERSONAS,
    "ci95_runs": Population.THESE,
    "ci95_wordings": Population.WORDINGS,
    "ci95_both": Population.BOTH,
}
"""Whom each interval of a total speaks of."""


def totals(cells: Sequence[MeasuredCell], *, intervals: bool = False) -> tuple[Total, ...]:
    """Unweighted means over the cells of every group of every grouping.

    Unweighted: every cell counts the same, however many runs or units it has. That is how the 36 averages of
    Table 16 come from the 540 cells of Tables 18–29.

    Args:
        cells: Cells, in any order.
        intervals: Whether the totals have any.

    Returns:
        The totals in the order of ``GROUPINGS``, each grouping sorted by its keys.
    """
    ordered = sorted(cells, key=lambda cell: cell.key)
    found = [total for by in GROUPINGS for total in _grouped(ordered, by, intervals=intervals)]
    return tuple(_matched(found, ordered, intervals=intervals))


def _matched(found: Sequence[Total], cells: Sequence[MeasuredCell], *, intervals: bool) -> Iterator[Total]:
    """The totals, those of models with their means over the cells of which every model has the metric, where only some do.

    A model without a figure where personas are hard to play has the higher mean of what is left. A metric that no model has
    somewhere, as RC of one run, favours none.
    """
    lacking = {name: _of_some_models(name, cells) for metric in METRICS for name in metric.names}
    for total in found:
        if total.by != ("model",) or not any(lacking.values()):
            yield total
            continue
        own = [cell for cell in cells if cell.model == total.keys["model"]]
        metrics = {
            name: _over_cells(
                name, [cell for cell in own if cell.key[1:] not in places], NO_MATCH, intervals=intervals
            )
            for name, places in lacking.items()
        }
        if _mixes_scales(own):
            metrics["mean"] = Metric.missing(MIXED_SCALES)
        yield replace(total, matched=metrics)


def _of_some_models(name: str, cells: Sequence[MeasuredCell]) -> set[tuple[str, ...]]:
    """The places at which some models have a metric and others do not."""
    models = {cell.model for cell in cells}
    having = Counter(cell.key[1:] for cell in cells if cell.metrics[name].value is not None)
    return {place for place, count in having.items() if count < len(models)}


def summarize(
    cells: Sequence[MeasuredCell],
    judges: Mapping[str, bool] | None = None,
    seed: int | None = None,
    imported: Mapping[str, Provenance] | None = None,
) -> Measured:
    """Cells, totals and judges of a job, and what goes with what over its cells.

    Args:
        cells: The job's cells, in any order.
        judges: Whether each of the job's judges is simulated, by label; those included who judged no sentence.
        seed: Of the resampling behind the correlations' intervals; ``None`` for figures without intervals.
        imported: Where the verdicts of imported judges come from, by label.
    """
    simulated = dict(judges or {})
    ordered = tuple(sorted(cells, key=lambda cell: cell.key))
    labels = sorted({judge for cell in ordered for judge in cell.by_judge} | simulated.keys())
    judged = tuple(
        JudgeResult(
            judge=label,
            units=UnitCounts.sum([cell.by_judge[label].units for cell in ordered if label in cell.by_judge]),
            simulated=simulated.get(label, False),
            **({"imported": imported[label]} if imported and label in imported else {}),
        )
        for label in labels
    )
    sample = None
    if seed is not None and not any(cell.turns for cell in cells):
        sample = PersonaSample([cell.persona for cell in cells], seed)
    return Measured(
        cells=ordered,
        totals=totals(ordered, intervals=seed is not None),
        judges=judged,
        correlations=correlations(ordered, sample),
        length_effects=length_effects(ordered, sample),
    )


def _grouped(cells: Sequence[MeasuredCell], by: tuple[str, ...], *, intervals: bool) -> list[Total]:
    def keys_of(cell: MeasuredCell) -> tuple[str, ...]:
        return tuple(getattr(cell, name) for name in by)

    return [
        _total(dict(zip(by, keys, strict=True)), list(group), intervals=intervals)
        for keys, group in groupby(sorted(cells, key=keys_of), key=keys_of)
    ]


def _total(keys: dict[str, str], cells: list[MeasuredCell], *, intervals: bool) -> Total:
    metrics = {
        name: _over_cells(name, cells, intervals=intervals) for metric in METRICS for name in metric.names
    }
    if _mixes_scales(cells):
        metrics["mean"] = Metric.missing(MIXED_SCALES)
    texts = {(cell.model, cell.persona, cell.task): cell.statuses for cell in cells}
    return Total(
        keys=keys,
        metrics=metrics,
        cells=len(cells),
        units=UnitCounts.sum([cell.metrics.units for cell in cells]),
        simulated=any(cell.simulated for cell in cells),
        statuses=ResponseStatuses.sum(texts.values()),
        coverage=Coverage.sum(cell.coverage for cell in cells),
        corrected=_corrected(cells, intervals=intervals),
    )


def _mixes_scales(cells: Sequence[MeasuredCell]) -> bool:
    return len({(cell.scale.minimum, cell.scale.maximum) for cell in cells}) > 1


def _corrected(cells: Sequence[MeasuredCell], *, intervals: bool) -> Corrected:
    ends = [bounds for cell in cells if (bounds := cell.corrected.acc_atom_bounds) is not None]
    members = [
        _member(cell, value, cell.corrected.varied)
        for cell in cells
        if (value := cell.corrected.acc_atom_composite.value) is not None
    ]
    metric = _mean(members, NO_CELL)
    if any(cell.turns for cell in cells):
        metric = without_intervals(metric, *INTERVALS)
    elif intervals:
        metric = _within(metric, members, UNIT_RANGE, Shape.SHARE, fewest_wordings("acc_atom"))
    return Corrected(
        acc_atom_composite=metric,
        acc_atom_bounds=(fmean(low for low, _ in ends), fmean(high for _, high in ends)) if ends else None,
    )


def mean_over(name: str, cells: Sequence[MeasuredCell]) -> Metric:
    """The mean of one metric over cells, with its interval for personas like these."""
    if name == "mean" and _mixes_scales(cells):
        return Metric.missing(MIXED_SCALES)
    found = _over_cells(name, cells, intervals=True)
    known = found.model_fields_set - {"ci95_runs", "ci95_wordings", "ci95_both"}
    known -= {f"{field}_reason" for field in INTERVALS if field != "ci95"}
    return Metric(**found.model_dump(include=known), left_out=len(cells) - found.n)


def _over_cells(
    name: str, cells: Sequence[MeasuredCell], reason: str = NO_CELL, *, intervals: bool
) -> Metric:
    """The mean of one metric over the cells that have it, with its intervals."""
    members = [
        _member(cell, value, cell.varied.get(name))
        for cell in cells
        if (value := cell.metrics[name].value) is not None
    ]
    metric = _mean(members, reason)
    if not intervals or metric.value is None:
        return metric
    if any(cell.turns for cell in cells):
        return without_intervals(metric, *INTERVALS)
    scale = cells[0].scale
    bounds = range_of(name, (float(scale.minimum), float(scale.maximum)))
    return _within(metric, members, bounds, shape_of(name), fewest_wordings(name))


def _member(cell: MeasuredCell, value: float, varied: Variability | None) -> DesignCell:
    stratum = Stratum(cell.task, cell.dimension, cell.level)
    return DesignCell(cell.persona, stratum, varied or Variability(value))


def _mean(members: Sequence[DesignCell], reason: str) -> Metric:
    return Metric.average(np.array([member.figure.value for member in members], dtype=np.float64), reason)


def _within(
    metric: Metric, members: Sequence[DesignCell], bounds: tuple[float, float], shape: Shape, wordings: int
) -> Metric:
    if metric.value is None:
        return metric
    varied = components(members, wordings)
    return metric.within(
        **{
            name: interval(metric.value, error(varied, population), bounds, shape)
            for name, population in INTERVALS.items()
        }
    )
