"""The run-by-run distances of one cell, with the arithmetic."""

from app.db.results.result_queries import ScoreRow
from app.services.results.run_distances import MAX_RUNS, distances_of
from tests.unit.services.results.test_compute import CONTEXT

CELL = CONTEXT.cells[0]


def row(run: int, *scores: int, judge: int = 0) -> ScoreRow:
    return ScoreRow(CELL.ordinal, 0, judge, run, run // 2, list(scores), 0, 0, 0, 0)


def test_a_runs_responses_are_one_distribution_and_runs_without_a_score_have_no_distance() -> None:
    rows = [row(0, 1, 1), row(0, 5, 5), row(1, 5), row(2), row(3, 1)]
    found = distances_of(CONTEXT, CELL, 0, {0: rows})
    assert [each.run for each in found.runs] == [0, 1, 2, 3]
    assert [each.instruction for each in found.runs] == [0, 0, 1, 1]
    judged, silent = found.by_judge
    # Half of run 0's scores are 1, half 5: each half moves by 4 to make run 1 or run 3.
    assert judged.distances == [
        [0.0, 2.0, None, 2.0],
        [2.0, 0.0, None, 4.0],
        [None, None, None, None],
        [2.0, 4.0, None, 0.0],
    ]
    assert silent.distances == [[None] * 4] * 4
    assert (found.width, found.runs_in_all, found.level) == (4, 4, CELL.persona.traits[0].level)


def test_the_order_of_rows_changes_nothing_and_many_runs_are_cut() -> None:
    rows = [row(run, 1 + run % 5, judge=0) for run in range(MAX_RUNS + 7)]
    found = distances_of(CONTEXT, CELL, 0, {0: rows})
    assert found == distances_of(CONTEXT, CELL, 0, {0: rows[::-1]})
    assert (len(found.runs), found.runs_in_all) == (MAX_RUNS, MAX_RUNS + 7)
    assert len(found.by_judge[0].distances) == MAX_RUNS
    assert found.by_judge[0].distances[4][5] == 4.0
