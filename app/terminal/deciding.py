"""The commands that decide by results: `assay compare` and `assay gate`."""

import enum
from typing import Annotated

import typer

from app.terminal.options import DEFAULT_URL, AsJson, JobId, Url, client_of
from app.terminal.outcome import print_json, told_errors

GATE_FAILED, INCONCLUSIVE = 1, 4

Side = Annotated[
    str,
    typer.Argument(
        help="JOB, JOB:MODEL, or baseline:MODEL for a model of the atomic paper.", show_default=False
    ),
]


class IntervalKind(enum.StrEnum):
    """Whose interval decides a gate."""

    personas = enum.auto()
    runs = enum.auto()


def compare(
    a: Side,
    b: Side,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Compares two models on the personas and tasks that both have: paired differences, a - b."""
    with told_errors(), client_of(url) as client:
        found = client.compare(_side(a), _side(b))
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
            help="acc_atom>=0.8, acc_atom@task=essay>=0.7, refusal_rate<=0.02 …; any number of them. [the job's own]",
            show_default=False,
        ),
    ] = None,
    interval: Annotated[
        IntervalKind, typer.Option(help="Whose interval decides: other personas', or these cells' runs.")
    ] = IntervalKind.personas,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Holds a job's results to thresholds. Exit status: 0 pass, 1 fail, 4 inconclusive."""
    with told_errors(), client_of(url) as client:
        found = client.gate(job_id, threshold or [], interval.value)
        if as_json:
            print_json(found)
        else:
            from app.terminal.consoles import out  # noqa: PLC0415
            from app.terminal.decisions import gate_view  # noqa: PLC0415

            out().print(gate_view(found))
        if found["verdict"] != "pass":
            raise typer.Exit(GATE_FAILED if found["verdict"] == "fail" else INCONCLUSIVE)


def _side(text: str) -> dict[str, str]:
    """What one side of a comparison is."""
    first, _, rest = text.partition(":")
    if first == "baseline":
        return {"baseline": rest}
    return {"job": first} | ({"model": rest} if rest else {})


COMMANDS = (compare, gate)
"""In the order in which the help lists them."""
