"""Sentences of elsewhere are found in the text that they are of."""

import time

import pytest

from app.domain.judging.imported import places_of


@pytest.mark.parametrize(
    ("text", "units", "found"),
    [
        ("I danced.  Then I hid.", ["I danced.", "Then I hid."], ["I danced.", "Then I hid."]),
        ("I\n danced. I \u2019m.", ["I danced.", "I 'm."], ["I\n danced.", "I \u2019m."]),
        ("No\u2014yes. No--no.", ["No--yes.", "No\u2014no."], ["No\u2014yes.", "No--no."]),
        ("A\u2014-b. \u2014\u2014", ["A---b.", "----"], ["A\u2014-b.", "\u2014\u2014"]),
        ("Ha. Ha.", ["Ha.", "Ha."], ["Ha.", "Ha."]),
        ("One. Two.", ["Two.", "One."], ["Two.", None]),
        ("One.", ["One. "], ["One."]),
        ("One.", [" "], [None]),
        ("", ["One."], [None]),
    ],
)
def test_each_is_found_after_the_one_before(text: str, units: list[str], found: list[str | None]) -> None:
    places = list(places_of(units, text))
    assert [None if place is None else text[slice(*place)] for place in places] == found


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("a  " * 60_000, ["a " * 30_000 + "c"]),
        ("a  a. " * 30_000, ["a a."] * 30_000),
        (" " * 190_000 + "b", ["a " * 3_000 + "c"]),
        ("\u2014" * 190_000, ["-" * 95_001] * 2),
    ],
)
def test_the_time_grows_with_the_text_only(text: str, units: list[str]) -> None:
    began = time.process_time()
    list(places_of(units, text))
    assert time.process_time() - began < 5
