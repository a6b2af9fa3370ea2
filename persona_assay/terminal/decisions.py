"""Comparisons and gates, formatted for a terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from persona_assay.terminal.consoles import printable, warning_lines
from persona_assay.terminal.fitted import INDENT, Fitted
from persona_assay.terminal.quantities import counted
from persona_assay.terminal.results_tables import metric_label

Json = Mapping[str, Any]

SIGNIFICANT = 0.05
"""p-value below which a difference is significant, if its interval excludes 0 as well."""
MISSING = "–"
SURE = "*"
LEGEND = (
    f"{SURE} significant: p < {SIGNIFICANT} and the 95 % interval excludes 0. p is Holm-corrected, separately"
    " for all tasks together (but for the metric that decides) and for single tasks. Detectable: smallest difference detectable with 80 % power."
)
_SCORES = {"persona_score": "PersonaScore", "task_score": "task score"}
_MARKS = {
    "pass": ("✓ pass", "green"),
    "fail": ("✗ fail", "red"),
    "inconclusive": ("? inconclusive", "yellow"),
}


def is_shown(row: Json) -> bool:
    """Whether a difference is significant; the service's reports use the same rule."""
    ends, p_value = row["ci95"], row["p_value_holm"]
    if p_value is None or ends is None or p_value >= SIGNIFICANT:
        return False
    return bool(ends[0] > 0 or ends[1] < 0)


def comparison_view(found: Json) -> RenderableType:
    """Two models' paired differences for a terminal."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
    table.add_column("metric", no_wrap=True)
    table.add_column("task", overflow="fold")
    over = "personas" if found.get("unpaired") else "pairs"
    for header in ("A", "B", "A - B", "95 % interval", "p (Holm)", "detectable", over):
        table.add_column(header, justify="right", no_wrap=True)
    for row in found["differences"]:
        sure = is_shown(row)
        table.add_row(
            _label(row["metric"]),
            printable(row["task"] or "all").replace("_", " "),
            f"{row['a']:.2f}",
            f"{row['b']:.2f}",
            Text(f"{row['difference']:+.3f}{SURE if sure else ' '}", style="bold" if sure else ""),
            *_evidence(row),
            f"{row['pairs']:,}",
        )
        if (over_items := row["over_items"]) is not None:
            table.add_row("", "over items", "", "", "", *_evidence(over_items), f"{over_items['items']:,}")
    for row in found["unpaired"]:
        ends = row["ci95"]
        interval = MISSING if ends is None else f"[{ends[0]:+.3f}, {ends[1]:+.3f}]"
        table.add_row(
            _label(row["metric"]),
            printable(row["task"] or "all").replace("_", " "),
            f"{row['a']:.2f}",
            f"{row['b']:.2f}",
            f"{row['difference']:+.3f} ",
            interval,
            MISSING,
            MISSING,
            f"{row['personas_a']:,}, {row['personas_b']:,}",
        )
    parts: list[RenderableType] = [
        *warning_lines([*found["a"].get("warnings", ()), *found["b"].get("warnings", ())]),
        _side("A", found["a"]),
        _side("B", found["b"]),
        "",
        Fitted(table, heads=2),
        "",
    ]
    missing = [
        row[name] for name in ("ci95_reason", "smallest_detectable_reason") for row in found["differences"]
    ]
    missing += [row["ci95_reason"] for row in found.get("unpaired", ())]
    reasons = dict.fromkeys(reason for reason in missing if reason)
    remarks = [LEGEND] if found["differences"] else []
    remarks += [f"{MISSING} {reason.partition(': ')[2]}." for reason in reasons]
    if found["left_out"]:
        remarks.append(
            f"{counted(len(found['left_out']), 'value')} left out because only one model has them; --json lists them."
        )
    remarks += found["notes"]
    return Group(*parts, *(Text(printable(remark), style="hint") for remark in remarks))


def models_view(found: Json) -> RenderableType:
    """Several models for a terminal: their ranks by each metric, and all pairs by the one that decides."""
    primary = found["rankings"][0]
    names = [each["name"] for each in primary["models"]]
    tables = [_ranked(names, found["rankings"])]
    if found.get("in_tasks"):
        tables.append(_ranked(names, found["in_tasks"]))
    pairs = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
    for header in ("A", "B"):
        pairs.add_column(header, overflow="fold")
    for header in ("A - B", "95 % interval", "p (all pairs)"):
        pairs.add_column(header, justify="right", no_wrap=True)
    for row in primary["differences"]:
        p_value, ends = row["p_value_corrected"], row["ci95"]
        sure = p_value is not None and p_value <= SIGNIFICANT
        pairs.add_row(
            printable(row["a"]),
            printable(row["b"]),
            Text(f"{row['difference']:+.3f}{SURE if sure else ' '}", style="bold" if sure else ""),
            MISSING if ends is None else f"[{ends[0]:+.3f}, {ends[1]:+.3f}]",
            _number(p_value, 4),
        )
    warnings = [warning for model in found.get("models", ()) for warning in model.get("warnings", ())]
    parts: list[RenderableType] = [*warning_lines(warnings)]
    for table in tables:
        parts += [Fitted(table), ""]
    parts += [Fitted(pairs, heads=2), ""]
    return Group(*parts, *(Text(printable(each), style="hint") for each in _remarks_on_models(found)))


def _ranked(names: Sequence[str], rankings: Sequence[Json]) -> Table:
    """The models' values and ranks, a column for each metric or task."""
    models = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
    models.add_column("model", overflow="fold")
    for ranking in rankings:
        task = f" in {printable(ranking['task'])}" if ranking.get("task") else ""
        models.add_column(f"{_label(ranking['metric'])}{task}", justify="right", no_wrap=True)
    for name in names:
        own = [next(each for each in ranking["models"] if each["name"] == name) for ranking in rankings]
        models.add_row(printable(name), *(f"{each['value']:.2f} {_ranks(each['rank'])}" for each in own))
    return models


def _label(metric: str) -> str:
    return _SCORES.get(metric) or metric_label(metric)


def _ranks(rank: Sequence[int]) -> str:
    """The ranks that a model may have."""
    best, worst = rank
    return f"({best})" if best == worst else f"({best}–{worst})"


def _remarks_on_models(found: Json) -> list[str]:
    primary = found["rankings"][0]
    detectable = primary["smallest_detectable"]
    reasons = [row["ci95_reason"] for row in primary["differences"]] + [primary["smallest_detectable_reason"]]
    return [
        (
            f"{SURE} {_label(primary['metric'])} of the two differs: p ≤ {SIGNIFICANT}, corrected for all"
            f" {len(primary['differences'])} pairs; intervals hold for all of them at once. In brackets the ranks that a model"
            " may have (95 %). The other metrics are exploratory."
        ),
        *(
            []
            if detectable is None
            else [f"Smallest difference detectable with 80 % power: {detectable:.3f}."]
        ),
        *(f"{MISSING} {reason.partition(': ')[2]}." for reason in dict.fromkeys(reasons) if reason),
        *found["notes"],
    ]


def _evidence(row: Json) -> tuple[str, str, str]:
    """A difference's interval, p-value and smallest detectable difference."""
    ends = row["ci95"]
    return (
        MISSING if ends is None else f"[{ends[0]:+.3f}, {ends[1]:+.3f}]",
        _number(row["p_value_holm"], 4),
        _number(row["smallest_detectable"], 3),
    )


def gate_view(found: Json) -> RenderableType:
    """A gate's checks and verdict."""
    parts: list[RenderableType] = []
    for check in found["checks"]:
        mark, colour = _MARKS[check["verdict"]]
        of = " · ".join(f"{key} {value}" for key, value in check["of"].items())
        parts.append(Text.assemble((mark, colour), "  ", (printable(check["threshold"]), "bold")))
        told = [Text(printable(of))] if of else []
        told.append(Text(printable(check["reason"]), style="hint"))
        parts += [Padding(line, (0, 0, 0, INDENT), expand=False) for line in told]
    mark, colour = _MARKS[found["verdict"]]
    return Group(*parts, "", Text(f"gate: {mark}", style=f"bold {colour}"))


def _side(name: str, side: Json) -> Text:
    text = Text(f"{name}  ", style="bold")
    text.append(printable(side["model"]))
    text.append(f"  {'published' if side['job'] is None else side['job']}", style="hint")
    if side["simulated"]:
        text.append("  SIMULATED", style="warning")
    return text


def _number(value: float | None, digits: int) -> str:
    return MISSING if value is None else f"{value:.{digits}f}"
