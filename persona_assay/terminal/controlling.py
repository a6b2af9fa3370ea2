"""The commands that control a job, such as `assay cancel`, `pause`, `retry`, `reread`, `edit`, `share` and `delete`."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import click

from persona_assay import operations
from persona_assay.calls import Call
from persona_assay.terminal.options import AS_JSON, JOB, URL, client_of
from persona_assay.terminal.outcome import CommandError, print_json, told_errors
from persona_assay.terminal.quantities import counted
from persona_assay.types import JobChangeIn, JobDetail, Reread, ShareLink

MOST_SHOWN = 160
"""Characters of a text or reply that are shown."""


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
@click.option("--apply", is_flag=True, help="Store the new verdicts and compute the results again.")
@click.option("--examples", type=int, default=3, show_default=True, help="Examples of each kind of change.")
@URL
@AS_JSON
def reread(job_id: str, url: str, *, apply: bool, examples: int, as_json: bool) -> None:
    """Read a finished job's stored replies again with the current rules, without calls.

    Shows which verdicts change. Nothing is stored without --apply.
    """
    with told_errors(), client_of(url) as client:
        found = client.reread(job_id, apply=apply, examples=examples)
    _tell(found, _reread_lines(found), as_json=as_json)


def _reread_lines(found: Reread) -> Iterator[str]:
    from persona_assay.terminal.consoles import printable  # noqa: PLC0415

    changed, read = counted(found["changed"], "verdict"), counted(found["replies"], "reply", "replies")
    before, now = found["reader_before"], found["reader"]
    yield f"{changed} changed among {read}: read with {now}" + (f", before with {before}" * (before != now))
    for change in found["changes"]:
        yield f"  {change['of']}: {change['before']} → {change['after']}: {change['count']:,}"
        for each in change["examples"]:
            scores = f"{each['score_before'] or '-'} → {each['score_after'] or '-'}"
            yield f"    {scores}  {_shortened(printable(each['text']))}"
            for reply in filter(None, (each["reply"], each["repair_reply"])):
                yield f"      {each['judge']} replied: {_shortened(printable(reply))}"
    job = found["job"]
    if not found["applied"]:
        yield f"Nothing is stored. To store the new verdicts: assay reread {job} --apply"
    else:
        yield f"Stored. To wait for the new results: assay watch {job}"


def _shortened(words: str) -> str:
    return words if len(words) <= MOST_SHOWN else words[:MOST_SHOWN] + "…"


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
@click.option("--name", help="New name; an empty one removes it.")
@click.option("--tag", "tags", multiple=True, help="Add this tag. Repeatable.")
@click.option("--untag", "former", multiple=True, help="Remove this tag. Repeatable.")
@click.option("--notes", help="New notes, in place of all that are there; an empty text removes them.")
@click.option(
    "--archive/--unarchive", "archived", default=None, help="Leave the job out of lists, or not any more."
)
@URL
@AS_JSON
def edit(
    job_id: str,
    name: str | None,
    tags: tuple[str, ...],
    former: tuple[str, ...],
    notes: str | None,
    url: str,
    *,
    archived: bool | None,
    as_json: bool,
) -> None:
    """Rename, tag, annotate or archive a job.

    Stored results and reports keep the name that the job had.
    """
    change: JobChangeIn = {}
    if name is not None:
        change["name"] = name or None
    if notes is not None:
        change["notes"] = notes or None
    if archived is not None:
        change["archived"] = archived
    with told_errors(), client_of(url) as client:
        if tags or former:
            present = client.job(job_id)["tags"]
            change["tags"] = [tag for tag in dict.fromkeys([*present, *tags]) if tag not in former]
        if not change:
            raise click.UsageError("Say what to change: see assay edit --help.")
        job = client.change_job(job_id, change)
        if as_json:
            print_json(job)
            return

        from persona_assay.terminal.consoles import printable  # noqa: PLC0415

        marks = [f"#{tag}" for tag in job["tags"]] + (["archived"] if job["archived_at"] else [])
        click.echo(printable("  ".join([job["id"], *([job["name"]] if job["name"] else []), *marks])))


@click.command()
@JOB
@click.option("--yes", "-y", is_flag=True, help="Delete without asking.")
@URL
@AS_JSON
def delete(job_id: str, url: str, *, yes: bool, as_json: bool) -> None:
    """Delete a finished job, including its responses, results and labels.

    This cannot be undone. On a terminal, it asks first.
    """
    with told_errors(), client_of(url) as client:
        if sys.stdin.isatty() and not yes:
            _confirm_deletion(client.job(job_id))
        client.delete_job(job_id)
        if as_json:
            print_json({"id": job_id, "deleted": True})
        else:
            click.echo(f"{job_id} deleted")


def _confirm_deletion(job: JobDetail) -> None:
    """Ask, and say what is lost."""
    from persona_assay.terminal.consoles import printable  # noqa: PLC0415

    name = f'{job["id"]} "{printable(job["name"])}"' if job["name"] else job["id"]
    replies = counted(sum(stage["succeeded"] for stage in job["progress"].values()), "reply", "replies")
    if not click.confirm(
        f"Delete {name} with {replies}, its results and labels? This cannot be undone.", err=True
    ):
        raise CommandError("not deleted")


@click.command()
@JOB
@click.option("--days", type=click.IntRange(1, 365), default=30, show_default=True, help="How long it works.")
@click.option("--responses", is_flag=True, help="Also give all responses, with every verdict.")
@click.option("--for", "description", help="Whom it is for.")
@click.option("--list", "listed", is_flag=True, help="List the job's links instead.")
@click.option("--revoke", metavar="LINK", help="Revoke the link with this ID instead.")
@URL
@AS_JSON
def share(
    job_id: str,
    days: int,
    description: str | None,
    revoke: str | None,
    url: str,
    *,
    responses: bool,
    listed: bool,
    as_json: bool,
) -> None:
    """Create a link to a job and print it; whoever has it reads report and results without a key.

    It is printed once, gives nothing else, and works until it expires or is revoked.
    """
    with told_errors(), client_of(url) as client:
        if revoke is not None:
            ended = client.revoke_share_link(job_id, revoke)
            _tell(ended, [f"{ended['id']} is {ended['status']}"], as_json=as_json)
        elif listed:
            found = client.share_links(job_id)
            _tell(found, [_link_line(link) for link in found["data"]] or ["No links."], as_json=as_json)
        else:
            made = client.create_share_link(job_id, days=days, responses=responses, description=description)
            _tell(made, [f"{client.url}{made['path']}"], as_json=as_json)


def _link_line(link: ShareLink) -> str:
    from persona_assay.terminal.consoles import printable  # noqa: PLC0415

    gives = "report, results and all responses" if link["responses"] else "report and results"
    whom = f"  for {printable(link['description'])}" if link["description"] else ""
    return f"{link['id']}  {link['status']}  until {link['expires_at'][:16]}  {gives}{whom}"


def _tell(answer: Mapping[str, Any], lines: Iterable[str], *, as_json: bool) -> None:
    if as_json:
        print_json(answer)
    else:
        for line in lines:
            click.echo(line)


def _act(call: Call[JobDetail], url: str, *, as_json: bool) -> None:
    with told_errors(), client_of(url) as client:
        job = client.send(call)
        if as_json:
            print_json(job)
        else:
            click.echo(f"{job['id']} is {job['status']}")


COMMANDS = (cancel, pause, resume, retry, reread, budget, edit, share, delete)
"""In the order of the help."""
