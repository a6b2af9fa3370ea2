"""The control arm: models' figures without a persona, and how far those with one lie above them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from pydantic import Field

from app.domain.contract import Answer
from app.domain.metrics.cell import UnitCounts
from app.domain.metrics.metric import Metric
from app.domain.results import gains
from app.domain.results.coverage import Coverage
from app.domain.results.gains import FIGURES, CellGains, Gain, GainTotal, bounds, counted, of_one_cell
from app.domain.results.personagym_control import PersonaScoreGain, PersonaScoreGainTotal
from app.domain.results.results import MeasuredCell, ResponseStatuses
from app.domain.results.totals import INTERVALS, NO_CELL
from app.domain.statistics.cells import CellEstimate, fewest_wordings
from app.domain.statistics.design import (
    DesignCell,
    Stratum,
    components,
    error,
    over_runs,
    over_wordings,
    plus,
)
from app.domain.statistics.variability import Variability

NO_CONTROL = "no_control: the control arm has no scored sentence on the dimension"


class ControlCell(Answer):
    """One model's answers in one task, without a persona, on one dimension."""

    model: str
    task: str
    dimension: str
    simulated: bool
    runs: int
    generation: ResponseStatuses
    coverage: Coverage
    units: UnitCounts
    mean: Metric = Field(description="MEAN.")
    acc_atom: dict[str, Metric] = Field(
        description="By level: the share of sentences in it, which is the ACC_atom of a persona without "
        "effect."
    )


class ControlArm(Answer):
    """The models without a persona, and how much the personas change."""

    cells: list[ControlCell] = Field(description="model × task × dimension, without a persona.")
    gains: list[CellGains] = Field(description="By cell of the results.")
    totals: list[GainTotal]
    persona_scores: list[PersonaScoreGain] = Field(description="PersonaGym's, by persona and model.")
    persona_score_totals: list[PersonaScoreGainTotal] = Field(description="By model.")


Place = tuple[str, str, str, str]
"""Model, task, dimension and level."""


@dataclass(frozen=True, slots=True, eq=False)
class _Pair:
    """One figure of a cell in both arms; ``reason`` where one is missing."""

    persona: str
    stratum: Stratum
    with_persona: Variability | None
    without: Variability | None
    reason: str | None = None


def cell_gains(cells: Sequence[MeasuredCell], alone: Mapping[Place, CellEstimate]) -> list[CellGains]:
    """The gains of each cell, in their order.

    Args:
        cells: The results' cells.
        alone: The control arm's figures at each place that a cell stands at.
    """
    return gains.of_cells(cells, partial(_gain_of_cell, alone))


def gain_totals(cells: Sequence[MeasuredCell], alone: Mapping[Place, CellEstimate]) -> list[GainTotal]:
    """The mean gains of every group; see :func:`cell_gains`."""
    return gains.of_groups(cells, partial(_gain_of_group, alone))


def _pair(name: str, cell: MeasuredCell, alone: Mapping[Place, CellEstimate]) -> _Pair:
    metric, direction_of = FIGURES[name]
    direction = direction_of(cell.scale, cell.level)
    control = alone[cell.model, cell.task, cell.dimension, cell.level]
    own, without = cell.metrics[metric], control.metrics[metric]
    reason = direction.reason or own.reason or (None if without.reason is None else NO_CONTROL)
    return _Pair(
        cell.persona,
        Stratum(cell.task, cell.dimension, cell.level),
        counted(direction, own, cell.varied.get(metric)),
        counted(direction, without, control.varied.get(metric)),
        reason,
    )


def _value(figure: Variability | None) -> float | None:
    return None if figure is None else figure.value


def _members(pairs: Sequence[_Pair]) -> tuple[list[DesignCell], list[DesignCell]]:
    """The gains, which vary as the figures with personas do; and the control arm's figures, whose texts personas share."""
    gained, controls = [], []
    for pair in pairs:
        if pair.with_persona is None or pair.without is None:
            continue
        own = pair.with_persona
        figure = Variability(own.value - pair.without.value, own.dropped, own.runs, own.degrees, own.count)
        gained.append(DesignCell(pair.persona, pair.stratum, figure))
        controls.append(DesignCell("", pair.stratum, pair.without))
    return gained, controls


def _gain_of_cell(alone: Mapping[Place, CellEstimate], name: str, cell: MeasuredCell) -> Gain:
    pair = _pair(name, cell, alone)
    gained, controls = _members([pair])
    found = Metric.missing(pair.reason or NO_CELL)
    if gained:
        figure, fewest = gained[0].figure, fewest_wordings(FIGURES[name][0])
        count, repeated = min(figure.count, controls[0].figure.count), over_runs(controls)
        found = of_one_cell(
            figure.value,
            count,
            plus(over_runs(gained), repeated),
            plus(over_wordings(gained, fewest), repeated),
            bounds(name, cell.scale),
        )
    return Gain(with_persona=_value(pair.with_persona), without=_value(pair.without), gain=found)


def _gain_of_group(alone: Mapping[Place, CellEstimate], name: str, cells: Sequence[MeasuredCell]) -> Gain:
    pairs = [_pair(name, cell, alone) for cell in cells]
    gained, controls = _members(pairs)
    if not gained:
        return gains.no_gain(next((pair.reason for pair in pairs if pair.reason), None))
    varied, repeated = components(gained, fewest_wordings(FIGURES[name][0])), over_runs(controls)
    return gains.of_mean(
        [each.figure.value for each in gained],
        [each.figure.value for each in controls],
        {field: plus(error(varied, population), repeated) for field, population in INTERVALS.items()},
        bounds(name, cells[0].scale),
    )
