"""Missing data of a job's cells, and its possible effect on ACC_atom."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from app.db.results.result_queries import ScoreRow, UnjudgedResponse
from app.domain.jobs.plan import AtomicCell, Cell
from app.domain.results.coverage import JudgedCell
from app.domain.results.missing import Corrected, JudgedResponses, composite_shares, share_bounds
from app.domain.statistics.cells import CellEstimate, estimate_mean


def judged_cell(
    model: str,
    cell: Cell,
    trait: int,
    by_judge: Mapping[str, Sequence[ScoreRow]],
    unjudged: Sequence[UnjudgedResponse],
    per_run: int,
) -> JudgedCell:
    """How many verdicts a cell has on one trait, for the job's coverage.

    Args:
        model: Its label.
        cell: The cell.
        trait: Index among the persona's traits.
        by_judge: Each judge's rows for the cell and trait.
        unjudged: The cell's responses without a judged sentence.
        per_run: Responses that a run shall have on this trait; 0 for existing texts.
    """
    lost = _on_trait(cell, trait, unjudged)
    refused = {(each.run, each.item) for each in lost if each.refused}
    rows = [row for rows in by_judge.values() for row in rows if (row.run, row.item) not in refused]
    planned = sum(count for _, count in _planned(cell, by_judge, lost, per_run))
    return JudgedCell(
        group=(model, cell.task.id),
        planned=planned * len(by_judge),
        refused=len(refused) * len(by_judge),
        judged=len(rows),
        verdicts=sum(len(row.scores) + row.not_applicable + _unusable(row) for row in rows),
        counted=sum(len(row.scores) + row.not_applicable for row in rows if row.scores),
    )


def corrected(
    cell: Cell,
    trait: int,
    by_judge: Mapping[str, Sequence[ScoreRow]],
    unjudged: Sequence[UnjudgedResponse],
    per_run: int,
    estimate: CellEstimate,
    wordings: Mapping[int, int],
) -> Corrected:
    """A cell's ACC_atom with refusals as out of character, and its bounds.

    Args:
        cell: The cell.
        trait: Index among the persona's traits.
        by_judge: Each judge's rows for the cell and trait.
        unjudged: The cell's responses without a judged sentence.
        per_run: Responses that a run shall have on this trait; 0 for existing texts.
        estimate: The cell's metrics.
        wordings: By run, the persona instruction where it is known.
    """
    lost = _on_trait(cell, trait, unjudged)
    refused = np.array(sorted(each.run for each in lost if each.refused), dtype=np.int64)
    planned = _planned(cell, by_judge, lost, per_run)
    refusals = {(each.run, each.item) for each in lost if each.refused}
    judged = {judge: _judged(cell, trait, rows, refusals) for judge, rows in by_judge.items()}
    metric = estimate.metrics["acc_atom"]
    there = [len(found.runs) for found in judged.values()]
    if all(found.complete for found in judged.values()) and min(there) == sum(count for _, count in planned):
        bounds = None if metric.value is None else (metric.value, metric.value)
        return Corrected.of(metric, bounds, estimate.varied.get("acc_atom"))
    ends = [found for each in judged.values() if (found := share_bounds(each, planned)) is not None]
    bounds = (
        (float(np.mean([low for low, _ in ends])), float(np.mean([high for _, high in ends])))
        if ends
        else None
    )
    if not len(refused):
        return Corrected.of(metric, bounds, estimate.varied.get("acc_atom"))
    shares = {judge: composite_shares(each, refused) for judge, each in judged.items()}
    composite, varied = estimate_mean(shares, wordings)
    return Corrected.of(composite, bounds, varied)


def _unusable(row: ScoreRow) -> int:
    """Its units without a readable verdict, those without any included."""
    without = row.refused + row.unparsed + row.failed + row.filtered
    return max(without, row.units - len(row.scores) - row.not_applicable)


def _on_trait(cell: Cell, trait: int, unjudged: Sequence[UnjudgedResponse]) -> list[UnjudgedResponse]:
    """Those whose item is one of the trait's: an interview's questions are each about one dimension."""
    return [each for each in unjudged if _is_of(cell, trait, each.item)]


def _is_of(cell: Cell, trait: int, item: int) -> bool:
    if not isinstance(cell, AtomicCell) or item >= len(cell.items):
        return True
    return cell.dimensions[trait].id in cell.items[item].dimensions


def responses_per_run_on(cell: Cell, trait: int, in_all: int) -> int:
    """Responses that a run shall have on one trait, of ``in_all`` that it shall have; 0 for existing texts."""
    if not cell.runs:
        return 0
    if not isinstance(cell, AtomicCell):
        return in_all
    return sum(_is_of(cell, trait, item.index) for item in cell.items)


def _planned(
    cell: Cell,
    by_judge: Mapping[str, Sequence[ScoreRow]],
    lost: Sequence[UnjudgedResponse],
    per_run: int,
) -> list[tuple[int, int]]:
    """Each run and how many responses it shall have; of existing texts as many as there are."""
    places = {(row.run, row.item) for rows in by_judge.values() for row in rows}
    there = Counter(run for run, _ in places | {(each.run, each.item) for each in lost})
    runs = sorted(there.keys() | set(range(cell.runs)))
    return [(run, max(there[run], per_run)) for run in runs]


def _judged(
    cell: Cell, trait: int, rows: Sequence[ScoreRow], refusals: set[tuple[int, int]]
) -> JudgedResponses:
    scale = cell.dimensions[trait].scale
    level = cell.persona.traits[trait].level
    within = {score for score in range(scale.minimum, scale.maximum + 1) if scale.level_of(score) == level}
    found = sorted(
        (row.run, sum(score in within for score in row.scores), len(row.scores), _unusable(row))
        for row in rows
        if (row.run, row.item) not in refusals
    )  # sorted: sums of fractions depend on their order in the last digits
    columns = np.array(found, dtype=np.int64).reshape(-1, 4).T
    return JudgedResponses(*columns)
