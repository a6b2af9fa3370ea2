"""Which figures a job has: each one's name, what it says in words, and how it is drawn."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial

from app.domain.metrics.definition import Family
from app.domain.metrics.registry import BY_NAME, names, range_of
from app.domain.personagym.diversity import shared_words
from app.domain.personagym.environments import Environments
from app.domain.results.contract import CellResult, Results
from app.domain.results.control import ControlArm
from app.domain.results.gains import Gain
from app.domain.results.personagym_control import ScoreGain
from app.reports.figures.bars import draw_bars
from app.reports.figures.grids import draw_heat_map, draw_runs
from app.reports.figures.intervals import Column, Point, Row, draw_intervals
from app.reports.figures.plot import Plot
from app.reports.figures.scatter import draw_scatters
from app.reports.figures.shares import Line, draw_shares
from app.reports.views.accuracy import APART, Scatter
from app.reports.views.distributions import Bar, Distribution, cell_bars
from app.reports.views.in_words import InWords
from app.reports.views.leaderboard import PERSONAGYM, Leaderboard, LeaderboardRow
from app.reports.views.level_bounds import LevelBound, LevelBounds
from app.reports.views.persona_scores import PersonaScores
from app.reports.views.run_matrices import RunMatrix
from app.reports.views.summary import HeatMap, ModelRow, task_rank

_RowKey = tuple[tuple[int, str], str, str]
_CellKey = tuple[tuple[int, str], str, str, str]
"""A row's group, persona and dimension; a cell's task besides."""

ATOMIC_COLUMNS = {
    name: Column(f"{BY_NAME[name].label} · {BY_NAME[name].summary}", *range_of(name, (0, 1)))
    for name in names(Family.ATOMIC)
}
_GRADES = (1, 5)
CELL_ROWS, CELL_TASKS = 60, 8
"""Personas and tasks of which scores are drawn cell by cell, at most; as in a heat map."""
CONTROL_COLUMNS = 5
_GAINS = (["model"], ["model", "level"])
GYM_TASKS = 7
"""Tasks beside whose scores there is room for the PersonaScore; the paper has five."""
BARS, FEWEST_PERSONAS = 30, 5
"""Bars of counts, and how many personas it takes to have words in common."""
LINES = 120
"""Bars by level and model: of the paper's twelve models 36."""


def models_plot(models: Sequence[ModelRow]) -> Plot | None:
    """The models' atomic metrics with their intervals; ``None`` where no model has one."""
    names = list(ATOMIC_COLUMNS)
    rows = [Row(m.model, [Point(m.figures[n].value, m.figures[n].ci95) for n in names]) for m in models]
    said = "; ".join(
        f"{m.model}: " + ", ".join(f"{n} {_said(m.figures[n].value, m.figures[n].ci95)}" for n in names)
        for m in models
    )
    return _intervals(
        "models",
        "The models’ atomic metrics with 95 % intervals across personas",
        said,
        list(ATOMIC_COLUMNS.values()),
        rows,
    )


def persona_scores_plot(gym: PersonaScores | None) -> Plot | None:
    """The models' PersonaScores and task scores with their intervals; ``None`` where no model has one."""
    if gym is None:
        return None
    tasks = _lowest_tasks(gym)
    found = {
        total.model: [total.persona_score, *(total.tasks[task] for task in tasks)] for total in gym.models
    }
    rows = [
        Row(model, [Point(metric.value, metric.ci95) for metric in metrics])
        for model, metrics in found.items()
    ]
    said = "; ".join(
        f"{model}: {_said(metrics[0].value, metrics[0].ci95)}" for model, metrics in found.items()
    )
    columns = [_grade("PersonaScore"), *map(_grade, tasks)]
    title = "PersonaScores, 1 to 5, with 95 % intervals across personas"
    if len(tasks) < len(gym.tasks):
        title += f": the {len(tasks)} of {len(gym.tasks):,} tasks with the lowest scores"
    return _intervals("persona_scores", title, said, columns, rows)


def control_plot(control: ControlArm | None) -> Plot | None:
    """ACC_atom and PersonaScore with the persona and, hollow, without; ``None`` without a control arm."""
    if control is None:
        return None
    found: dict[tuple[str, Column], Gain | ScoreGain] = {}
    for row in control.totals:
        if row.by in _GAINS:
            found[row.model, _of_level(row.level)] = row.acc_atom
    found |= {(row.model, _grade("PersonaScore")): row for row in control.persona_score_totals}
    columns = sorted(dict.fromkeys(column for _, column in found), key=_control_rank)[:CONTROL_COLUMNS]
    rows, said = [], []
    for model in dict.fromkeys(model for model, _ in found):
        own = [found.get((model, column)) for column in columns]
        rows.append(Row(model, [Point(each.with_persona if each else None) for each in own]))
        rows.append(
            Row("without the persona", [Point(each.without if each else None) for each in own], own=False)
        )
        parts = [
            f"{_said(each.without)} without, {_said(each.with_persona)} with" for each in own[:1] if each
        ]
        said.append(f"{model}: {', '.join(parts)} the persona")
    title = "Scores with the persona and without it (hollow)"
    return _intervals("control", title, "; ".join(said), columns, rows)


def _of_level(level: str | None) -> Column:
    return Column("ACC_atom" if level is None else f"{level} personas", 0, 1)


def _control_rank(column: Column) -> tuple[int, str]:
    first = ("PersonaScore", "ACC_atom", "high personas", "neutral personas", "low personas")
    return (first.index(column.title) if column.title in first else len(first)), column.title


def published_plot(found: Leaderboard) -> Plot | None:
    """The job's models among the published ones and baselines, which are drawn hollow."""
    rows = [
        Row(_named(row), [Point(row.entries[n].value, row.entries[n].ci95) for n in found.metrics], row.own)
        for row in found.rows
    ]
    gym = found.source.id == PERSONAGYM
    columns = [_grade(n) if gym else ATOMIC_COLUMNS[n] for n in found.metrics]
    said = "; ".join(_row_in_words(row, found.metrics[0]) for row in found.rows)
    beside = " and your baselines" if found.baselines else ""
    hollow = "all but this job’s values are hollow" if found.baselines else "published values are hollow"
    title = f"Compared with the {found.published} models of {found.source.tables}{beside} ({hollow})"
    return _intervals("published_persona_scores" if gym else "published", title, said, columns, rows)


def scores_plot(groups: Sequence[tuple[LevelBound, Sequence[Distribution]]]) -> Plot | None:
    """How often each score was given, by the personas' level and model; ``None`` without a score."""
    every = [
        Line(one.model, f"{bound.level} personas, {bound.minimum}–{bound.maximum}", [one.bars])
        for bound, found in groups
        for one in found
    ]
    lines = every[:LINES]
    said = "; ".join(
        f"{line.group}, {line.name}: "
        + ", ".join(f"{bar.score} {100 * bar.share:.0f} %" for bar in line.bars[0])
        for line in lines
    )
    title = "Score distribution by persona level"
    if len(lines) < len(every):
        title += f": the first {len(lines)} of {len(every):,}"
    return Plot("scores", title, said, partial(draw_shares, [""], lines)) if lines else None


def cells_plot(
    cells: Sequence[CellResult], level_bounds: LevelBounds, model: str, words: InWords, name: str = "cells"
) -> Plot | None:
    """How often each score was given in each of a model's cells; ``None`` without a score."""
    own = [cell for cell in cells if cell.model == model]
    every = sorted({cell.task for cell in own}, key=task_rank)
    tasks = every[:CELL_TASKS]
    bars = {
        (_group(cell, level_bounds), cell.persona, cell.dimension, cell.task): cell_bars(cell, level_bounds)
        for cell in own
    }
    if not any(bars.values()):
        return None
    rows = {key[:3] for key in bars}
    keys = sorted(_weakest(bars))
    lines = [
        Line(
            f"{persona} · {words.dimension(dimension)}",
            group[1],
            [bars.get((group, persona, dimension, task), ()) for task in tasks],
        )
        for group, persona, dimension in keys
    ]
    panels = [task.replace("_", " ") for task in tasks]
    title = f"Score distribution of {model} by cell"
    if len(keys) < len(rows):
        title += f": the weakest {len(keys)} of {len(rows):,} personas"
    if len(tasks) < len(every):
        title += f", {len(tasks)} of {len(every)} tasks"
    said = (
        f"Personas by task; the share in the persona’s level follows each of {len(keys) * len(tasks)} bars."
    )
    return Plot(name, title, said, partial(draw_shares, panels, lines))


def heat_map_plot(found: HeatMap, words: InWords) -> Plot:
    """Persona by task for one model."""
    value = found.total[-1][1].value
    said = f"Overall ACC_atom: {_said(value)}. An asterisk marks a MEAN outside its persona’s level."
    title = f"Persona by task: {found.model}{f', {found.left_out}' if found.left_out else ''}"
    return Plot("heat_map", title, said, partial(draw_heat_map, found, words))


def runs_plot(matrices: Sequence[RunMatrix], words: InWords) -> Plot | None:
    """Run by run in the cells that vary most; ``None`` where there is none."""
    said = "; ".join(
        f"{m.cell.persona}, {m.cell.task}, {m.cell.model}: RC_atom {m.cell.metrics['rc_atom'].value:.2f}, "
        f"runs {m.farthest[0]} and {m.farthest[1]} of {m.runs} differ most, by {m.farthest[2]:.2f} points"
        for m in matrices
    )
    title = "Distances between runs in the cells with the lowest RC_atom"
    return Plot("runs", title, said, partial(draw_runs, matrices, words)) if matrices else None


def accuracy_plot(panels: Sequence[Scatter]) -> Plot | None:
    """ACC against ACC_atom; ``None`` where there are too few cells."""
    said = []
    for panel in panels:
        words = f"{panel.title}: r {_said(panel.r.value, panel.r.ci95)} over {panel.cells:,} cells"
        if panel.widest is not None:
            name, acc, atom = panel.widest
            words += f"; farthest below the diagonal {name}, ACC {acc:.2f}, ACC_atom {atom:.2f}"
        words += f"; {panel.shaded:,} in the shaded region, where ACC exceeds ACC_atom by {APART} or more"
        said.append(words)
    title = "ACC of whole responses against ACC_atom of their sentences, by cell"
    return Plot("accuracy", title, ". ".join(said), partial(draw_scatters, panels)) if panels else None


def refusals_plot(results: Results) -> Plot | None:
    """How often each model refused to answer as a persona (PersonaGym's Figure 4); ``None`` where none did."""
    totals = [each for each in results.persona_score_totals if each.refusal_rate.value is not None]
    if not any(each.responses.refused for each in totals):
        return None
    rates = sorted(totals, key=lambda each: -(each.refusal_rate.value or 0.0))[:LINES]
    points = [Point(_percent(each.refusal_rate.value), _percents(each.refusal_rate.ci95)) for each in rates]
    rows = [Row(each.model, [point]) for each, point in zip(rates, points, strict=True)]
    ends = [end for point in points for end in (point.value, *(point.ci95 or ())) if end is not None]
    most = next(bound for bound in (5, 10, 20, 40, 60, 80, 100) if bound >= max(ends))
    said = "; ".join(
        f"{each.model}: {each.responses.refused:,} of {each.refusal_rate.n:,} responses" for each in rates
    )
    title = "Refusals to answer as the persona"
    return _intervals("refusals", title, said, [Column("Refused, % of responses", 0, most)], rows)


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _percents(ends: tuple[float, float] | None) -> tuple[float, float] | None:
    return None if ends is None else (100 * ends[0], 100 * ends[1])


def environments_plot(found: Environments | None) -> Plot | None:
    """In which environments the most personas are placed (PersonaGym's Figure 5); ``None`` where in none."""
    if found is None or not found.used:
        return None
    return _counts("environments", "Environments of the personas", "environments", found.used)


def persona_words_plot(results: Results) -> Plot | None:
    """What personas have in common (PersonaGym's Figure 6); ``None`` where there are few, or none of PersonaGym's."""
    if not results.graded or len(results.personas) < FEWEST_PERSONAS:
        return None
    words = shared_words(each.description for each in results.personas)
    return _counts("persona_words", "Words of the personas’ descriptions", "shared words", words)


def _counts(name: str, title: str, things: str, counts: Sequence[tuple[str, int]]) -> Plot | None:
    shown = counts[:BARS]
    if len(shown) < len(counts):
        title += f": the first {len(shown)} of {len(counts):,} {things}"
    said = "; ".join(f"{thing} {count:,}" for thing, count in shown)
    return Plot(name, title, said, partial(draw_bars, shown)) if shown else None


def _intervals(
    name: str, title: str, said: str, columns: Sequence[Column], rows: Sequence[Row]
) -> Plot | None:
    if not any(point.value is not None for row in rows for point in row.points):
        return None
    return Plot(name, title, said, partial(draw_intervals, columns, rows))


def _grade(name: str) -> Column:
    return Column(name.replace("_", " "), *_GRADES)


def _lowest_tasks(gym: PersonaScores) -> Sequence[str]:
    """The tasks, in their order, of which a model has the lowest scores, as many as there is room for."""

    def lowest(task: str) -> tuple[float, int]:
        values = [value for total in gym.models if (value := total.tasks[task].value) is not None]
        return min(values, default=math.inf), gym.tasks.index(task)

    return sorted(sorted(gym.tasks, key=lowest)[:GYM_TASKS], key=gym.tasks.index)


def _said(value: float | None, ci95: tuple[float, float] | None = None) -> str:
    if value is None:
        return "missing"
    return f"{value:.2f}" if ci95 is None else f"{value:.2f} ({ci95[0]:.2f} to {ci95[1]:.2f})"


def _row_in_words(row: LeaderboardRow, metric: str) -> str:
    return f"{_named(row)}{' (published)' if row.published else ''} {_said(row.entries[metric].value)}"


def _named(row: LeaderboardRow) -> str:
    return row.model if row.baseline is None else f"{row.model} (baseline {row.baseline.name})"


def _weakest(bars: Mapping[_CellKey, Sequence[Bar]]) -> list[_RowKey]:
    """The few personas with the smallest share of scores in their level."""
    counts: dict[_RowKey, list[int]] = defaultdict(lambda: [0, 0])
    for key, found in bars.items():
        counts[key[:3]][0] += sum(bar.count for bar in found if bar.in_level)
        counts[key[:3]][1] += sum(bar.count for bar in found)
    share = {row: kept / given if given else 2.0 for row, (kept, given) in counts.items()}
    return sorted(share, key=lambda row: (share[row], row))[:CELL_ROWS]


def _group(cell: CellResult, level_bounds: LevelBounds) -> tuple[int, str]:
    """A cell's level, the highest first; unknown ones last."""
    bound = level_bounds.find(cell.dimension, cell.level)
    return (1 if bound is None else -bound.rank), cell.level
