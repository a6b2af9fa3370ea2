"""A schedule's runs as a figure."""

import asyncio
from collections.abc import Sequence

from sqlalchemy.ext.asyncio import AsyncEngine

from app.domain.watching.attribution import Cause
from app.domain.watching.contract import Alarm, Schedule, ScheduleRun
from app.services.results.figures import DRAWING, FigureFormat, Theme
from app.services.watching.schedules import list_runs

RUNS_DRAWN = 400
"""The last ones."""
_MOST_TOLD = 20


async def draw_timeline(
    engine: AsyncEngine,
    schedule: Schedule,
    tenant: str,
    file_format: FigureFormat = "svg",
    theme: Theme | None = None,
) -> bytes | None:
    """The figure of the last runs; ``None`` while none of them has a value.

    Args:
        engine: Where the runs are.
        schedule: The schedule.
        tenant: Whose it is.
        file_format: Of the file.
        theme: ``None`` for light, and in an SVG for whichever the reader prefers.

    Raises:
        NotFoundError: If the schedule was deleted meanwhile.
    """
    runs = (await list_runs(engine, tenant, schedule.id, limit=RUNS_DRAWN))[::-1]
    if not any(run.value is not None for run in runs):
        return None
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(DRAWING, _draw, schedule, runs, file_format, theme)


def _draw(
    schedule: Schedule, runs: Sequence[ScheduleRun], file_format: FigureFormat, theme: Theme | None
) -> bytes:
    # Imported where it is used, which is on a thread: matplotlib takes a second.
    from app.reports.figures.files import NOTE  # noqa: PLC0415
    from app.reports.figures.plot import as_file  # noqa: PLC0415
    from app.reports.figures.timeline import TimedValue, TimelinePanel, timeline_plot  # noqa: PLC0415

    alarms = [alarm for run in runs for alarm in run.alarms]
    panels = [
        TimelinePanel(
            f"{schedule.figure} of the model{_counted([(run.n, run.left_out) for run in runs])}",
            [TimedValue(run.due, run.value, run.limits) for run in runs if run.value is not None],
            [(alarm.since, words_of(alarm)) for alarm in alarms if alarm.cause is not Cause.JUDGE],
        )
    ]
    frozen = [
        TimedValue(run.due, run.anchor_value, run.anchor_limits)
        for run in runs
        if run.anchor_value is not None
    ]
    if frozen:
        told = [(alarm.since, words_of(alarm)) for alarm in alarms if alarm.cause is Cause.JUDGE]
        counted = _counted([(run.anchor_n, run.anchor_left_out) for run in runs])
        panels.append(
            TimelinePanel(
                f"{schedule.figure} of the anchors, the same texts each time{counted}", frozen, told
            )
        )
    untaken = [run.due for run in runs if run.value is None and run.ended_at is not None]
    last = [run.value for run in runs if run.value is not None][-1]
    said = [f"{len(panels[0].values)} values, the last one {last:.3f}", *(panel.title for panel in panels)]
    said += [f"{words_of(alarm)} since {alarm.since:%Y-%m-%d}" for alarm in alarms[:_MOST_TOLD]]
    note = NOTE if schedule.simulated else ""
    return as_file(timeline_plot(panels, untaken, "; ".join(said)), file_format, theme, note)


def _counted(runs: Sequence[tuple[int | None, int | None]]) -> str:
    """What runs' values are means of, and how much was left out, to follow a title; empty where it is not known."""
    counts = [n for n, _ in runs if n is not None]
    if not counts:
        return ""
    least, most = min(counts), max(counts)
    left_out = max(out or 0 for _, out in runs)
    spread = f"{most:,}" if least == most else f"{least:,} to {most:,}"
    return f" (n = {spread}{f', up to {left_out:,} left out' if left_out else ''})"


def words_of(alarm: Alarm) -> str:
    """A change in a few words."""
    who = "model or judge" if alarm.cause is Cause.UNKNOWN else alarm.cause.value
    return f"{who} {alarm.shift:+.3f}".replace("-", "−")
