"""Places of responses as the values of statements that look for each of them."""

from collections.abc import Iterable, Sequence


def place_arrays(places: Sequence[tuple[int, int, int]]) -> dict[str, str]:
    """Places (cell, run, item) as ``:cells``, ``:runs`` and ``:items``, which the statement casts to ``int[]``."""
    cells, runs, items = map(_array, zip(*places, strict=True)) if places else ("{}",) * 3
    return {"cells": cells, "runs": runs, "items": items}


def _array(numbers: Iterable[int]) -> str:
    """An array as Postgres spells it, of integers that are cast there: the driver takes ten times as long for a long list."""
    return f"{{{','.join(map(str, numbers))}}}"
