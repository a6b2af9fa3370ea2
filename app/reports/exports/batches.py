"""Responses and results as Arrow record batches, in the columns of :mod:`app.reports.exports.columns`.

A column of a batch is a dictionary: the values of its source's objects, each of them once, and for each row the place of its own.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from app.domain.judging.judged_response import JudgedResponse, JudgedUnit, ResponseGrade, UnitVerdict
from app.domain.judging.response_figures import ResponseFigures
from app.domain.results.contract import Results
from app.reports.exports.columns import (
    RESPONSE_COLUMNS,
    VERDICT_COLUMNS,
    Asked,
    Column,
    Record,
    Source,
    Table,
)

BATCH_CHARACTERS = 2_000_000
"""Characters of a batch's rows, about. A page that repeats long texts in many rows becomes several batches."""


def table_batch(table: Table, results: Results) -> pa.RecordBatch:
    """All rows of a table of the results."""
    return record_batch(table.columns, list(table.records(results)))


def record_batch(columns: Iterable[Column], records: Sequence[Record]) -> pa.RecordBatch:
    """A row for each record."""
    return _batch(columns, {Source.RECORD: records}, {Source.RECORD: range(len(records))})


def page_batches(page: Iterable[JudgedResponse]) -> Iterator[pa.RecordBatch]:
    """All rows of these responses in their order; no batch is empty."""
    rows = _VerdictRows()
    for response in page:
        rows.add(response)
        if rows.characters > BATCH_CHARACTERS:
            yield rows.batch()
            rows = _VerdictRows()
    if rows:
        yield rows.batch()


def response_batches(page: Iterable[JudgedResponse]) -> Iterator[pa.RecordBatch]:
    """A row for each of these responses and its dimensions; no batch is empty."""
    responses: list[JudgedResponse] = []
    characters = 0
    for response in page:
        responses.append(response)
        repeated = len(response.text or "") + len(response.item.text) + len(response.persona_description)
        characters += max(1, len(response.levels)) * repeated
        if characters > BATCH_CHARACTERS:
            yield _response_batch(responses)
            responses, characters = [], 0
    if responses:
        yield _response_batch(responses)


def _response_batch(responses: Sequence[JudgedResponse]) -> pa.RecordBatch:
    asked: list[Asked] = []
    figures: list[ResponseFigures] = []
    places: dict[Source, list[int | None]] = {
        source: [] for source in (Source.ASKED, Source.RESPONSE, Source.FIGURES)
    }
    for place, response in enumerate(responses):
        known = {each.dimension: each for each in response.figures}
        for dimension in response.levels or (None,):
            places[Source.ASKED].append(len(asked))
            asked.append(_asked_of(response, dimension))
            places[Source.RESPONSE].append(place)
            own = known.get(dimension or "")
            places[Source.FIGURES].append(None if own is None else len(figures))
            figures += [] if own is None else [own]
    objects: dict[Source, Sequence[Any]] = {
        Source.ASKED: asked,
        Source.RESPONSE: responses,
        Source.FIGURES: figures,
    }
    return _batch(RESPONSE_COLUMNS, objects, places)


def _asked_of(response: JudgedResponse, dimension: str | None) -> Asked:
    return Asked(
        response.model,
        response.persona,
        response.task,
        response.item.id,
        response.item.text,
        dimension,
        None if dimension is None else response.levels.get(dimension),
        response.persona_description,
        response.persona_traits,
    )


def _judged_on(response: JudgedResponse) -> Iterable[str | None]:
    """The dimensions of a response's rows; without a persona those that judges have said anything of, or ``None`` to keep a row."""
    if response.levels or response.question is not None:
        return response.levels
    return dict.fromkeys(each.dimension for unit in response.units for each in unit.verdicts) or (None,)


class _VerdictRows:
    """Rows of verdicts that become a batch: what they are read from, and for each row the places of its own."""

    def __init__(self) -> None:
        self._responses: list[JudgedResponse] = []
        self._asked: dict[Asked, int] = {}
        self._units: list[JudgedUnit] = []
        self._verdicts: list[UnitVerdict | ResponseGrade] = []
        self._places_of_verdicts: dict[int, int] = {}
        self._places: dict[Source, list[int | None]] = {
            source: [] for source in Source if source not in {Source.RECORD, Source.FIGURES}
        }
        self._characters = 0
        self._longest_reply = 0

    def __len__(self) -> int:
        return len(self._places[Source.ASKED])

    @property
    def characters(self) -> int:
        """About how long the texts in the rows are, at most."""
        return self._characters + len(self) * self._longest_reply

    def add(self, response: JudgedResponse) -> None:
        """Adds a response's rows; at least one for each dimension."""
        before = len(self)
        self._add_sentences(response)
        if response.question is not None:
            whole = self._place_of_asked(response, None)
            for grade in response.grades or (None,):
                self._add_row(whole, None, None if grade is None else self._place(grade))
        if rows := len(self) - before:
            self._places[Source.RESPONSE] += [len(self._responses)] * rows
            self._places[Source.FIRST_ROW] += [len(self._responses), *[None] * (rows - 1)]
            self._responses.append(response)
            times = max(1, rows // max(1, len(response.units)))  # that each sentence is there
            self._characters += times * len(response.text or "") + len(response.thoughts or "")
            self._characters += rows * (
                len(response.item.text) + len(response.error or "") + len(response.persona_description)
            )

    def batch(self) -> pa.RecordBatch:
        """The rows as Arrow has them."""
        objects: dict[Source, Sequence[Any]] = {
            Source.ASKED: list(self._asked),
            Source.RESPONSE: self._responses,
            Source.FIRST_ROW: self._responses,
            Source.UNIT: self._units,
            Source.VERDICT: self._verdicts,
        }
        return _batch(VERDICT_COLUMNS, objects, self._places)

    def _add_sentences(self, response: JudgedResponse) -> None:
        asked = {each: self._place_of_asked(response, each) for each in _judged_on(response)}
        places = self._places_of_verdicts
        add_asked, add_unit, add_verdict = (
            self._places[source].append for source in (Source.ASKED, Source.UNIT, Source.VERDICT)
        )
        for unit, sentence in enumerate(response.units, len(self._units)):
            for verdict in sentence.verdicts:
                add_asked(asked[verdict.dimension])
                add_unit(unit)
                # By identity: equal verdicts are mostly one object, and its hash would cost ten times as much.
                place = places.get(id(verdict))
                add_verdict(self._place(verdict) if place is None else place)
            if not sentence.verdicts:
                for each in asked.values():
                    self._add_row(each, unit, None)
        if not response.units:
            for each in asked.values():
                self._add_row(each, None, None)
        self._units += response.units

    def _add_row(self, asked: int, unit: int | None, verdict: int | None) -> None:
        self._places[Source.ASKED].append(asked)
        self._places[Source.UNIT].append(unit)
        self._places[Source.VERDICT].append(verdict)

    def _place_of_asked(self, response: JudgedResponse, dimension: str | None) -> int:
        return self._asked.setdefault(_asked_of(response, dimension), len(self._asked))

    def _place(self, verdict: UnitVerdict | ResponseGrade) -> int:
        """By identity: equal verdicts are mostly one object, and its hash would cost ten times as much."""
        place = self._places_of_verdicts[id(verdict)] = len(self._verdicts)
        self._verdicts.append(verdict)
        said = (verdict.raw, verdict.thoughts, verdict.error, verdict.repair_raw)
        self._longest_reply = max(self._longest_reply, sum(map(len, filter(None, said))))
        return place


def _batch(
    columns: Iterable[Column],
    objects: Mapping[Source, Sequence[Any]],
    places: Mapping[Source, Sequence[int | None]],
) -> pa.RecordBatch:
    """A batch of the columns, from each source's objects and, for each row, the place of its own among them."""
    indices = {source: pa.array(of_rows, pa.int32()) for source, of_rows in places.items()}
    arrays = {}
    for column in columns:
        values = pa.array(list(map(column.read, objects[column.source])), str(column.type))
        arrays[column.name] = pa.DictionaryArray.from_arrays(indices[column.source], values)
    return pa.record_batch(arrays)
