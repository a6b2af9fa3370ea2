"""The commands that test results: `assay compare`, `gate` and `baseline`."""

from pathlib import Path
from typing import TypedDict, get_args

import click
from click.exceptions import Exit

from persona_assay.operations import IntervalKind, Pairing
from persona_assay.terminal.options import AS_JSON, JOB, URL, client_of
from persona_assay.terminal.outcome import (
    GATE_FAILED,
    INCONCLUSIVE,
    CommandError,
    print_json,
    save_file,
    told_errors,
)
from persona_assay.types import NamedBaseline, SideIn


@click.command()
@click.argument("models", metavar="MODEL...", nargs=-1, required=True)
@click.option(
    "--pairing",
    type=click.Choice(get_args(Pairing)),
    default="cells",
    help="Pair whole cells, or single questions that all of the models answered.",
)
@URL
@AS_JSON
def compare(models: tuple[str, ...], pairing: Pairing, url: str, *, as_json: bool) -> None:
    """Compare models by paired differences.

    A MODEL is JOB:MODEL, baseline:NAME for a baseline of your own, baseline:MODEL for a model of the atomic paper, or JOB for all models of a job; of two, JOB stands for its only model.
    Pairs share persona, task and dimension; with --pairing items, also the question.
    Of more than two models, each is compared with each other one.
    """
    sides = [_side(each) for each in models]
    with told_errors(), client_of(url) as client:
        from persona_assay.terminal.consoles import out  # noqa: PLC0415
        from persona_assay.terminal.decisions import comparison_view, models_view  # noqa: PLC0415

        if len(sides) == 2:  # noqa: PLR2004 - a pair
            two = client.compare(sides[0], sides[1], pairing=pairing)
            print_json(two) if as_json else out().print(comparison_view(two))
        else:
            found = client.compare_models(sides, pairing=pairing)
            print_json(found) if as_json else out().print(models_view(found))


@click.command()
@JOB
@click.option(
    "--threshold",
    "-t",
    metavar="THRESHOLD",
    multiple=True,
    help="acc_atom>=0.8, acc_atom@task=essay>=0.7, refusal_rate<=0.02, acc_atom>=baseline:NAME …; repeatable. [the job's own thresholds]",
)
@click.option(
    "--interval",
    type=click.Choice(get_args(IntervalKind)),
    default="personas",
    help="Which interval decides: across personas, the cells' runs, persona instructions (wordings), or personas and wordings.",
)
@click.option(
    "--minimum-coverage",
    type=click.FloatRange(0, 1),
    help="Below this coverage, a value is inconclusive. [the job's own, 0.95 by default]",
)
@click.option(
    "--junit",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also save the checks as JUnit XML, for build servers.",
)
@URL
@AS_JSON
def gate(
    job_id: str,
    threshold: tuple[str, ...],
    interval: IntervalKind,
    minimum_coverage: float | None,
    junit: Path | None,
    url: str,
    *,
    as_json: bool,
) -> None:
    """Check a job's results against thresholds.

    Exit status: 0 pass, 1 fail, 2 inconclusive, 3 error. A value passes only if its whole interval meets the threshold. A missing value, or one with too little coverage, is inconclusive.
    """
    with told_errors(), client_of(url) as client:
        asked: GateOptions = {"interval": interval, "minimum_coverage": minimum_coverage}
        found = client.gate(job_id, threshold, **asked)
        if junit is not None:
            save_file(junit, client.gate_junit(job_id, threshold, **asked))
        if as_json:
            print_json(found)
        else:
            from persona_assay.terminal.consoles import out  # noqa: PLC0415
            from persona_assay.terminal.decisions import gate_view  # noqa: PLC0415

            out().print(gate_view(found))
        if found["verdict"] != "pass":
            raise Exit(GATE_FAILED if found["verdict"] == "fail" else INCONCLUSIVE)


class GateOptions(TypedDict):
    """How thresholds are checked."""

    interval: IntervalKind
    minimum_coverage: float | None


def _side(text: str) -> SideIn:
    """One side of a comparison."""
    first, _, rest = text.partition(":")
    if first == "baseline":
        return {"baseline": rest}
    return {"job": first, "model": rest} if rest else {"job": first}


@click.command()
@click.argument("name", required=False)
@click.argument("model", metavar="[JOB[:MODEL]]", required=False)
@click.option("--rename", metavar="NEW", help="Give it this name instead.")
@click.option("--delete", "deleted", is_flag=True, help="Take the name away; the job stays.")
@URL
@AS_JSON
def baseline(
    name: str | None, model: str | None, rename: str | None, url: str, *, deleted: bool, as_json: bool
) -> None:
    """Name a finished job's model as a baseline, or list, rename and delete baselines.

    A baseline is compared with as baseline:NAME, and its job is kept as long as it is one. JOB stands for its only model.
    """
    if name is None and (rename is not None or deleted):
        raise CommandError("give the name of a baseline")
    if sum([model is not None, rename is not None, deleted]) > 1:
        raise CommandError("give only one of a job, --rename and --delete")
    with told_errors(), client_of(url) as client:
        if name is None:
            found = client.baselines().get("own", [])
            lines = [_baseline_line(each) for each in found] or ["No baselines of your own."]
            print_json({"data": found}) if as_json else click.echo("\n".join(lines))
        elif deleted:
            client.delete_baseline(name)
            print_json({"name": name, "deleted": True}) if as_json else click.echo(f"{name} is deleted")
        else:
            if rename is not None:
                one = client.rename_baseline(name, rename)
            elif model is not None:
                job, _, label = model.partition(":")
                one = client.name_baseline(name, job=job, model=label or None)
            else:
                one = client.baseline(name)
            print_json(one) if as_json else click.echo(_baseline_line(one))


def _baseline_line(found: NamedBaseline) -> str:
    from persona_assay.terminal.consoles import printable  # noqa: PLC0415

    job = f"{found['job']} ({printable(found['job_name'])})" if found["job_name"] else found["job"]
    return f"{found['name']}  {printable(found['model'])} of {job}"


COMMANDS = (compare, gate, baseline)
"""In the order of the help."""
