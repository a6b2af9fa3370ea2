"""Reads the records of an upload: lines of JSON as they arrive, or rows, each a response as a job's `responses` has it."""

import contextlib
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from app.domain.errors import FieldError
from app.domain.instruments.rules import Rules
from app.domain.instruments.segmentation import runaway, units_at
from app.domain.jobs.request import ResponseIn
from app.domain.jobs.verdicts_request import MOST_UNITS
from app.domain.judging.imported import given_text, refused_elsewhere
from app.domain.judging.text_notes import notes_on
from app.domain.judging.thoughts import split_thoughts
from app.domain.providers.model import ONLY_THOUGHTS
from app.domain.uploads.judged import as_judged, scores_of, wrong_verdicts
from app.domain.validation import field_error

LINE_BYTES = 4 * 1024 * 1024
"""Longest line: the longest text takes less, however it is escaped."""
ERRORS_KEPT = 20
"""Errors of an upload that are told; further ones are counted."""

_RECORD = TypeAdapter(ResponseIn)
_CHECKED = {"text", "units", "verdicts", "grades"}
"""Fields whose texts are known to be storable."""
_DIGITS = re.compile(r"-?[0-9]{1,9}")
_BOM = b"\xef\xbb\xbf"


class RecordError(NamedTuple):
    """What is wrong with a record.

    Attributes:
        line: Its line, or of Parquet its row, from 1.
        field: JSON pointer into it; empty for the whole.
        message: The reason.
    """

    line: int
    field: str
    message: str


@dataclass(frozen=True, slots=True)
class Record:
    """A record as it is kept.

    Attributes:
        line: Its line, or row, from 1.
        given: Its names, as far as they were given.
        text: The text, without the thoughts before it.
        thoughts: These.
        status: Its status as a response.
        error: Why there is nothing to be judged, if so.
        units: Where its sentences begin and end.
        judged: What is kept of what imported judges said of it.
        notes: What is odd about the text, as JSON text.
    """

    line: int
    given: dict[str, Any]
    text: str
    thoughts: str | None
    status: str
    error: str | None
    units: tuple[tuple[int, int], ...]
    judged: dict[str, Any] | None = None
    notes: str | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where reading stands.

    Attributes:
        lines: Lines read so far.
        tail: The beginning of the next one.
        skipping: Whether the line is too long, so that its rest is passed over.
    """

    lines: int = 0
    tail: bytes = b""
    skipping: bool = False


@dataclass(frozen=True, slots=True)
class Read:
    """What was read of a piece.

    Attributes:
        place: Where reading stands after it.
        records: The records, if no line was wrong.
        errors: Everything that is wrong; of many errors, only those that are told.
        wrong: How many errors there are.
    """

    place: Place
    records: list[Record] = field(default_factory=list)
    errors: list[RecordError] = field(default_factory=list)
    wrong: int = 0


def read_lines(place: Place, piece: bytes, rules: Rules, *, last: bool, keep: bool = True) -> Read:
    """Reads the next piece of a file of JSON Lines. Blank lines do not count as records.

    Args:
        place: Where reading stands.
        piece: What follows. Untrusted.
        rules: What texts are read by.
        last: Whether the file ends after it.
        keep: Whether texts are split into sentences; not, where an earlier record was wrong.
    """
    reader = _Reader(rules, keep=keep)
    if place.skipping:
        _, newline, piece = piece.partition(b"\n")
        if not newline:
            return Read(replace(place, lines=place.lines + last, skipping=not last))
        place = Place(place.lines + 1)
    *whole, tail = (place.tail + piece).split(b"\n")
    if last and tail:
        whole, tail = [*whole, tail], b""
    for number, line in enumerate(whole, place.lines + 1):
        if line:
            reader.take(number, line)
    lines = place.lines + len(whole)
    skipping = len(tail) > LINE_BYTES
    if skipping:
        reader.take(lines + 1, tail)
    return Read(
        Place(lines, b"" if skipping else tail, skipping), reader.records, reader.errors, reader.wrong
    )


def read_rows(first: int, rows: Iterable[dict[str, Any] | FieldError], rules: Rules) -> Read:
    """Reads rows of a table; a field without a value counts as not given.

    Args:
        first: Number of the first row, from 1.
        rows: The rows, or which of a row's fields has no value that can be read. Untrusted.
        rules: What texts are read by.
    """
    reader = _Reader(rules, keep=True)
    last = first - 1
    for last, row in enumerate(rows, first):
        if isinstance(row, FieldError):
            reader.fail(last, row.pointer, row.message)
            continue
        try:
            given = as_given(row)
        except _RefusedError as error:
            reader.fail(last, "/grades", str(error))
        else:
            reader.check(last, given)
    return Read(Place(last), reader.records, reader.errors, reader.wrong)


def as_given(row: dict[str, Any]) -> dict[str, Any]:
    """A row of a table as JSON would have it: tables have every field in every row, and maps as lists of pairs.

    Raises:
        _RefusedError: If a judge gave two grades.
    """
    given = {name: _as_json(value) for name, value in row.items() if value is not None}
    grades = given.get("grades")
    if isinstance(grades, list) and all(map(_is_pair, grades)):
        grades = _without_repeats(grades)
    if isinstance(grades, dict):
        given["grades"] = {name: _as_json(grade) for name, grade in grades.items() if grade is not None}
    if isinstance(given.get("verdicts"), list):
        given["verdicts"] = [_verdicts(each) for each in given["verdicts"]]
    return given


def _as_json(value: Any) -> Any:
    """A value as JSON would have it: text without a type is bytes, and of whole numbers some writers make fractions or decimals."""
    if isinstance(value, bytes):
        with contextlib.suppress(UnicodeDecodeError):
            return value.decode()
    return int(value) if _is_whole(value) else value


def _is_whole(value: Any) -> bool:
    if isinstance(value, Decimal):
        return value == value.to_integral_value()
    return isinstance(value, float) and value.is_integer()


def _is_pair(value: object) -> bool:
    return isinstance(value, tuple) and isinstance(value[0], str)


def _verdicts(given: Any) -> Any:
    """What a judge said; where all is numbers, words are among texts, so that numbers may be in digits."""
    if not isinstance(given, dict):
        return given
    told = {name: value for name, value in given.items() if value is not None}
    if "scores" not in told and "score" in given:
        told["score"] = _score(given["score"])
    if isinstance(told.get("scores"), list):
        told["scores"] = [_score(score) for score in told["scores"]]
    return told


def _score(given: Any) -> Any:
    return int(given) if isinstance(given, str) and _DIGITS.fullmatch(given) else _as_json(given)


class _Reader:
    def __init__(self, rules: Rules, *, keep: bool) -> None:
        self.records: list[Record] = []
        self.errors: list[RecordError] = []
        self.wrong = 0
        self._rules = rules
        self._keep = keep

    def take(self, number: int, line: bytes) -> None:
        """Reads a line."""
        if number == 1:
            line = line.removeprefix(_BOM)
        if len(line) > LINE_BYTES:
            self.fail(number, "", f"a line may have at most {LINE_BYTES:,} bytes")
            return
        if not line.strip():
            return
        try:
            value = json.loads(line.decode(), object_pairs_hook=_without_repeats, parse_constant=_no_constant)
        except UnicodeDecodeError:
            self.fail(number, "", "is not UTF-8")
        except json.JSONDecodeError as error:
            self.fail(number, "", f"is not JSON: {error.msg} at character {error.pos + 1}")
        except _RefusedError as error:
            self.fail(number, "", str(error))
        except ValueError:
            self.fail(number, "", f"has a number of more than {sys.get_int_max_str_digits():,} digits")
        except RecursionError:
            self.fail(number, "", "is nested too deeply")
        else:
            self.check(number, value)

    def check(self, number: int, value: Any) -> None:
        """Reads a record."""
        try:
            response = _RECORD.validate_python(value)
        except ValidationError as error:
            if len(self.errors) >= ERRORS_KEPT:  # what is not told is counted in a tenth of the time
                self.wrong += error.error_count()
                return
            for found in error.errors(include_url=False):
                told = field_error({**found, "loc": ("body", *found["loc"])}, value, ResponseIn)
                self.fail(number, told.pointer, told.message)
            return
        if response.text is None and not response.units and not response.verdicts:
            self.fail(number, "/text", "is required where there are no verdicts")
        for name, given in response.model_dump(exclude_unset=True, exclude=_CHECKED).items():
            if "\\u0000" in json.dumps(given):
                self.fail(number, f"/{name}", "must not contain the character U+0000")
        if self._keep and not self.wrong:
            record = as_record(number, response, self._rules)
            if isinstance(record, FieldError):
                self.fail(number, record.pointer, record.message)
            else:
                self.records.append(record)

    def fail(self, line: int, pointer: str, message: str) -> None:
        self.wrong += 1
        self.records.clear()
        if len(self.errors) < ERRORS_KEPT:
            self.errors.append(RecordError(line, pointer, message))


def as_record(number: int, response: ResponseIn, rules: Rules) -> Record | FieldError:
    """A response with its sentences; or what is wrong with its text, or with what judges said of it."""
    thoughts, answer = split_thoughts(response.text or "")
    scores = scores_of(response)
    units = [unit.strip() for unit in response.units]
    told = given_text(None if response.text is None else answer, units, scores)
    if isinstance(told, FieldError):
        return told
    if told.spans is None:
        message = runaway(answer, MOST_UNITS)
        found = () if message is not None else rules.segmenter.segment(answer, MOST_UNITS)
        if len(found) > MOST_UNITS:
            message = f"more than {MOST_UNITS:,} sentences"
        if message is not None:
            return FieldError("/text", message)
    else:
        found = units_at(told.text, [start for start, _ in told.spans], [end for _, end in told.spans])
    spans = [(unit.start, unit.end) for unit in found]
    wrong = wrong_verdicts(response, scores, answer, len(spans))
    if wrong is not None:
        return wrong
    refused = refused_elsewhere(scores)
    status, why = "answered", None
    if refused or (refused is None and rules.refusals.is_refusal(answer)):
        status = "refused"
    elif refused is None and thoughts is not None and not answer.strip():
        status, why = "no_answer", ONLY_THOUGHTS
    given = response.model_dump(exclude_unset=True, exclude=_CHECKED)
    judged = as_judged(response, rules, told.text, spans)
    return Record(
        number,
        given,
        told.text,
        thoughts,
        status,
        why,
        tuple(spans),
        judged,
        notes_on(told.text, found, rules).stored(),
    )


class _RefusedError(ValueError):
    """What Python takes and JSON has not, or gives no meaning; the message says what."""


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        repeated = next(name for name, count in counts.items() if count > 1)
        raise _RefusedError(f"the key {repeated[:100]!r} appears more than once in one object")
    return found


def _no_constant(name: str) -> Any:
    raise _RefusedError(f"{name} is not JSON")
