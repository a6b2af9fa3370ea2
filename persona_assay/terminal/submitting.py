"""The commands that start and watch jobs: `assay plan`, `submit`, `clone`, `watch`, `status` and `jobs`."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import click

from persona_assay.operations import JobSort
from persona_assay.terminal.options import AS_JSON, JOB, URL, client_of
from persona_assay.terminal.outcome import CommandError, exit_by, print_json, say, told_errors
from persona_assay.terminal.quantities import counted, is_free
from persona_assay.terminal.reading import save_report
from persona_assay.terminal.waiting import wait_for
from persona_assay.types import DetectIn, JobDetail, JobIn, JobStatus, Plan

if TYPE_CHECKING:
    from persona_assay import AssayClient

FILE = click.argument("file", metavar="FILE")
Metric = Literal["acc_atom", "acc", "ic_atom", "mean"]


@dataclass(frozen=True, slots=True)
class Sending:
    """How a job is submitted, and what follows.

    Attributes:
        calls: Calls of a large job that may be submitted without asking.
        usd: Highest price of a job that may be.
        asks_nothing: Whether any may be.
        wait: Whether it is followed until it ends.
        report: Where its report is saved, if it is.
        as_json: Whether the service's JSON is printed.
    """

    calls: int | None
    usd: float
    asks_nothing: bool
    wait: bool
    report: Path | None
    as_json: bool


def sends(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command the options of submitting a job, as ``sending``."""

    @click.option("--wait", is_flag=True, help="Show progress until the job ends.")
    @click.option(
        "--report",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Wait, and save the HTML report to this file.",
    )
    @click.option(
        "--confirm-calls",
        type=click.IntRange(min=1),
        help="Confirm that you expect this many calls; large jobs require it (or ask).",
    )
    @click.option(
        "--confirm-usd",
        type=click.FloatRange(min=0),
        default=1.0,
        envvar="ASSAY_CONFIRM_USD",
        show_envvar=True,
        help="On a terminal, ask before submitting a job that may cost more, in US dollars.",
    )
    @click.option("--yes", "-y", is_flag=True, help="Submit without asking, whatever its size and price.")
    @URL
    @AS_JSON
    @wraps(command)
    def with_options(
        *args: Any,
        confirm_calls: int | None,
        confirm_usd: float,
        yes: bool,
        wait: bool,
        report: Path | None,
        as_json: bool,
        **others: Any,
    ) -> None:
        wait = wait or report is not None
        command(*args, sending=Sending(confirm_calls, confirm_usd, yes, wait, report, as_json), **others)

    return with_options


@click.command()
@FILE
@click.option(
    "--detect",
    type=float,
    metavar="DIFFERENCE",
    help="Also show the numbers of personas, wordings and iterations that detect this difference between two models.",
)
@click.option("--power", type=float, default=0.8, show_default=True, help="Statistical power for --detect.")
@click.option(
    "--metric",
    type=click.Choice(get_args(Metric)),
    default="acc_atom",
    show_default=True,
    help="The metric of --detect.",
)
@click.option(
    "--population",
    type=click.Choice(("both", "personas")),
    default="both",
    show_default=True,
    help="What --detect generalizes to: other personas and persona instructions (wordings), or other personas.",
)
@click.option("--models", type=int, help="How many models --detect compares at once. [the job's models]")
@click.option("--from-job", metavar="JOB", help="A finished job from which --detect estimates the variation.")
@URL
@AS_JSON
def plan(
    file: str,
    detect: float | None,
    power: float,
    metric: Metric,
    population: Literal["both", "personas"],
    models: int | None,
    from_job: str | None,
    url: str,
    *,
    as_json: bool,
) -> None:
    """Estimate a job's calls and cost without running it.

    FILE is the job as YAML or JSON; - reads standard input.
    """
    asked: DetectIn | None = None
    if detect is None and from_job is not None:
        raise click.UsageError("--from-job needs --detect.")
    if detect is not None:
        asked = {
            "difference": detect,
            "power": power,
            "metric": metric,
            "population": population,
            "models": models,
            "from_job": from_job,
        }
    with told_errors(), client_of(url) as client:
        from persona_assay.terminal.job_file import read_job_file  # noqa: PLC0415

        described = read_job_file(file, sys.stdin)
        with described.places():
            planned = client.plan(described.job, detect=asked)
        if as_json:
            print_json(planned)
            return

        from persona_assay.terminal.consoles import out  # noqa: PLC0415
        from persona_assay.terminal.detection import detection_view  # noqa: PLC0415
        from persona_assay.terminal.listings import plan_view  # noqa: PLC0415

        out().print(plan_view(planned))
        if detection := planned.get("detection"):
            out().print(detection_view(detection))


@click.command()
@FILE
@click.option(
    "--responses",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="TEXTS",
    help="A file of existing responses to judge, JSON Lines (also compressed) or Parquet; sent in parts. The same command goes on after an interruption.",
)
@sends
def submit(file: str, responses: Path | None, url: str, sending: Sending) -> None:
    """Submit a job and print its ID.

    FILE is the job as YAML or JSON; - reads standard input. Its calls and price are shown first. With --wait, the exit status is 0 if the job completed, 1 if it failed or was cancelled.
    """
    with told_errors(), client_of(url) as client:
        from persona_assay.terminal.job_file import read_job_file  # noqa: PLC0415

        described = read_job_file(file, sys.stdin)
        wanted: JobIn = described.job
        places: AbstractContextManager[None] = nullcontext()
        if responses is not None:
            from persona_assay.terminal import uploading  # noqa: PLC0415

            if "responses" in wanted:
                raise CommandError("the job has `responses` already; leave them out, or --responses")
            upload = uploading.sent(client, responses)
            wanted = {**wanted, "responses": {"upload": upload["id"]}}
            places = uploading.places(responses, upload)
        with places, described.places():
            job = submitted(client, wanted, sending, client.submit)
        _told(client, job, sending)


@click.command()
@JOB
@click.option(
    "--set",
    "fields",
    multiple=True,
    metavar="FIELD=VALUE",
    help="A field of the job with its new value, as YAML; =null omits the field. Repeatable.",
)
@sends
def clone(job_id: str, fields: tuple[str, ...], url: str, sending: Sending) -> None:
    """Run a job again with changes, and print the new job's ID.

    Example: `assay clone JOB --set iterations=10 --set 'models=[openai/gpt-5.6]'`. Price and exit status are as for `assay submit`.
    """
    with told_errors(), client_of(url) as client:
        from persona_assay.terminal.job_file import changed_fields  # noqa: PLC0415

        changes = changed_fields(fields)
        merged = {**client.job(job_id)["spec"], **changes}
        wanted = cast("JobIn", {name: value for name, value in merged.items() if value is not None})

        def send(confirmed: JobIn) -> JobDetail:
            if "confirm_calls" in confirmed:
                changes["confirm_calls"] = confirmed["confirm_calls"]
            return client.clone(job_id, changes)

        job = submitted(client, wanted, sending, send)
        _told(client, job, sending)


def _told(client: "AssayClient", job: JobDetail, sending: Sending) -> None:
    """Print a new job's ID, and follow it and save its report as far as that is wanted."""
    if not sending.as_json:
        click.echo(job["id"])
    last = wait_for(client, job, as_json=sending.as_json) if sending.wait else job
    if sending.report is not None:
        length = save_report(client, job["id"], sending.report)
        say(f"HTML report: {sending.report} ({length:,} bytes)")
    if sending.as_json:
        print_json(last)
    if sending.wait:
        exit_by(last)
    elif sys.stderr.isatty():
        say(f"Watch its progress: assay watch {job['id']}")


def submitted(
    client: "AssayClient", job: JobIn, sending: Sending, send: Callable[[JobIn], JobDetail]
) -> JobDetail:
    """Submit a job; show its price first and, on a terminal, ask if it is large or may cost more than the limit."""
    if sending.calls is not None:
        job = {**job, "confirm_calls": sending.calls}
    asks = sys.stdin.isatty()
    if sending.as_json and not (asks or sending.asks_nothing):
        return send(job)
    planned = client.plan(job)
    from persona_assay.terminal.listings import cost_words  # noqa: PLC0415

    about = "about " if planned["estimated"] else ""
    cost = "" if is_free(planned["cost"]) else f", cost: {cost_words(planned)}"
    say(f"{about}{counted(planned['calls'], 'call')}{cost}".capitalize())
    if not (asks or sending.asks_nothing):
        return send(job)  # which the service refuses if it is large
    needed = None if "confirm_calls" in job else planned.get("confirm_calls")
    doubts = [] if needed is None else ["is large"]
    doubts += _price_doubts(job, planned, sending.usd)
    if (
        doubts
        and not sending.asks_nothing
        and not click.confirm(f"The job {' and '.join(doubts)}. Submit it?", err=True)
    ):
        raise CommandError("not submitted")
    return send(job if needed is None else {**job, "confirm_calls": needed})


def _price_doubts(job: JobIn, planned: Plan, limit: float) -> Iterator[str]:
    """Why a job's price needs a confirmation, if it does."""
    cost = planned["cost"]
    budget = (job.get("budget") or {}).get("usd")
    if budget is not None and budget <= limit:
        return  # it is never exceeded
    if cost["usd_high"] is None or cost["unpriced_models"]:
        yield "has models without a known price"
    elif cost["usd_high"] > limit:
        yield f"may cost more than ${limit:,.2f}"


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
@click.option("--status", type=click.Choice(get_args(JobStatus)), help="Only jobs with this status.")
@click.option("--search", "-s", help="Only jobs whose name, ID, notes, a tag or a model contain this.")
@click.option("--name", help="Only jobs whose names contain this.")
@click.option("--tag", multiple=True, help="Only jobs with this tag. Repeatable.")
@click.option("--model", help="Only jobs with a model of this label.")
@click.option(
    "--framework",
    type=click.Choice(["atomic", "personagym"]),
    help="Only jobs with a task of this framework.",
)
@click.option("--archived", is_flag=True, help="Only archived jobs.")
@click.option(
    "--sort",
    type=click.Choice(get_args(JobSort)),
    default="-created",
    show_default=True,
    help="Order of the list.",
)
@click.option("--limit", type=click.IntRange(1, 500), default=20, help="Number of jobs to list.")
@URL
@AS_JSON
def jobs(url: str, *, as_json: bool, search: str | None, archived: bool, limit: int, **wanted: Any) -> None:
    """List jobs, with their best model's score and their cost."""
    with told_errors(), client_of(url) as client:
        page = client.jobs(limit=limit, q=search, archived="true" if archived else "false", **wanted)
        if as_json:
            print_json(page)
            return

        from persona_assay.terminal.consoles import out  # noqa: PLC0415
        from persona_assay.terminal.listings import jobs_view  # noqa: PLC0415

        out().print(jobs_view(page))


COMMANDS = (plan, submit, clone, watch, status, jobs)
"""In the order of the help."""
