"""ACC against ACC_atom, cell by cell: the atomic paper's Figure 2, of a job and of the paper's own cells."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from app.domain.metrics.metric import Metric
from app.domain.results.baselines import BaselineCell, Baselines
from app.domain.results.contract import CellResult, Results
from app.domain.results.results import Correlation

Place = Literal["highest", "between", "lowest"]
"""Where a persona's level lies on its scale."""
_Cell: TypeAlias = CellResult | BaselineCell

APART = 0.3
"""By so much ACC exceeds ACC_atom in the shaded region: whole responses that pass although many of their sentences do not. The paper shades
such a region in its Figure 2, without saying where it begins."""
FEWEST = 3
"""Cells of which a correlation can be told."""
FINE, COARSE, MANY = 100, 50, 2_000
"""Dots lie at so many places of an axis, fewer for more than so many cells: of any number of cells a figure then stays small."""


@dataclass(frozen=True, slots=True)
class Dot:
    """A cell, or several at the same place.

    Attributes:
        acc: Its ACC.
        acc_atom: Its ACC_atom.
        place: Where its persona's level lies.
    """

    acc: float
    acc_atom: float
    place: Place


@dataclass(frozen=True, slots=True)
class Scatter:
    """The cells of one source.

    Attributes:
        title: Whose they are.
        dots: Where they lie.
        cells: How many they are.
        r: Pearson's r of the two metrics.
        levels: What the levels at each place are called, where they all have one name.
        widest: The cell in which ACC exceeds ACC_atom most: its name and both figures; ``None`` where in no cell it does.
        shaded: In how many cells it exceeds it by :data:`APART` or more.
    """

    title: str
    dots: Sequence[Dot]
    cells: int
    r: Metric
    levels: Mapping[Place, str]
    widest: tuple[str, float, float] | None
    shaded: int = 0


def scatters(results: Results, baselines: Baselines | None) -> list[Scatter]:
    """A job's cells, then the paper's; nothing for a job of fewer than :data:`FEWEST` cells with both metrics."""
    own = _scatter("This job", results.cells, results.correlations)
    if own is None or baselines is None:
        return [] if own is None else [own]
    published = _scatter("Published (atomic paper)", baselines.cells, baselines.correlations)
    return [own] if published is None else [own, published]


def _scatter(title: str, cells: Sequence[_Cell], correlations: Sequence[Correlation]) -> Scatter | None:
    both = [
        (cell, acc, atom)
        for cell in cells
        if (acc := cell.metrics["acc"].value) is not None
        and (atom := cell.metrics["acc_atom"].value) is not None
    ]
    r = next((each.r for each in correlations if set(each.metrics) == {"acc", "acc_atom"}), None)
    if len(both) < FEWEST or r is None:
        return None
    cell, acc, atom = max(both, key=lambda found: found[1] - found[2])
    name = f"{cell.persona}, {cell.task}, {cell.model}"
    steps = FINE if len(both) <= MANY else COARSE
    called: dict[Place, set[str]] = defaultdict(set)
    for each, _, _ in both:
        called[_place(each)].add(each.level)
    return Scatter(
        title=title,
        dots=list(
            dict.fromkeys(
                Dot(_near(acc, steps), _near(atom, steps), _place(cell)) for cell, acc, atom in both
            )
        ),
        cells=len(both),
        r=r,
        levels={place: names.pop() for place, names in called.items() if len(names) == 1},
        widest=(name, acc, atom) if acc > atom else None,
        shaded=sum(acc - atom >= APART for _, acc, atom in both),
    )


def _near(value: float, steps: int) -> float:
    return math.floor(value * steps + 0.5) / steps


def _place(cell: _Cell) -> Place:
    rank = cell.scale.levels.index(cell.level)
    if rank == len(cell.scale.levels) - 1:
        return "highest"
    return "between" if rank else "lowest"
