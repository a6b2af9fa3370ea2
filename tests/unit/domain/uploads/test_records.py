"""Any bytes, cut into any parts, give the records and errors of the file in one part."""

import json
import sys
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.domain.instruments.instrument import InstrumentRef
from app.domain.uploads import records
from app.domain.uploads.records import ERRORS_KEPT, Place, Read, Record, RecordError, read_lines, read_rows
from app.instruments.rules import RULES

CURRENT = RULES.load(InstrumentRef("v1", "", RULES.current["segmenter"], "refusals-v1", "injections-v1"))
SHORT_LINE = 90
"""Longest line in these tests, so that some are too long."""

TEXTS = st.text(max_size=60) | st.sampled_from(["Ich gehe. Du bleibst.", "❄ \U0001f600\r", "a\0b", "\u2028"])
VALUES = TEXTS | st.none() | st.integers(-2, 3) | st.lists(st.integers(), max_size=2)
FIELDS = st.fixed_dictionaries(
    {"persona": st.just("E-low") | VALUES, "task": st.just("essay") | TEXTS, "text": TEXTS},
    optional={"run": VALUES, "item": VALUES, "model": TEXTS, "unknown": VALUES},
)


def line(fields: dict[str, Any], *, ascii_only: bool) -> bytes:
    return json.dumps(fields, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")


STORABLE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
RIGHT = st.fixed_dictionaries({"persona": st.just("E-low"), "task": st.just("essay"), "text": STORABLE})
GOOD = st.builds(line, RIGHT, ascii_only=st.booleans())
LINES = (
    GOOD
    | st.builds(line, FIELDS, ascii_only=st.booleans())
    | st.binary(max_size=300)
    | st.sampled_from([b"", b"\r", b" \t", b"\xef\xbb\xbf", b"{" * 60, b"x" * 150])
)
FILES = (st.lists(GOOD, max_size=8) | st.lists(LINES, max_size=8)).flatmap(
    lambda found: st.sampled_from([b"\n", b"\r\n", b"\n\n"]).map(lambda end: end.join(found))
) | st.binary(max_size=1000)


class Arrived:
    """What was read of a file whose parts arrive one after another."""

    def __init__(self) -> None:
        self.place = Place()
        self.records: list[Record] = []
        self.errors: list[RecordError] = []
        self.wrong = 0

    def take(self, read: Read) -> None:
        """As an upload counts: nothing is kept beside an error, and so many errors are told."""
        self.place = read.place
        self.wrong += read.wrong
        self.errors = [*self.errors, *read.errors][:ERRORS_KEPT]
        self.records = [] if self.wrong else [*self.records, *read.records]


def read(file: bytes, cuts: list[int]) -> Arrived:
    arrived = Arrived()
    places = sorted({0, len(file), *(cut % (len(file) + 1) for cut in cuts)})
    parts = [file[start:end] for start, end in pairwise(places)] or [b""]
    for number, part in enumerate(parts, 1):
        last = number == len(parts)
        arrived.take(read_lines(arrived.place, part, CURRENT, last=last, keep=not arrived.wrong))
    return arrived


@example(b"x" * 150 + b"\n{", [120])
@example(b"{}\n" + b"x" * 150, [100, 130])
@given(FILES, st.lists(st.integers(0, 5000), max_size=12))
def test_any_bytes_in_any_parts_are_read_as_in_one(file: bytes, cuts: list[int]) -> None:
    longest, records.LINE_BYTES = records.LINE_BYTES, SHORT_LINE
    try:
        whole, in_parts = read(file, []), read(file, cuts)
    finally:
        records.LINE_BYTES = longest
    assert in_parts.errors == whole.errors
    assert (in_parts.wrong, in_parts.place) == (whole.wrong, whole.place)
    assert in_parts.records == whole.records
    assert whole.place.tail == b""


ROW: dict[str, Any] = {"persona": "E-low", "task": "essay", "text": "I stay. I read."}


@pytest.mark.parametrize(
    ("said", "pointer", "message"),
    [
        ({"text": "a \ud800"}, "/text", "must not contain lone surrogates"),
        ({"persona": "E\udc00"}, "/persona", "must not contain lone surrogates"),
        ({"text": "a" * 200_001}, "/text", "must have at most 200000 characters"),
        ({"model": ""}, "/model", "must have at least 1 character"),
        ({"run": int("9" * 4_300) * 10}, "", "has a number of more than 4,300 digits"),
    ],
)
def test_errors_are_told_in_words_of_texts_and_numbers(
    said: dict[str, Any], pointer: str, message: str
) -> None:
    digits = sys.get_int_max_str_digits()
    try:
        sys.set_int_max_str_digits(0)
        file = line(ROW | said, ascii_only=True)
    finally:
        sys.set_int_max_str_digits(digits)
    assert read(file, []).errors == [RecordError(1, pointer, message)]


def test_whole_numbers_of_a_table_may_be_fractions_and_decimals() -> None:
    scores = [Decimal("1.00"), 4.0]
    row = {
        "run": Decimal(3),
        "grades": [("a", 4.0), ("b", None), ("c", Decimal(2))],
        "verdicts": [{"judge": "a", "dimension": "E", "scores": scores}],
    }
    found = read_rows(1, [ROW | row], CURRENT)
    assert found.errors == []
    assert found.records[0].given["run"] == 3
    assert found.records[0].judged == {"verdicts": [["a", "E", [1, 4]]], "grades": {"a": 4, "c": 2}}


@pytest.mark.parametrize("run", [Decimal("1.5"), 1.5, Decimal(10) ** 60, float("inf"), float("nan")])
def test_other_numbers_of_a_table_are_told(run: Any) -> None:
    assert [error.field for error in read_rows(1, [ROW | {"run": run}], CURRENT).errors] == ["/run"]


def test_two_grades_of_one_judge_are_told_not_one_of_them_dropped() -> None:
    found = read_rows(7, [ROW | {"grades": [("a", 1), ("a", 5)]}], CURRENT)
    message = "the key 'a' appears more than once in one object"
    assert (found.records, found.errors) == ([], [RecordError(7, "/grades", message)])


def test_errors_beyond_those_that_are_told_are_counted_alike() -> None:
    line = b'{"persona": "E-low", "text": 5, "runs": 3}\n'
    whole, in_parts = read(line * 30, []), read(line * 30, [len(line) * n for n in range(30)])
    assert len(whole.errors) == ERRORS_KEPT
    assert whole.errors == in_parts.errors
    assert whole.wrong == in_parts.wrong == 30 * 3
