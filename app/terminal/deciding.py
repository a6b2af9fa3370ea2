"""The commands that decide by results: `assay compare` and `assay gate`."""

from pathlib import Path
from typing import Annotated, TypedDict

import typer

from app.terminal.options import DEFAULT_URL, AsJson, JobId, Url, client_of
from app.terminal.outcome import GATE_FAILED, INCONCLUSIVE, CommandError, print_json, told_errors
from persona_assay.operations import IntervalKind, Pairing
from persona_assay.types import SideIn

Side = Annotated[
    str,
    typer.Argument(
        help="JOB, JOB:MODEL, or baseline:MODEL for a model of the atomic paper.", show_default=False
    ),
]


def compare(
    a: Side,
    b: Side,
    pairing: Annotated[
        Pairing, typer.Option(help="Pair whole cells, or single questions that both have answered.")
    ] = "cells",
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Compares two models: paired differences, a - b.

    The pairs are the personas, tasks and dimensions that both have; with --pairing items also the questions.
    """
    with told_errors(), client_of(url) as client:
        found = client.compare(_side(a), _side(b), pairing=pairing)
        if as_json:
            print_json(found)
            return

        from app.terminal.consoles import out  # noqa: PLC0415
        from app.terminal.decisions import comparison_view  # noqa: PLC0415

        out().print(comparison_view(found))


def gate(
    job_id: JobId,
    threshold: Annotated[
        list[str] | None,
        typer.Option(
            "--threshold",
            "-t",
            metavar="THRESHOLD",
            help="acc_atom>=0.8, acc_atom@task=essay>=0.7, refusal_rate<=0.02 …; any number of them. [the job's own]",
            show_default=False,
        ),
    ] = None,
    interval: Annotated[
        IntervalKind, typer.Option(help="Whose interval decides: other personas', or these cells' runs.")
    ] = "personas",
    minimum_coverage: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="A figure of a smaller share of the planned verdicts is inconclusive. [the job's own, 0.95 by default]",
            show_default=False,
        ),
    ] = None,
    junit: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False, help="Also save the checks as JUnit XML, for build servers.", show_default=False
        ),
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Holds a job's results to thresholds.

    Exit status: 0 pass, 1 fail, 2 inconclusive, 3 an error. A figure passes only if its whole interval does. What is missing, or of too little of what was planned, is inconclusive: it never passes.
    """
    with told_errors(), client_of(url) as client:
        asked: GateOptions = {"interval": interval, "minimum_coverage": minimum_coverage}
        found = client.gate(job_id, threshold or (), **asked)
        if junit is not None:
            _save(junit, client.gate_junit(job_id, threshold or (), **asked))
        if as_json:
            print_json(found)
        else:
            from app.terminal.consoles import out  # noqa: PLC0415
            from app.terminal.decisions import gate_view  # noqa: PLC0415

            out().print(gate_view(found))
        if found["verdict"] != "pass":
            raise typer.Exit(GATE_FAILED if found["verdict"] == "fail" else INCONCLUSIVE)


class GateOptions(TypedDict):
    """How thresholds are judged."""

    interval: IntervalKind
    minimum_coverage: float | None


def _save(path: Path, content: bytes) -> None:
    try:
        path.write_bytes(content)
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror or error}") from error


def _side(text: str) -> SideIn:
    """What one side of a comparison is."""
    first, _, rest = text.partition(":")
    if first == "baseline":
        return {"baseline": rest}
    return {"job": first, "model": rest} if rest else {"job": first}


COMMANDS = (compare, gate)
"""In the order in which the help lists them."""
