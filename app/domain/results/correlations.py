"""What goes with what over cells: the metrics with each other, and with the length of responses."""

from collections.abc import Callable, Sequence
from itertools import combinations, product

import numpy as np

from app.domain.metrics.definition import Family
from app.domain.metrics.metric import FloatArray
from app.domain.metrics.registry import names
from app.domain.results.results import Correlation, LengthEffect, MeasuredCell
from app.domain.statistics.correlation import pearson
from app.domain.statistics.groups import PersonaSample

RESPONSE, ATOMIC = names(Family.RESPONSE), names(Family.ATOMIC)


def in_order_of(table: Sequence[str]) -> tuple[str, ...]:
    """The atomic metrics, those of one of the paper's tables first and in its order."""
    return *table, *(name for name in ATOMIC if name not in table)


COLUMNS = in_order_of(("acc_atom", "rc_atom", "ic_atom"))
"""Table 4's."""
LENGTH_METRICS = in_order_of(("ic_atom", "acc_atom", "rc_atom"))
"""Section 6's."""
TABLE_4, TABLE_8 = tuple(product(RESPONSE, COLUMNS)), tuple(combinations(ATOMIC, 2))

_Figure = Callable[[MeasuredCell], float | None]


def correlations(cells: Sequence[MeasuredCell], sample: PersonaSample | None) -> tuple[Correlation, ...]:
    """The pairs of metrics whose correlations Tables 4 and 8 print, each over all cells that have both.

    Args:
        cells: Cells, in any order.
        sample: Their personas' resamples; ``None`` for figures without intervals.
    """
    ordered = sorted(cells, key=lambda cell: cell.key)
    return tuple(
        Correlation(
            metrics=(first, second), r=pearson(*_pairs(ordered, _value(first), _value(second)), sample)
        )
        for first, second in (*TABLE_4, *TABLE_8)
    )


def length_effects(cells: Sequence[MeasuredCell], sample: PersonaSample | None) -> tuple[LengthEffect, ...]:
    """How the atomic metrics go with the number of units, as in section 6, over all cells and in each task.

    Tasks ask for texts of different length and differ otherwise too; within a task only length is left.
    """
    ordered = sorted(cells, key=lambda cell: cell.key)
    tasks = sorted({cell.task for cell in cells})
    return tuple(
        LengthEffect(
            task=task,
            metric=name,
            units=pearson(*_pairs(found, _value(name), _units), sample),
            scored_units=pearson(*_pairs(found, _value(name), _scored_units), sample),
        )
        for task, found in [
            (None, ordered),
            *((task, [c for c in ordered if c.task == task]) for task in tasks),
        ]
        for name in LENGTH_METRICS
    )


def _pairs(
    cells: Sequence[MeasuredCell], first: _Figure, second: _Figure
) -> tuple[FloatArray, FloatArray, list[str]]:
    """Both figures of the cells that have both, and the cells' personas."""
    found = [
        (one, other, cell.persona)
        for cell in cells
        if (one := first(cell)) is not None and (other := second(cell)) is not None
    ]
    return (
        np.array([one for one, _, _ in found], dtype=np.float64),
        np.array([other for _, other, _ in found], dtype=np.float64),
        [persona for _, _, persona in found],
    )


def _value(name: str) -> _Figure:
    return lambda cell: cell.metrics[name].value


def _units(cell: MeasuredCell) -> float | None:
    """Units of a judged response, on average; both counts are of judgements, so judges cancel out."""
    responses = cell.metrics.responses.total
    return cell.metrics.units.total / responses if responses else None


def _scored_units(cell: MeasuredCell) -> float | None:
    responses = cell.metrics.responses.total
    return cell.metrics.units.scored / responses if responses else None
