"""Where a bundle's results differ from those that are computed from its rows."""

import json
from typing import Any

import pytest

from app.services.results.bundle_reader import first_difference


@pytest.mark.parametrize(
    ("own", "difference"),
    [
        ({"acc": 1, "later": 2}, None),
        ({"acc": 2}, ("/totals/acc", "2, not 1")),
        ([1], ("/totals", '[1], not {"acc":1}')),
        (None, ("/totals", 'null, not {"acc":1}')),
    ],
)
def test_a_difference_of_value_or_type_is_named_by_its_place(
    own: Any, difference: tuple[str, str] | None
) -> None:
    def results(totals: Any) -> str:
        return json.dumps({"manifest": {}, "totals": totals})

    assert first_difference(results({"acc": 1}), results(own)) == difference
