"""The results as a page shows them: models, weakest spots, excluded data."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from app.domain.metrics.definition import Family
from app.domain.metrics.metric import Metric
from app.domain.metrics.registry import BY_NAME, names
from app.domain.results.contract import CellMetrics, CellResult, Results, TotalResult
from app.domain.results.coverage import Coverage
from app.domain.results.missing import Corrected
from app.domain.results.results import ResponseStatuses
from app.reports.exports.columns import UNIT_STATUSES
from app.reports.views.level_bounds import LevelBounds

SUMMARY_METRICS = names(Family.ATOMIC, Family.RESPONSE)
CORRECTED_METRICS = names(Family.CORRECTED)
HEAT_METRICS = names(Family.SCORE, Family.ATOMIC)
"""Table 5's (atomic paper)."""
DECIMALS = 2
"""Of a figure, as pages show it."""
HEAT_STEPS = 10
HEAT_ROWS, HEAT_TASKS = 60, 8
"""Personas and tasks of a heat map, at most: what somebody can look at, and what is drawn within a second or two."""
_DIMENSIONS = ("O", "C", "E", "A", "N")
_TASKS = ("questionnaire", "essay", "social_media_post")
_MISSING = "no such cell in this job"


@dataclass(frozen=True, slots=True)
class Figure:
    """A metric's value in a table.

    Attributes:
        value: The value; ``None`` where there is none.
        note: What it was taken over, or why it is missing.
        step: Its place in the metric's range, 0 (worst) to ``HEAT_STEPS`` - 1 (best); ``None`` for no colour.
        off: Whether it is a MEAN outside the persona's level.
        ci95: Its 95 % interval; ``None`` where there is none.
    """

    value: float | None
    note: str
    step: int | None = None
    off: bool = False
    ci95: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A model in the summary.

    Attributes:
        model: Its label.
        simulated: Whether its figures are simulated.
        figures: By metric.
        best: The metrics in which it is better than every other model, as far as the figures shown tell.
        units: Its judged sentences by status.
        generation: Its responses by what became of them.
        matched: Its ACC_atom over the cells of which every model has one; ``None`` where these are all cells.
        coverage: The share of its planned verdicts that count.
        corrected: How missing responses and verdicts could affect its ACC_atom.
        corrected_figures: Its corrected metrics.
        ceiling: The RC_atom to be expected if its runs were alike; ``None`` where it is not known.
    """

    model: str
    simulated: bool
    figures: Mapping[str, Figure]
    best: frozenset[str]
    units: Mapping[str, int]
    generation: ResponseStatuses
    matched: Figure | None
    coverage: Coverage
    corrected: Corrected
    corrected_figures: Mapping[str, Figure]
    ceiling: float | None

    @property
    def by_chance(self) -> bool:
        """Whether scores at random may be in character as often: it may be consistent, but it is not shown to play its personas."""
        found = self.corrected_figures.get("acc_atom_corrected")
        if found is None or found.value is None:
            return False
        return (found.value if found.ci95 is None else found.ci95[0]) <= 0

    @property
    def compared(self) -> Figure:
        """The figure by which models are ordered: ACC_atom, over the same cells for all of them."""
        return self.matched if self.matched and self.matched.value is not None else self.figures["acc_atom"]

    @property
    def acc_atom(self) -> float | None:
        """Its value."""
        return self.compared.value


@dataclass(frozen=True, slots=True)
class HeatRow:
    """A row of a heat map.

    Attributes:
        level: The level's name.
        dimension: The dimension's id; ``None`` in a total.
        persona: The persona's id; ``None`` in a total.
        groups: For each task, then for all tasks, one figure a metric.
    """

    level: str
    dimension: str | None
    persona: str | None
    groups: Sequence[Sequence[Figure]]


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Persona × task for one model, in the form of Table 5 (atomic paper).

    Attributes:
        model: The model's label.
        tasks: The columns' tasks.
        levels: The rows, level by level, each level's total last; of a great many personas those with the lowest ACC_atom.
        total: The row over everything, shown or not.
        rows_in_all: How many rows there are, totals aside.
        tasks_in_all: How many tasks there are.
    """

    model: str
    tasks: Sequence[str]
    levels: Sequence[Sequence[HeatRow]]
    total: Sequence[Sequence[Figure]]
    rows_in_all: int
    tasks_in_all: int

    @property
    def left_out(self) -> str:
        """What is not shown, in words; empty if all is."""
        shown = sum(row.persona is not None for level in self.levels for row in level)
        parts = (
            [f"the weakest {shown:,} of {self.rows_in_all:,} personas"] if shown < self.rows_in_all else []
        )
        if len(self.tasks) < self.tasks_in_all:
            parts.append(f"{len(self.tasks)} of {self.tasks_in_all} tasks")
        return ", ".join(parts)


class Summary:
    """Everything on the page that comes from the results alone."""

    def __init__(self, results: Results, level_bounds: LevelBounds) -> None:
        self._cells = results.cells
        self._level_bounds = level_bounds
        self._totals = {(tuple(total.by), tuple(total.group.values())): total for total in results.totals}

    def models(self) -> list[ModelRow]:
        """The models, the one with the highest ACC_atom first."""
        totals = {keys[0]: total for (by, keys), total in self._totals.items() if by == ("model",)}
        figures = {model: _figures(total.metrics) for model, total in totals.items()}
        common = {model: _figures(total.matched or total.metrics) for model, total in totals.items()}
        same = all(
            total.matched["acc_atom"].n == total.metrics["acc_atom"].n
            for total in totals.values()
            if total.matched is not None
        )
        rows = [
            ModelRow(
                model=model,
                simulated=total.simulated,
                figures=figures[model],
                best=_best(model, common),
                units={status: getattr(total.units, status) for status in UNIT_STATUSES},
                generation=total.generation,
                matched=None if same or total.matched is None else _figure(total.matched, "acc_atom", "cell"),
                coverage=total.coverage,
                corrected=total.corrected,
                corrected_figures=_figures(
                    total.metrics, [name for name in CORRECTED_METRICS if name in total.metrics]
                ),
                ceiling=total.metrics.part("rc_atom_corrected", "ceiling"),
            )
            for model, total in totals.items()
        ]
        return sorted(rows, key=lambda row: -1.0 if row.acc_atom is None else row.acc_atom, reverse=True)

    def weakest_levels(self) -> dict[str, tuple[str, bool]]:
        """For each model that has several levels, the one with the lowest ACC_atom beyond chance, and whether that is sure.

        Scores spread evenly over the scale would lie in low, neutral and high in 2, 1 and 2 of 5 cases (1 to 5), so that
        shares are compared as (share - chance) / (1 - chance). It is sure if its interval lies below those of all
        others, which is a cautious rule.
        """
        chance = self._chance()
        found: dict[str, dict[str, _Beyond]] = defaultdict(dict)
        for (by, keys), total in self._totals.items():
            if by == ("model", "level") and total.metrics["acc_atom"].value is not None:
                found[keys[0]][keys[1]] = _beyond(total.metrics["acc_atom"], chance.get(keys))
        weakest = {}
        for model, levels in found.items():
            known = {name: each.value for name, each in levels.items() if each.value is not None}
            if len(levels) > 1 and len(known) == len(levels):
                level, *others = sorted(known, key=known.__getitem__)
                weakest[model] = level, all(_is_below(levels[level], levels[other]) for other in others)
        return weakest

    def _chance(self) -> dict[tuple[str, ...], float | None]:
        """The share of its scale's scores that a model's level holds; ``None`` where that differs between its cells."""
        shares: dict[tuple[str, ...], set[float]] = defaultdict(set)
        for cell in self._cells:
            bound = self._level_bounds.find(cell.dimension, cell.level)
            if bound is not None:
                lowest, highest = bound.scores
                width = bound.maximum - bound.minimum + 1
                shares[cell.model, cell.level].add((highest - lowest + 1) / width)
        return {key: found.pop() if len(found) == 1 else None for key, found in shares.items()}

    def weakest_cells(self, count: int) -> list[tuple[CellResult, Figure]]:
        """The cells with the lowest ACC_atom, the lowest first."""
        found = [(cell, _figure(cell.metrics, "acc_atom", "run")) for cell in self._cells]
        found = [(cell, figure) for cell, figure in found if figure.value is not None]
        return sorted(found, key=lambda pair: pair[1].value or 0.0)[:count]

    def heat_maps(self, models: Iterable[str], rows: int = HEAT_ROWS) -> list[HeatMap]:
        """One heat map for each model, of at most so many rows, totals aside."""
        return [self._heat_map(model, rows) for model in models]

    def _heat_map(self, model: str, most: int) -> HeatMap:
        cells = [cell for cell in self._cells if cell.model == model]
        tasks = sorted({cell.task for cell in cells}, key=task_rank)
        shown = tasks[:HEAT_TASKS]
        rows: dict[tuple[str, str, str], dict[str, CellResult]] = defaultdict(dict)
        for cell in cells:
            rows[cell.level, cell.dimension, cell.persona][cell.task] = cell
        weakest = dict(sorted(rows.items(), key=lambda row: self._weakness(model, row[0]))[:most])
        return HeatMap(
            model=model,
            tasks=shown,
            levels=[self._level(model, level, shown, weakest) for level in self._levels(weakest)],
            total=self._totals_over(shown, model=model),
            rows_in_all=len(rows),
            tasks_in_all=len(tasks),
        )

    def _weakness(self, model: str, row: tuple[str, str, str]) -> float:
        """What orders rows, the weakest first: ACC_atom over all tasks, and those without it last."""
        level, dimension, persona = row
        keys = ("model", "persona", "dimension", "level")
        total = self._totals.get((keys, (model, persona, dimension, level)))
        value = None if total is None else total.metrics["acc_atom"].value
        return 2.0 if value is None else value

    def _levels(self, rows: Iterable[tuple[str, str, str]]) -> list[str]:
        """The levels' names, the highest first, like the paper; unknown ones last."""
        dimensions: dict[str, set[str]] = defaultdict(set)
        for level, dimension, _ in rows:
            dimensions[level].add(dimension)

        def order(level: str) -> tuple[int, str]:
            found = [self._level_bounds.find(dimension, level) for dimension in dimensions[level]]
            return min((-bound.rank for bound in found if bound is not None), default=1), level

        return sorted(dimensions, key=order)

    def _level(
        self,
        model: str,
        level: str,
        tasks: Sequence[str],
        rows: Mapping[tuple[str, str, str], Mapping[str, CellResult]],
    ) -> list[HeatRow]:
        keys = sorted(
            (key for key in rows if key[0] == level), key=lambda key: (_rank(_DIMENSIONS, key[1]), key[2])
        )
        found = [
            HeatRow(level, dimension, persona, self._row(model, rows[level, dimension, persona], tasks))
            for _, dimension, persona in keys
        ]
        return [*found, HeatRow(level, None, None, self._totals_over(tasks, model=model, level=level))]

    def _row(self, model: str, cells: Mapping[str, CellResult], tasks: Sequence[str]) -> list[list[Figure]]:
        """A persona's figures task by task, then over all tasks."""
        first = next(iter(cells.values()))
        total = self._total(model=model, persona=first.persona, dimension=first.dimension, level=first.level)
        return [*(self._heat(cells.get(task), "run") for task in tasks), total]

    def _totals_over(self, tasks: Sequence[str], **keys: str) -> list[list[Figure]]:
        by_task = [self._total(model=keys["model"], task=task, **_without_model(keys)) for task in tasks]
        return [*by_task, self._total(**keys)]

    def _total(self, **keys: str) -> list[Figure]:
        return self._heat(self._totals.get((tuple(keys), tuple(keys.values()))), "cell")

    def _heat(self, source: CellResult | TotalResult | None, counted: str) -> list[Figure]:
        if source is None:
            return [Figure(None, _MISSING)] * len(HEAT_METRICS)
        return [
            self._off_level(source, name, _figure(source.metrics, name, counted)) for name in HEAT_METRICS
        ]

    def _off_level(self, source: CellResult | TotalResult, name: str, figure: Figure) -> Figure:
        bound = self._level_bounds.find(source.dimension or "", source.level or "")
        if name != "mean" or figure.value is None or bound is None:
            return figure
        return replace(figure, step=None, off=not bound.contains(figure.value))


def _figures(metrics: CellMetrics, names: Iterable[str] = SUMMARY_METRICS) -> dict[str, Figure]:
    """A total's."""
    return {name: _figure(metrics, name, "cell") for name in names}


def _figure(metrics: CellMetrics, name: str, counted: str) -> Figure:
    metric = metrics[name]
    if metric.value is None:
        return Figure(None, _words(metric.reason))
    left_out = f", {metric.left_out} left out" if metric.left_out else ""
    one, many = BY_NAME[name].n if counted == "run" else (counted, f"{counted}s")
    n = metric.n
    note = f"n = {n} {one if n == 1 else many}{left_out}{_spoken(metric)}"
    return Figure(metric.value, note, _step(name, metric.value), ci95=metric.ci95)


def _spoken(metric: Metric) -> str:
    """A metric's interval in words."""
    if metric.ci95 is not None:
        low, high = metric.ci95
        return f"; 95 % interval {low:.2f} to {high:.2f}"
    return "" if metric.ci95_reason is None else f"; no interval: {_words(metric.ci95_reason)}"


def _words(reason: str | None) -> str:
    """A reason without its code."""
    code, _, words = (reason or "").partition(": ")
    return words or code


def _step(name: str, value: float) -> int | None:
    ends = BY_NAME[name].range
    if ends is None:
        return None
    lowest, highest = ends
    return min(HEAT_STEPS - 1, max(0, int((value - lowest) / (highest - lowest) * HEAT_STEPS)))


def _best(model: str, figures: Mapping[str, Mapping[str, Figure]]) -> frozenset[str]:
    """The metrics in which a model's figure, as it is shown, is higher than that of every other model."""
    others = [row for name, row in figures.items() if name != model]
    return frozenset(
        name
        for name, figure in figures[model].items()
        if figure.value is not None
        and (known := _values(row[name] for row in others))
        and round(figure.value, DECIMALS) > max(round(value, DECIMALS) for value in known)
    )


class _Beyond(NamedTuple):
    """A share with its interval as (share - chance) / (1 - chance)."""

    value: float | None = None
    ci95: tuple[float, float] | None = None


def _beyond(measured: Metric, chance: float | None) -> _Beyond:
    """Nothing where chance is not known."""
    if measured.value is None or chance is None or chance == 1:
        return _Beyond()
    moved = [(each - chance) / (1 - chance) for each in (measured.value, *(measured.ci95 or ()))]
    return _Beyond(moved[0], (moved[1], moved[2]) if measured.ci95 else None)


def _is_below(one: _Beyond, other: _Beyond) -> bool:
    """Whether a share's interval ends before another's begins."""
    return bool(one.ci95 and other.ci95 and one.ci95[1] < other.ci95[0])


def _values(figures: Iterable[Figure]) -> list[float]:
    return [figure.value for figure in figures if figure.value is not None]


def _without_model(keys: Mapping[str, str]) -> dict[str, str]:
    return {name: key for name, key in keys.items() if name != "model"}


def task_rank(task: str) -> tuple[int, str]:
    """Where a task stands: the paper's in its order, then the others by name."""
    return _rank(_TASKS, task)


def _rank(order: Sequence[str], name: str) -> tuple[int, str]:
    return (order.index(name) if name in order else len(order)), name
