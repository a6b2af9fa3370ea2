"""The commands that read what came out: `assay results` and `assay report`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.terminal.options import DEFAULT_URL, AsJson, JobId, Url, client_of
from app.terminal.outcome import CommandError, Json, print_json, told_errors
from persona_assay.operations import ReportFormat, ReportLevel

if TYPE_CHECKING:
    from persona_assay import AssayClient

STANDARD_OUTPUT = "-"


SUFFIXES = {"junit": "xml"}
"""Of formats whose files are named otherwise."""


def results(job_id: JobId, url: Url = DEFAULT_URL, as_json: AsJson = False) -> None:
    """Prints a job's results, also while it runs."""
    with told_errors(), client_of(url) as client:
        found = client.results(job_id)
        if as_json:
            print_json(found)
        else:
            print_results(found)


def report(
    job_id: JobId,
    format_: Annotated[
        ReportFormat,
        typer.Option("--format", "-f", help="The file's format; junit is the gate of the job's thresholds."),
    ] = "html",
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="The file; - is standard output. [JOB.FORMAT]")
    ] = None,
    level: Annotated[ReportLevel, typer.Option(help="csv, jsonl, parquet: what a row is.")] = "verdicts",
    url: Url = DEFAULT_URL,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the file's path and length as JSON.")
    ] = False,
) -> None:
    """Saves a job's report as a file."""
    with told_errors(), client_of(url) as client:
        if output == STANDARD_OUTPUT:
            if as_json:
                raise CommandError("--json and --output - both want standard output; leave one out")
            for piece in client.report(job_id, format=format_, level=level):
                sys.stdout.buffer.write(piece)
            return
        path = Path(output or f"{job_id}.{SUFFIXES.get(format_, format_)}")
        length = save_report(client, job_id, path, format_, level)
        if as_json:
            print_json({"path": str(path.resolve()), "bytes": length})
        else:
            typer.echo(f"{path} ({length:,} bytes)")


def save_report(
    client: "AssayClient",
    job_id: str,
    path: Path,
    format_: ReportFormat = "html",
    level: ReportLevel = "verdicts",
) -> int:
    """Saves a report.

    Returns:
        The file's length in bytes.

    Raises:
        CommandError: It cannot be written.
    """
    try:
        return client.save_report(job_id, path, format=format_, level=level)
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror or error}") from error


def print_results(found: Json) -> None:
    """Prints results as tables."""
    from app.terminal.consoles import out  # noqa: PLC0415
    from app.terminal.results_tables import results_view  # noqa: PLC0415

    console = out()
    console.print(results_view(found, console.width))


COMMANDS = (results, report)
"""In the order in which the help lists them."""
