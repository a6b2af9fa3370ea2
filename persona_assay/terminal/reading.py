"""The commands that read results: `assay results` and `assay report`."""

import codecs
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import click

from persona_assay.operations import ExportFormat, ReportFormat, ReportLevel
from persona_assay.terminal.options import AS_JSON, JOB, URL, client_of
from persona_assay.terminal.outcome import CommandError, Json, print_json, told_errors

if TYPE_CHECKING:
    from persona_assay import AssayClient

STANDARD_OUTPUT = "-"
MOST_BUNDLE_BYTES = 2**28

SUFFIXES = {"junit": "xml"}
"""File suffixes that differ from the format's name."""

EXPORT_SUFFIXES = {"preferences": "jsonl", "rewards": "jsonl"}
"""File suffixes of the exports that are not zip files."""


@click.command()
@JOB
@URL
@AS_JSON
def results(job_id: str, url: str, *, as_json: bool) -> None:
    """Show a job's results, even while it runs."""
    with told_errors(), client_of(url) as client:
        found = client.results(job_id)
        if as_json:
            print_json(found)
        else:
            print_results(found)


@click.command()
@JOB
@click.option(
    "--format",
    "-f",
    "format_",
    type=click.Choice(get_args(ReportFormat)),
    default="html",
    help="File format; junit checks the job's own thresholds.",
)
@click.option("--output", "-o", help="Output file; - for standard output. [JOB.FORMAT]")
@click.option(
    "--level",
    type=click.Choice(get_args(ReportLevel)),
    default="verdicts",
    help="csv, jsonl, parquet: what each row is.",
)
@URL
@click.option("--json", "as_json", is_flag=True, help="Print the file's path and size as JSON.")
def report(
    job_id: str, format_: ReportFormat, output: str | None, level: ReportLevel, url: str, *, as_json: bool
) -> None:
    """Save a job's report or export to a file."""
    with told_errors(), client_of(url) as client:
        if output == STANDARD_OUTPUT:
            if as_json:
                raise CommandError("--json and --output - both write to standard output; use only one")
            if sys.stdout.isatty():
                _show(client.report(job_id, format=format_, level=level), format_)
                return
            for piece in client.report(job_id, format=format_, level=level):
                sys.stdout.buffer.write(piece)
            return
        path = Path(output or f"{job_id}.{SUFFIXES.get(format_, format_)}")
        length = save_report(client, job_id, path, format_, level)
        if as_json:
            print_json({"path": str(path.resolve()), "bytes": length})
        else:
            if format_ == "html":
                _print_warnings(client.job(job_id))
            click.echo(f"{path} ({length:,} bytes)")


def _show(pieces: Iterable[bytes], format_: ReportFormat) -> None:
    """Print a report on a terminal, without the control characters that texts of models may contain."""
    from persona_assay.terminal.consoles import printable  # noqa: PLC0415

    if format_ == "parquet":
        raise CommandError(
            "Parquet files cannot be shown on a terminal; pass --output FILE or redirect the output"
        )
    for text in codecs.iterdecode(pieces, "utf-8", "replace"):
        sys.stdout.write("\n".join(map(printable, text.split("\n"))))


def _print_warnings(job: Json) -> None:
    from persona_assay.terminal.consoles import err, warning_lines  # noqa: PLC0415

    for line in warning_lines(job.get("warnings", ())):
        err().print(line)


def save_report(
    client: "AssayClient",
    job_id: str,
    path: Path,
    format_: ReportFormat = "html",
    level: ReportLevel = "verdicts",
) -> int:
    """Save a report.

    Returns:
        The file's length in bytes.

    Raises:
        CommandError: It cannot be written.
    """
    try:
        return client.save_report(job_id, path, format=format_, level=level)
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror or error}") from error


@click.command()
@JOB
@click.option(
    "--format",
    "-f",
    "format_",
    type=click.Choice(get_args(ExportFormat)),
    required=True,
    help="preferences: pairs for DPO; rewards: a reward for each sentence; dataset: for the Hugging Face Hub; inspect, every_eval_ever: for these tools; bundle: everything, for another installation.",
)
@click.option("--output", "-o", help="Output file. [JOB-FORMAT.EXTENSION]")
@click.option("--unit", type=click.Choice(["response", "sentence"]), help="preferences: pairs of what.")
@click.option(
    "--minimum-margin", type=float, help="preferences: least difference of the scores, from 0 to 1."
)
@click.option("--judge", help="preferences, rewards: the only judge whose scores count.")
@click.option("--no-raw-replies", is_flag=True, help="bundle: without what judges said, word for word.")
@URL
@click.option("--json", "as_json", is_flag=True, help="Print the file's path and size as JSON.")
def export(
    job_id: str,
    format_: ExportFormat,
    output: str | None,
    unit: Literal["response", "sentence"] | None,
    minimum_margin: float | None,
    judge: str | None,
    url: str,
    *,
    no_raw_replies: bool,
    as_json: bool,
) -> None:
    """Save a job in another tool's format."""
    path = Path(output or f"{job_id}-{format_}.{EXPORT_SUFFIXES.get(format_, 'zip')}")
    with told_errors(), client_of(url) as client:
        try:
            length = client.save_export(
                job_id,
                path,
                format_,
                unit=unit,
                minimum_margin=minimum_margin,
                judge=judge,
                raw_replies=False if no_raw_replies else None,
            )
        except OSError as error:
            raise CommandError(f"cannot write {path}: {error.strerror or error}") from error
    if as_json:
        print_json({"path": str(path.resolve()), "bytes": length})
    else:
        click.echo(f"{path} ({length:,} bytes)")
    if format_ == "preferences" and not length:
        click.echo("No pairs: no two texts of the same prompt have scores far enough apart.", err=True)


@click.group()
def bundle() -> None:
    """Reproduction bundles of other installations."""


@bundle.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@URL
@AS_JSON
def import_bundle(file: Path, url: str, *, as_json: bool) -> None:
    """Import a bundle; its results are computed again and must be the same."""
    with told_errors(), client_of(url) as client:
        if file.stat().st_size > MOST_BUNDLE_BYTES:
            raise CommandError(
                f"{file} has more than {MOST_BUNDLE_BYTES:,} bytes; a service takes no larger bundle"
            )
        found = client.import_bundle(file.read_bytes())
    if as_json:
        print_json(found)
    else:
        source = found["job"]["imported_from"]
        click.echo(
            f"{found['job']['id']} imported: same results, computed from {found['responses']:,} responses"
        )
        if source is not None and source["job"] != found["job"]["id"]:
            click.echo(f"It has a new ID: this installation already has a job {source['job']}.")


def print_results(found: Json) -> None:
    """Print results as tables."""
    from persona_assay.terminal.consoles import out  # noqa: PLC0415
    from persona_assay.terminal.results_tables import results_view  # noqa: PLC0415

    console = out()
    console.print(results_view(found, console.width))


COMMANDS = (results, report, export, bundle)
"""In the order of the help."""
