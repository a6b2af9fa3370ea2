"""ACC against ACC_atom: a square panel for each source, a dot for each cell, its form and colour by the persona's level."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path

from app.domain.metrics.metric import FloatArray
from app.reports.figures.intervals import WIDTH
from app.reports.figures.palette import Palette
from app.reports.figures.plot import canvas
from app.reports.views.accuracy import APART, Place, Scatter

_LEFT, _GAP, _TOP, _BOTTOM, _LEGEND = 0.55, 0.75, 0.45, 0.5, 0.32
_SIZE = 0.017
"""Half a dot's width, of a panel's."""

COLOURS: Mapping[Place, str] = {"highest": "accent", "between": "below-line", "lowest": "above-line"}
WORDS: Mapping[Place, str] = {
    "highest": "personas on the highest level",
    "between": "personas on levels between",
    "lowest": "personas on the lowest level",
}
_UP = np.array([(-1.0, -0.8), (1.0, -0.8), (0.0, 1.0), (-1.0, -0.8)])
_FORMS: Mapping[Place, FloatArray] = {
    "highest": _UP,
    "between": np.array([(-0.8, -0.8), (0.8, -0.8), (0.8, 0.8), (-0.8, 0.8), (-0.8, -0.8)]),
    "lowest": -_UP,
}


def draw_scatters(panels: Sequence[Scatter], palette: Palette) -> Figure:
    """Draws the panels side by side, with one legend below."""
    side = (WIDTH - _LEFT - _GAP - 0.15) / 2
    height = _TOP + side + _BOTTOM + _LEGEND
    figure = canvas(WIDTH, height, palette)
    for column, panel in enumerate(panels):
        left = _LEFT + column * (side + _GAP)
        box = (left / WIDTH, (_BOTTOM + _LEGEND) / height, side / WIDTH, side / height)
        axes = figure.add_axes(box, xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
        _frame(axes, panel, palette)
        for place in COLOURS:
            found = [(dot.acc, dot.acc_atom) for dot in panel.dots if dot.place == place]
            _dots(axes, found, place, palette)
    _legend(figure, panels, height, palette)
    return figure


def _frame(axes: Axes, panel: Scatter, palette: Palette) -> None:
    axes.set_facecolor(palette["page"])
    r = "" if panel.r.value is None else f", r = {panel.r.value:.2f}"
    title = f"{panel.title}: {panel.cells:,} cells{r}"
    axes.set_title(title, fontsize=9, color=palette["ink"], loc="left", pad=7)
    axes.plot((0, 1), (0, 1), color=palette["quiet"], linewidth=0.8, linestyle=(0, (4, 3)))
    axes.fill((APART, 1, 1), (0, 0, 1 - APART), color=palette["line"], alpha=0.6, linewidth=0)
    ticks = [0, 0.25, 0.5, 0.75, 1]
    for axis, name in ((axes.xaxis, "ACC (whole responses)"), (axes.yaxis, "ACC_atom (sentences)")):
        axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.set_label_text(name, fontsize=8, color=palette["quiet"])
    axes.tick_params(colors=palette["quiet"], labelsize=7.5, length=0)
    axes.grid(color=palette["line"], linewidth=0.8)
    axes.set_axisbelow(True)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _dots(axes: Axes, places: Sequence[tuple[float, float]], place: Place, palette: Palette) -> None:
    """One path of many forms: a fraction of the size of as many marks."""
    if not places:
        return
    form = _FORMS[place]
    codes = [Path.MOVETO, *[Path.LINETO] * (len(form) - 2), Path.CLOSEPOLY] * len(places)
    vertices = np.concatenate([np.array(each) + form * _SIZE for each in places])
    drawn = Path(vertices, codes)
    colour = palette[COLOURS[place]]
    axes.add_patch(PathPatch(drawn, facecolor=colour, edgecolor=palette["page"], linewidth=0.5))


def _legend(figure: Figure, panels: Sequence[Scatter], height: float, palette: Palette) -> None:
    axes = figure.add_axes((0, 0, 1, _LEGEND / height), xlim=(0, WIDTH), ylim=(0, _LEGEND))
    axes.set_axis_off()
    left = _LEFT
    shown = {dot.place for panel in panels for dot in panel.dots}
    for place in [place for place in COLOURS if place in shown]:
        vertices = np.array((left, _LEGEND / 2)) + _FORMS[place] * 0.06
        codes = [Path.MOVETO, *[Path.LINETO] * (len(vertices) - 2), Path.CLOSEPOLY]
        axes.add_patch(PathPatch(Path(vertices, codes), facecolor=palette[COLOURS[place]], linewidth=0))
        names = {panel.levels.get(place) for panel in panels} - {None}
        # Where scales differ, a level's place is all that its personas have in common.
        alike = len(names) == 1 and all(place in panel.levels for panel in panels)
        words = f"{names.pop()} personas" if alike else WORDS[place]
        axes.text(left + 0.13, _LEGEND / 2, words, va="center", fontsize=8, color=palette["ink"])
        left += 1.95
    axes.add_patch(
        Rectangle((left - 0.06, _LEGEND / 2 - 0.06), 0.12, 0.12, color=palette["line"], linewidth=0)
    )
    words = f"ACC exceeds ACC_atom by {APART} or more"
    axes.text(left + 0.13, _LEGEND / 2, words, va="center", fontsize=8, color=palette["ink"])
