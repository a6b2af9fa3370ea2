"""Runs of existing texts that lack what another run of their cell has."""

import time

from app.domain.jobs.specification import ProvidedResponse
from app.domain.jobs.uneven_runs import uneven_runs


def texts(*places: tuple[int, int, int]) -> list[ProvidedResponse]:
    return [ProvidedResponse(cell, run, item, None, "x") for cell, run, item in places]


def test_runs_of_the_same_items_are_even_whatever_other_cells_have() -> None:
    assert uneven_runs(texts((0, 0, 0), (0, 0, 1), (0, 3, 1), (0, 3, 0), (1, 0, 5))) == 0


def test_each_run_that_lacks_an_item_counts_once() -> None:
    # run 0 has items 0 and 1, run 1 lacks item 1, run 2 lacks item 0; of cell 1, run 1 lacks two
    lacking = [(0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 2, 1)]
    of_another = [(1, 0, 0), (1, 0, 1), (1, 0, 2), (1, 1, 2)]
    assert uneven_runs(texts(*lacking)) == 2
    assert uneven_runs(texts(*lacking, *of_another)) == 3


def test_where_no_run_has_all_items_all_are_uneven() -> None:
    assert uneven_runs(texts((0, 0, 0), (0, 1, 1))) == 2


def test_it_takes_no_longer_for_each_run_where_a_cell_has_more_of_them() -> None:
    """Twenty times the runs took 400 times as long, a quarter of a minute for 25,000."""

    def seconds(runs: int) -> float:
        each_alone = texts(*((0, run, 0) for run in range(runs)))
        begun = time.process_time()
        assert uneven_runs(each_alone) == 0
        return time.process_time() - begun

    assert seconds(20_000) < 100 * min(seconds(1_000) for _ in range(5))
