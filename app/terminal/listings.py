"""Plans, lists of jobs and refusals of the service as they are shown."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from app.client.errors import ProblemError
from app.terminal.consoles import printable
from app.terminal.progress import status_words
from app.terminal.quantities import counted, dollars, duration

Json = dict[str, Any]


def plan_view(plan: Json) -> RenderableType:
    """What a job would take."""
    about = "about " if plan["estimated"] else ""
    runs = plan["runs_per_cell"]
    size = [counted(plan["cells"], "cell")] + ([f"{counted(runs, 'run')} each"] if runs is not None else [])
    size += [counted(plan["responses"], "response"), about + counted(plan["calls"], "call")]
    heading = Text(" · ".join(size), style="bold")
    if plan["simulated"]:
        heading.append("  SIMULATED", style="warning")
    return Group(heading, _plan_stages(plan), *_plan_remarks(plan))


def _plan_stages(plan: Json) -> Table:
    table = Table(box=SIMPLE_HEAD)
    table.add_column("stage")
    table.add_column("model", overflow="fold")
    for name in ("calls", "input tokens", "output tokens", "cost"):
        table.add_column(name, justify="right", no_wrap=True)
    for stage in plan["stages"]:
        tokens = (f"{stage['input_tokens']:,}", f"{stage['output_tokens']:,}")
        table.add_row(
            stage["stage"], printable(stage["model"]), f"{stage['calls']:,}", *tokens, dollars(stage["usd"])
        )
    return table


def _plan_remarks(plan: Json) -> Iterator[Text]:
    low, high = plan["cost"]["usd_low"], plan["cost"]["usd_high"]
    yield Text(f"Cost: {dollars(low) if low == high else f'{dollars(low)} to {dollars(high)}'}")
    if plan["shortest_seconds"]:
        yield Text(f"Shortest time under the rate limits: {duration(plan['shortest_seconds'])}")
    for warning in plan["warnings"]:
        yield Text(f"Note: {printable(warning)}", style="warning")


def jobs_view(page: Json) -> RenderableType:
    """Jobs, newest first."""
    if not page["data"]:
        return Text("There are no jobs.", style="hint")
    table = Table(box=SIMPLE_HEAD)
    table.add_column("job", style="id", no_wrap=True)
    table.add_column("status", overflow="fold")
    table.add_column("created", no_wrap=True)
    table.add_column("name", overflow="fold")
    for job in page["data"]:
        name = Text(printable(job["name"] or ""))
        if job["simulated"]:
            name.append(" (simulated)", style="warning")
        created = datetime.fromisoformat(job["created_at"]).astimezone()
        table.add_row(job["id"], status_words(job), f"{created:%Y-%m-%d %H:%M}", name)
    more = [Text("There are more: say how many with --limit.", style="hint")] if page["has_more"] else []
    return Group(table, *more)


def failure_view(job: Json) -> Text:
    """Why a job did not end well."""
    text = Text(f"The job is {status_words(job)}.", style="error")
    if job["error"]:
        text.append(f"\n{printable(job['error']['detail'])}", style="default")
    return text


def problem_view(problem: ProblemError) -> Text:
    """A refusal of the service, field by field."""
    text = Text(f"Error: {printable(problem.args[0])}", style="error")
    for field in problem.fields:
        text.append(f"\n  {printable(field.pointer) or '(the whole)'}", style="id")
        text.append(f"  {printable(field.message)}", style="default")
    if problem.status >= 500 and problem.request_id:  # noqa: PLR2004 - the service's own errors
        text.append(f"\nThe service's logs have more under {printable(problem.request_id)}.", style="hint")
    return text
