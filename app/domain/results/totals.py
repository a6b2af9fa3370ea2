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
from app.domain.results.correlations import correlations, length_effects
from app.domain.results.coverage import Coverage
from app.domain.results.missing import Corrected
from app.domain.results.results import JudgeResult, Measured, MeasuredCell, ResponseStatuses, Total
from app.domain.statistics.groups import Member, PersonaSample, stratified_interval

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


def totals(cells: Sequence[MeasuredCell], seed: int | None = None) -> tuple[Total, ...]:
    """Unweighted means over the cells of every group of every grouping.

    Unweighted: every cell counts the same, however many runs or units it has. That is how the 36 averages of
    Table 16 come from the 540 cells of Tables 18–29.

    Args:
        cells: Cells, in any order.
        seed: Of the resampling behind the intervals; ``None`` for totals without intervals.

    Returns:
        The totals in the order of ``GROUPINGS``, each grouping sorted by its keys.
    """
    sample = _sample(cells, seed)
    ordered = sorted(cells, key=lambda cell: cell.key)
    found = [total for by in GROUPINGS for total in _grouped(ordered, by, sample)]
    return tuple(_matched(found, ordered, sample))


def _matched(
    found: Sequence[Total], cells: Sequence[MeasuredCell], sample: PersonaSample | None
) -> Iterator[Total]:
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
            name: _over_cells(name, [cell for cell in own if cell.key[1:] not in places], sample, NO_MATCH)
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
    cells: Sequence[MeasuredCell], judges: Mapping[str, bool] | None = None, seed: int | None = None
) -> Measured:
    """Cells, totals and judges of a job, and what goes with what over its cells.

    Args:
        cells: The job's cells, in any order.
        judges: Whether each of the job's judges is simulated, by label; those included who judged no sentence.
        seed: As for :func:`totals`.
    """
    simulated = dict(judges or {})
    ordered = tuple(sorted(cells, key=lambda cell: cell.key))
    labels = sorted({judge for cell in ordered for judge in cell.by_judge} | simulated.keys())
    judged = tuple(
        JudgeResult(
            judge=label,
            units=UnitCounts.sum([cell.by_judge[label].units for cell in ordered if label in cell.by_judge]),
            simulated=simulated.get(label, False),
        )
        for label in labels
    )
    sample = _sample(cells, seed)
    return Measured(
        cells=ordered,
        totals=totals(ordered, seed),
        judges=judged,
        correlations=correlations(ordered, sample),
        length_effects=length_effects(ordered, sample),
    )


def _sample(cells: Sequence[MeasuredCell], seed: int | None) -> PersonaSample | None:
    return None if seed is None else PersonaSample([cell.persona for cell in cells], seed)


def _grouped(cells: Sequence[MeasuredCell], by: tuple[str, ...], sample: PersonaSample | None) -> list[Total]:
    def keys_of(cell: MeasuredCell) -> tuple[str, ...]:
        return tuple(getattr(cell, name) for name in by)

    return [
        _total(dict(zip(by, keys, strict=True)), list(group), sample)
        for keys, group in groupby(sorted(cells, key=keys_of), key=keys_of)
    ]


def _total(keys: dict[str, str], cells: list[MeasuredCell], sample: PersonaSample | None) -> Total:
    metrics = {name: _over_cells(name, cells, sample) for metric in METRICS for name in metric.names}
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
        coverage=_coverage(cells),
        corrected=_corrected(cells, sample),
    )


def _mixes_scales(cells: Sequence[MeasuredCell]) -> bool:
    return len({(cell.scale.minimum, cell.scale.maximum) for cell in cells}) > 1


def _coverage(cells: Sequence[MeasuredCell]) -> Coverage | None:
    known = [cell.coverage for cell in cells if cell.coverage is not None]
    return Coverage.sum(known) if known else None


def _corrected(cells: Sequence[MeasuredCell], sample: PersonaSample | None) -> Corrected | None:
    found = [(cell, cell.corrected) for cell in cells if cell.corrected is not None]
    if not found:
        return None
    ends = [one.acc_atom_bounds for _, one in found if one.acc_atom_bounds is not None]
    members = [
        Member((cell.model, cell.persona, cell.task), cell.persona, value, one.influence)
        for cell, one in found
        if (value := one.acc_atom_composite.value) is not None
    ]
    return Corrected(
        acc_atom_composite=_mean(members, UNIT_RANGE, sample, NO_CELL),
        acc_atom_bounds=(fmean(low for low, _ in ends), fmean(high for _, high in ends)) if ends else None,
    )


def _over_cells(
    name: str, cells: Sequence[MeasuredCell], sample: PersonaSample | None, reason: str = NO_CELL
) -> Metric:
    """The mean of one metric over the cells that have it, with its intervals."""
    if not cells:
        return Metric.missing(reason)
    scale = cells[0].scale
    bounds = range_of(name, (float(scale.minimum), float(scale.maximum)))
    members = [
        Member((cell.model, cell.persona, cell.task), cell.persona, value, cell.influences.get(name))
        for cell in cells
        if (value := cell.metrics[name].value) is not None
    ]
    return _mean(members, bounds, sample, reason)


def _mean(
    members: Sequence[Member], bounds: tuple[float, float], sample: PersonaSample | None, reason: str
) -> Metric:
    metric = Metric.average(np.array([member.value for member in members], dtype=np.float64), reason)
    if metric.value is None or sample is None:
        return metric
    return metric.within(
        sample.over_cells(metric.value, members, bounds),
        stratified_interval(metric.value, members, bounds, "runs"),
    )
