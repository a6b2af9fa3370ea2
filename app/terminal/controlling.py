"""The commands that control a job: `assay cancel`, `pause`, `resume`, `retry` and `budget`."""

from typing import TYPE_CHECKING, Annotated

import typer

from app.terminal.options import DEFAULT_URL, AsJson, JobId, Url, client_of
from app.terminal.outcome import print_json, told_errors

if TYPE_CHECKING:
    from app.client.api_client import Action


def cancel(job_id: JobId, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Cancels a job: no call starts after it, and what was paid for is kept."""
    _act(job_id, "cancel", url, as_json=as_json)


def pause(job_id: JobId, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Pauses a job: no call starts until it is resumed."""
    _act(job_id, "pause", url, as_json=as_json)


def resume(job_id: JobId, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Lets a paused job go on where it stopped."""
    _act(job_id, "resume", url, as_json=as_json)


def retry(job_id: JobId, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Redoes what failed or stayed unparsed in a job that is over or paused."""
    _act(job_id, "retry", url, as_json=as_json)


def budget(
    job_id: JobId,
    usd: Annotated[float | None, typer.Option(help="US dollars.", show_default=False)] = None,
    calls: Annotated[int | None, typer.Option(help="Attempts.", show_default=False)] = None,
    tokens: Annotated[int | None, typer.Option(help="Input and output.", show_default=False)] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Changes limits of a job's budget; one that paused because of it goes on with `assay resume`."""
    given = {"usd": usd, "calls": calls, "tokens": tokens}
    with told_errors(), client_of(url) as client:
        job = client.change(job_id, {"budget": {name: n for name, n in given.items() if n is not None}})
        if as_json:
            print_json(job)
            return
        for name, limit in job["budget"].items():
            typer.echo(f"{name}: {limit['spent']:,} of {limit['limit']:,} spent, {limit['remaining']:,} left")


def _act(job_id: str, action: "Action", url: str, *, as_json: bool) -> None:
    with told_errors(), client_of(url) as client:
        job = client.act(job_id, action)
        if as_json:
            print_json(job)
        else:
            typer.echo(f"{job['id']} is {job['status']}")


COMMANDS = (cancel, pause, resume, retry, budget)
"""In the order in which the help lists them."""
