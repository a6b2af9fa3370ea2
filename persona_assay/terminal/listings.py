"""Plans, job lists and the service's errors, formatted for a terminal."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from persona_assay import ProblemError
from persona_assay.terminal.consoles import printable, warning_lines
from persona_assay.terminal.failures import failure_lines, failure_view, status_words
from persona_assay.terminal.fitted import Fitted
from persona_assay.terminal.progress import JobProgress
from persona_assay.terminal.quantities import counted, dollars, duration, is_free

Json = Mapping[str, Any]

# Which command lists what a refusal may name as not found.
_LISTS = {"baseline": "assay baseline", "job": "assay jobs", "schedule": "assay schedule list"}


_SIZES = {"cells": "cell", "persona_scores": "persona score"}


def plan_view(plan: Json) -> RenderableType:
    """A job's estimated calls, tokens and cost."""
    about = "about " if plan["estimated"] else ""
    runs = plan["runs_per_cell"]
    size = [counted(plan[name], of) for name, of in _SIZES.items() if plan.get(name)]
    size += [f"{counted(runs, 'run')} each"] if runs is not None else []
    size += [counted(plan["responses"], "response"), about + counted(plan["calls"], "call")]
    heading = Text(" · ".join(size), style="bold")
    if plan["simulated"]:
        heading.append("  SIMULATED", style="warning")
    return Group(heading, _plan_stages(plan), *_plan_remarks(plan))


def _plan_stages(plan: Json) -> RenderableType:
    table = Table(box=SIMPLE_HEAD, show_footer=len(plan["stages"]) > 1)
    sums = [
        sum(stage[name] for stage in plan["stages"]) for name in ("calls", "input_tokens", "output_tokens")
    ]
    table.add_column("stage", footer="total")
    table.add_column("model", overflow="fold")
    for name, total in zip(("calls", "input tokens", "output tokens"), sums, strict=True):
        table.add_column(name, justify="right", no_wrap=True, footer=f"{total:,}")
    free = is_free(plan["cost"])
    if not free:
        table.add_column("cost", justify="right", no_wrap=True)
    for stage in plan["stages"]:
        tokens = (f"{stage['input_tokens']:,}", f"{stage['output_tokens']:,}")
        cost = () if free else (dollars(stage["usd"]),)
        table.add_row(stage["stage"], printable(stage["model"]), f"{stage['calls']:,}", *tokens, *cost)
    return Fitted(table, heads=2)


def cost_words(plan: Json) -> str:
    """A plan's expected cost."""
    low, high = plan["cost"]["usd_low"], plan["cost"]["usd_high"]
    if low == high:
        return dollars(low)
    expected = sum(stage["usd"] or 0.0 for stage in plan["stages"])
    return f"about {dollars(expected)} ({dollars(low)} to {dollars(high)})"


def _plan_remarks(plan: Json) -> Iterator[Text]:
    if not is_free(plan["cost"]):
        yield Text(f"Cost: {cost_words(plan)}")
    if most := plan.get("most_repair_calls", 0) + plan.get("most_refusal_checks", 0):
        further = f"Up to {counted(most, 'further call')} if replies are unreadable or refusals unsure"
        is_range = plan["cost"]["usd_low"] != plan["cost"]["usd_high"]
        yield Text(f"{further}; the highest cost includes them" if is_range else further)
    if plan["shortest_seconds"]:
        yield Text(f"Duration: at least {duration(plan['shortest_seconds'])} because of rate limits")
    if plan.get("confirm_calls") is not None:
        yield Text(f"Large job: submit it with --confirm-calls {plan['confirm_calls']}")
    for warning in plan["warnings"]:
        yield Text(f"Note: {printable(warning)}", style="warning")


def jobs_view(page: Json) -> RenderableType:
    """Jobs in the order of a page."""
    if not page["data"]:
        return Text("No jobs.", style="hint")
    table = Table(box=SIMPLE_HEAD)
    table.add_column("job", style="id", no_wrap=True)
    table.add_column("status", overflow="fold")
    table.add_column("created", no_wrap=True)
    table.add_column("name", overflow="fold")
    table.add_column("best model", overflow="fold")
    table.add_column("cost", justify="right", no_wrap=True)
    for job in page["data"]:
        cost = dollars(job["cost"]["usd"]) if "cost" in job and not is_free(job["cost"]) else ""
        table.add_row(job["id"], status_words(job), _moment(job["created_at"]), _name(job), _best(job), cost)
    more = [Text("More jobs: use --limit", style="hint")] if page["has_more"] else []
    return Group(Fitted(table), *more)


def _name(job: Json) -> Text:
    name = Text(printable(job["name"] or ""))
    for tag in job.get("tags", ()):
        name.append(f" #{printable(tag)}", style="hint")
    if job["simulated"]:
        name.append(" (simulated)", style="warning")
    if job.get("imported_judges"):
        name.append(" (imported verdicts)", style="warning")
    return name


def _best(job: Json) -> str:
    """The highest score of a job, whose it is, and of how many models."""
    scores = [score for score in job.get("scores", ()) if score["value"] is not None]
    if not scores:
        return ""
    others = f" of {len(job['scores'])}" if len(job["scores"]) > 1 else ""
    return f"{scores[0]['value']:.3f} {printable(scores[0]['model'])}{others} (n = {scores[0]['n']:,})"


def job_view(job: Json) -> RenderableType:
    """One job's status."""
    heading = Text(printable(job["name"] or "") or job["id"], style="bold")
    if job["simulated"]:
        heading.append("  SIMULATED", style="warning")
    if job.get("imported_judges"):
        heading.append("  IMPORTED VERDICTS", style="warning")
    facts = Text(f"{job['id']}  created {_moment(job['created_at'])}", style="hint")
    parts: list[RenderableType] = [*warning_lines(job.get("warnings", ())), heading, facts, JobProgress(job)]
    parts += [Text(line) for line in budget_lines(job)]
    return Group(
        *parts, *([failure_view(job)] if job["error"] else [Text(line) for line in failure_lines(job)])
    )


def budget_lines(job: Json) -> Iterator[str]:
    """A line for each limit of a job's budget."""
    for name, limit in (job.get("budget") or {}).items():
        if limit is not None:
            amounts = [
                dollars(limit[part]) if name == "usd" else f"{limit[part]:,}"
                for part in ("spent", "limit", "remaining")
            ]
            unit = "" if name == "usd" else f" {name}"
            yield "budget: {} of {}{unit} spent, {} remaining".format(*amounts, unit=unit)


def problem_view(problem: ProblemError) -> Text:
    """An error of the service, field by field."""
    text = Text(f"Error: {printable(problem.args[0])}", style="error")
    for field in problem.fields:
        text.append(f"\n  {printable(_place(field.pointer)) or '(request)'}", style="id")
        text.append(f"  {printable(field.message)}", style="default")
    hint = _hint(problem)
    if hint:
        text.append(f"\n{hint}", style="hint")
    return text


def _place(pointer: str) -> str:
    """A field's name at the terminal, where query parameters are options of the same name."""
    name, _, position = pointer.removeprefix("/query/").partition("/")
    if not pointer.startswith("/query/"):
        return pointer
    return f"--{name} #{int(position) + 1}" if position.isdecimal() else f"--{name}"


def _hint(problem: ProblemError) -> str:
    """What to do about an error, where the service itself cannot know."""
    if problem.status == HTTPStatus.UNAUTHORIZED:
        return "Set ASSAY_API_KEY to a valid key of this service."
    if problem.status == HTTPStatus.FORBIDDEN:
        return "The key in ASSAY_API_KEY lacks permission for this."
    if problem.status == HTTPStatus.NOT_FOUND:
        if not problem.code:
            return "Is this a Persona Assay service? Check ASSAY_URL."
        noun = problem.detail.partition(" ")[0]
        missing = problem.detail.endswith(" not found") and noun in _LISTS
        return f"List {noun}s with: {_LISTS[noun]}" if missing else ""
    if problem.status >= HTTPStatus.INTERNAL_SERVER_ERROR and problem.request_id:
        return f"Search the service's logs for request ID {printable(problem.request_id)}."
    return ""


def _moment(text: str) -> str:
    """A time in the local time zone."""
    return f"{datetime.fromisoformat(text).astimezone():%Y-%m-%d %H:%M}"
