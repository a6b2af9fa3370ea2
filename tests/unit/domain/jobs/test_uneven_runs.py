"""Runs of existing texts that lack what another run of their cell has."""

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
