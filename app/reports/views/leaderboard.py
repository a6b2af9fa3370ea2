"""Leaderboards: a job's models ranked with those of a paper and baselines of one's own, over the same personas and tasks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal, TypeAlias

from app.domain.metrics.definition import Family
from app.domain.metrics.registry import names
from app.domain.personagym.scores import Spread
from app.domain.results.baseline_figures import BaselineFigures
from app.domain.results.baselines import BaselineCell, Baselines, BaselineScores, BaselineSource
from app.domain.results.contract import CellResult, Results, TotalResult
from app.domain.results.gate import HeldAgainst
from app.domain.results.personagym_results import PersonaScoreTotal, range_over_models

_Cell: TypeAlias = CellResult | BaselineCell

PERSONA_SCORE = "persona_score"
ATOMIC: Literal["atomic"] = "atomic"
PERSONAGYM: Literal["personagym"] = "personagym"


@dataclass(frozen=True, slots=True)
class Entry:
    """One of a model's figures.

    Attributes:
        value: ``None`` where there is none.
        n: Cells, or personas, that it is over.
        ci95: The job's own interval for this very figure; ``None`` where there is none.
        sd: Standard deviation over personas, where that is told.
    """

    value: float | None
    n: int
    ci95: tuple[float, float] | None = None
    sd: float | None = None


@dataclass(frozen=True, slots=True)
class LeaderboardRow:
    """A model in a leaderboard.

    Attributes:
        model: Its label, or its name in the paper.
        own: Whether it is the job's.
        simulated: Whether its figures are simulated.
        entries: By metric.
        baseline: The baseline of one's own that it is; ``None`` for models of the job and of the paper.
    """

    model: str
    own: bool
    simulated: bool
    entries: Mapping[str, Entry]
    baseline: HeldAgainst | None = None

    @property
    def published(self) -> bool:
        """Whether it is the paper's."""
        return not self.own and self.baseline is None


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """The job's models ranked together with one paper's.

    Attributes:
        source: The paper.
        metrics: The metrics' names; the first decides the order.
        rows: The highest first, those without the figure last.
        published: How many of them are the paper's.
        shared: Cells (persona and task) that the figures are over; 0 in PersonaGym, whose personas nobody can name.
        left_out: Cells of the paper that the job has too, but not every one of its models with an ACC_atom.
        shared_in_paper: How many of them the paper has.
        places: Of each of the job's models, how many published ones are above it; by model.
        lacking: Names of the baselines that are not among the rows, because they lack some of what these are over.
    """

    source: BaselineSource
    metrics: Sequence[str]
    rows: Sequence[LeaderboardRow]
    published: int
    shared: int
    shared_in_paper: int
    left_out: int
    places: Mapping[str, int]
    lacking: Sequence[str] = ()

    @property
    def published_ranges(self) -> Mapping[str, float | None]:
        """How far the published models are apart, by metric."""
        return {
            name: range_over_models(row.entries[name].value for row in self.rows if row.published)
            for name in self.metrics
        }

    @property
    def baselines(self) -> Sequence[HeldAgainst]:
        """Those of one's own among the rows."""
        return [row.baseline for row in self.rows if row.baseline is not None]


def leaderboards(
    results: Results, baselines: Baselines, named: Sequence[BaselineFigures] = ()
) -> list[Leaderboard]:
    """A leaderboard for each paper that has anything in common with the job.

    Args:
        results: The job's.
        baselines: The published figures, all of them.
        named: Baselines of one's own; they stand among the rows of what they have all of.
    """
    sources = {source.id: source for source in baselines.sources}
    found = (
        _atomic(results, baselines, named, sources[ATOMIC]),
        _gym(results, baselines, named, sources[PERSONAGYM]),
    )
    return [each for each in found if each is not None]


def _atomic(
    results: Results, baselines: Baselines, named: Sequence[BaselineFigures], source: BaselineSource
) -> Leaderboard | None:
    own = {_place(cell) for cell in results.cells}
    published = {_place(cell) for cell in baselines.cells}
    # What one model refuses to play is no reason to place it above those that played it.
    lacking = {_place(cell) for cell in results.cells if cell.metrics["acc_atom"].value is None}
    left_out = len(own & published & lacking)
    shared = (own & published) - lacking
    if not shared:
        return None
    totals = {total.model: total for total in results.totals if total.by == ["model"]}
    of_named = [_over_shared(each, shared) for each in named]
    rows = [
        *_over_cells(results.cells, shared, totals if own == shared else {}, own=True),
        *_over_cells(baselines.cells, shared, {}, own=False),
    ]
    return _leaderboard(
        source,
        names(Family.ATOMIC),
        [*rows, *(row for row in of_named if row is not None)],
        lacking=_without_row(named, of_named),
        shared=len(shared),
        in_paper=len(published),
        left_out=left_out,
    )


def _over_shared(each: BaselineFigures, shared: set[tuple[str, str, str, str]]) -> LeaderboardRow | None:
    """A baseline's means over the shared cells; ``None`` where it lacks one of them."""
    if shared - {_place(cell) for cell in each.cells if cell.metrics["acc_atom"].value is not None}:
        return None
    (row,) = _over_cells(each.cells, shared, {}, own=False)
    return replace(row, simulated=each.simulated, baseline=each.told)


def _without_row(named: Sequence[BaselineFigures], rows: Sequence[LeaderboardRow | None]) -> Sequence[str]:
    return [each.told.name for each, row in zip(named, rows, strict=True) if row is None]


def _place(cell: _Cell) -> tuple[str, str, str, str]:
    return cell.persona, cell.task, cell.dimension, cell.level


def _over_cells(
    cells: Sequence[_Cell],
    shared: set[tuple[str, str, str, str]],
    totals: Mapping[str, TotalResult],
    *,
    own: bool,
) -> list[LeaderboardRow]:
    """Each model's means over the shared cells; intervals where these are all that its totals are over."""
    by_model: dict[str, list[_Cell]] = {}
    for cell in cells:
        if _place(cell) in shared:
            by_model.setdefault(cell.model, []).append(cell)
    return [
        LeaderboardRow(
            model,
            own,
            any(cell.simulated for cell in found),
            {name: _mean(found, name, totals.get(model)) for name in names(Family.ATOMIC)},
        )
        for model, found in by_model.items()
    ]


def _mean(cells: Sequence[_Cell], name: str, total: TotalResult | None) -> Entry:
    values = [value for cell in cells if (value := cell.metrics[name].value) is not None]
    ends = None if total is None else total.metrics[name].ci95
    return Entry(fmean(values) if values else None, len(values), ends)


def _gym(
    results: Results, baselines: Baselines, named: Sequence[BaselineFigures], source: BaselineSource
) -> Leaderboard | None:
    totals, published = results.persona_score_totals, baselines.persona_score_totals
    tasks = [task for task in published[0].tasks if totals and task in totals[0].tasks]
    if not tasks:
        return None
    whole = len(tasks) == published[0].tasks_in_paper == len(totals[0].tasks)
    metrics = [PERSONA_SCORE, *tasks] if whole else tasks
    rows = [
        *(_graded(total, metrics, own=True, simulated=results.simulated) for total in totals),
        *(_graded(total, metrics, own=False, simulated=False) for total in published),
    ]
    of_named = [_named_row(each, tasks, metrics) for each in named]
    return _leaderboard(
        source,
        metrics,
        [*rows, *(row for row in of_named if row is not None)],
        lacking=_without_row(named, of_named),
    )


def _named_row(each: BaselineFigures, tasks: Sequence[str], metrics: Sequence[str]) -> LeaderboardRow | None:
    """A baseline's scores; ``None`` where it lacks a task, or has others in its PersonaScore."""
    score = each.score
    if score is None or not score.tasks.keys() >= set(tasks):
        return None
    if PERSONA_SCORE in metrics and len(score.tasks) != len(tasks):
        return None
    return replace(_graded(score, metrics, own=False, simulated=each.simulated), baseline=each.told)


def _graded(
    total: PersonaScoreTotal | BaselineScores, metrics: Sequence[str], *, own: bool, simulated: bool
) -> LeaderboardRow:
    scores: dict[str, Spread] = dict(total.tasks)
    if total.persona_score is not None:
        scores[PERSONA_SCORE] = total.persona_score
    entries = {
        name: Entry(scores[name].value, scores[name].n, scores[name].ci95, scores[name].sd)
        for name in metrics
    }
    return LeaderboardRow(total.model, own, simulated, entries)


def _leaderboard(
    source: BaselineSource,
    metrics: Sequence[str],
    rows: Sequence[LeaderboardRow],
    *,
    lacking: Sequence[str],
    shared: int = 0,
    in_paper: int = 0,
    left_out: int = 0,
) -> Leaderboard:
    def rank(row: LeaderboardRow) -> tuple[bool, float, bool, str]:
        value = row.entries[metrics[0]].value
        return value is None, -(value or 0.0), row.own, row.model

    ordered = sorted(rows, key=rank)
    return Leaderboard(
        source=source,
        metrics=metrics,
        rows=ordered,
        published=sum(row.published for row in rows),
        shared=shared,
        shared_in_paper=in_paper,
        left_out=left_out,
        places={
            row.model: sum(above.published for above in ordered[:place])
            for place, row in enumerate(ordered)
            if row.own and row.entries[metrics[0]].value is not None
        },
        lacking=lacking,
    )
