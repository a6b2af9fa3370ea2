"""Agreement between a job's judges on its sentences."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from app.db.results.joint_scores import JointRow
from app.domain.results.verdict_agreement import JointScores, VerdictAgreement, verdict_agreement
from app.domain.statistics.groups import PersonaSample
from app.domain.statistics.krippendorff import NO_SCORE
from app.services.job_context import JobContext


def judge_agreement(context: JobContext, rows: Sequence[JointRow]) -> tuple[VerdictAgreement, ...]:
    """The agreement; empty where no sentence has a score, as with a single judge.

    Args:
        context: The job's.
        rows: In any order; none for a job with one judge. Those of the control arm are left out.
    """
    of_cell: dict[tuple[int, int], list[JointRow]] = defaultdict(list)
    for row in rows:
        if row.cell < len(context.cells):
            of_cell[row.cell, row.trait].append(row)
    judges = [judge.label for judge in context.spec.judges]
    cells = [_joint(context, *key, found, len(judges)) for key, found in sorted(of_cell.items())]
    if not cells:
        return ()
    sample = PersonaSample([cell.persona.id for cell in context.cells], context.spec.seed)
    return verdict_agreement(cells, judges, sample)


def _joint(
    context: JobContext, ordinal: int, trait: int, rows: Sequence[JointRow], judges: int
) -> JointScores:
    cell = context.cells[ordinal]
    dimension = cell.dimensions[trait]
    scores = np.full((len(rows), judges), NO_SCORE, dtype=np.int64)
    for n, row in enumerate(rows):
        for judge, score in row.scores:
            scores[n, judge] = score - dimension.scale.minimum
    return JointScores(
        persona=cell.persona.id,
        task=cell.task.id,
        dimension=dimension.id,
        scale=dimension.scale,
        scores=scores,
        counts=np.asarray([row.units for row in rows], dtype=np.int64),
    )
