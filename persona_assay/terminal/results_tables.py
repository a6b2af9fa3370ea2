"""Results as tables: one row per model, and model × level × task like the atomic paper's Table 5."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from persona_assay.terminal.consoles import printable, shortened, warning_lines
from persona_assay.terminal.heat import heat
from persona_assay.terminal.quantities import counted, dollars

Json = Mapping[str, Any]

MISSING = "–"
MEAN, ATOMIC, CORRECTED = "mean", "_atom", "_corrected"
"""The metrics and their order are those of the results, which a newer service may have more of: MEAN, then those of whole
responses, then the atomic ones, which end alike."""
INTERVAL = 15
"""Width of an interval: two numbers, brackets, comma and gap."""
FIELD = 6
"""Width of a value in the detailed tables: sign, digit, point, two decimals, mark."""

CHECKED = {
    "exact_agreement": "the share of identical verdicts",
    "mean_absolute_difference": "the mean absolute difference",
    "mean_difference": "the mean difference",
    "quadratic_kappa": "κ",
    "acc_difference": "the difference in ACC",
}
"""Names of the check's values in footnotes about missing ones."""
CHECKED_AGAIN = tuple(name for name in CHECKED if name != "mean_absolute_difference")

LEVELS = ("high", "neutral", "low")
TASKS = ("questionnaire", "essay", "social_media_post")
"""The orders of Table 5; others follow in alphabetical order."""

LEVEL_RANGES = {"low": (0.0, 1 / 3), "neutral": (1 / 3, 2 / 3), "high": (2 / 3, 1.0)}
LEVEL_WIDTH = 12
FIGURES_AND_COUNTS_WIDTH = 76
LONGEST_QUOTE = 200
"""Columns of a sentence, or of a persona's description, in the heading."""
SIMULATED = "SIMULATED"
OUT_OF_LEVEL = "*"
PERSONA_SCORE = "PersonaScore"


class Footnotes:
    """Footnotes on single values, each text listed once."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def mark(self, text: str) -> str:
        """The mark of a footnote."""
        if text not in self._texts:
            self._texts.append(text)
        return _superscript(self._texts.index(text) + 1)

    def render(self) -> Iterator[Text]:
        """The footnotes with their marks."""
        for number, text in enumerate(self._texts, start=1):
            yield Text(f"{_superscript(number)} {text}", style="hint")


def results_view(results: Json, width: int) -> RenderableType:
    """A job's results for a terminal.

    Args:
        results: The service's answer.
        width: Columns available.
    """
    notes = Footnotes()
    tables = [_persona_scores(results, notes)] if results["persona_scores"] else []
    if results["totals"]:
        tables += _overview(results, width, notes)
    for model in dict.fromkeys(cell["model"] for cell in results["cells"]):
        tables += _model_tables(results, model, width, notes)
    if results.get("verdict_agreement"):
        tables.append(_verdict_agreement(results["verdict_agreement"], notes))
    if results.get("judging_check"):
        tables.append(_judging_check(results["judging_check"], notes))
    if results.get("control"):
        tables.append(_control(results["control"], "With the persona, and without it", "without", notes))
    if results.get("opposite"):
        title = "With the persona, and with the opposite one"
        tables.append(_control(results["opposite"], title, "opposite", notes))
    if results.get("order_check"):
        tables.append(_order_check(results["order_check"], notes))
    doubts = warning_lines(results.get("warnings", ()), results.get("headline"))
    parts: list[RenderableType] = [*doubts, _heading(results)]
    parts += [Text(line) for line in _repairs(results.get("repairs", ()))]
    for table in tables:
        parts += ["", table]
    return Group(*parts, "", *_legend(results), *notes.render())


def _verdict_agreement(found: Sequence[Json], notes: Footnotes) -> Table:
    """A line for each pair of judges, over all sentences, then by task and by dimension."""
    table = _table(Text("Agreement between judges on sentences"))
    table.add_column("sentences of", overflow="fold")
    table.add_column("judges", overflow="fold")
    for header in ("α\nordinal", "α\ninterval", "κ", "same\nscore", "sentences\n(n)"):
        table.add_column(header, justify="right", no_wrap=True)
    for group in found:
        alphas = [_coefficient("α", group[name], notes) for name in ("alpha_ordinal", "alpha_interval")]
        # A task and a dimension can have one name.
        name = " ".join(f"{kind} {_words(group[kind])}" for kind in group["by"]) or "all"
        for position, pair in enumerate(group["pairs"]):
            table.add_row(
                name if position == 0 else "",
                printable(" – ".join(pair["judges"])),
                *(alphas if position == 0 else ("", "")),
                _coefficient("κ", pair["quadratic_kappa"], notes),
                _coefficient("the share of identical scores", pair["exact_agreement"], notes),
                f"{pair['exact_agreement']['n']:,}",
            )
    return table


def _coefficient(name: str, measured: Json, notes: Footnotes) -> str:
    if measured["value"] is None:
        return MISSING + notes.mark(f"{name} is missing: {_reason(measured)}")
    return f"{measured['value']:.2f}"


def _judging_check(check: Json, notes: Footnotes) -> Table:
    """A row for each judge, then for each of its tasks: agreement of grouped verdicts with single-sentence ones."""
    table = _table(
        Text(f"Up to {check['sentences_per_call']} sentences per call, compared with one per call")
    )
    table.add_column("judge", overflow="fold")
    table.add_column("task", overflow="fold")
    for header in (
        "sentences",
        "same\nverdict",
        "mean abs.\ndifference",
        "grouped\n− alone",
        "κ",
        "ACC\ngrouped − alone",
    ):
        table.add_column(header, justify="right", no_wrap=True)
    for row in check["agreement"]:
        task = "all" if row["task"] is None else _words(row["task"])
        figures = (_checked(name, row[name], notes) for name in CHECKED)
        table.add_row(printable(row["judge"]), task, f"{row['sentences']:,}", *figures)
    if not check["agreement"]:
        table.add_row(MISSING, "no sentence was judged both ways")
    return table


def _order_check(check: Json, notes: Footnotes) -> Table:
    """A row for each judge and order of its options, then for each dimension: agreement with the verdicts that count."""
    table = _table(
        Text(f"{100 * check['share']:.3g} % of the sentences judged again, with the options in other orders")
    )
    for header in ("judge", "options", "dimension"):
        table.add_column(header, overflow="fold")
    for header in ("sentences", "same\nverdict", "score\nfirst − again", "κ", "ACC\nfirst − again"):
        table.add_column(header, justify="right", no_wrap=True)
    for row in check["agreement"]:
        figures = (_with_interval(name, row[name], notes) for name in CHECKED_AGAIN)
        dimension = "all" if row["dimension"] is None else printable(row["dimension"])
        table.add_row(printable(row["judge"]), row["order"], dimension, f"{row['sentences']:,}", *figures)
    if not check["agreement"]:
        table.add_row(MISSING, "no sentence was judged again")
    return table


def _control(control: Json, title: str, other: str, notes: Footnotes) -> Table:
    """A row for each model, then for each of its levels: ACC_atom with the persona and of the control, and the gain."""
    table = _table(Text(title))
    for header in ("model", "personas"):
        table.add_column(header, overflow="fold")
    for header in ("ACC_atom\nwith", f"\n{other}", "gain\n95 % interval", "MEAN\ntoward level"):
        table.add_column(header, justify="right", no_wrap=True)
    for row in control.get("persona_score_totals", ()):
        parts = [_known(row[part]) for part in ("with_persona", "without")]
        gain = _gain(PERSONA_SCORE, row["gain"], notes)
        table.add_row(printable(row["model"]), f"all: {PERSONA_SCORE}", *parts, gain, "")
    totals = [row for row in control["totals"] if row["by"] in (["model"], ["model", "level"])]
    for model in dict.fromkeys(row["model"] for row in totals):
        for row in (row for row in totals if row["model"] == model):
            first = row["by"] == ["model"]
            share, mean = row["acc_atom"], row["mean_toward_level"]
            parts = [_known(share[part]) for part in ("with_persona", "without")]
            gains = (
                _gain(name, found["gain"], notes) for name, found in (("ACC_atom", share), ("MEAN", mean))
            )
            table.add_row(
                printable(model) if first else "", "all" if first else printable(row["level"]), *parts, *gains
            )
    return table


def _known(value: float | None) -> str:
    return MISSING if value is None else f"{value:.2f}"


def _gain(name: str, measured: Json, notes: Footnotes) -> str:
    ends = measured.get("ci95") or measured.get("ci95_runs")
    found = _coefficient(f"the gain in {name}", measured, notes)
    return found if ends is None else f"{found} [{ends[0]:.2f}, {ends[1]:.2f}]"


def _checked(name: str, measured: Json, notes: Footnotes) -> str:
    interval = f" {_interval(measured)}" if name == "acc_difference" and measured.get("ci95") else ""
    return _coefficient(CHECKED[name], measured, notes) + interval


def _with_interval(name: str, measured: Json, notes: Footnotes) -> str:
    interval = f"\n{_interval(measured)}" if "difference" in name and measured.get("ci95") else ""
    return _coefficient(CHECKED[name], measured, notes) + interval


def _heading(results: Json) -> Text:
    heading = Text(printable(results.get("name") or results["job"]), style="bold")
    if results["simulated"]:
        heading.append(f"  {SIMULATED}", style="warning")
        heading.append(": these results describe no real model", style="hint")
    if results["completeness"] != "full":
        reasons = [_reason({"reason": reason}) for reason in results.get("completeness_reasons", ())]
        heading.append(
            f"\nPartial: {'; '.join(reasons) or 'some parts are not finished yet'}.", style="warning"
        )
    if results.get("persona_set"):
        heading.append("\n" + _made_up(results["persona_set"]), style="default")
    if results.get("reuse"):
        heading.append("\n" + _spared(results["reuse"]), style="default")
    if results.get("worst_sentence"):
        heading.append("\n" + _worst(results, results["worst_sentence"]), style="default")
    return heading


def _worst(results: Json, worst: Json) -> str:
    """The sentence farthest out of character, and who the persona is."""
    persona = next(each for each in results["personas"] if each["id"] == worst["persona"])
    dimension = next(each for each in results["dimensions"] if each["id"] == worst["dimension"])
    traits = ", ".join(trait["words"] for trait in persona["traits"])
    scores = ", ".join(map(str, sorted(set(worst["scores"].values()))))
    described = shortened(persona["description"], LONGEST_QUOTE)
    who = f"{worst['model']} as {described}{f', {traits}' if traits else ''}"
    said = f"Worst sentence: “{shortened(worst['text'], LONGEST_QUOTE)}” – {who}; {_words(worst['task'])};"
    return printable(f"{said} score for {dimension['label']}: {scores}")


def _spared(spared: Json) -> str:
    """What a job saved by reusing replies."""
    of_job = counted(spared["same_job"], "reply", "replies")
    unpriced = (
        f" (excluding {spared['unpriced_replies']:,} of unknown price)" if spared["unpriced_replies"] else ""
    )
    return f"Reused: {of_job} from this job, {spared['other_job']:,} from other jobs; saved {dollars(spared['usd'])}{unpriced}"


def _repairs(repairs: Iterable[Json]) -> Iterator[str]:
    """A line for each judge that was asked once more after an unreadable reply."""
    for each in repairs:
        if each["unread"]:
            said = f"{printable(each['judge'])} was asked once more for {counted(each['unread'], 'verdict')}"
            failed = (
                f" ({each['failed']:,} of them because the follow-up failed)" if each.get("failed") else ""
            )
            yield f"{said}: {each['repaired']:,} repaired, {each['unparsed']:,} still unparsed{failed}"


def _made_up(made: Json) -> str:
    """The outcome of a job that generates personas."""
    dropped = ", ".join(f"{count:,} {reason}" for reason, count in made["dropped"].items())
    said = f"Generated {made['found']:,} of {counted(made['wanted'], 'persona')} in {counted(made['asks'], 'request')}"
    return f"{said}: {made['id'] or 'no persona set stored'}" + (f"; dropped: {dropped}" if dropped else "")


def _overview(results: Json, width: int, notes: Footnotes) -> Iterator[Table]:
    """One row per model: its values and, beside them or in a separate table, the counts behind them."""
    totals = _totals(results, ("model",))
    names = [_model_name(total) for total in totals]
    atomic, others = _metrics(results)
    figures = _columns(totals, (*others, *atomic), notes)
    counts = {
        "cells\n(n)": [Text(f"{total['cells']:,}") for total in totals],
        "coverage\nof verdicts": [Text(_covered(total)) for total in totals],
        "scored\nverdicts": [Text(_scored(total["units"])) for total in totals],
        "refused\nresponses": [Text(_refused(results, total["model"])) for total in totals],
    } | _without_text(totals)
    if max(map(len, names), default=0) + FIGURES_AND_COUNTS_WIDTH <= width:
        yield _by_model("Fidelity by model", names, figures | counts)
    else:
        yield _by_model("Fidelity by model", names, figures)
        yield _by_model("Data behind these values", names, counts)
    yield from _intervals(totals, names, (*atomic, *others), width)
    corrected = [name for name in totals[0]["metrics"] if name.endswith(CORRECTED)] if totals else []
    if corrected:
        yield _by_model("Corrected", names, _columns(totals, corrected, notes))


def _columns(totals: Sequence[Json], metrics: Iterable[str], notes: Footnotes) -> dict[str, list[Text]]:
    """Each metric of each model, by the metric's label."""
    return {
        metric_label(metric).removesuffix(CORRECTED).replace("_", "\n"): [
            Text.assemble(*_figure(metric, total["metrics"][metric], notes, cells=total["cells"]))
            for total in totals
        ]
        for metric in metrics
    }


def _covered(total: Json) -> str:
    """Coverage: the share of planned verdicts that count."""
    share = total["coverage"]["share"]
    return MISSING if share is None else f"{100 * share:.1f} %"


def _intervals(
    totals: Sequence[Json], names: Sequence[Text], metrics: Sequence[str], width: int
) -> Iterator[Table]:
    """One row per model: intervals across personas, ACC_atom's first, as many as fit."""
    room = max(1, (width - max(map(len, names), default=0)) // INTERVAL)
    known = [m for m in metrics if any(total["metrics"][m].get("ci95") for total in totals)][:room]
    if known:
        columns = {
            metric_label(metric): [Text(_interval(total["metrics"][metric])) for total in totals]
            for metric in known
        }
        yield _by_model("95 % intervals across personas", names, columns)


def _interval(measured: Json) -> str:
    ends = measured.get("ci95")
    return MISSING if not ends else f"[{ends[0]:.2f}, {ends[1]:.2f}]"


def _persona_scores(results: Json, notes: Footnotes) -> Table:
    """A row for each task of a model, then its PersonaScore: mean, interval, standard deviation and n over personas."""
    table = _table(Text("PersonaScore by model"))
    table.add_column("model", overflow="fold")
    table.add_column("task", overflow="fold")
    for header in ("mean", "95 % interval", "sd", "n"):
        table.add_column(header, justify="right", no_wrap=True)
    for total in results["persona_score_totals"]:
        scores = {_words(task): spread for task, spread in total["tasks"].items()}
        for position, (task, spread) in enumerate((scores | {PERSONA_SCORE: total["persona_score"]}).items()):
            model = printable(total["model"]) if position == 0 else ""
            table.add_row(model, task, *_spread(task, spread, notes))
        table.add_section()
    return table


def _spread(task: str, spread: Json, notes: Footnotes) -> Iterator[Text]:
    """Mean with its interval, standard deviation and n over personas."""
    value, sd = spread["value"], spread["sd"]
    if value is None:
        yield Text(MISSING + notes.mark(f"{task} is missing: {_reason(spread)}"))
    else:
        mark = notes.mark(f"{counted(spread['left_out'], 'persona')} left out") if spread["left_out"] else ""
        yield Text.assemble((f"{value:.2f}", heat((value - 1) / 4)), mark)  # the rubrics' scores are 1 to 5
    yield Text(_interval(spread))
    yield Text(MISSING if sd is None else f"{sd:.2f}")
    yield Text(f"{spread['n']:,}")


def _by_model(title: str, names: Sequence[Text], columns: Mapping[str, Sequence[Text]]) -> Table:
    table = _table(Text(title))
    table.add_column("model", overflow="fold")
    for header in columns:
        table.add_column(header, justify="right", no_wrap=True)
    for row in zip(names, *columns.values(), strict=True):
        table.add_row(*row)
    return table


def _scored(units: Json) -> str:
    return f"{units['scored']:,}/{units['total']:,}"


def _without_text(totals: Sequence[Json]) -> dict[str, list[Text]]:
    """Columns of responses that are not judged, if there are any."""
    names = {"filtered": "filtered\nresponses", "no_answer": "no\nanswer"}
    counts = {name: [total["generation"][name] for total in totals] for name in names}
    return {
        names[name]: [Text(f"{n:,}") for n in of_totals]
        for name, of_totals in counts.items()
        if any(of_totals)
    }


def _refused(results: Json, model: str) -> str:
    """A model's refusals and responses; a text judged on several traits counts once."""
    texts = {
        (cell["persona"], cell["task"]): cell["generation"]
        for cell in results["cells"]
        if cell["model"] == model
    }
    refused = sum(text["refused"] for text in texts.values())
    return f"{refused:,}/{sum(text['answered'] + text['refused'] for text in texts.values()):,}"


def _table(title: Text) -> Table:
    return Table(
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        collapse_padding=True,
        title=title,
        title_justify="left",
        title_style="bold",
    )


def _model_tables(results: Json, model: str, width: int, notes: Footnotes) -> Iterator[Table]:
    """Level × task of one model, with as many tasks side by side as fit."""
    tasks = _ordered((cell["task"] for cell in results["cells"] if cell["model"] == model), TASKS)
    side_by_side = max(1, (width - LEVEL_WIDTH) // (len(_shown_by_level(results)) * FIELD + 2))
    simulated = any(cell["simulated"] for cell in results["cells"] if cell["model"] == model)
    title = _model_name({"model": model, "simulated": simulated})
    for first in range(0, len(tasks), side_by_side):
        yield _level_table(results, title, model, tasks[first : first + side_by_side], notes)


def _level_table(results: Json, title: Text, model: str, tasks: Sequence[str], notes: Footnotes) -> Table:
    table = _table(title)
    shown = _shown_by_level(results)
    table.add_column("level", overflow="fold", max_width=LEVEL_WIDTH)
    for task in tasks:
        names = "".join(f"{_short_label(metric):>{FIELD - 1}} " for metric in shown)
        table.add_column(f"{_words(task)}\n{names}", no_wrap=True)
    by_level = {
        (total["level"], total["task"]): total
        for total in _totals(results, ("model", "task", "level"))
        if total["model"] == model
    }
    whole = {t["task"]: t for t in _totals(results, ("model", "task")) if t["model"] == model}
    scale = next(cell["scale"] for cell in results["cells"] if cell["model"] == model)
    for level in _ordered((level for level, _ in by_level), LEVELS):
        row = [_figures(by_level.get((level, task)), level, shown, scale, notes) for task in tasks]
        table.add_row(printable(level), *row)
    table.add_section()
    table.add_row("total", *(_figures(whole.get(task), None, shown, scale, notes) for task in tasks))
    return table


def _figures(
    total: Json | None, level: str | None, metrics: Sequence[str], scale: Json, notes: Footnotes
) -> Text:
    """One group's values side by side; the mean over all levels is meaningless and left out."""
    line = Text()
    for metric in metrics:
        if total is None or (metric == MEAN and level is None):
            line.append(" " * FIELD)
            continue
        figure, mark = _figure(metric, total["metrics"][metric], notes, cells=total["cells"])
        if metric == MEAN and _is_out_of_level(total["metrics"][metric]["value"], level, scale):
            figure.stylize("bold")
            mark = OUT_OF_LEVEL + mark
        line += Text(" " * (FIELD - 1 - len(figure))) + figure + Text(mark.ljust(1))
    return line


def _figure(metric: str, measured: Json, notes: Footnotes, *, cells: int) -> tuple[Text, str]:
    """A value, coloured, and a footnote mark if it is missing or covers only some of the cells."""
    value = measured["value"]
    if value is None:
        return Text(MISSING), notes.mark(f"{metric_label(metric)} is missing: {_reason(measured)}")
    figure = Text(f"{value:.2f}", style="" if metric == MEAN else heat(value))
    if measured["n"] < cells:
        remark = f"over {measured['n']:,} of {counted(cells, 'cell')}; the other cells lack this metric"
        return figure, notes.mark(remark)
    return figure, ""


def _reason(measured: Json) -> str:
    """Why a metric is missing, without the error code."""
    reason = str(measured.get("reason") or "no reason given")
    return printable(reason.partition(": ")[2] or reason)


def _is_out_of_level(mean: float | None, level: str | None, scale: Json) -> bool:
    """Whether a mean lies outside its level's third of the scale."""
    if mean is None or level not in LEVEL_RANGES:
        return False
    lowest, highest = LEVEL_RANGES[level]
    position = (mean - scale["minimum"]) / (scale["maximum"] - scale["minimum"])
    return not (lowest <= position < highest or position == highest == 1.0)


def _legend(results: Json) -> Iterator[Text]:
    if results["persona_scores"]:
        yield Text(
            "PersonaScore is the mean over a job's tasks, from 1 to 5; n is the number of personas.",
            style="hint",
        )
    if not results["cells"]:
        if not results["persona_scores"] and not results.get("persona_set"):
            yield Text("No cells yet.", style="hint")
        return
    short = ", ".join(f"{_short_label(m)} {metric_label(m)}" for m in _metrics(results)[0])
    yield Text(
        f"{short}. Totals are unweighted means over cells. RC_atom ranges over [-1, 1], MEAN over the score"
        f" scale, the others over [0, 1]. Intervals are across personas. {OUT_OF_LEVEL} MEAN outside the persona's level.",
        style="hint",
    )


def _totals(results: Json, by: Sequence[str]) -> list[Json]:
    return [total for total in results["totals"] if tuple(total["by"]) == tuple(by)]


def _model_name(total: Json) -> Text:
    return Text(printable(total["model"])) + Text(
        " (simulated)" if total["simulated"] else "", style="warning"
    )


def _ordered(names: Iterable[str], first: Sequence[str]) -> list[str]:
    """Distinct names: those of ``first`` in its order, then the others in alphabetical order."""
    distinct = set(names)
    return [name for name in first if name in distinct] + sorted(distinct - set(first))


def _words(identifier: str) -> str:
    return printable(identifier).replace("_", " ")


def metric_label(name: str) -> str:
    """A metric as the papers write it: ``IC_atom`` for ``ic_atom``."""
    head, _, tail = printable(name).partition("_")
    return f"{head.upper()}_{tail}" if tail else head.upper()


def _short_label(name: str) -> str:
    return metric_label(name).replace(ATOMIC, "a")


def _metrics(results: Json) -> tuple[list[str], list[str]]:
    """The atomic metrics, and those of whole responses."""
    names = list(results["totals"][0]["metrics"]) if results["totals"] else []
    atomic = [name for name in names if name.endswith(ATOMIC)]
    return atomic, [
        name for name in names if name != MEAN and name not in atomic and not name.endswith(CORRECTED)
    ]


def _shown_by_level(results: Json) -> list[str]:
    return [MEAN, *_metrics(results)[0]]


SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹"


def _superscript(number: int) -> str:
    return "".join(SUPERSCRIPTS[int(digit)] for digit in str(number))
