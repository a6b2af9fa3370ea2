"""A schedule's figure as a file."""

from collections.abc import Sequence

from app.domain.watching.attribution import Cause
from app.domain.watching.contract import Schedule, ScheduleRun
from app.reports.figures.files import NOTE
from app.reports.figures.plot import as_file
from app.reports.figures.timeline import TimedValue, TimelinePanel, timeline_plot
from app.reports.views.alarm_words import words_of

_MOST_TOLD = 20


def schedule_file(
    schedule: Schedule, runs: Sequence[ScheduleRun], file_format: str, theme: str | None
) -> bytes:
    """The figure of runs, oldest first, of which at least one has a value."""
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
