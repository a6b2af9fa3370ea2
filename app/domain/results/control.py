"""The control arm: models' figures without a persona, and how far those with one lie above them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean
from typing import NamedTuple

from pydantic import Field

from app.domain.contract import Answer
from app.domain.instruments.dimension import Scale
from app.domain.metrics.cell import UnitCounts
from app.domain.metrics.interval import Interval
from app.domain.metrics.metric import Metric
from app.domain.metrics.registry import BY_NAME
from app.domain.results.coverage import Coverage
from app.domain.results.personagym_control import PersonaScoreGain, PersonaScoreGainTotal
from app.domain.results.results import MeasuredCell, ResponseStatuses
from app.domain.results.totals import INTERVALS, MIXED_SCALES, NO_CELL
from app.domain.statistics.cells import CellEstimate, fewest_wordings
from app.domain.statistics.design import (
    DesignCell,
    Error,
    Stratum,
    components,
    error,
    interval,
    over_runs,
    over_wordings,
    plus,
)
from app.domain.statistics.resampling import FEWEST_CLUSTERS, too_few
from app.domain.statistics.variability import Variability

GROUPINGS = (
    ("model",),
    ("model", "task"),
    ("model", "level"),
    ("model", "dimension"),
    ("model", "persona", "dimension", "level"),
)
NO_DIRECTION = "no_direction: the level is the middle of the scale, and MEAN can leave it either way"
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


class Gain(Answer):
    """A value with and without the persona, and the difference."""

    with_persona: float | None
    without: float | None
    gain: Metric = Field(description="`with_persona` − `without`, with its intervals.")


class Gains(Answer):
    """What the persona changes."""

    acc_atom: Gain = Field(
        description="ACC_atom; without the persona, the share of sentences in the persona's level."
    )
    mean_toward_level: Gain = Field(
        description="MEAN, in points from the end of the scale opposite to the persona's level; missing for a "
        "middle level."
    )


class CellGains(Gains):
    """Gains of one cell of the results."""

    model: str
    persona: str
    task: str
    dimension: str
    level: str
    simulated: bool


class GainTotal(Gains):
    """Unweighted means over the cells of one group that have the value in both arms."""

    by: list[str]
    model: str
    task: str | None = None
    persona: str | None = None
    dimension: str | None = None
    level: str | None = None
    cells: int
    simulated: bool


class ControlArm(Answer):
    """The models without a persona, and how much the personas change."""

    cells: list[ControlCell] = Field(description="model × task × dimension, without a persona.")
    gains: list[CellGains] = Field(description="By cell of the results.")
    totals: list[GainTotal]
    persona_scores: list[PersonaScoreGain] = Field(description="PersonaGym's, by persona and model.")
    persona_score_totals: list[PersonaScoreGainTotal] = Field(description="By model.")


Place = tuple[str, str, str, str]
"""Model, task, dimension and level."""


class _Direction(NamedTuple):
    """How a figure is counted: ``start + sign × figure``, or why it has no direction."""

    sign: float = 1.0
    start: float = 0.0
    reason: str | None = None

    def of(self, varied: Variability) -> Variability:
        sign, dropped, runs = self.sign, varied.dropped, varied.runs
        return Variability(
            self.start + sign * varied.value,
            None if dropped is None else {wording: sign * each for wording, each in dropped.items()},
            None if runs is None else sign * runs,
            varied.degrees,
            varied.count,
        )


def _upward(_: Scale, __: str) -> _Direction:
    return _Direction()


def _toward_level(scale: Scale, level: str) -> _Direction:
    """From the end of the scale that is farther from the level."""
    above = 2 * scale.levels.index(level) - (len(scale.levels) - 1)
    if above == 0:
        return _Direction(reason=NO_DIRECTION)
    return _Direction(1.0, -float(scale.minimum)) if above > 0 else _Direction(-1.0, float(scale.maximum))


_FIGURES = {"acc_atom": ("acc_atom", _upward), "mean_toward_level": ("mean", _toward_level)}
"""Which metric each gain is of, and how it is counted."""
GAINED = tuple(BY_NAME[metric] for metric, _ in _FIGURES.values())


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
    return [
        CellGains(
            model=cell.model,
            persona=cell.persona,
            task=cell.task,
            dimension=cell.dimension,
            level=cell.level,
            simulated=cell.simulated,
            **{name: _gain_of_cell(name, _pair(name, cell, alone), cell.scale) for name in _FIGURES},
        )
        for cell in cells
    ]


def gain_totals(cells: Sequence[MeasuredCell], alone: Mapping[Place, CellEstimate]) -> list[GainTotal]:
    """The mean gains of every group; see :func:`cell_gains`."""
    return [total for by in GROUPINGS for total in _grouped(by, cells, alone)]


def _grouped(
    by: tuple[str, ...], cells: Sequence[MeasuredCell], alone: Mapping[Place, CellEstimate]
) -> Iterator[GainTotal]:
    def keys_of(cell: MeasuredCell) -> tuple[str, ...]:
        return tuple(getattr(cell, name) for name in by)

    for keys, group in groupby(sorted(cells, key=lambda cell: (keys_of(cell), cell.key)), key=keys_of):
        members = list(group)
        yield GainTotal(
            by=list(by),
            **dict(zip(by, keys, strict=True)),
            cells=len(members),
            simulated=any(cell.simulated for cell in members),
            **{name: _gain_of_group(name, members, alone) for name in _FIGURES},
        )


def _pair(name: str, cell: MeasuredCell, alone: Mapping[Place, CellEstimate]) -> _Pair:
    metric, counted = _FIGURES[name]
    direction = counted(cell.scale, cell.level)
    control = alone[cell.model, cell.task, cell.dimension, cell.level]
    own, without = cell.metrics[metric], control.metrics[metric]
    reason = direction.reason or own.reason or (None if without.reason is None else NO_CONTROL)
    return _Pair(
        cell.persona,
        Stratum(cell.task, cell.dimension, cell.level),
        _counted(direction, own, cell.varied.get(metric)),
        _counted(direction, without, control.varied.get(metric)),
        reason,
    )


def _counted(direction: _Direction, metric: Metric, varied: Variability | None) -> Variability | None:
    if metric.value is None or direction.reason is not None:
        return None
    return direction.of(varied or Variability(metric.value))


def _value(figure: Variability | None) -> float | None:
    return None if figure is None else figure.value


def _members(pairs: Sequence[_Pair]) -> tuple[list[DesignCell], list[DesignCell]]:
    """The gains, which vary as the figures with personas do; and the control arm's figures, whose texts personas share."""
    gains, controls = [], []
    for pair in pairs:
        if pair.with_persona is None or pair.without is None:
            continue
        own = pair.with_persona
        figure = Variability(own.value - pair.without.value, own.dropped, own.runs, own.degrees, own.count)
        gains.append(DesignCell(pair.persona, pair.stratum, figure))
        controls.append(DesignCell("", pair.stratum, pair.without))
    return gains, controls


def _gain_of_cell(name: str, pair: _Pair, scale: Scale) -> Gain:
    gains, controls = _members([pair])
    found = Metric.missing(pair.reason or NO_CELL)
    if gains:
        figure, fewest = gains[0].figure, fewest_wordings(_FIGURES[name][0])
        count = min(figure.count, controls[0].figure.count)
        bounds, repeated = _bounds(name, [scale]), over_runs(controls)
        found = Metric.of(figure.value, max(1, count)).within(
            too_few(count, "runs")
            if count < FEWEST_CLUSTERS
            else interval(figure.value, plus(over_runs(gains), repeated), bounds),
            ci95_wordings=interval(figure.value, plus(over_wordings(gains, fewest), repeated), bounds),
        )
    return Gain(with_persona=_value(pair.with_persona), without=_value(pair.without), gain=found)


def _gain_of_group(name: str, cells: Sequence[MeasuredCell], alone: Mapping[Place, CellEstimate]) -> Gain:
    pairs = [_pair(name, cell, alone) for cell in cells]
    gains, controls = _members(pairs)
    scales = [cell.scale for cell in cells]
    if name == "mean_toward_level" and len({(scale.minimum, scale.maximum) for scale in scales}) > 1:
        return Gain(with_persona=None, without=None, gain=Metric.missing(MIXED_SCALES))
    if not gains:
        reason = next((pair.reason for pair in pairs if pair.reason), NO_CELL)
        return Gain(with_persona=None, without=None, gain=Metric.missing(reason))
    without = fmean(each.figure.value for each in controls)
    value = fmean(each.figure.value for each in gains)
    varied = components(gains, fewest_wordings(_FIGURES[name][0]))
    repeated, bounds = over_runs(controls), _bounds(name, scales)

    def within(found: Error | str) -> Interval:
        return interval(value, plus(found, repeated), bounds)

    metric = Metric.of(value, len(gains)).within(
        **{field: within(error(varied, population)) for field, population in INTERVALS.items()}
    )
    return Gain(with_persona=value + without, without=without, gain=metric)


def _bounds(name: str, scales: Sequence[Scale]) -> tuple[float, float]:
    most = 1.0 if name == "acc_atom" else float(scales[0].width)
    return -most, most
