"""The commands that run a job again and again: `assay schedule add`, `list`, `runs`, `figure`, `pause`, `resume` and `delete`."""

import sys
from pathlib import Path
from typing import Any, Literal

import click

from persona_assay.terminal.options import AS_JSON, URL, client_of
from persona_assay.terminal.outcome import print_json, save_file, told_errors
from persona_assay.types import ScheduleIn

SCHEDULE = click.argument("schedule_id", metavar="SCHEDULE")


@click.group()
def schedule() -> None:
    """Run a job again and again, and watch one of its values for drift."""


@schedule.command()
@click.argument("job", metavar="FILE|JOB")
@click.option("--cron", required=True, help="Minute, hour, day of month, month, day of week.")
@click.option("--time-zone", help="IANA time zone of --cron, such as Europe/Berlin; default: UTC.")
@click.option("--name", help="A name.")
@click.option(
    "--figure", help="The watched value, such as mean@task=essay; default: acc_atom or persona_score."
)
@click.option("--anchors", metavar="JOB", help="A job of whose responses each run judges a sample again.")
@click.option("--anchor-responses", type=click.IntRange(10, 10_000), help="Size of the sample; default: 200.")
@click.option("--run-usd", type=float, help="Limit for one run, in US dollars.")
@click.option("--total-usd", type=float, help="Limit for all runs, in US dollars.")
@URL
@AS_JSON
def add(job: str, url: str, *, as_json: bool, **options: Any) -> None:
    """Create a schedule of a job file or of an existing job.

    With --anchors, drift of the judge is told from drift of the model.
    """
    with told_errors(), client_of(url) as client:
        if job.startswith("job_"):
            made = client.create_schedule(_wanted({"clone": job}, options))
        else:
            from persona_assay.terminal.job_file import read_job_file  # noqa: PLC0415

            file = read_job_file(job, sys.stdin)
            with file.places():
                made = client.create_schedule(_wanted({"job": file.job}, options))
        if as_json:
            print_json(made)
        else:
            click.echo(f"{made['id']} is next due {made['next_due']}")


def _wanted(body: dict[str, Any], options: dict[str, Any]) -> ScheduleIn:
    """The request, of the options that were given."""
    anchors, responses = options.pop("anchors"), options.pop("anchor_responses")
    limits = {name: options.pop(name) for name in ("run_usd", "total_usd")}
    body |= {name: value for name, value in options.items() if value is not None}
    if budget := {name: value for name, value in limits.items() if value is not None}:
        body["budget"] = budget
    if anchors is not None:
        sample = {} if responses is None else {"sample": {"responses": responses}}
        body["anchors"] = {"job": anchors, **sample}
    wanted: ScheduleIn = body  # type: ignore[assignment] # the service checks it
    return wanted


@schedule.command("list")
@URL
@AS_JSON
def list_(url: str, *, as_json: bool) -> None:
    """List schedules."""
    with told_errors(), client_of(url) as client:
        found = client.schedules(limit=500)
        if as_json:
            print_json(found)
            return

        from persona_assay.terminal.consoles import out  # noqa: PLC0415
        from persona_assay.terminal.schedule_tables import schedules_view  # noqa: PLC0415

        out().print(schedules_view(found))


@schedule.command()
@SCHEDULE
@click.option("--limit", type=click.IntRange(1, 500), default=30, show_default=True, help="Number of runs.")
@URL
@AS_JSON
def runs(schedule_id: str, limit: int, url: str, *, as_json: bool) -> None:
    """List a schedule's runs with values, limits and alarms, newest first."""
    with told_errors(), client_of(url) as client:
        found = client.schedule_runs(schedule_id, limit=limit)
        if as_json:
            print_json(found)
            return

        from persona_assay.terminal.consoles import out  # noqa: PLC0415
        from persona_assay.terminal.schedule_tables import runs_view  # noqa: PLC0415

        out().print(runs_view(found))


@schedule.command()
@SCHEDULE
@click.option("--output", "-o", help="Output file, .svg or .png. [SCHEDULE-timeline.svg]")
@click.option(
    "--theme", type=click.Choice(["light", "dark"]), help="Default: light; an SVG follows its reader."
)
@URL
@AS_JSON
def figure(
    schedule_id: str, output: str | None, theme: Literal["light", "dark"] | None, url: str, *, as_json: bool
) -> None:
    """Save the figure of a schedule's values over time, with limits and alarms."""
    path = Path(output or f"{schedule_id}-timeline.svg")
    file_format = path.suffix.removeprefix(".").lower()
    if file_format not in {"svg", "png"}:
        raise click.BadParameter("must end with .svg or .png", param_hint="--output")
    with told_errors(), client_of(url) as client:
        content = client.schedule_figure(
            schedule_id, file_format="png" if file_format == "png" else "svg", theme=theme
        )
        save_file(path, content)
        if as_json:
            print_json({"path": str(path.resolve()), "bytes": len(content)})
        else:
            click.echo(f"{path} ({len(content):,} bytes)")


@schedule.command()
@SCHEDULE
@URL
@AS_JSON
def pause(schedule_id: str, url: str, *, as_json: bool) -> None:
    """Pause a schedule: it is not due until it is resumed."""
    _set_paused(schedule_id, url, paused=True, as_json=as_json)


@schedule.command()
@SCHEDULE
@URL
@AS_JSON
def resume(schedule_id: str, url: str, *, as_json: bool) -> None:
    """Resume a paused schedule; what was due meanwhile is not run."""
    _set_paused(schedule_id, url, paused=False, as_json=as_json)


def _set_paused(schedule_id: str, url: str, *, paused: bool, as_json: bool) -> None:
    with told_errors(), client_of(url) as client:
        changed = client.change_schedule(schedule_id, {"paused": paused})
        if as_json:
            print_json(changed)
        else:
            click.echo(f"{schedule_id} is " + ("paused" if paused else f"next due {changed['next_due']}"))


@schedule.command()
@SCHEDULE
@URL
@AS_JSON
def delete(schedule_id: str, url: str, *, as_json: bool) -> None:
    """Delete a schedule with its runs' values; their jobs stay."""
    with told_errors(), client_of(url) as client:
        client.delete_schedule(schedule_id)
        if as_json:
            print_json({"id": schedule_id, "deleted": True})
        else:
            click.echo(f"{schedule_id} deleted")


COMMANDS = (schedule,)
"""In the order of the help."""
