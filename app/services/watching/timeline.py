"""A schedule's runs as a figure."""

from collections.abc import Sequence

from app.domain.watching.attribution import Cause
from app.domain.watching.contract import Alarm, Schedule, ScheduleRun
from app.services.results.figures import FigureDesk

_MOST_TOLD = 20


async def draw_timeline(desk: FigureDesk, schedule: Schedule, runs: Sequence[ScheduleRun]) -> bytes | None:
    """The figure as SVG; ``None`` while no run has a value.

    Args:
        desk: Draws one figure at a time.
        schedule: The schedule.
        runs: Its runs, oldest first.

    Raises:
        BusyError: If others' figures take all the time.
    """
    if not any(run.value is not None for run in runs):
        return None
    return await desk.draw(lambda: _draw(schedule, runs).encode())


def _draw(schedule: Schedule, runs: Sequence[ScheduleRun]) -> str:
    # Imported where it is used, which is on a thread: matplotlib takes a second.
    from app.reports.figures.timeline import TimedValue, TimelinePanel, timeline_svg  # noqa: PLC0415

    alarms = [alarm for run in runs for alarm in run.alarms]
    panels = [
        TimelinePanel(
            f"{schedule.figure} of the model",
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
        panels.append(
            TimelinePanel(f"{schedule.figure} of the anchors, the same texts each time", frozen, told)
        )
    untaken = [run.due for run in runs if run.value is None and run.ended_at is not None]
    last = [run.value for run in runs if run.value is not None][-1]
    said = [f"{len(panels[0].values)} values, the last one {last:.3f}"]
    said += [f"{words_of(alarm)} since {alarm.since:%Y-%m-%d}" for alarm in alarms[:_MOST_TOLD]]
    return timeline_svg(panels, untaken, "; ".join(said))


def words_of(alarm: Alarm) -> str:
    """A change in a few words."""
    who = "model or judge" if alarm.cause is Cause.UNKNOWN else alarm.cause.value
    return f"{who} {alarm.shift:+.3f}".replace("-", "−")
