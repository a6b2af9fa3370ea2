"""Heat maps: persona by task, and run by run."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch

from app.domain.metrics.registry import BY_NAME
from app.reports.figures.intervals import CHARACTER, WIDTH
from app.reports.figures.palette import HEAT, Palette
from app.reports.figures.plot import canvas, label
from app.reports.figures.shares import Rect, boxes
from app.reports.views.in_words import InWords
from app.reports.views.run_matrices import RunMatrix
from app.reports.views.summary import HEAT_METRICS, HeatMap, HeatRow
from app.reports.views.summary import Figure as Value

HEAT_NAMES = [BY_NAME[name].label for name in HEAT_METRICS]
_ROW, _TOP = 0.24, 0.62
_MIDDLE = "#191511"
"""Legible on the middle of the colours in both palettes, as the report's style sheet has it."""


def draw_heat_map(found: HeatMap, words: InWords, palette: Palette) -> Figure:
    """Draws persona by task for one model, in the form of Table 5 (atomic paper)."""
    rows = [row for level in found.levels for row in level]
    names = [*(_name(row, words) for row in rows), "all personas"]
    groups = [row.groups for row in rows] + [found.total]
    height = _TOP + _ROW * len(groups) + 0.1
    left = 0.1 + CHARACTER * max(map(len, names))
    figure = canvas(WIDTH, height, palette)
    columns = len(groups[0]) * len(HEAT_NAMES)
    axes = figure.add_axes(
        (left / WIDTH, 0.1 / height, 1 - (left + 0.1) / WIDTH, _ROW * len(groups) / height),
        xlim=(0, columns),
        ylim=(len(groups), 0),
    )
    axes.set_axis_off()
    for place, task in enumerate([*found.tasks, "all tasks"]):
        middle = (place + 0.5) * len(HEAT_NAMES)
        axes.text(middle, -1.2, label(task.replace("_", " ")), ha="center", color=palette["ink"])
        for n, name in enumerate(HEAT_NAMES):
            x = place * len(HEAT_NAMES) + n + 0.5
            short = name.replace("_atom", "")
            axes.text(x, -0.25, short, ha="center", fontsize=7, color=palette["quiet"])
    for y, name in enumerate(names):
        axes.text(-0.15, y + 0.5, name, ha="right", va="center", fontsize=8, color=palette["ink"])
    _heat(axes, [[value for group in row for value in group] for row in groups], palette)
    return figure


def draw_runs(matrices: Sequence[RunMatrix], words: InWords, palette: Palette) -> Figure:
    """Draws a square for each two runs of each cell; of few cells as large as of many."""
    side, top = (WIDTH - 0.3) / 4 - 0.2, 0.75
    figure = canvas(WIDTH, side + top + 0.1, palette)
    width, height = figure.get_size_inches()
    for place, matrix in enumerate(matrices):
        box = ((0.2 + place * (side + 0.2)) / width, 0.1 / height, side / width, side / height)
        axes = figure.add_axes(box, xlim=(0, matrix.runs), ylim=(matrix.runs, 0))
        axes.set_axis_off()
        for step, role in enumerate(HEAT):
            squares: list[Rect] = [(x, y, 1, 1) for y, x in np.argwhere(matrix.steps == step).tolist()]
            if squares:
                axes.add_patch(PathPatch(boxes(squares), facecolor=palette[role], linewidth=0))
        cell = matrix.cell
        lines = (
            f"{cell.metrics['rc_atom'].value:.2f}".replace("-0", "−0")
            + f"  {words.row(cell.persona, cell.dimension, cell.level)}",
            cell.task.replace("_", " "),
            cell.model,
        )
        for n, line in enumerate(lines):
            axes.annotate(
                label(line)[:34],
                (0, 1),
                (0, 36 - 13 * n),
                xycoords="axes fraction",
                textcoords="offset points",
                fontsize=8.5 if n == 0 else 7.5,
                color=palette["ink" if n == 0 else "quiet"],
            )
    return figure


def _name(row: HeatRow, words: InWords) -> str:
    if row.persona is None or row.dimension is None:
        return label(f"all {row.level}")
    return label(words.row(row.persona, row.dimension, row.level))


def _heat(axes: Axes, rows: Sequence[Sequence[Value]], palette: Palette) -> None:
    squares: dict[int, list[Rect]] = {}
    for y, row in enumerate(rows):
        for x, value in enumerate(row):
            if value.step is not None:
                squares.setdefault(value.step, []).append((x, y, 0.96, 0.94))
            words = "–" if value.value is None else f"{value.value:.2f}".replace("-", "−")
            axes.text(
                x + 0.48,
                y + 0.5,
                f"{words}*" if value.off else words,
                ha="center",
                va="center_baseline",
                fontsize=7,
                color=_legible(value.step, palette),
            )
    for step, found in squares.items():
        axes.add_patch(PathPatch(boxes(found), facecolor=palette[HEAT[step]], linewidth=0))


def _legible(step: int | None, palette: Palette) -> str:
    if step is None or step > len(HEAT) // 2 - 1:
        return palette["ink"]
    return _MIDDLE if step == len(HEAT) // 2 - 1 else palette["on-strong"]
