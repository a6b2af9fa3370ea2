"""The commands that start and watch jobs: `assay plan`, `submit`, `watch`, `status` and `jobs`."""

import sys
from typing import TYPE_CHECKING, get_args

import click

from persona_assay import ProblemError
from persona_assay.terminal.options import AS_JSON, JOB, URL, client_of
from persona_assay.terminal.outcome import CommandError, exit_by, print_json, say, told_errors
from persona_assay.terminal.waiting import wait_for
from persona_assay.types import Job, JobIn, JobStatus

if TYPE_CHECKING:
    from persona_assay import AssayClient

FILE = click.argument("file", metavar="FILE")


@click.command()
@FILE
@URL
@AS_JSON
def plan(file: str, url: str, *, as_json: bool) -> None:
    """Estimate a job's calls and cost without running it.

    FILE is the job as YAML or JSON; - reads standard input.
    """
    with told_errors(), client_of(url) as client:
        from persona_assay.terminal.job_file import read_job_file  # noqa: PLC0415

        described = read_job_file(file, sys.stdin)
        with described.places():
            planned = client.plan(described.job)
        if as_json:
            print_json(planned)
            return

        from persona_assay.terminal.consoles import out  # noqa: PLC0415
        from persona_assay.terminal.listings import plan_view  # noqa: PLC0415

        out().print(plan_view(planned))


@click.command()
@FILE
@click.option("--wait", is_flag=True, help="Show progress until the job ends.")
@click.option(
    "--confirm-calls",
    type=click.IntRange(min=1),
    help="Confirm that you expect this many calls; large jobs require it (or ask).",
)
@URL
@AS_JSON
def submit(file: str, confirm_calls: int | None, url: str, *, wait: bool, as_json: bool) -> None:
    """Submit a job and print its ID.

    FILE is the job as YAML or JSON; - reads standard input. With --wait, the exit status is 0 if the job completed, 1 if it failed or was cancelled.
    """
    with told_errors(), client_of(url) as client:
        from persona_assay.terminal.job_file import read_job_file  # noqa: PLC0415

        described = read_job_file(file, sys.stdin)
        with described.places():
            job = _submitted(client, described.job, confirm_calls)
        if not as_json:
            click.echo(job["id"])
        last = wait_for(client, job, as_json=as_json) if wait else job
        if as_json:
            print_json(last)
        if wait:
            exit_by(last)
        elif sys.stderr.isatty():
            say(f"Watch its progress: assay watch {job['id']}")


def _submitted(client: "AssayClient", job: JobIn, confirm_calls: int | None) -> Job:
    """Submit a job; if the service wants its size confirmed and this is a terminal, ask."""
    if confirm_calls is not None:
        return client.submit({**job, "confirm_calls": confirm_calls})
    try:
        return client.submit(job)
    except ProblemError as error:
        unconfirmed = [field for field in error.fields if field.pointer == "/confirm_calls"]
        if not (unconfirmed and sys.stdin.isatty()) or "confirm_calls" in job:
            raise
        say(f"Not submitted: {unconfirmed[0].message}.")
        planned = client.plan(job)["calls"]
        if not click.confirm(f"Submit it with about {planned:,} calls?", err=True):
            raise CommandError("not submitted") from None
    return client.submit({**job, "confirm_calls": planned})


@click.command()
@JOB
@URL
@AS_JSON
def watch(job_id: str, url: str, *, as_json: bool) -> None:
    """Show a job's progress until it ends.

    Exit status: 0 if it completed, 1 if it failed or was cancelled.
    """
    with told_errors(), client_of(url) as client:
        job = wait_for(client, client.job(job_id), as_json=as_json)
        if as_json:
            print_json(job)
        exit_by(job)


@click.command()
@JOB
@URL
@AS_JSON
def status(job_id: str, url: str, *, as_json: bool) -> None:
    """Show job status."""
    with told_errors(), client_of(url) as client:
        job = client.job(job_id)
        if as_json:
            print_json(job)
            return

        from persona_assay.terminal.consoles import out  # noqa: PLC0415
        from persona_assay.terminal.listings import job_view  # noqa: PLC0415

        out().print(job_view(job))


@click.command()
@click.option(
    "--status", "in_state", type=click.Choice(get_args(JobStatus)), help="Only jobs with this status."
)
@click.option(
    "--limit", type=click.IntRange(1, 500), default=20, help="Number of jobs to list, newest first."
)
@URL
@AS_JSON
def jobs(in_state: JobStatus | None, limit: int, url: str, *, as_json: bool) -> None:
    """List jobs."""
    with told_errors(), client_of(url) as client:
        page = client.jobs(limit=limit, status=in_state)
        if as_json:
            print_json(page)
            return

        from persona_assay.terminal.consoles import out  # noqa: PLC0415
        from persona_assay.terminal.listings import jobs_view  # noqa: PLC0415

        out().print(jobs_view(page))


COMMANDS = (plan, submit, watch, status, jobs)
"""In the order of the help."""
