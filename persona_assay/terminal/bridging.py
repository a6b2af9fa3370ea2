"""`assay bridge`: from an old judge to a new one."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import click

from persona_assay.terminal.options import client_of
from persona_assay.terminal.outcome import CommandError, print_json, told_errors
from persona_assay.terminal.submitting import Sending, sends, submitted
from persona_assay.terminal.waiting import wait_for
from persona_assay.types import JobIn, JudgeIn, SampleIn

if TYPE_CHECKING:
    from rich.console import RenderableType

    from persona_assay import AssayClient

Json = Mapping[str, Any]
ANCHORS = 200
MISSING = "–"


@click.command()
@click.option(
    "--old", required=True, metavar="JOB[:JUDGE]", help="The old judge, and the job whose texts it judged."
)
@click.option(
    "--new",
    required=True,
    metavar="MODEL|JOB[:JUDGE]",
    help="The new judge: a model, which then judges a sample of these texts; or a job in which one has judged them.",
)
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    default=ANCHORS,
    show_default=True,
    help="How many texts a model judges.",
)
@click.option(
    "--by",
    type=click.Choice(["responses", "run_pairs"]),
    default="responses",
    show_default=True,
    help="What is drawn: single texts, or whole pairs of runs of a cell, which RC_atom needs.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the sample.")
@click.option(
    "--within",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.05,
    show_default=True,
    help="The margin within which the judges count as interchangeable, as a share of a figure's range.",
)
@sends
def bridge(
    old: str,
    new: str,
    sample: int,
    by: Literal["responses", "run_pairs"],
    seed: int,
    within: float,
    url: str,
    sending: Sending,
) -> None:
    """Show how far two judges agree on the same texts, and what the old one's totals would be by the new one.

    Example: `assay bridge --old JOB --new openai/gpt-5.6`. A model's price is shown first, as by `assay submit`; its job can be named as --new JOB later.
    """
    with told_errors(), client_of(url) as client:
        wanted: SampleIn = {"responses": sample, "seed": seed}
        if by != "responses":
            wanted["by"] = by
        side = _judge(new) if new.startswith("job_") else {"job": _judged(client, old, new, wanted, sending)}
        found = client.bridge(_judge(old), side, within=within)
        if sending.as_json:
            print_json(found)
            return
        from persona_assay.terminal.consoles import out  # noqa: PLC0415

        out().print(bridge_view(found))


def _judge(text: str) -> JudgeIn:
    job, _, judge = text.partition(":")
    return {"job": job, "judge": judge} if judge else {"job": job}


def _judged(client: "AssayClient", old: str, model: str, sample: SampleIn, sending: Sending) -> str:
    """The job in which a model judges a sample of the old judge's answered texts, as that one judged them, when it has ended."""
    job_id = _judge(old)["job"]
    spec = client.job(job_id)["spec"]
    wanted: JobIn = {
        "name": f"anchors of {job_id}",
        "responses": {
            "job": job_id,
            "filter": {"status": ["answered"]},
            "sample": sample,
        },
        "judges": [model],
        "protocol": spec.get("protocol", "paper"),
    }
    if rubrics := spec.get("rubrics"):
        wanted["rubrics"] = rubrics
    if several := spec.get("judging", {}).get("sentences_per_call"):
        wanted["judging"] = {"sentences_per_call": several}
    job = submitted(client, wanted, sending, client.submit)
    ended = wait_for(client, job, as_json=sending.as_json)
    if ended["status"] != "completed":
        raise CommandError(f"job {job['id']} is {ended['status']}; see assay status {job['id']}")
    return str(job["id"])


def bridge_view(found: Json) -> "RenderableType":
    """A bridge for a terminal."""
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415
    from rich.console import Group  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    from persona_assay.terminal.consoles import printable  # noqa: PLC0415
    from persona_assay.terminal.fitted import Fitted  # noqa: PLC0415
    from persona_assay.terminal.results_tables import PERSONA_SCORE, metric_label  # noqa: PLC0415

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
    for header in ("texts", "metric"):
        table.add_column(header, overflow="fold")
    for header in ("old", "n", "bridged", "95 % interval", "change", "anchors", "finding"):
        table.add_column(header, justify="right", no_wrap=True)
    for row in found["figures"]:
        ends = row["bridged"].get("ci95")
        table.add_row(
            printable(_of(row["group"]) or "all"),
            PERSONA_SCORE if row["metric"] == "persona_score" else metric_label(row["metric"]),
            _number(row["old"]["value"]),
            f"{row['old']['n']:,}",
            _number(row["bridged"]["value"]),
            MISSING if ends is None else f"[{ends[0]:.3f}, {ends[1]:.3f}]",
            _number(row["effect"]["value"], "+"),
            f"{row['anchors']:,}",
            row["finding"] or MISSING,
        )
    lines = [_agreement_words(row, "sentences", row["sentences"]) for row in found["agreement"][:1]]
    if found["graded"]:
        lines.append(_agreement_words(found["graded"], "grades", found["graded"]["responses"]))
    measured = "The new judge was given all texts: bridged figures are its own."
    estimated = "Bridged figures are estimates; nobody measured them."
    lines += [found["recommendation"], measured if found["design"] == "all" else estimated]
    lines += [f"Note: {note.partition(': ')[2]}" for note in found["notes"]]
    lines += [
        f"{metric_label(name)} is not bridged. {_reason(why)}" for name, why in found["not_bridged"].items()
    ]
    return Group(Fitted(table), "", *(Text(printable(line)) for line in lines))


def _of(group: Json) -> str:
    """Which texts: a model's, a task's, or all."""
    return str(group.get("model") or group.get("task", "").replace("_", " "))


def _agreement_words(row: Json, what: str, many: int) -> str:
    kappa, shift = row["quadratic_kappa"]["value"], row["shift"]["value"]
    of = f"{many:,} {what} of {row['responses']:,} texts"
    return f"Agreement on {of}: weighted kappa {_number(kappa)}, shift of scores {_number(shift, '+')} (new - old)."


def _reason(text: str) -> str:
    words = text.partition(": ")[2]
    return f"{words[:1].upper()}{words[1:]}."


def _number(value: float | None, sign: str = "") -> str:
    return MISSING if value is None else f"{value:{sign}z.3f}".replace("+0.000", "0.000")


COMMANDS = (bridge,)
"""In the order of the help."""
