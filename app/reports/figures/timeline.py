"""A schedule's figures over time: each run's value, the limits that it was held against, and alarms."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import matplotlib.dates as mdates
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from app.reports.figures.intervals import WIDTH
from app.reports.figures.palette import Palette
from app.reports.figures.plot import Plot, canvas

_PANEL, _TOP, _BOTTOM, _LEFT = 2.1, 0.42, 0.34, 0.6
_FEWEST_DAYS = 1 / 24


@dataclass(frozen=True, slots=True)
class TimedValue:
    """A run's value.

    Attributes:
        due: When the run was due.
        value: The value.
        limits: What it was held against; ``None`` for the first runs.
    """

    due: datetime
    value: float
    limits: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class TimelinePanel:
    """Values over time.

    Attributes:
        title: What they are.
        values: Oldest first.
        alarms: When changes began, each with a few words.
    """

    title: str
    values: Sequence[TimedValue]
    alarms: Sequence[tuple[datetime, str]]


def timeline_plot(panels: Sequence[TimelinePanel], untaken: Sequence[datetime], description: str) -> Plot:
    """The figure.

    Args:
        panels: The watched value, and the anchors' if there are some.
        untaken: Due times without a value.
        description: What it says, for those who do not see it.
    """
    return Plot(
        "timeline",
        "Values of each run with limits",
        description,
        lambda palette: _draw(panels, untaken, palette),
    )


def _draw(panels: Sequence[TimelinePanel], untaken: Sequence[datetime], palette: Palette) -> Figure:
    one = _TOP + _PANEL + _BOTTOM
    height = one * len(panels)
    figure = canvas(WIDTH, height, palette)
    times = [*untaken, *(each.due for panel in panels for each in panel.values)]
    first, last = min(map(_day, times)), max(map(_day, times))
    edge = max(last - first, _FEWEST_DAYS) * 0.02
    for place, panel in enumerate(panels):
        bottom = height - one * place - _TOP - _PANEL
        axes = figure.add_axes(
            (_LEFT / WIDTH, bottom / height, (WIDTH - _LEFT - 0.2) / WIDTH, _PANEL / height),
            xlim=(first - edge, last + edge),
        )
        _frame(axes, panel, palette)
        _values(axes, panel, palette)
        for due in untaken:
            axes.plot(
                _day(due),
                0.02,
                "|",
                transform=axes.get_xaxis_transform(),
                color=palette["quiet"],
                markersize=7,
            )
        _alarms(axes, panel, palette)
    return figure


def _day(moment: datetime) -> float:
    """Days since 1970, in which matplotlib counts."""
    return moment.timestamp() / 86_400


def _frame(axes: Axes, panel: TimelinePanel, palette: Palette) -> None:
    axes.set_facecolor(palette["page"])
    axes.set_title(panel.title, fontsize=9, color=palette["ink"], loc="left", pad=7)
    locator = mdates.AutoDateLocator(minticks=3, maxticks=8)  # type: ignore[no-untyped-call] # it has no types
    axes.xaxis.set_major_locator(locator)
    formatter = mdates.ConciseDateFormatter(locator, show_offset=False)  # type: ignore[no-untyped-call] # as above
    axes.xaxis.set_major_formatter(formatter)
    axes.tick_params(colors=palette["quiet"], labelsize=7.5, length=0)
    axes.grid(axis="y", color=palette["line"], linewidth=0.8)
    axes.set_axisbelow(True)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _values(axes: Axes, panel: TimelinePanel, palette: Palette) -> None:
    held = [(_day(each.due), *each.limits) for each in panel.values if each.limits is not None]
    for side in (1, 2):
        axes.plot(
            [each[0] for each in held],
            [each[side] for each in held],
            color=palette["quiet"],
            linewidth=0.9,
            linestyle=(0, (4, 3)),
            drawstyle="steps-mid",
        )
    days, values = [_day(each.due) for each in panel.values], [each.value for each in panel.values]
    axes.plot(days, values, color=palette["accent"], linewidth=0.8)
    axes.plot(days, values, "o", color=palette["accent"], markersize=3.6, linestyle="none")
    ends = [end for _, low, high in held for end in (low, high)]
    low, high = min(values + ends), max(values + ends)
    room = max(0.12 * (high - low), 0.005)
    axes.set_ylim(low - 1.3 * room, high + 1.6 * room)


def _alarms(axes: Axes, panel: TimelinePanel, palette: Palette) -> None:
    for since, words in panel.alarms:
        day = _day(since)
        axes.axvline(day, color=palette["above-line"], linewidth=1.4)
        left, right = axes.get_xlim()
        late = day > (left + right) / 2
        axes.annotate(
            words,
            (day, 1),
            (-4 if late else 4, -3),
            xycoords=axes.get_xaxis_transform(),
            textcoords="offset points",
            ha="right" if late else "left",
            va="top",
            fontsize=8,
            color=palette["ink"],
        )
