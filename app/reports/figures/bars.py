"""Counts as bars, the greatest on top."""

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.patches import PathPatch

from app.reports.figures.intervals import CHARACTER, WIDTH
from app.reports.figures.palette import Palette
from app.reports.figures.plot import canvas, label
from app.reports.figures.shares import boxes

_ROW, _TOP, _BOTTOM = 0.23, 0.08, 0.08


def draw_bars(counts: Sequence[tuple[str, int]], palette: Palette) -> Figure:
    """Draws a bar for each name and its count."""
    height = _TOP + _ROW * len(counts) + _BOTTOM
    left = 0.2 + CHARACTER * max(len(label(name)) for name, _ in counts)
    figure = canvas(WIDTH, height, palette)
    box = (left / WIDTH, _BOTTOM / height, 1 - (left + 0.5) / WIDTH, 1 - (_TOP + _BOTTOM) / height)
    most = max(count for _, count in counts)
    axes = figure.add_axes(box, xlim=(0, most), ylim=(len(counts), 0))
    axes.set_axis_off()
    rects = [(0.0, place + 0.12, float(count), 0.72) for place, (_, count) in enumerate(counts)]
    axes.add_patch(PathPatch(boxes(rects), facecolor=palette["accent"], linewidth=0))
    for place, (name, count) in enumerate(counts):
        for x, words, side in ((0, label(name), "right"), (count, f"{count:,}", "left")):
            axes.annotate(
                words,
                (x, place + 0.48),
                (-5 if side == "right" else 4, 0),
                textcoords="offset points",
                ha=side,
                va="center",
                fontsize=8.5,
                color=palette["ink"],
            )
    return figure
