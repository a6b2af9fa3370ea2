"""Schedules and their runs, formatted for a terminal."""

from collections.abc import Mapping
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from persona_assay.terminal.consoles import printable
from persona_assay.terminal.fitted import Fitted
from persona_assay.terminal.quantities import dollars

Json = Mapping[str, Any]
MINUTE = 16
"""Characters of a time to the minute."""


def schedules_view(page: Json) -> RenderableType:
    """Schedules in the order of a page."""
    if not page["data"]:
        return Text("No schedules.", style="hint")
    table = Table(box=SIMPLE_HEAD)
    table.add_column("schedule", style="id", no_wrap=True)
    for name in ("name", "cron"):
        table.add_column(name, overflow="fold")
    for name in ("next due (UTC)", "value", "last run"):
        table.add_column(name, justify="right", overflow="fold")
    for each in page["data"]:
        last = each["last_run"]
        due = (
            _moment(each["next_due"])
            if each["next_due"]
            else f"paused: {(each['paused_reason'] or '').replace('_', ' ')}"
        )
        table.add_row(
            each["id"],
            printable(each["name"] or "") + (" (simulated)" if each["simulated"] else ""),
            f"{each['cron']} {each['time_zone']}",
            due,
            printable(each["figure"]),
            ""
            if last is None
            else f"{last['state']} {_number(last['value'])}" + (f", n = {n}" if (n := _count(last)) else ""),
        )
    return Fitted(table)


def runs_view(page: Json) -> RenderableType:
    """A schedule's runs in the order of a page."""
    if not page["data"]:
        return Text("No runs.", style="hint")
    table = Table(box=SIMPLE_HEAD)
    table.add_column("due (UTC)", no_wrap=True)
    table.add_column("state", overflow="fold")
    for name in ("value", "n", "limits", "anchors", "n", "limits", "cost"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("job", style="id", no_wrap=True)
    table.add_column("", overflow="fold")
    for run in page["data"]:
        table.add_row(
            _moment(run["due"]),
            run["state"],
            _number(run["value"]),
            _count(run),
            _limits(run["limits"]),
            _number(run["anchor_value"]),
            _count(run, "anchor_"),
            _limits(run["anchor_limits"]),
            "" if run["usd"] is None else dollars(run["usd"]),
            run["job"] or "",
            _said(run),
        )
    return Fitted(table)


def _said(run: Json) -> Text:
    alarms = [
        f"drift of the {alarm['cause'].replace('_', ' ')} since {_moment(alarm['since'])}: {alarm['shift']:+.3f}"
        for alarm in run["alarms"]
    ]
    if alarms:
        return Text("; ".join(alarms), style="warning")
    return Text(printable(run["reason"] or ""))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _count(run: Json, prefix: str = "") -> str:
    """What a value is a mean of, as `30` or `28 of 30`; empty where it is not known."""
    n, left_out = run.get(f"{prefix}n"), run.get(f"{prefix}left_out")
    if n is None:
        return ""
    return f"{n:,} of {n + left_out:,}" if left_out else f"{n:,}"


def _limits(ends: tuple[float, float] | None) -> str:
    return "" if ends is None else f"{ends[0]:.3f} to {ends[1]:.3f}"


def _moment(text: str) -> str:
    return text[:MINUTE].replace("T", " ")
