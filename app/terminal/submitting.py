"""The commands that start a job and see how it goes: `assay plan`, `submit`, `watch`, `status` and `jobs`."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from app.terminal.options import DEFAULT_URL, AsJson, JobId, Url, client_of
from app.terminal.outcome import CommandError, exit_by, print_json, say, told_errors
from app.terminal.waiting import wait_for
from persona_assay import ProblemError
from persona_assay.types import Job, JobIn, JobStatus

if TYPE_CHECKING:
    from persona_assay import AssayClient

File = Annotated[
    str,
    typer.Argument(
        metavar="FILE", help="The job as YAML or JSON; - reads standard input.", show_default=False
    ),
]


def plan(file: File, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Says what a job would take and cost; nothing is spent."""
    with told_errors(), client_of(url) as client:
        from app.terminal.job_file import read_job_file  # noqa: PLC0415

        described = read_job_file(file, sys.stdin)
        with described.places():
            planned = client.plan(described.job)
        if as_json:
            print_json(planned)
            return

        from app.terminal.consoles import out  # noqa: PLC0415
        from app.terminal.listings import plan_view  # noqa: PLC0415

        out().print(plan_view(planned))


def submit(
    file: File,
    wait: Annotated[bool, typer.Option("--wait", help="Show the job's progress until it has ended.")] = False,
    confirm_calls: Annotated[
        int | None,
        typer.Option(
            min=1, help="How many calls you expect; a large job needs it, or asks you.", show_default=False
        ),
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Submits a job and prints its id.

    With --wait, the exit status is 0 if the job completed, 1 if it failed or was cancelled.
    """
    with told_errors(), client_of(url) as client:
        from app.terminal.job_file import read_job_file  # noqa: PLC0415

        described = read_job_file(file, sys.stdin)
        with described.places():
            job = _submitted(client, described.job, confirm_calls)
        if not as_json:
            typer.echo(job["id"])
        last = wait_for(client, job, as_json=as_json) if wait else job
        if as_json:
            print_json(last)
        if wait:
            exit_by(last)
        elif sys.stderr.isatty():
            say(f"To see how it goes: assay watch {job['id']}")


def _submitted(client: "AssayClient", job: JobIn, confirm_calls: int | None) -> Job:
    """Submits a job; where the service wants its size confirmed, and somebody is there, by asking."""
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
        if not typer.confirm(f"Submit it with about {planned:,} calls?", err=True):
            raise CommandError("nothing was submitted") from None
    return client.submit({**job, "confirm_calls": planned})


def watch(job_id: JobId, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Shows a job's progress until it has ended.

    Exit status: 0 if it completed, 1 if it failed or was cancelled.
    """
    with told_errors(), client_of(url) as client:
        job = wait_for(client, client.job(job_id), as_json=as_json)
        if as_json:
            print_json(job)
        exit_by(job)


def status(job_id: JobId, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Says where a job stands, without waiting."""
    with told_errors(), client_of(url) as client:
        job = client.job(job_id)
        if as_json:
            print_json(job)
            return

        from app.terminal.consoles import out  # noqa: PLC0415
        from app.terminal.listings import job_view  # noqa: PLC0415

        out().print(job_view(job))


def jobs(
    in_state: Annotated[
        JobStatus | None, typer.Option("--status", help="Only jobs in this state.", show_default=False)
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="How many, newest first.")] = 20,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Lists jobs."""
    with told_errors(), client_of(url) as client:
        page = client.jobs(limit=limit, status=in_state)
        if as_json:
            print_json(page)
            return

        from app.terminal.consoles import out  # noqa: PLC0415
        from app.terminal.listings import jobs_view  # noqa: PLC0415

        out().print(jobs_view(page))


COMMANDS = (plan, submit, watch, status, jobs)
"""In the order in which the help lists them."""
