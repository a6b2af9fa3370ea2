"""Figures with their intervals: one row a model, one panel a metric."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from app.reports.figures.palette import Palette
from app.reports.figures.plot import canvas, label

WIDTH = 9.2
"""Inches."""
_ROW, _TOP, _BOTTOM = 0.36, 0.42, 0.34
CHARACTER = 0.068
"""Inches of a label's character, about."""

_TITLE_SIZE = 9.0
"""Points of a panel's title, if there is room for it."""
BOLDER = 1.12
"""How much wider bold text is."""


@dataclass(frozen=True, slots=True)
class Column:
    """A panel.

    Attributes:
        title: The metric, as it stands above.
        low: The metric's lowest value.
        high: Its highest.
    """

    title: str
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Point:
    """A figure: its value, ``None`` where there is none, and its 95 % interval, ``None`` where there is none."""

    value: float | None
    ci95: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A model.

    Attributes:
        name: Its label.
        points: One for each column.
        own: Whether it is the job's; else it is a published one, drawn hollow.
    """

    name: str
    points: Sequence[Point]
    own: bool = True


def draw_intervals(columns: Sequence[Column], rows: Sequence[Row], palette: Palette) -> Figure:
    """Draws a dot for each figure and a line for its interval, the first row on top."""
    height = _TOP + _BOTTOM + _ROW * len(rows)
    left = 0.1 + CHARACTER * max(len(label(row.name)) * (BOLDER if _bold(row, rows) else 1) for row in rows)
    figure = canvas(WIDTH, height, palette)
    gap, panel = 0.28, (WIDTH - left - 0.2) / len(columns)
    longest = CHARACTER * max(len(column.title) for column in columns)
    size = _TITLE_SIZE * min(1.0, (panel - 0.1) / longest)
    for place, column in enumerate(columns):
        axes = figure.add_axes(
            (
                (left + place * panel) / WIDTH,
                _BOTTOM / height,
                (panel - gap) / WIDTH,
                1 - (_TOP + _BOTTOM) / height,
            )
        )
        _frame(axes, column, len(rows), palette, size)
        if place == 0:
            _names(axes, rows, palette)
        for y, row in enumerate(rows):
            _point(axes, y, row.points[place], palette, own=row.own)
    return figure


def _frame(axes: Axes, column: Column, rows: int, palette: Palette, size: float) -> None:
    width = column.high - column.low
    axes.set_xlim(column.low - 0.02 * width, column.high + 0.02 * width)
    axes.set_ylim(rows - 0.5, -0.5)
    axes.set_facecolor(palette["page"])
    axes.set_title(column.title, fontsize=size, color=palette["ink"], loc="left", pad=7)
    ticks = [column.low + share * width for share in (0, 0.25, 0.5, 0.75, 1)]
    axes.set_xticks(ticks, [f"{tick:g}".replace("-", "−") for tick in ticks])
    axes.tick_params(axis="x", colors=palette["quiet"], labelsize=7.5, length=0)
    axes.set_yticks([])
    axes.grid(axis="x", color=palette["line"], linewidth=0.8)
    axes.set_axisbelow(True)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _names(axes: Axes, rows: Sequence[Row], palette: Palette) -> None:
    axes.set_yticks(range(len(rows)), [label(row.name) for row in rows])
    axes.tick_params(axis="y", length=0)
    for text, row in zip(axes.get_yticklabels(), rows, strict=True):
        text.set_color(palette["ink" if row.own else "quiet"])
        text.set_fontweight("bold" if _bold(row, rows) else "normal")


def _bold(row: Row, rows: Sequence[Row]) -> bool:
    """Whether a row stands out: one of the job's own among others."""
    return row.own and not all(other.own for other in rows)


def _point(axes: Axes, y: int, point: Point, palette: Palette, *, own: bool) -> None:
    colour = palette["accent" if own else "quiet"]
    if point.value is None:
        axes.text(0.5, y, "–", transform=axes.get_yaxis_transform(), color=palette["quiet"], va="center")
        return
    if point.ci95 is not None:
        axes.plot(point.ci95, (y, y), color=colour, linewidth=2.2 if own else 1, solid_capstyle="butt")
    axes.plot(
        point.value,
        y,
        marker="o" if own else "D",
        markersize=6.5 if own else 4.5,
        color=colour,
        markerfacecolor=colour if own else palette["page"],
    )
    words = f"{point.value:.2f}".replace("-", "−")
    axes.annotate(
        words,
        (point.value, y),
        (0, 5),
        textcoords="offset points",
        ha="center",
        fontsize=7.5,
        color=palette["ink" if own else "quiet"],
    )
