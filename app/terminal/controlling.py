"""The commands that control a job: `assay cancel`, `pause`, `resume`, `retry`, `budget` and `delete`."""

from typing import Annotated

import typer

from app.terminal.options import DEFAULT_URL, AsJson, JobId, Url, client_of
from app.terminal.outcome import print_json, told_errors
from persona_assay import operations
from persona_assay.calls import Call
from persona_assay.types import JobDetail


def cancel(job_id: JobId, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Cancels a job; what was paid for is kept.

    No call starts after it.
    """
    _act(operations.cancel(job_id), url, as_json=as_json)


def pause(job_id: JobId, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Pauses a job: no call starts until it is resumed."""
    _act(operations.pause(job_id), url, as_json=as_json)


def resume(job_id: JobId, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Lets a paused job go on where it stopped."""
    _act(operations.resume(job_id), url, as_json=as_json)


def retry(job_id: JobId, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Redoes what failed in a job that is over or paused.

    Also what stayed unparsed or has no answer. All the rest is kept.
    """
    _act(operations.retry(job_id), url, as_json=as_json)


def budget(
    job_id: JobId,
    usd: Annotated[float | None, typer.Option(help="US dollars.", show_default=False)] = None,
    calls: Annotated[int | None, typer.Option(help="Attempts.", show_default=False)] = None,
    tokens: Annotated[int | None, typer.Option(help="Input and output.", show_default=False)] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Changes limits of a job's budget.

    A job that paused because of it goes on with `assay resume`.
    """
    with told_errors(), client_of(url) as client:
        job = client.change_budget(job_id, usd=usd, calls=calls, tokens=tokens)
        if as_json:
            print_json(job)
            return

        from app.terminal.listings import budget_lines  # noqa: PLC0415

        for line in budget_lines(job):
            typer.echo(line)


def delete(job_id: JobId, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Removes a job that is over.

    Its responses and results go with it. This cannot be undone.
    """
    with told_errors(), client_of(url) as client:
        client.delete_job(job_id)
        if as_json:
            print_json({"id": job_id, "deleted": True})
        else:
            typer.echo(f"{job_id} is deleted")


def _act(call: Call[JobDetail], url: str, *, as_json: bool) -> None:
    with told_errors(), client_of(url) as client:
        job = client.send(call)
        if as_json:
            print_json(job)
        else:
            typer.echo(f"{job['id']} is {job['status']}")


COMMANDS = (cancel, pause, resume, retry, budget, delete)
"""In the order in which the help lists them."""
