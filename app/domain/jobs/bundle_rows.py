"""Whether rows that somebody else wrote fit the specification of their job, so that whatever reads them can rely on them."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from pydantic import TypeAdapter, ValidationError

from app.domain.instruments.dimension import Dimension, Scale
from app.domain.jobs.bundle_reading import ReadAgain
from app.domain.jobs.plan import AtomicCell, Cell
from app.domain.jobs.specification import JobSpec
from app.domain.judging.fit import GRADES
from app.domain.judging.prompt_injection import Suspicion
from app.domain.judging.text_notes import TextNotes
from app.domain.judging.verdict import Unread
from app.domain.providers.model import FinishReason, Stage
from app.domain.validation import message

Row = Mapping[str, Any]
_MOST = 32_767
_NOTES = TypeAdapter[TextNotes | None](TextNotes | None)


class WrongRowError(ValueError):
    """A row does not fit; the message names the field and the reason."""


class RowChecks:
    """Checks the rows of a job, in the order in which a bundle has their tables.

    Args:
        spec: The job's specification.
        cells: Its cells, those of the control arm included.
        again: What is made again of texts and replies.
    """

    def __init__(self, spec: JobSpec, cells: Sequence[Cell], again: ReadAgain) -> None:
        self._spec = spec
        self._again = again
        self._cells = cells
        self._seen = 0
        self._units: dict[tuple[int, int, int], int] = {}
        self._checks: Mapping[str, Callable[[Row], object]] = {
            "cells": self._cell,
            "shards": self._shard,
            "preparations": self._preparation,
            "responses": self._response,
            "verdicts": self._verdict,
            "second_verdicts": self._second_verdict,
            "grades": self._grade,
        }

    def check(self, table: str, row: Row) -> None:
        """Checks a row.

        Raises:
            WrongRowError: If it does not fit.
        """
        _one_of(row, "stage", Stage)
        _one_of(row, "finish_reason", FinishReason if table != "calls" else ())
        _one_of(row, "suspicion", Suspicion)
        _one_of(row, "unread", Unread)
        if table in self._checks:
            self._checks[table](row)

    def check_whole(self) -> None:
        """Checks that no cell is missing.

        Raises:
            WrongRowError: If one is.
        """
        if self._seen != len(self._cells):
            raise WrongRowError(f"has {self._seen} rows; the specification has {len(self._cells)} cells")

    def _cell(self, row: Row) -> None:
        if self._seen >= len(self._cells):
            raise WrongRowError(f"the specification has {len(self._cells)} cells")
        cell = self._cells[self._seen]
        expected = (self._seen, self._spec.models[cell.model].label, cell.persona.id, cell.task.id)
        for name, value in zip(("ordinal", "model", "persona", "task"), expected, strict=True):
            if row.get(name) != value or isinstance(row.get(name), bool):
                raise WrongRowError(f"{name}: must be {value!r}, as in the specification")
        self._seen += 1

    def _shard(self, row: Row) -> None:
        most = _MOST + 1
        if row.get("cell") is not None:
            cell = self._cells[_number(row, "cell", len(self._cells))]
            most = most if self._spec.provided else cell.runs
        stop = _number(row, "run_stop", most + 1)
        _number(row, "run_start", stop + 1)

    def _preparation(self, row: Row) -> None:
        _number(row, "persona", max(1, len(self._spec.personas)))
        content = row.get("content")
        if not isinstance(content, list) or not all(isinstance(each, str) for each in content):
            raise WrongRowError("content: must be a list of texts")

    def _response(self, row: Row) -> None:
        cell = self._cells[_number(row, "cell", len(self._cells))]
        generated = isinstance(cell, AtomicCell) and not self._spec.provided
        run = _number(row, "run", cell.runs if generated else _MOST)
        item = _number(row, "item", len(cell.items) if isinstance(cell, AtomicCell) else _MOST)
        starts, ends, text = row.get("unit_starts"), row.get("unit_ends"), row.get("text")
        if not isinstance(starts, list) or not isinstance(ends, list) or len(starts) != len(ends):
            raise WrongRowError("unit_starts, unit_ends: must be lists of one length")
        if not all(isinstance(each, int) for each in (*starts, *ends)):
            raise WrongRowError("unit_starts, unit_ends: must be numbers")
        length = len(text) if isinstance(text, str) else 0
        places = [0, *(place for span in zip(starts, ends, strict=True) for place in span), length]
        if len(starts) > _MOST or any(one > other for one, other in pairwise(places)):
            raise WrongRowError("unit_starts, unit_ends: must lie one after the other in the text")
        try:
            _NOTES.validate_python(row.get("notes"))
        except ValidationError as error:
            raise WrongRowError(f"notes: {message(error.errors()[0])}") from error
        if not self._again.sentences(row):
            raise WrongRowError("unit_starts, unit_ends: not the sentences that the text is split into")
        self._units[cell.ordinal, run, item] = len(starts)

    def _place(self, row: Row) -> tuple[Cell, int]:
        """The cell of what was judged, and how many sentences its response has."""
        cell = self._cells[_number(row, "cell", len(self._cells))]
        place = (cell.ordinal, _number(row, "run", _MOST), _number(row, "item", _MOST))
        if place not in self._units:
            raise WrongRowError("cell, run, item: no response is there")
        return cell, self._units[place]

    def _second_verdict(self, row: Row) -> Dimension:
        cell, units = self._place(row)
        _number(row, "unit", units)
        dimension = cell.dimensions[_number(row, "trait", len(cell.dimensions))]
        _score(row, dimension.scale)
        return dimension

    def _verdict(self, row: Row) -> None:
        dimension = self._second_verdict(row)
        _number(row, "judge", len(self._spec.judges))
        if not self._again.verdict(row, dimension):
            raise WrongRowError("status, score: not what the reply says (raw)")

    def _grade(self, row: Row) -> None:
        self._place(row)
        _number(row, "judge", len(self._spec.judges))
        _score(row, GRADES)
        if not self._again.grade(row):
            raise WrongRowError("status, score: not what the reply says (raw)")


def _number(row: Row, name: str, below: int) -> int:
    value = row.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < below:
        raise WrongRowError(f"{name}: must be a number from 0 to {below - 1}")
    return value


def _score(row: Row, scale: Scale) -> None:
    score = row.get("score")
    if score is not None and (
        not isinstance(score, int) or isinstance(score, bool) or not scale.minimum <= score <= scale.maximum
    ):
        raise WrongRowError(f"score: must be a number from {scale.minimum} to {scale.maximum}")


def _one_of(
    row: Row, name: str, known: Sequence[str] | type[Stage | FinishReason | Suspicion | Unread]
) -> None:
    words = list(known)
    if row.get(name) is not None and words and row[name] not in words:
        raise WrongRowError(f"{name}: must be one of {', '.join(words)}")
