"""Models, personas, tasks and responses, formatted for a terminal."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from persona_assay.terminal.consoles import printable, printable_lines
from persona_assay.terminal.fitted import Fitted

Json = Mapping[str, Any]

MISSING = "–"


def models_view(found: Json) -> RenderableType:
    """Connections with the models that jobs may use."""
    if not found["data"]:
        return Text("No connections. `assay init` makes an operator file with one.", style="hint")
    table = _table("connection", "kind", "models")
    for connection in found["data"]:
        named = connection["models"]
        models = f"{connection['id']}/NAME: any name" if named is None else "\n".join(named)
        table.add_row(
            connection["id"],
            connection["kind"],
            printable_lines(models),
        )
    return Group(Fitted(table), Text("A job names a model as CONNECTION/MODEL.", style="hint"))


def persona_sets_view(built_in: Json, kept: Sequence[Json]) -> RenderableType:
    """Persona sets, built in and kept, with their sizes."""
    table = _table("set", "personas", "name")
    for name, personas in built_in["sets"].items():
        table.add_row(name, f"{len(personas):,}", "built in")
    for one in kept:
        table.add_row(one["id"], f"{one['personas']:,}", printable(one["name"] or ""))
    return Group(Fitted(table), Text("Show a set's personas: assay personas SET", style="hint"))


def persona_set_view(found: Json, dimensions: Sequence[Json]) -> RenderableType:
    """The personas of a set; their traits in words on the dimensions that the service has words for."""
    in_words = {each["id"]: each.get("in_words", {}) for each in dimensions}
    table = _table("persona", "traits", "description")
    for persona in found["personas"]:
        traits = ", ".join(
            in_words.get(name, {}).get(level, f"{name} {level}") for name, level in persona["traits"].items()
        )
        table.add_row(persona["id"], printable(traits), printable(persona["description"]))
    return Fitted(table)


def rubric_sets_view(kept: Sequence[Json]) -> RenderableType:
    """Rubric sets with the number of their tasks."""
    if not kept:
        return Text("No rubric sets. Store one: assay rubrics FILE", style="hint")
    table = _table("set", "tasks", "name")
    for one in kept:
        table.add_row(one["id"], f"{one['tasks']:,}", printable(one["name"] or ""))
    return Group(Fitted(table), Text("Show a set: assay rubrics SET", style="hint"))


def tasks_view(found: Json) -> RenderableType:
    """Tasks, then dimensions with their levels."""
    tasks = _table("task", "title", "framework")
    for task in found["data"]:
        tasks.add_row(task["id"], task["title"], task["framework"])
    dimensions = _table("dimension", "levels")
    for dimension in found["dimensions"]:
        words = dimension.get("in_words") or {level: level for level in dimension["levels"]}
        dimensions.add_row(dimension["id"], "\n".join(words.values()))
    return Group(Fitted(tasks), Fitted(dimensions))


def responses_view(page: Json) -> RenderableType:
    """Responses, each sentence with its judges' scores."""
    if not page["data"]:
        return Text("No responses match.", style="hint")
    parts: list[RenderableType] = []
    for response in page["data"]:
        parts += _response(response)
    if page["has_more"]:
        parts.append(Text("More responses: use --limit", style="hint"))
    return Group(*parts)


def _response(response: Json) -> Iterator[RenderableType]:
    where = [response["model"], response["persona"], response["task"], f"run {response['run'] + 1}"]
    yield Text(printable(" · ".join(where)), style="bold")
    described = (response.get("persona_description", ""), *response.get("persona_traits", ()))
    yield Text(printable(" · ".join(filter(None, described))))
    yield Text(response["id"], style="hint")
    if response["question"]:
        yield Text(printable(response["question"]), style="hint")
    if response["status"] != "answered":
        yield Text(
            printable(f"{response['status']}: {response['error'] or ''}".rstrip(": ")), style="warning"
        )
    if response["grades"]:
        grades = [f"{grade['judge']} {_score(grade)}" for grade in response["grades"]]
        yield Text(printable(f"grades: {', '.join(grades)}"))
    lines = Table.grid(padding=(0, 2, 0, 0))
    lines.add_column(justify="right", no_wrap=True)
    lines.add_column(overflow="fold")
    for unit in response["units"]:
        wrong = any(verdict["in_character"] is False for verdict in unit["verdicts"])
        scores = " ".join(_score(verdict) for verdict in unit["verdicts"])
        said = Text(printable(unit["text"]))
        if any(verdict["suspicion"] in {"text", "both"} for verdict in unit["verdicts"]):
            said.append("  uncertain: prompt injection", style="warning")
        lines.add_row(Text(scores, style="error" if wrong else ""), said)
    if not response["units"] and response["text"]:
        lines.add_row("", printable_lines(response["text"]))
    yield Padding(lines, (0, 0, 1, 2), expand=False)


def _score(verdict: Json) -> str:
    return MISSING if verdict["score"] is None else str(verdict["score"])


def _table(*columns: str) -> Table:
    table = Table(box=SIMPLE_HEAD)
    for name in columns:
        table.add_column(
            name,
            overflow="fold",
            no_wrap=name in {"connection", "set", "persona", "task"},
            justify="right" if name == "personas" else "left",
        )
    return table
