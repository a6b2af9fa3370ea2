"""What was found in another tool's file, formatted for a terminal."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from persona_assay.terminal.consoles import printable, shortened
from persona_assay.terminal.fitted import Fitted
from persona_assay.terminal.quantities import counted

Json = Mapping[str, Any]
MOST_NAMES = 5
MOST_REFUSED = 10
CELL = 40


def preview_view(file: str, preview: Json) -> RenderableType:
    """How a file maps, its first records, and what was refused."""
    counts = f"{preview['found']:,} found, {preview['mapped']:,} imported, {preview['refused']:,} refused"
    heading = Text.assemble((preview["kind"], "id"), f": {counts}")
    parts = (
        *map(Text, _summary(preview)),
        *_samples(preview["samples"]),
        *_refused(preview),
        *_notes(preview),
    )
    return Group(Text(printable(file), style="bold"), heading, *parts)


def _summary(preview: Json) -> Iterator[str]:
    for what in ("models", "personas", "tasks"):
        names = preview[what]
        if names:
            total = preview["persona_count"] if what == "personas" else len(names)
            shown = ", ".join(_named(each) for each in names[:MOST_NAMES])
            more = f" and {total - MOST_NAMES:,} more" if total > MOST_NAMES else ""
            yield f"{what}{_origin(preview, what)}: {printable(shown)}{more}"
    if preview["prompts"]:
        yield counted(preview["prompts"], "different prompt") + _origin(preview, "prompts")
    if preview["job"]:
        yield counted(preview["mapped"], "text") + _origin(preview, "texts")
    for score in preview["scores"][:MOST_NAMES]:
        span = f"{score['lowest']:g} to {score['highest']:g}"
        yield f"score {printable(score['name'])}: {score['count']:,} values, {span}"


def _origin(preview: Json, what: str) -> str:
    source = preview["mapping"].get(what[:-1])
    return f" (from {printable(source)})" if source else ""


def _named(each: Json) -> str:
    return f"{each['name']} × {each['count']:,}" if each["count"] else str(each["name"])


def _samples(samples: Sequence[Json]) -> Iterator[RenderableType]:
    columns = [
        name for name in ("persona", "model", "task", "prompt", "text") if any(each[name] for each in samples)
    ]
    if not columns:
        return
    table = Table(box=SIMPLE_HEAD)
    table.add_column("record", style="id", no_wrap=True)
    for name in columns:
        table.add_column(name, overflow="fold")
    for each in samples:
        cells = (shortened(printable(" ".join((each[name] or "").split())), CELL) for name in columns)
        table.add_row(printable(each["place"]) or "/", *cells)
    yield Fitted(table)


def _refused(preview: Json) -> Iterator[Text]:
    for each in preview["refused_records"][:MOST_REFUSED]:
        yield Text.assemble(
            ("refused ", "warning"), (f"{printable(each['place']) or '/'}  ", "id"), printable(each["reason"])
        )
    if preview["refused"] > MOST_REFUSED:
        for each in preview["reasons"]:
            yield Text(f"refused in all: {each['count']:,} × {printable(each['reason'])}", style="warning")
        yield Text("All places: --json", style="hint")


def _notes(preview: Json) -> Iterator[Text]:
    for note in preview["notes"]:
        yield Text(f"Note: {printable(note)}", style="warning")
