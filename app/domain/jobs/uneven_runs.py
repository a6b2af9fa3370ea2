"""Runs of existing texts that lack an item which another run of the same cell has."""

from collections.abc import Iterable

from app.domain.jobs.specification import ProvidedResponse


def uneven_runs(placed: Iterable[ProvidedResponse]) -> int:
    """How many such runs there are: what compares runs then compares texts on different items."""
    items: dict[int, dict[int, set[int]]] = {}
    for each in placed:
        items.setdefault(each.cell, {}).setdefault(each.run, set()).add(each.item)
    return sum(map(_uneven, items.values()))


def _uneven(of_cell: dict[int, set[int]]) -> int:
    """Those of a cell; what its runs have together is found once, as there may be thousands of them."""
    together: set[int] = set().union(*of_cell.values())
    return sum(there < together for there in of_cell.values())
