"""What a cell's figures are computed from, out of its rows."""

from collections.abc import Collection, Sequence

import numpy as np

from app.db.results.result_queries import ResponseTally, ScoreRow
from app.domain.jobs.plan import Cell
from app.domain.judging.verdict import VerdictStatus
from app.domain.metrics.scores import UNKNOWN_INSTRUCTION, CellScores
from app.domain.results.results import ResponseStatuses

TURN_SECONDS = 0.00005
"""After each cell, others get Python's lock for so long. A thread that waits for it asks for it only once nobody has let go of it
for a while. numpy lets go of it again and again, and has it back before the other thread is awake: sixty milliseconds long,
over cells without any scores yet, nobody else's turn came."""


def response_statuses(
    tally: ResponseTally | None, planned: int, leave_out: Collection[str] = ()
) -> ResponseStatuses:
    """Count a cell's responses; ``planned`` is 0 for existing texts, ``leave_out`` names notes whose sentences are not judged."""
    if tally is None:
        return ResponseStatuses.of(planned=planned)
    return ResponseStatuses.of(
        planned=planned or tally.answered + tally.refused + tally.no_answer,
        answered=tally.answered,
        refused=tally.refused,
        filtered=tally.filtered,
        no_answer=tally.no_answer,
        failed=tally.failed,
        empty=tally.empty,
        truncated=tally.truncated,
        refused_units=tally.refused_units,
        sentences=tally.sentences,
        unknown_tags=tally.unknown_tags,
        unknown_finish_word=tally.unknown_finish_word,
        cut_off=tally.cut_off,
        repeated_sentences=tally.repeated_sentences,
        left_out=sum(getattr(tally, note) for note in leave_out),
        role_breaks=tally.role_breaks,
        refusal_check=tally.refusal_check,
    )


def cell_scores(cell: Cell, trait: int, rows: Sequence[ScoreRow]) -> CellScores:
    """One judge's scores of one cell and trait, from its rows in any order; without a persona as of one on the lowest level."""
    scale = cell.dimensions[trait].scale
    histograms = np.zeros((len(rows), scale.size), dtype=np.int64)
    for n, row in enumerate(rows):
        if row.scores:
            histograms[n] = np.bincount(np.asarray(row.scores) - scale.minimum, minlength=scale.size)
    instructions = np.asarray(
        [UNKNOWN_INSTRUCTION if r.instruction is None else r.instruction for r in rows], dtype=np.int64
    )
    runs = np.asarray([r.run for r in rows], dtype=np.int64)
    # Sums of fractions depend on their order in the last digits; the rows come in any.
    order = np.lexsort((*histograms.T, runs))
    return CellScores(
        scale=scale,
        level=scale.levels.index(cell.persona.traits[trait].level) if cell.persona.traits else 0,
        runs=runs[order],
        instructions=instructions[order],
        histograms=histograms[order],
        excluded={
            VerdictStatus.NOT_APPLICABLE: sum(r.not_applicable for r in rows),
            VerdictStatus.REFUSED: sum(r.refused for r in rows),
            VerdictStatus.UNPARSED: sum(r.unparsed for r in rows),
            VerdictStatus.FAILED: sum(r.failed for r in rows),
            VerdictStatus.FILTERED: sum(r.filtered for r in rows),
        },
    )
