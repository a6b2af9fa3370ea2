"""Score distributions: one bar per row, divided by score, the persona's level in one colour."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from app.reports.figures.intervals import CHARACTER, WIDTH
from app.reports.figures.palette import Palette
from app.reports.figures.plot import canvas, label
from app.reports.views.distributions import Bar

_ROW, _GROUP, _TOP, _BOTTOM = 0.26, 0.3, 0.34, 0.1
_NUMBERED = 0.055
"""A score's number stands in its part of the bar if that is at least this share of a panel as wide as the figure."""
_GAP = 0.004

Rect = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Line:
    """A row of bars.

    Attributes:
        name: What stands before it.
        group: The group to which it belongs; groups stand one below the other.
        bars: The scores of each panel, lowest first; empty where there are none.
    """

    name: str
    group: str
    bars: Sequence[Sequence[Bar]]


def draw_shares(panels: Sequence[str], lines: Sequence[Line], palette: Palette) -> Figure:
    """Draws the lines, which stand group by group, in a panel for each of ``panels``."""
    places = _places(lines)
    bottom = max(places) + _ROW
    height = _TOP + bottom + _BOTTOM
    left = 0.1 + CHARACTER * max(len(label(text)) for line in lines for text in (line.name, line.group))
    figure = canvas(WIDTH, height, palette)
    panel = (WIDTH - left - 0.15) / len(panels)
    for column, title in enumerate(panels):
        box = (
            (left + column * panel) / WIDTH,
            _BOTTOM / height,
            (panel - 0.15) / WIDTH,
            bottom / height,
        )
        axes = figure.add_axes(box, xlim=(0, 1.13 if panel > WIDTH / 3 else 1.2), ylim=(bottom, 0))
        axes.set_axis_off()
        if title:
            axes.text(0, -0.1, label(title), color=palette["ink"], fontsize=9)
        _panel(axes, [(y, line.bars[column]) for y, line in zip(places, lines, strict=True)], palette, panel)
        if column == 0:
            _names(axes, lines, places, palette)
    return figure


def _places(lines: Sequence[Line]) -> list[float]:
    """Each line's upper end, in inches from the first group's."""
    places, y, group = [], 0.0, None
    for line in lines:
        if line.group != group:
            y, group = y + _GROUP, line.group
        places.append(y)
        y += _ROW
    return places


def _names(axes: Axes, lines: Sequence[Line], places: Sequence[float], palette: Palette) -> None:
    group = None
    for y, line in zip(places, lines, strict=True):
        if line.group != group:
            group = line.group
            _before(axes, y - 0.12, group, palette["quiet"], size=8)
        _before(axes, y + _ROW * 0.42, line.name, palette["ink"], size=9)


def _before(axes: Axes, y: float, name: str, colour: str, *, size: float) -> None:
    """A name that ends just before the bars."""
    axes.annotate(
        label(name),
        (0, y),
        (-5, 0),
        xycoords=axes.get_yaxis_transform(),
        textcoords="offset points",
        ha="right",
        va="center",
        color=colour,
        fontsize=size,
    )


def _panel(axes: Axes, rows: Sequence[tuple[float, Sequence[Bar]]], palette: Palette, width: float) -> None:
    rects: Mapping[str, list[Rect]] = {"accent": [], "below": [], "above": []}
    for y, bars in rows:
        if not bars:
            axes.text(0, y + _ROW * 0.42, "–", va="center", color=palette["quiet"])
            continue
        kept = sum(bar.share for bar in bars if bar.in_level)
        left = 0.0
        for bar in bars:
            if bar.share > 0:
                rects[_role(bar, bars)].append((left, y, max(_GAP, bar.share - _GAP), _ROW * 0.84))
            if bar.share * width >= _NUMBERED * WIDTH / 1.6:
                axes.text(
                    left + bar.share / 2,
                    y + _ROW * 0.42,
                    str(bar.score),
                    ha="center",
                    va="center_baseline",
                    fontsize=7.5,
                    color=palette["page" if bar.in_level else "ink"],
                )
            left += bar.share
        axes.text(
            1.01, y + _ROW * 0.42, f"{100 * kept:.0f} %", va="center", fontsize=7.5, color=palette["ink"]
        )
    for role, found in rects.items():
        if found:
            edge = palette[role if role == "accent" else f"{role}-line"]
            axes.add_patch(PathPatch(boxes(found), facecolor=palette[role], edgecolor=edge, linewidth=0.6))


def _role(bar: Bar, bars: Sequence[Bar]) -> str:
    if bar.in_level:
        return "accent"
    return "below" if bar.score < min(each.score for each in bars if each.in_level) else "above"


def boxes(rects: Sequence[Rect]) -> Path:
    """One path of many rectangles (left, lower end, width, height): a fraction of the size of as many patches."""
    corners = np.array([(0, 0), (1, 0), (1, 1), (0, 1), (0, 0)])
    vertices = np.concatenate([np.array((x, y)) + corners * (w, h) for x, y, w, h in rects])
    codes = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY] * len(rects)
    return Path(vertices, codes)
