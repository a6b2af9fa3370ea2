"""How large a job finds a difference of two models, formatted for a terminal."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from persona_assay.terminal.consoles import printable
from persona_assay.terminal.fitted import Fitted
from persona_assay.terminal.quantities import dollars

Json = Mapping[str, Any]

NOISE = {
    "personas": "personas on one level",
    "levels": "levels",
    "wordings": "wordings",
    "personas_and_wordings": "wordings for one persona",
    "runs": "single runs",
}
SOURCES = {"from_job": "measured", "published": "published", "assumed": "assumed"}


def detection_view(detection: Json) -> RenderableType:
    """The job's own power, the sizes that suffice, cheapest first, and by which noise."""
    heading = Text(
        f"A difference of {detection['difference']:g} in {detection['metric']},"
        f" to be found in {100 * detection['power']:g} % of cases",
        style="bold",
    )
    at_once = f"{detection['models']} models compared at once, " if detection["models"] > 2 else ""  # noqa: PLR2004
    over = Text(f"{at_once}over {detection['population']}.")
    return Group(heading, over, _sizes(detection), *_remarks(detection))


def _sizes(detection: Json) -> RenderableType:
    table = Table(box=SIMPLE_HEAD)
    table.add_column("")
    for name in ("personas", "wordings", "iterations", "found in", "calls", "cost"):
        table.add_column(name, justify="right", no_wrap=True)
    for place, size in enumerate((detection["planned"], *detection["options"])):
        share = "never" if size["power"] is None else f"{100 * size['power']:.0f} %"
        numbers = (f"{size[name]:,}" for name in ("personas", "wordings", "iterations"))
        cost = "" if size["usd"] == 0 else dollars(size["usd"])
        table.add_row("" if place else "this job", *numbers, share, f"{size['calls']:,}", cost)
    return Fitted(table, heads=2)


def _remarks(detection: Json) -> Iterator[Text]:
    own, unreached = detection["planned"]["reason"], detection["reason"]
    if own is not None:
        yield Text(f"This job: {printable(own.partition(': ')[2])}.", style="warning")
    if unreached is not None:
        yield Text(f"No size suffices: {printable(unreached.partition(': ')[2])}.", style="warning")
    told = [
        f"{NOISE[each['of']]} {each['sd']:.3g} ({SOURCES.get(each['source'], printable(each['source']))})"
        for each in detection["noise"]
    ]
    yield Text(f"Standard deviations of differences: {', '.join(told)}.", style="hint")
    if any(each["source"] == "assumed" for each in detection["noise"]):
        yield Text("Measure them in a finished job of two models: --from-job JOB.", style="hint")
