"""This service's own export of verdicts: sentences with what each judge said of them, as verdicts of imported judges."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from app.domain.judging.imported import Score, Unscored
from app.importers.own_files import needed, number
from app.importers.records import Given, Record, Refused, Said, WrongRecordError, text_or_none

EXPORTED = {"response_id", "unit", "unit_text", "judge", "status", "score", "persona_description", "task"}
"""Columns of the export `level=verdicts` that nothing else has together."""
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,99}")
_UNSCORED: tuple[Unscored, ...] = get_args(Unscored)
NO_TEXT = "its grade is of a text, which this export does not have; import the export of responses"


def is_verdicts(names: Mapping[str, Any]) -> bool:
    """Whether columns are those of our export of verdicts."""
    return names.keys() >= EXPORTED


@dataclass(slots=True)
class _Response:
    """What rows say of a response.

    Attributes:
        place: Where its first row stands.
        row: That row.
        units: Its sentences by their numbers.
        traits: Level by dimension.
        scores: By judge and dimension, by the sentence's number.
    """

    place: str
    row: dict[str, Any]
    units: dict[int, str] = field(default_factory=dict)
    traits: dict[str, str] = field(default_factory=dict)
    scores: dict[tuple[str, str], dict[int, Score]] = field(default_factory=dict)

    def take(self, row: dict[str, Any]) -> None:
        """Adds a row: a judge's verdict on a sentence, or a sentence that has none."""
        dimension, level = text_or_none(row.get("dimension")), text_or_none(row.get("level"))
        if dimension is not None and level is not None:
            self.traits[dimension] = level
        unit, judge = number(row, "unit"), text_or_none(row.get("judge"))
        if unit is None:
            return
        self.units[unit] = needed(row, "unit_text")
        if judge is not None and dimension is not None:
            if _ID.fullmatch(dimension) is None:
                raise WrongRecordError("/dimension", "must be a dimension's id")
            self.scores.setdefault((judge, dimension), {})[unit] = _score(row)

    def read(self, gym_tasks: Collection[str]) -> Record:
        """The response as a record."""
        task = needed(self.row, "task")
        if task in gym_tasks:
            return Refused(self.place, NO_TEXT)
        if not self.units:
            return Refused(self.place, "the response has no sentence")
        if self.units.keys() != set(range(len(self.units))):
            return Refused(self.place, "one of its sentences is missing")
        numbers = range(len(self.units))
        return Said(
            self.place,
            "",
            needed(self.row, "persona_description"),
            text_or_none(self.row.get("item_text")),
            needed(self.row, "model"),
            task,
            text_or_none(self.row.get("item")),
            number(self.row, "run"),
            number(self.row, "instruction"),
            traits=self.traits,
            units=[self.units[n] for n in numbers],
            verdicts=[
                Given(judge, dimension, [scores.get(n) for n in numbers])
                for (judge, dimension), scores in self.scores.items()
            ],
        )


def _score(row: dict[str, Any]) -> Score:
    status = text_or_none(row.get("status"))
    unscored = next((word for word in _UNSCORED if word == status), None)
    if unscored is not None or status != "scored":
        return unscored
    score = number(row, "score")
    if score is None:
        raise WrongRecordError("/score", "must be a whole number")
    return score


def read_verdicts(rows: Iterator[tuple[str, Any]], gym_tasks: Collection[str]) -> Iterator[Record]:
    """Each response once, though it has a row for each sentence, dimension and judge; a wrong row is refused with its response."""
    found: dict[str, _Response | Refused] = {}
    for place, row in rows:
        if isinstance(row, Refused):
            found[place] = row
            continue
        id_ = place
        try:
            id_ = needed(row, "response_id")
            response = found.setdefault(id_, _Response(place, row))
            if isinstance(response, _Response):
                response.take(row)
        except WrongRecordError as error:
            found[id_] = Refused(f"{place}{error.field}", error.reason)
    for each in found.values():
        if isinstance(each, Refused):
            yield each
            continue
        try:
            yield each.read(gym_tasks)
        except WrongRecordError as error:
            yield Refused(f"{each.place}{error.field}", error.reason)
