"""What is missing from a cell, sentence by sentence."""

from app.db.results.result_queries import ScoreRow, UnjudgedResponse
from app.domain.jobs.plan import Cell
from app.domain.results.coverage import JudgedCell, coverages
from app.domain.statistics.cells import estimate_cell
from app.services.results.cell_rows import cell_scores
from app.services.results.missing import corrected, judged_cell
from tests.unit.services.results.test_compute import CONTEXT

ESSAY: Cell = next(c for c in CONTEXT.cells if c.persona.id == "E-high" and c.task.id == "essay")


def row(run: int, *scores: int, units: int) -> ScoreRow:
    return ScoreRow(ESSAY.ordinal, 0, 0, run, run, list(scores), 0, 0, 0, 0, units=units)


def of(rows: list[ScoreRow], *unjudged: UnjudgedResponse) -> JudgedCell:
    return judged_cell("m", ESSAY, 0, {"judge": rows}, unjudged, 0)


class TestSentencesNotYetJudged:
    def test_are_planned(self) -> None:
        rows = [row(run, 5, units=10) for run in range(ESSAY.runs)]
        (found,) = coverages([of(rows)])
        assert (found.counted, found.planned) == (ESSAY.runs, 10 * ESSAY.runs)

    def test_widen_the_bounds(self) -> None:
        rows = [row(run, 5, 1, units=8) for run in range(ESSAY.runs)]
        scores = {"judge": cell_scores(ESSAY, 0, rows)}
        estimate = estimate_cell(scores, scores["judge"].run_ids)
        found = corrected(ESSAY, 0, {"judge": rows}, [], 0, estimate, {})
        assert found.acc_atom_composite.value == 0.5
        # 1 of 8 is in character, 1 is not, and of 6 nobody knows
        assert found.acc_atom_bounds == (0.125, 0.875)
