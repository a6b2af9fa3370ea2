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
    """Cancels a job; what was paid for is kept.

    No call starts after it.
    """
    _act(operations.cancel(job_id), url, as_json=as_json)


@click.command()
@JOB
@URL
@AS_JSON
def pause(job_id: str, url: str, *, as_json: bool) -> None:
    """Pauses a job: no call starts until it is resumed."""
    _act(operations.pause(job_id), url, as_json=as_json)


@click.command()
@JOB
@URL
@AS_JSON
def resume(job_id: str, url: str, *, as_json: bool) -> None:
    """Lets a paused job go on where it stopped."""
    _act(operations.resume(job_id), url, as_json=as_json)


@click.command()
@JOB
@URL
@AS_JSON
def retry(job_id: str, url: str, *, as_json: bool) -> None:
    """Redoes what failed in a job that is over or paused.

    Also what stayed unparsed or has no answer. All the rest is kept.
    """
    _act(operations.retry(job_id), url, as_json=as_json)


@click.command()
@JOB
@click.option("--usd", type=float, help="US dollars.")
@click.option("--calls", type=int, help="Attempts.")
@click.option("--tokens", type=int, help="Input and output.")
@URL
@AS_JSON
def budget(
    job_id: str, usd: float | None, calls: int | None, tokens: int | None, url: str, *, as_json: bool
) -> None:
    """Changes limits of a job's budget.

    A job that paused because of it goes on with `assay resume`.
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
    """Removes a job that is over.

    Its responses and results go with it. This cannot be undone.
    """
    with told_errors(), client_of(url) as client:
        client.delete_job(job_id)
        if as_json:
            print_json({"id": job_id, "deleted": True})
        else:
            click.echo(f"{job_id} is deleted")


def _act(call: Call[JobDetail], url: str, *, as_json: bool) -> None:
    with told_errors(), client_of(url) as client:
        job = client.send(call)
        if as_json:
            print_json(job)
        else:
            click.echo(f"{job['id']} is {job['status']}")


COMMANDS = (cancel, pause, resume, retry, budget, delete)
"""In the order in which the help lists them."""
