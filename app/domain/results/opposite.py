"""Personas beside the opposite ones of the same job: how much more of a persona's level its own texts have than theirs.

A gain is linear in personas' figures: each persona's own stands in it, and, as that of an opposite one, its texts' share on the other
end's level. So a mean gain is a mean over personas, whose variance is that of any total (:mod:`app.domain.statistics.design`), with
both figures of a persona's texts in one.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from pydantic import Field

from app.domain.contract import Answer
from app.domain.instruments.dimension import Scale
from app.domain.metrics.metric import Metric
from app.domain.results import gains
from app.domain.results.gains import FIGURES, CellGains, Gain, GainTotal, bounds, counted
from app.domain.results.results import MeasuredCell
from app.domain.results.totals import INTERVALS
from app.domain.statistics.cells import CellEstimate, fewest_wordings
from app.domain.statistics.design import DesignCell, Stratum, components, error, over_runs, over_wordings
from app.domain.statistics.variability import Variability

MIDDLE = "middle_level: the level is the middle of the scale"
NO_OPPOSITE = "no_opposite: no persona of the job is on the level {level!r} of the dimension"
SILENT = "no_scored_unit: no opposite persona has a scored sentence on the dimension"

Key = tuple[str, str, str, str, str]
"""A cell's: model, persona, task, dimension and level."""
_Place = tuple[str, str, str, str]
"""Model, task, dimension and level."""


class WithoutOpposite(Answer):
    """A persona that has no opposite one in the job."""

    persona: str
    dimension: str
    level: str
    reason: str = Field(description="`code: words`: `middle_level`, `no_opposite`.")


class OppositeControl(Answer):
    """How much higher values are than those of the job's personas at the opposite level of the same dimension."""

    gains: list[CellGains] = Field(description="By cell of the results, if it has an opposite persona.")
    totals: list[GainTotal] = Field(description="Over the cells that have an opposite persona.")
    left_out: list[WithoutOpposite] = Field(description="Personas without an opposite one.")


def opposite_level(scale: Scale, level: str) -> str | None:
    """The level as far from the other end of the scale; ``None`` for the middle one."""
    place = scale.levels.index(level)
    other = len(scale.levels) - 1 - place
    return None if other == place else scale.levels[other]


def opposite_control(cells: Sequence[MeasuredCell], turned: Mapping[Key, CellEstimate]) -> OppositeControl:
    """What the opposite personas say.

    Args:
        cells: The results' cells.
        turned: Of each cell whose level has an opposite one, by its key: the same texts' figures as of a persona there.
    """
    ordered = sorted(cells, key=lambda cell: cell.key)
    pairs = _Pairs(ordered, turned)
    paired = [cell for cell in ordered if pairs.opposites(cell)]
    return OppositeControl(
        gains=gains.of_cells(paired, partial(_gain_of_cell, pairs)),
        totals=gains.of_groups(paired, partial(_gain_of_group, pairs)),
        left_out=_left_out(ordered, pairs),
    )


def _left_out(cells: Sequence[MeasuredCell], pairs: "_Pairs") -> list[WithoutOpposite]:
    found = {
        (cell.persona, cell.dimension, cell.level): opposite_level(cell.scale, cell.level)
        for cell in cells
        if not pairs.opposites(cell)
    }
    return [
        WithoutOpposite(
            persona=persona,
            dimension=dimension,
            level=level,
            reason=MIDDLE if other is None else NO_OPPOSITE.format(level=other),
        )
        for (persona, dimension, level), other in sorted(found.items(), key=lambda each: each[0])
    ]


class _Others(NamedTuple):
    """A figure of the opposite personas at one place of the design, of those that have it.

    Attributes:
        figures: Each one's cell, and its texts' figure.
        pooled: Their mean, as of one cell.
    """

    figures: Sequence[tuple[MeasuredCell, Variability]]
    pooled: Variability


class _Pairs:
    """Cells and their opposite ones."""

    def __init__(self, cells: Sequence[MeasuredCell], turned: Mapping[Key, CellEstimate]) -> None:
        self._turned = turned
        self._at: dict[_Place, list[MeasuredCell]] = defaultdict(list)
        for cell in cells:
            self._at[_place(cell, cell.level)].append(cell)
        self._others: dict[tuple[str, _Place], _Others | None] = {}

    def opposites(self, cell: MeasuredCell) -> Sequence[MeasuredCell]:
        """The cells of the same model, task and dimension on the opposite level."""
        other = opposite_level(cell.scale, cell.level)
        return () if other is None else self._at.get(_place(cell, other), ())

    def others(self, name: str, cell: MeasuredCell) -> _Others | None:
        """What a cell's figure is held against; all cells of a place share it."""
        key = name, _place(cell, cell.level)
        if key not in self._others:
            metric, direction = FIGURES[name]
            toward = direction(cell.scale, cell.level)
            found = [
                (other, figure)
                for other in self.opposites(cell)
                if (figure := counted(toward, *_known(self._turned[other.key], metric))) is not None
            ]
            even = [(1 / len(found), figure) for _, figure in found]
            self._others[key] = _Others(found, _sum(even, of_one_text=False)) if found else None
        return self._others[key]


def _place(cell: MeasuredCell, level: str) -> _Place:
    return cell.model, cell.task, cell.dimension, level


def _known(found: CellEstimate, metric: str) -> tuple[Metric, Variability | None]:
    return found.metrics[metric], found.varied.get(metric)


class _Member(NamedTuple):
    """A cell that has a gain: its figure, and that of its opposite ones."""

    cell: MeasuredCell
    own: Variability
    others: _Others

    @property
    def gain(self) -> float:
        return self.own.value - self.others.pooled.value


def _members(pairs: _Pairs, name: str, cells: Sequence[MeasuredCell]) -> tuple[list[_Member], str | None]:
    """The cells that have a gain, and why the first one that has none lacks it."""
    metric, direction = FIGURES[name]
    found, reasons = [], []
    for cell in cells:
        toward, figure = direction(cell.scale, cell.level), cell.metrics[metric]
        own, others = counted(toward, figure, cell.varied.get(metric)), pairs.others(name, cell)
        if own is None or others is None:
            reasons.append(toward.reason or figure.reason or SILENT)
        else:
            found.append(_Member(cell, own, others))
    return found, next(iter(reasons), None)


def _gain_of_cell(pairs: _Pairs, name: str, cell: MeasuredCell) -> Gain:
    members, reason = _members(pairs, name, [cell])
    if not members:
        return gains.no_gain(reason)
    [member] = members
    parts, fewest = _design(members), fewest_wordings(FIGURES[name][0])
    found = gains.of_one_cell(
        member.gain,
        min(part.figure.count for part in parts),
        over_runs(parts),
        over_wordings(parts, fewest),
        bounds(name, cell.scale),
    )
    return Gain(with_persona=member.own.value, without=member.others.pooled.value, gain=found)


def _gain_of_group(pairs: _Pairs, name: str, cells: Sequence[MeasuredCell]) -> Gain:
    members, reason = _members(pairs, name, cells)
    if not members:
        return gains.no_gain(reason)
    varied = components(_design(members), fewest_wordings(FIGURES[name][0]))
    return gains.of_mean(
        [member.gain for member in members],
        [member.others.pooled.value for member in members],
        {field: error(varied, population) for field, population in INTERVALS.items()},
        bounds(name, cells[0].scale),
    )


def _design(members: Sequence[_Member]) -> list[DesignCell]:
    """Cells whose mean is the mean gain: each persona with all that its texts add to it."""
    if len({member.cell.persona for member in members}) == 1:
        # It is none of its own opposites: these stand in as one.
        return [
            DesignCell(persona, Stratum(cell.task, cell.dimension, level), _sum([(weight, figure)]))
            for cell, own, others in members
            for persona, level, weight, figure in (
                (cell.persona, cell.level, 2.0, own),
                ("", opposite_level(cell.scale, cell.level) or "", -2.0, others.pooled),
            )
        ]
    parts: dict[Key, list[tuple[float, Variability]]] = defaultdict(list)
    cells: dict[Key, MeasuredCell] = {}
    for member in members:
        cells[member.cell.key] = member.cell
        parts[member.cell.key].append((1.0, member.own))
    held = Counter(_place(member.cell, member.cell.level) for member in members)
    others_at = {_place(member.cell, member.cell.level): member.others for member in members}
    for place, count in held.items():
        for cell, figure in others_at[place].figures:
            cells[cell.key] = cell
            parts[cell.key].append((-count / len(others_at[place].figures), figure))
    share = len(parts) / len(members)
    return [
        DesignCell(
            cells[key].persona,
            Stratum(cells[key].task, cells[key].dimension, cells[key].level),
            _sum([(share * weight, figure) for weight, figure in parts[key]]),
        )
        for key in sorted(parts)
    ]


def _sum(parts: Sequence[tuple[float, Variability]], *, of_one_text: bool = True) -> Variability:
    """A weighted sum of figures: of one text's, or of each of another text."""
    dropped = [(weight, each.dropped) for weight, each in parts if each.dropped is not None]
    rows = [weight * each.runs for weight, each in parts if each.runs is not None]
    degrees = [each.degrees for _, each in parts]
    wordings = sorted({wording for _, found in dropped for wording in found})
    runs = None
    if len(rows) == len(parts):
        runs = np.sum(rows, axis=0) if of_one_text else np.concatenate(rows)
    return Variability(
        sum(weight * each.value for weight, each in parts),
        {w: sum(weight * found.get(w, 0.0) for weight, found in dropped) for w in wordings}
        if len(dropped) == len(parts)
        else None,
        runs,
        min(degrees) if of_one_text else sum(degrees),
        min(each.count for _, each in parts),
    )
