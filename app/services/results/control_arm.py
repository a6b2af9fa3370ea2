"""Computes what the control arm says: models' figures without a persona, and the gains by it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from app.db.results.result_queries import ResponseTally, UnjudgedResponse
from app.domain.jobs.plan import Cell, responses_per_run
from app.domain.personagym.scores import Grade
from app.domain.results.control import ControlArm, ControlCell, Place, cell_gains, gain_totals
from app.domain.results.coverage import Coverage, JudgedCell, coverages
from app.domain.results.gains import GAINED
from app.domain.results.personagym_control import persona_score_gains
from app.domain.results.results import MeasuredCell
from app.domain.statistics.cells import CellEstimate, estimate_cell
from app.services.job_context import JobContext
from app.services.results.cell_rows import cell_scores, response_statuses
from app.services.results.missing import judged_cell, responses_per_run_on
from app.services.results.prompt_injection import Scores


class ControlRows(NamedTuple):
    """What it is computed from.

    Attributes:
        scores: The control arm's score rows.
        tallies: What became of all cells' responses.
        unjudged: All cells' responses without a judged sentence.
        grades: The grades of the personas.
        control_grades: Those of the control arm.
        planned_grades: How many of these there shall be, by model.
    """

    scores: Scores
    tallies: Mapping[int, ResponseTally]
    unjudged: Mapping[int, Sequence[UnjudgedResponse]]
    grades: Sequence[Grade]
    control_grades: Sequence[Grade]
    planned_grades: Mapping[str, int]


def control_arm(context: JobContext, cells: Sequence[MeasuredCell], rows: ControlRows) -> ControlArm:
    """What the control arm of a job says.

    Args:
        context: The job's.
        cells: What was measured of its personas.
        rows: What the models' texts without a persona were given.
    """
    alone: dict[Place, CellEstimate] = {}
    places = [(cell, trait) for cell in context.control for trait in range(len(cell.dimensions))]
    found: list[ControlCell] = []
    covered = coverages([_judged(context, cell, trait, rows) for cell, trait in places])
    for (cell, trait), coverage in zip(places, covered, strict=True):
        model, task, dimension = context.spec.models[cell.model].label, cell.task.id, cell.dimensions[trait]
        by_level = _by_level(context, cell, trait, rows)
        alone |= {(model, task, dimension.id, level): figures for level, figures in by_level.items()}
        found.append(_control_cell(context, cell, trait, rows, by_level, coverage))
    # Sentences of PersonaGym's answers have no control arm.
    ordered = sorted(
        (cell for cell in cells if (cell.model, cell.task, cell.dimension, cell.level) in alone),
        key=lambda cell: cell.key,
    )
    tasks = () if context.spec.gym is None else [task.id for task in context.spec.gym.tasks]
    persona_scores, persona_score_totals = persona_score_gains(
        rows.grades, rows.control_grades, rows.planned_grades, tasks, context.spec.seed
    )
    return ControlArm(
        cells=sorted(found, key=lambda cell: (cell.model, cell.task, cell.dimension)),
        gains=cell_gains(ordered, alone),
        totals=gain_totals(ordered, alone),
        persona_scores=persona_scores,
        persona_score_totals=persona_score_totals,
    )


def _control_cell(
    context: JobContext,
    cell: Cell,
    trait: int,
    rows: ControlRows,
    by_level: Mapping[str, CellEstimate],
    coverage: Coverage,
) -> ControlCell:
    model = context.spec.models[cell.model]
    metrics = next(iter(by_level.values())).metrics
    return ControlCell(
        model=model.label,
        task=cell.task.id,
        dimension=cell.dimensions[trait].id,
        simulated=model.simulated or any(judge.simulated for judge in context.spec.judges),
        runs=cell.runs,
        generation=response_statuses(
            rows.tallies.get(cell.ordinal),
            cell.runs * responses_per_run(cell),
            context.spec.instrument.leave_out,
        ),
        coverage=coverage,
        units=metrics.units,
        mean=metrics["mean"],
        acc_atom={level: figures.metrics["acc_atom"] for level, figures in by_level.items()},
    )


def _by_level(context: JobContext, cell: Cell, trait: int, rows: ControlRows) -> dict[str, CellEstimate]:
    """The figures of gains, as of a persona on each level."""
    by_judge = {
        judge.label: cell_scores(cell, trait, rows.scores.get((cell.ordinal, trait, n), []))
        for n, judge in enumerate(context.spec.judges)
    }
    # All runs, so that dimensions that share a text have them in the same order.
    runs = np.arange(cell.runs)
    return {
        name: estimate_cell(
            {judge: replace(scores, level=level) for judge, scores in by_judge.items()}, runs, GAINED
        )
        for level, name in enumerate(cell.dimensions[trait].scale.levels)
    }


def _judged(context: JobContext, cell: Cell, trait: int, rows: ControlRows) -> JudgedCell:
    by_judge = {
        judge.label: rows.scores.get((cell.ordinal, trait, n), [])
        for n, judge in enumerate(context.spec.judges)
    }
    per_run = responses_per_run_on(cell, trait, responses_per_run(cell))
    return judged_cell(
        context.spec.models[cell.model].label,
        cell,
        trait,
        by_judge,
        rows.unjudged.get(cell.ordinal, []),
        per_run,
    )
