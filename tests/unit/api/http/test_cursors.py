"""Where pages begin."""

import math

import pytest

from app.api.http.cursors import before_response, encoded, mark, number, position
from app.api.http.problems import ProblemError


@pytest.mark.parametrize("place", [(0, 0, 1), (0, 3, 0), (2, 0, 0), (2, 3, 1)])
def test_a_page_behind_the_cursor_before_a_response_begins_with_it(place: tuple[int, int, int]) -> None:
    cursor = before_response("resp_01abc-" + "-".join(map(str, place)))
    assert cursor is not None
    cell, run, item = place
    neighbours = [(cell, run, item - 1), (cell, run - 1, 9), (cell - 1, 9, 9)]
    earlier = max(each for each in neighbours if min(each) >= 0)
    assert earlier <= position(cursor) < place


def test_nothing_is_before_the_first() -> None:
    assert before_response("resp_01abc-0-0-0") is None


@pytest.mark.parametrize("value", [10**400, -(10**400), 1e300, math.nan, math.inf, "1", [0]])
def test_no_order_has_a_value_that_no_response_has(value: object) -> None:
    with pytest.raises(ProblemError):
        mark(encoded([value, 0, 0, 0]))


def test_a_response_has_a_value_or_none_in_an_order() -> None:
    assert mark(encoded([-0.25, 1, 2, 3])) == (-0.25, (1, 2, 3))
    assert mark(encoded([None, 1, 2, 3])) == (math.inf, (1, 2, 3))


@pytest.mark.parametrize("value", [-1, 2**63, True, False, None])
def test_a_number_is_what_a_database_can_count_to(value: object) -> None:
    assert number(encoded([2**63 - 1])) == 2**63 - 1
    with pytest.raises(ProblemError):
        number(encoded([value]))
