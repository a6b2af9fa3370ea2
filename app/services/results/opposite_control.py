"""Computes how personas differ from the opposite ones of the same job, from the job's own texts."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from app import clock
from app.domain.results.gains import GAINED
from app.domain.results.opposite import Key, OppositeControl, opposite_control, opposite_level
from app.domain.results.results import MeasuredCell
from app.domain.statistics.cells import CellEstimate, estimate_cell
from app.services.job_context import JobContext
from app.services.results.cell_rows import TURN_SECONDS, cell_scores
from app.services.results.prompt_injection import Scores


def opposite_arm(context: JobContext, cells: Sequence[MeasuredCell], scores: Scores) -> OppositeControl:
    """What the opposite personas of a job say.

    Args:
        context: The job's.
        cells: What was measured of its personas.
        scores: From which it was.
    """
    judges = {judge.label: n for n, judge in enumerate(context.spec.judges)}
    places = {(cell.dimension, cell.level) for cell in cells}
    turned: dict[Key, CellEstimate] = {}
    for cell in context.cells:
        model, task = context.spec.models[cell.model].label, cell.task.id
        for trait, dimension in enumerate(cell.dimensions):
            own = cell.persona.traits[trait].level
            other = opposite_level(dimension.scale, own)
            if other is None or (dimension.id, other) not in places:
                continue
            level = dimension.scale.levels.index(other)
            by_judge = {
                judge: replace(
                    cell_scores(cell, trait, scores.get((cell.ordinal, trait, n), [])), level=level
                )
                for judge, n in judges.items()
            }
            # Those of the cell itself, so that both its figures have them in the same order.
            runs = np.unique(np.concatenate([each.runs for each in by_judge.values()]))
            turned[model, cell.persona.id, task, dimension.id, own] = estimate_cell(by_judge, runs, GAINED)
            clock.sleep(TURN_SECONDS)
    return opposite_control(cells, turned)
