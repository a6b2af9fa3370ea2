"""Gains: how far figures with a persona lie above those of a control."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from statistics import fmean
from typing import NamedTuple

from pydantic import Field

from app.domain.contract import Answer
from app.domain.instruments.dimension import Scale
from app.domain.metrics.metric import Metric
from app.domain.metrics.registry import BY_NAME
from app.domain.results.results import MeasuredCell
from app.domain.results.totals import MIXED_SCALES, NO_CELL
from app.domain.statistics.design import Error, interval
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


class Gain(Answer):
    """A value with the persona and of the control, and the difference."""

    with_persona: float | None
    without: float | None = Field(
        description="Of the control: without a persona, or in `opposite` of the opposite personas."
    )
    gain: Metric = Field(description="`with_persona` − `without`, with its intervals.")


class Gains(Answer):
    """What the persona changes."""

    acc_atom: Gain = Field(
        description="ACC_atom; of the control, the share of sentences in the persona's level."
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


class Direction(NamedTuple):
    """How a figure is counted: ``start + sign × figure``, or why it has no direction."""

    sign: float = 1.0
    start: float = 0.0
    reason: str | None = None

    def of(self, varied: Variability) -> Variability:
        """The figure, counted so."""
        sign, dropped, runs = self.sign, varied.dropped, varied.runs
        return Variability(
            self.start + sign * varied.value,
            None if dropped is None else {wording: sign * each for wording, each in dropped.items()},
            None if runs is None else sign * runs,
            varied.degrees,
            varied.count,
        )


def _upward(_: Scale, __: str) -> Direction:
    return Direction()


def _toward_level(scale: Scale, level: str) -> Direction:
    """From the end of the scale that is farther from the level."""
    above = 2 * scale.levels.index(level) - (len(scale.levels) - 1)
    if above == 0:
        return Direction(reason=NO_DIRECTION)
    return Direction(1.0, -float(scale.minimum)) if above > 0 else Direction(-1.0, float(scale.maximum))


FIGURES = {"acc_atom": ("acc_atom", _upward), "mean_toward_level": ("mean", _toward_level)}
"""Which metric each gain is of, and how it is counted."""
GAINED = tuple(BY_NAME[metric] for metric, _ in FIGURES.values())


def counted(direction: Direction, metric: Metric, varied: Variability | None) -> Variability | None:
    """A figure as gains count it; ``None`` where there is none."""
    if metric.value is None or direction.reason is not None:
        return None
    return direction.of(varied or Variability(metric.value))


def bounds(name: str, scale: Scale) -> tuple[float, float]:
    """A gain's least and greatest value."""
    most = 1.0 if name == "acc_atom" else float(scale.width)
    return -most, most


def of_cells(cells: Sequence[MeasuredCell], gain: Callable[[str, MeasuredCell], Gain]) -> list[CellGains]:
    """The gains of each cell, in their order."""
    return [
        CellGains(
            model=cell.model,
            persona=cell.persona,
            task=cell.task,
            dimension=cell.dimension,
            level=cell.level,
            simulated=cell.simulated,
            **{name: gain(name, cell) for name in FIGURES},
        )
        for cell in cells
    ]


def of_groups(
    cells: Sequence[MeasuredCell], gain: Callable[[str, Sequence[MeasuredCell]], Gain]
) -> list[GainTotal]:
    """The mean gains of every group."""
    return [total for by in GROUPINGS for total in _grouped(by, cells, gain)]


def _grouped(
    by: tuple[str, ...], cells: Sequence[MeasuredCell], gain: Callable[[str, Sequence[MeasuredCell]], Gain]
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
            **{name: _comparable(name, members) or gain(name, members) for name in FIGURES},
        )


def _comparable(name: str, cells: Sequence[MeasuredCell]) -> Gain | None:
    """No gain where cells' scales differ and their means have no common unit."""
    several = len({(cell.scale.minimum, cell.scale.maximum) for cell in cells}) > 1
    return no_gain(MIXED_SCALES) if several and name == "mean_toward_level" else None


def no_gain(reason: str | None) -> Gain:
    """Why a group has none."""
    return Gain(with_persona=None, without=None, gain=Metric.missing(reason or NO_CELL))


def of_one_cell(
    value: float, runs: int, of_runs: Error | str, of_wordings: Error | str, limits: tuple[float, float]
) -> Metric:
    """A cell's gain.

    Args:
        value: The gain.
        runs: Those of the arm that has fewer.
        of_runs: Its sampling variance over runs, or why it is not known.
        of_wordings: The same over wordings.
        limits: Of the gain.
    """
    return Metric.of(value, max(1, runs)).within(
        too_few(runs, "runs") if runs < FEWEST_CLUSTERS else interval(value, of_runs, limits),
        ci95_wordings=interval(value, of_wordings, limits),
    )


def of_mean(
    gained: Sequence[float],
    without: Sequence[float],
    errors: Mapping[str, Error | str],
    limits: tuple[float, float],
) -> Gain:
    """The mean of some cells' gains.

    Args:
        gained: Each cell's gain.
        without: Each cell's figure of the control.
        errors: The sampling variance of the mean gain, by the interval's name; or why it is not known.
        limits: Of the gain.
    """
    value, control = fmean(gained), fmean(without)
    metric = Metric.of(value, len(gained)).within(
        **{field: interval(value, found, limits) for field, found in errors.items()}
    )
    return Gain(with_persona=value + control, without=control, gain=metric)
