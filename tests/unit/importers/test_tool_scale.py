"""A tool's scores on the scale of judges."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.importers.tool_scale import ToolScale


@pytest.mark.parametrize(
    ("scale", "scores"),
    [
        ("0-10", [1, 1, 2, 2, 3, 3, 3, 4, 4, 5, 5]),
        ("1-10", [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]),
        ("1-5", [1, 2, 3, 4, 5]),
        ("-3-3", [1, 2, 2, 3, 4, 4, 5]),
        ("0-8", [1, 2, 2, 3, 3, 3, 4, 4, 5]),
        ("0 - 1", [1, 5]),
    ],
)
def test_each_number_becomes_the_nearest(scale: str, scores: list[int]) -> None:
    found = ToolScale.of(scale)
    assert [found.onto(found.lowest + n) for n in range(len(scores))] == scores


@given(st.integers(-1000, 1000), st.integers(1, 1000), st.integers(0, 1000))
def test_both_ends_are_treated_alike(lowest: int, width: int, number: int) -> None:
    scale = ToolScale(lowest, lowest + width)
    place = number % (width + 1)
    low, high = scale.onto(scale.lowest + place), scale.onto(scale.highest - place)
    assert (scale.onto(scale.lowest), scale.onto(scale.highest)) == (1, 5)
    assert 1 <= low <= 5
    assert low + high == 6, "1 and 5, 2 and 4, 3 and 3"


@pytest.mark.parametrize("text", ["", "10", "5-1", "5-5", "a-b", "1-", "0-1e9", "0-9999999", "0-10-20"])
def test_what_is_no_scale_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="such as 0-10"):
        ToolScale.of(text)
