"""Where pages begin."""

import pytest

from app.api.http.cursors import before_response, position


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
