"""The papers' published figures in the form of a job's results."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal

from app.domain.instruments.dimension import Scale
from app.domain.metrics.acc_atom_corrected import beyond_chance, chance_share
from app.domain.metrics.cell import MeasuredMetrics
from app.domain.metrics.definition import Estimate
from app.domain.metrics.from_printed import PrintedCell, estimate_corrected
from app.domain.metrics.interval import Interval
from app.domain.metrics.metric import Metric
from app.domain.metrics.rc_corrected import of_runs_like_these
from app.domain.metrics.registry import METRICS
from app.domain.personagym.scores import PAPER_TASKS, SCORES, Spread
from app.domain.results.baselines import (
    BaselineCell,
    BaselineLength,
    Baselines,
    BaselineScores,
    BaselineSource,
    BaselineTotal,
)
from app.domain.results.contract import CellMetrics, ScaleAnswer
from app.domain.results.correlations import correlations
from app.domain.results.model_groups import model_groups
from app.domain.results.named_baselines import NamedBaseline
from app.domain.results.results import MeasuredCell, Total
from app.domain.results.totals import totals
from app.domain.statistics.groups import PersonaSample
from app.domain.statistics.resampling import student
from app.instruments.published import (
    PublishedCell,
    PublishedScores,
    published_attributes,
    published_cells,
    published_lengths,
    published_scores,
)

ATOMIC: Literal["atomic"] = "atomic"
PERSONAGYM: Literal["personagym"] = "personagym"
SOURCES = (
    BaselineSource(
        id=ATOMIC,
        title="Spotting Out-of-Character Behavior: Atomic-Level Evaluation of Persona Fidelity in Open-Ended Generation",
        year=2025,
        tables="Tables 18–29",
        judges=["gpt-4o-2024-08-06"],
    ),
    BaselineSource(
        id=PERSONAGYM,
        title="PersonaGym: Evaluating Persona Agents and LLMs",
        year=2024,
        tables="Table 1",
        judges=["GPT-4o", "LLaMA-3-70b"],
    ),
)
NOTE = (
    "Published results from other judges, other dates and other texts: use them for orientation, not for"
    " significance."
)
RUNS, PERSONAS = 30, 200
"""Runs of a cell (atomic paper, section 4.2) and personas of PersonaGym's Table 1."""

_UNKNOWN = Metric.missing("not_published: the paper does not tell it")
_PARTS = Metric.missing("not_published: the paper does not tell the parts of RC_atom")
_NO_INTERVAL = Interval.missing("not_published: the paper gives no runs, only their mean")
_REMEMBERED, _REMEMBERED_DOCUMENTS = 64, 4
SEED = 0


@dataclass(frozen=True, slots=True)
class BaselineFilter:
    """Which published figures are wanted; ``None`` wants all.

    Attributes:
        source: Id of one of :data:`SOURCES`.
        model: The model as its paper names it.
        persona: A built-in persona's id.
        task: A task's id.
    """

    source: str | None = None
    model: str | None = None
    persona: str | None = None
    task: str | None = None


@lru_cache(_REMEMBERED)
def baselines_json(wanted: BaselineFilter) -> str:
    """The figures that pass a filter as JSON text."""
    return baselines(wanted).model_dump_json(exclude_unset=True)


def with_own(wanted: BaselineFilter, own: Sequence[NamedBaseline]) -> str:
    """The same with a tenant's own."""
    found = baselines(wanted).model_copy(update={"own": list(own)})
    return found.model_dump_json(exclude_unset=True)


@lru_cache(_REMEMBERED_DOCUMENTS)
def baselines(wanted: BaselineFilter) -> Baselines:
    """The figures that pass a filter, for all who ask and none to change; totals are over the cells that pass."""
    rows = () if wanted.source == PERSONAGYM else zip(published_cells(), _corrected(), strict=True)
    cells = [_cell(row, corrected) for row, corrected in rows]
    cells = [
        cell
        for cell in cells
        if wanted.model in {None, cell.model}
        and wanted.persona in {None, cell.persona}
        and wanted.task in {None, cell.task}
    ]
    # Table 1 is over personas that nobody can name.
    no_scores = wanted.source == ATOMIC or wanted.persona is not None
    scores = [] if no_scores else [row for row in published_scores() if wanted.model in {None, row.model}]
    shown = [_cell_answer(cell) for cell in sorted(cells, key=lambda cell: cell.key)]
    sample = PersonaSample([cell.persona for cell in cells], SEED) if cells else None
    return Baselines(
        object="baselines",
        published=True,
        note=NOTE,
        sources=[source for source in SOURCES if wanted.source in {None, source.id}],
        cells=shown,
        totals=[_total_answer(total) for total in totals(cells, intervals=True)],
        correlations=list(correlations(cells, sample)) if cells else [],
        persona_scores=[],
        persona_score_totals=[found for row in scores if (found := _scores(row, wanted.task))],
        groups=model_groups(shown, published_attributes()),
        lengths=_lengths(wanted),
    )


def _lengths(wanted: BaselineFilter) -> list[BaselineLength]:
    if wanted.source == PERSONAGYM or wanted.persona is not None:
        return []
    return [
        BaselineLength(
            source=ATOMIC,
            model=model,
            task=task,
            sentences=length.in_all,
            scored=round(length.sentences / length.in_all, 3),
        )
        for (model, task), length in published_lengths().items()
        if wanted.model in {None, model} and wanted.task in {None, task}
    ]


def _cell(row: PublishedCell, corrected: Mapping[str, float]) -> MeasuredCell:
    metrics: dict[str, Metric] = {}
    values = {**row.metrics, **corrected}
    for metric in METRICS:
        n = math.comb(RUNS, 2) if metric.estimate in {Estimate.DISTANCES, Estimate.EXCESS} else RUNS
        for name in metric.names:
            value = values.get(name)
            missing = _UNKNOWN if name == metric.name else _PARTS
            metrics[name] = missing if value is None else Metric.of(value, n).within(_NO_INTERVAL)
    return MeasuredCell(
        model=row.model,
        persona=f"{row.dimension}-{row.level}",
        task=row.task,
        dimension=row.dimension,
        level=row.level,
        runs=RUNS,
        metrics=MeasuredMetrics(metrics),
    )


@cache
def _corrected() -> Sequence[Mapping[str, float]]:
    """What follows from each cell's printed figures: exactly for ACC_atom and RC, else estimated."""
    scale, lengths, rows = Scale(), published_lengths(), published_cells()
    printed = [
        PrintedCell(
            mean=row.metrics["mean"],
            rc=row.metrics["rc"],
            ic_atom=row.metrics["ic_atom"],
            rc_atom=row.metrics["rc_atom"],
            sentences=lengths[row.model, row.task].sentences,
            sentences_of_run=lengths[row.model, row.task].sentences_of_run,
        )
        for row in rows
    ]
    return [
        estimated
        | {
            "acc_atom_corrected": beyond_chance(
                row.metrics["acc_atom"], chance_share(scale, scale.levels.index(row.level))
            ),
            "rc_corrected": of_runs_like_these(row.metrics["rc"], RUNS),
        }
        for row, estimated in zip(rows, estimate_corrected(printed, RUNS, scale), strict=True)
    ]


def _cell_answer(cell: MeasuredCell) -> BaselineCell:
    return BaselineCell(
        source=ATOMIC,
        model=cell.model,
        persona=cell.persona,
        task=cell.task,
        dimension=cell.dimension,
        level=cell.level,
        simulated=False,
        scale=ScaleAnswer.of(cell.scale),
        runs=cell.runs,
        metrics=CellMetrics.of(cell.metrics.metrics),
        coverage=None,
        corrected=None,
    )


def _total_answer(total: Total) -> BaselineTotal:
    return BaselineTotal(
        source=ATOMIC,
        by=list(total.by),
        **total.keys,
        simulated=False,
        cells=total.cells,
        generation=total.statuses,
        metrics=CellMetrics.of(total.metrics, total.cells),
        matched=None if total.matched is None else CellMetrics.of(total.matched, total.cells),
        coverage=None,
        corrected=None,
    )


def _scores(row: PublishedScores, task: str | None) -> BaselineScores | None:
    tasks = {name: _spread(*spread) for name, spread in row.tasks.items() if task in {None, name}}
    if not tasks:
        return None
    whole = {} if task is not None else {"persona_score": _spread(*row.persona_score)}
    return BaselineScores(
        source=PERSONAGYM,
        model=row.model,
        simulated=False,
        tasks_in_paper=PAPER_TASKS,
        **whole,
        tasks=tasks,
    )


def _spread(mean: float, deviation: float) -> Spread:
    """A mean with Student's interval, from the published standard deviation over personas."""
    half = student(PERSONAS - 1) * deviation / math.sqrt(PERSONAS)
    interval = Interval.around(mean, mean - half, mean + half, SCORES)
    return Spread(value=mean, n=PERSONAS, sd=deviation, left_out=0).within(interval)
