"""Any bytes, cut into any parts, give the records and errors of the file in one part."""

import json
from itertools import pairwise
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from app.domain.instruments.instrument import InstrumentRef
from app.domain.uploads import records
from app.domain.uploads.records import ERRORS_KEPT, Place, Read, Record, RecordError, read_lines
from app.instruments.rules import RULES

CURRENT = RULES.load(InstrumentRef("v1", "", **RULES.current))
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
