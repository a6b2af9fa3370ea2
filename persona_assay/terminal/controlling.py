"""The commands that control a job: `assay cancel`, `pause`, `resume`, `retry`, `budget` and `delete`."""

import click

from persona_assay import operations
from persona_assay.calls import Call
from persona_assay.terminal.options import AS_JSON, JOB, URL, client_of
from persona_assay.terminal.outcome import print_json, told_errors
from persona_assay.types import JobDetail


@click.command()
@JOB
@URL
@AS_JSON
def cancel(job_id: str, url: str, *, as_json: bool) -> None:
    """Cancel a job; finished responses and results are kept.

    No further calls start.
    """
    _act(operations.cancel(job_id), url, as_json=as_json)


@click.command()
@JOB
@URL
@AS_JSON
def pause(job_id: str, url: str, *, as_json: bool) -> None:
    """Pause a job: no calls start until it is resumed."""
    _act(operations.pause(job_id), url, as_json=as_json)


@click.command()
@JOB
@URL
@AS_JSON
def resume(job_id: str, url: str, *, as_json: bool) -> None:
    """Resume a paused job."""
    _act(operations.resume(job_id), url, as_json=as_json)


@click.command()
@JOB
@URL
@AS_JSON
def retry(job_id: str, url: str, *, as_json: bool) -> None:
    """Retry failed parts of a finished or paused job.

    Also retries unparsed replies and missing answers. Everything else is kept.
    """
    _act(operations.retry(job_id), url, as_json=as_json)


@click.command()
@JOB
@click.option("--usd", type=float, help="Limit in US dollars.")
@click.option("--calls", type=int, help="Limit in calls, retries included.")
@click.option("--tokens", type=int, help="Limit in input and output tokens.")
@URL
@AS_JSON
def budget(
    job_id: str, usd: float | None, calls: int | None, tokens: int | None, url: str, *, as_json: bool
) -> None:
    """Change the limits of a job's budget.

    To continue a job that paused because of its budget, use `assay resume`.
    """
    with told_errors(), client_of(url) as client:
        job = client.change_budget(job_id, usd=usd, calls=calls, tokens=tokens)
        if as_json:
            print_json(job)
            return

        from persona_assay.terminal.listings import budget_lines  # noqa: PLC0415

        for line in budget_lines(job):
            click.echo(line)


@click.command()
@JOB
@URL
@AS_JSON
def delete(job_id: str, url: str, *, as_json: bool) -> None:
    """Delete a finished job, including its responses and results.

    This cannot be undone.
    """
    with told_errors(), client_of(url) as client:
        client.delete_job(job_id)
        if as_json:
            print_json({"id": job_id, "deleted": True})
        else:
            click.echo(f"{job_id} deleted")


def _act(call: Call[JobDetail], url: str, *, as_json: bool) -> None:
    with told_errors(), client_of(url) as client:
        job = client.send(call)
        if as_json:
            print_json(job)
        else:
            click.echo(f"{job['id']} is {job['status']}")


COMMANDS = (cancel, pause, resume, retry, budget, delete)
"""In the order of the help."""
