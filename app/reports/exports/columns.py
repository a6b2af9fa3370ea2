"""The columns of the flat exports, the same in CSV, JSON Lines and Parquet: what each is called, holds and means, and how it is read.

A further column is a further line here. Nothing else names or counts columns.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

from pydantic import BaseModel

from app.domain.instruments.contract import DimensionInWords
from app.domain.judging.judged_response import UnitVerdict
from app.domain.judging.text_notes import TEXT_NOTES
from app.domain.metrics.cell import UnitCounts
from app.domain.metrics.metric import INTERVALS
from app.domain.metrics.registry import BY_NAME, METRICS
from app.domain.results.contract import Results, TotalResult
from app.domain.results.coverage import COMPOSITE
from app.domain.results.grouping_check import CHECK_METRICS
from app.domain.results.order_check import ORDER_METRICS

Value = str | int | float | bool | None
Record: TypeAlias = BaseModel | Mapping[str, Any]
"""A part of the results, or what a row has beside it."""


class ColumnType(StrEnum):
    """What a column holds, by the name of its Arrow type; any column may lack a value."""

    TEXT = "string"
    INTEGER = "int64"
    NUMBER = "float64"
    BOOLEAN = "bool"


class Source(Enum):
    """What a column is read from. Rows have most of it in common: whatever is read from it is encoded once for all of them."""

    RECORD = "the row's part of the results"
    ASKED = "what was asked"
    RESPONSE = "the response"
    FIRST_ROW = "the response, in the first of its rows alone"
    UNIT = "the sentence"
    VERDICT = "what the judge said of it"
    FIGURES = "the response's figures on a dimension"


class Asked(NamedTuple):
    """What a row is about: an item and, but for a PersonaGym grade of the whole response, a dimension.

    Attributes:
        model: Label of the model that was asked.
        persona: Id of its persona.
        task: The task's id.
        item: The item's id.
        item_text: The question or context.
        dimension: The dimension's id.
        level: The persona's level on it.
        description: The persona's.
        traits: The persona's in words.
    """

    model: str
    persona: str
    task: str
    item: str
    item_text: str
    dimension: str | None
    level: str | None
    description: str
    traits: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of an export.

    Attributes:
        name: Its name in every format.
        type: What it holds.
        meaning: What the value means, with its unit or range.
        read: The value, from an object of its source.
        source: What it is read from; in a row without that, the value is missing.
    """

    name: str
    type: ColumnType
    meaning: str
    read: Callable[[Any], Value]
    source: Source = Source.RECORD


_TEXT, _INTEGER, _NUMBER, _BOOLEAN = ColumnType


def _from(source: Source) -> Callable[..., Column]:
    """Makes columns that are read from there: by a function, or from an attribute, whose name is the column's unless it is given."""

    def column(name: str, type_: ColumnType, meaning: str, read: str | Callable[[Any], Value] = "") -> Column:
        return Column(name, type_, meaning, read if callable(read) else attrgetter(read or name), source)

    return column


_asked, _response, _first_row, _unit, _verdict, _figure = map(
    _from,
    (Source.ASKED, Source.RESPONSE, Source.FIRST_ROW, Source.UNIT, Source.VERDICT, Source.FIGURES),
)

DESCRIPTION = "The persona's words in the instructions."
TRAITS = "The persona's traits in words, with semicolons between them; empty where it has none."

VERDICT_COLUMNS = (
    _asked("model", _TEXT, "Label of the evaluated model."),
    _asked("persona", _TEXT, "Id of the persona that it played."),
    _asked("task", _TEXT, "Id of the task."),
    _asked("dimension", _TEXT, "Id of the dimension on which the sentence was judged."),
    _asked("level", _TEXT, "The persona's level on that dimension."),
    _asked("item", _TEXT, "Id of the question or context."),
    _asked("item_text", _TEXT, "The question or context; empty where the task has none."),
    _response("run", _INTEGER, "Repetition of the cell, from 0."),
    _response("instruction", _INTEGER, "Number of the persona instruction, from 0; missing if unknown."),
    _response("iteration", _INTEGER, "Repetition under that instruction, from 0; missing if unknown."),
    _response("conversation", _TEXT, "Conversation of which it is a turn; missing for other texts."),
    _response("response_id", _TEXT, "Id of the response.", "id"),
    _response("response_status", _TEXT, "answered, refused, filtered, no_answer or failed.", "status"),
    _response("response_error", _TEXT, "Why there is no text, or none to be judged.", "error"),
    _response(
        "response_finish_reason",
        _TEXT,
        "Why the model stopped; missing for existing texts.",
        "finish_reason",
    ),
    _first_row(
        "response_thoughts",
        _TEXT,
        "What the model thought before it wrote the text; only in the response's first row, as it may be long.",
        "thoughts",
    ),
    _unit(
        "unit",
        _INTEGER,
        "The sentence's position in the response, from 0; missing without a sentence.",
        "index",
    ),
    _unit(
        "unit_start",
        _INTEGER,
        "Offset of its first character in the response's text.",
        lambda unit: unit.span[0],
    ),
    _unit("unit_end", _INTEGER, "Offset after its last character.", lambda unit: unit.span[1]),
    _unit("unit_text", _TEXT, "The sentence as the judge read it.", "text"),
    _verdict("judge", _TEXT, "Label of the judge; missing where no verdict exists."),
    _verdict("status", _TEXT, "scored, not_applicable, refused, filtered, unparsed or failed."),
    _verdict("score", _INTEGER, "The score on the dimension's scale, where the status is scored."),
    _verdict(
        "in_character",
        _BOOLEAN,
        "Whether the score lies in the persona's level; missing without a score.",
        lambda v: v.in_character if isinstance(v, UnitVerdict) else None,
    ),
    _verdict(
        "raw", _TEXT, "The judge's reply, word for word; missing where it was not asked or never answered."
    ),
    _asked(
        "judged",
        _TEXT,
        "What the row judges: sentence, or response for a PersonaGym grade (1 to 5).",
        lambda a: "sentence" if a.dimension or not a.persona else "response",
    ),
    _verdict(
        "group_size",
        _INTEGER,
        "Sentences that the judge was asked about in the same call; 1 where alone.",
        lambda v: v.group_size if isinstance(v, UnitVerdict) else None,
    ),
    _response(
        "response_reused",
        _TEXT,
        "same_job or other_job: whose text it is; missing if the job called for it.",
        "reused",
    ),
    _verdict("reused", _TEXT, "The same of the judge's reply."),
    _verdict(
        "suspicion",
        _TEXT,
        "What makes the verdict doubtful: text (it addresses the judge), reply (without the key word) or both; missing if nothing.",
    ),
    _verdict("finish_reason", _TEXT, "Why the judge's reply ended; missing where there is none."),
    _verdict("thoughts", _TEXT, "What the judge thought before; missing if nothing is known of that."),
    _verdict("error", _TEXT, "Code and words of the judge's last call, where none was answered."),
    _verdict(
        "unread",
        _TEXT,
        "Why the judge's first reply could not be read: empty, cut_off, no_answer, ambiguous or contradiction.",
    ),
    _verdict("repair_raw", _TEXT, "The judge's reply to the follow-up request; missing if there was none."),
    _asked("persona_description", _TEXT, DESCRIPTION, "description"),
    _asked("persona_traits", _TEXT, TRAITS, lambda a: "; ".join(a.traits)),
    _response(
        "imported_judges",
        _TEXT,
        "Judges whose verdicts were imported, with semicolons between them; empty if none.",
        lambda response: "; ".join(response.imported_judges),
    ),
)
"""One row for each verdict, and for each PersonaGym grade one without dimension and sentence. A response without a sentence (failed, empty) and a sentence without a verdict keep a
row for each dimension on which they were to be judged, with the fields that do not exist missing."""

_OF_RESPONSE = {
    *("model", "persona", "task", "dimension", "level", "item", "item_text", "run", "instruction"),
    *("iteration", "response_id", "response_status", "response_error", "persona_description"),
    *("persona_traits", "imported_judges"),
}
RESPONSE_COLUMNS = (
    *(column for column in VERDICT_COLUMNS if column.name in _OF_RESPONSE),
    _response("text", _TEXT, "What the model wrote; missing where the call failed."),
    _response("sentences", _INTEGER, "Its sentences.", lambda r: len(r.units)),
    _figure(
        "scored_sentences",
        _INTEGER,
        "Those that have a score; of several judges, of the one with the fewest who has any.",
        "n",
    ),
    _figure("mean", _NUMBER, "The mean of its sentences' scores; of several judges the mean over them."),
    _figure("acc", _NUMBER, "1 if that lies in the persona's level, else 0; likewise."),
    _figure("acc_atom", _NUMBER, "Share of its scored sentences in the persona's level; likewise."),
    _figure("ic_atom", _NUMBER, "Its internal consistency; missing with fewer than two scored sentences."),
    _response(
        "unknown_tags",
        _TEXT,
        "Unknown tags or special tokens in the text, with spaces between them; missing if none.",
        lambda r: " ".join(r.notes.unknown_tags) or None if r.notes else None,
    ),
    _response(
        "unknown_finish_word",
        _TEXT,
        "The provider's word for why the model stopped, if its meaning is not known.",
        lambda r: r.notes.unknown_finish_word if r.notes else None,
    ),
    _response(
        "cut_off",
        _BOOLEAN,
        "Whether the last sentence has no end.",
        lambda r: r.notes is not None and r.notes.cut_off is not None,
    ),
    _response(
        "repeated_sentences",
        _INTEGER,
        "Sentences that repeat an earlier one of the text.",
        lambda r: len(r.notes.repeated_sentences) if r.notes else 0,
    ),
    _response("left_out", _INTEGER, "Sentences left out of judging.", lambda r: len(r.left_out)),
    _response(
        "role_breaks",
        _INTEGER,
        "Sentences in which the model says that it is one, or leaves its role.",
        lambda r: len(r.notes.role_breaks) if r.notes else 0,
    ),
    _response(
        "refusal_check",
        _TEXT,
        "What decided whether the text is a refusal: `rules` or `judge`.",
        lambda r: "judge" if r.notes and r.notes.is_refusal_told_by_judge else "rules",
    ),
    _response("grade", _NUMBER, "A PersonaGym response's score, 1 to 5: the mean over judges.", "score"),
)
"""One row for each response and dimension on which it was to be judged; a PersonaGym response whose sentences are not judged has one without
a dimension."""

UNIT_STATUSES = ("total", "scored", "not_applicable", "refused", "unparsed", "failed", "filtered")
RESPONSE_COUNTS = ("total", "without_scored_unit", "with_one_scored_unit")
GENERATION_COUNTS = (
    *("planned", "answered", "refused", "failed", "empty", "refused_units"),
    *("filtered", "no_answer", "truncated", "sentences", *TEXT_NOTES, "left_out"),
)


def _record(name: str, type_: ColumnType, meaning: str, path: str = "") -> Column:
    """A column of what lies there in a record; missing where a step of the path is."""
    steps = (path or name).split(".")

    def read(record: Any) -> Value:
        for step in steps:
            if record is None:
                return None
            record = _at(record, step)
        found: Value = record
        return found

    return Column(name, type_, meaning, read)


def _at(record: Any, step: str) -> Any:
    if isinstance(record, dict):
        return record.get(step)
    if isinstance(record, tuple):
        return record[int(step)]
    return getattr(record, step) if step in record.model_fields_set else None


def _metric(name: str, path: str, value: str, prefix: str = "") -> tuple[Column, ...]:
    n = "What it was taken over: runs, or pairs of runs for rc_atom and rc_atom_corrected."
    definition = BY_NAME[name].definition if name in BY_NAME else ""
    return (
        _record(
            name,
            _NUMBER,
            f"The metric {name}; missing where it does not exist. {definition}".rstrip(),
            f"{path}.{value}",
        ),
        _record(f"{name}_n", _INTEGER, n, f"{path}.{prefix}n"),
        _record(f"{name}_reason", _TEXT, "Why it does not exist.", f"{path}.{prefix}reason"),
    )


_PERSONA_COLUMNS = (
    _record("persona_description", _TEXT, DESCRIPTION),
    _record("persona_traits", _TEXT, TRAITS),
)
_INTERVAL_MEANINGS = {
    "ci95": "the 95 % interval: of a cell over runs, of a total over personas like these",
    "ci95_runs": "that over the runs of these cells alone",
    "ci95_wordings": "that over wordings like these",
    "ci95_both": "that over personas and wordings like these",
}


def _interval(name: str, path: str, field: str) -> tuple[Column, ...]:
    """The ends of an interval, or why there is none."""
    meaning = _INTERVAL_MEANINGS[field]
    return (
        _record(f"{name}_low", _NUMBER, f"Lower end of {meaning}.", f"{path}.0"),
        _record(f"{name}_high", _NUMBER, f"Upper end of {meaning}.", f"{path}.1"),
        _record(f"{name}_reason", _TEXT, "Why there is no such interval.", f"{path}_reason"),
    )


CELL_COLUMNS = (
    _record("model", _TEXT, "Label of the evaluated model."),
    _record("persona", _TEXT, "Id of the persona."),
    _record("task", _TEXT, "Id of the task."),
    _record("dimension", _TEXT, "Id of the dimension."),
    _record("level", _TEXT, "The persona's level on that dimension."),
    _record("simulated", _BOOLEAN, "Whether the model or a judge was a simulated one."),
    _record("scale_minimum", _INTEGER, "Lowest score of the dimension.", "scale.minimum"),
    _record("scale_maximum", _INTEGER, "Highest score of the dimension.", "scale.maximum"),
    _record("runs", _INTEGER, "Runs planned."),
    _record("runs_used", _INTEGER, "Runs with a scored sentence."),
    *(column for metric in METRICS for column in _metric(metric.name, f"metrics.{metric.name}", "value")),
    *(
        column
        for metric in METRICS
        for name, part in zip(metric.names[1:], metric.parts, strict=True)
        for column in _metric(name, f"metrics.{metric.name}", part, f"{part}_")
    ),
    *(
        _record(
            f"units_{name}", _INTEGER, f"Verdicts, one for each sentence and judge: {name}.", f"units.{name}"
        )
        for name in UNIT_STATUSES
    ),
    *(
        _record(
            f"responses_{name}",
            _INTEGER,
            f"Judged responses, once for each judge: {name}.",
            f"responses.{name}",
        )
        for name in RESPONSE_COUNTS
    ),
    *(
        _record(f"generation_{name}", _INTEGER, f"Before judging: {name}.", f"generation.{name}")
        for name in GENERATION_COUNTS
    ),
    _record("coverage", _NUMBER, "Share of the planned verdicts that the metrics are of.", "coverage.share"),
    _record("verdicts_counted", _INTEGER, "How many verdicts these are.", "coverage.counted"),
    _record("verdicts_planned", _INTEGER, "How many are planned.", "coverage.planned"),
    _record(
        "acc_atom_composite",
        _NUMBER,
        "ACC_atom with refusals as out of character.",
        "corrected.acc_atom_composite.value",
    ),
    _record(
        "acc_atom_lower_bound",
        _NUMBER,
        "ACC_atom if all that is missing were out of character.",
        "corrected.acc_atom_bounds.0",
    ),
    _record(
        "acc_atom_upper_bound",
        _NUMBER,
        "ACC_atom if all that is missing were in character.",
        "corrected.acc_atom_bounds.1",
    ),
    *(
        column
        for metric in METRICS
        for name, prefix in zip(metric.names, ("", *(f"{part}_" for part in metric.parts)), strict=True)
        for field in ("ci95", "ci95_wordings")
        for column in _interval(f"{name}_{field}", f"metrics.{metric.name}.{prefix}{field}", field)
    ),
    *(
        column
        for field in ("ci95", "ci95_wordings")
        for column in _interval(f"{COMPOSITE}_{field}", f"corrected.{COMPOSITE}.{field}", field)
    ),
    *_PERSONA_COLUMNS,
    _record("trait", _TEXT, "Dimension and level in words, such as: low in emotional stability (neurotic)."),
)
"""One row for each cell of the results document."""

TOTAL_COLUMNS = (
    _record("by", _TEXT, "What the cells of the group have in common: names of columns."),
    _record("model", _TEXT, "Label of the evaluated model."),
    *(
        _record(key, _TEXT, f"The {key} that the cells have in common; missing where they need not.")
        for key in ("persona", "task", "dimension", "level")
    ),
    _record("simulated", _BOOLEAN, "Whether the model or a judge was a simulated one."),
    _record("cells", _INTEGER, "Cells of the group."),
    _record("metric", _TEXT, "Name of the metric."),
    _record("value", _NUMBER, "Its mean over the cells; missing where it does not exist."),
    _record("n", _INTEGER, "Cells that have the metric."),
    _record("left_out", _INTEGER, "Cells that lack it."),
    _record("reason", _TEXT, "Why it does not exist."),
    *(column for field in INTERVALS for column in _interval(field, field, field)),
    _record("coverage", _NUMBER, "Share of the planned verdicts that the metrics are of.", "coverage.share"),
    _record("verdicts_counted", _INTEGER, "How many verdicts these are.", "coverage.counted"),
    _record("verdicts_planned", _INTEGER, "How many are planned.", "coverage.planned"),
    *_PERSONA_COLUMNS,
    _record("trait", _TEXT, "Dimension and level in words; the dimension alone where levels may differ."),
)
"""One row for each total of the results document and metric, its parts and ``acc_atom_composite`` included."""

GRADE_STATUSES = ("total", "scored", "refused", "unparsed", "failed", "filtered")
RESPONSE_STATUSES = ("planned", "answered", "refused", "failed", "filtered", "no_answer")
PERSONA_SCORE_COLUMNS = (
    _record("model", _TEXT, "Label of the evaluated model."),
    _record("persona", _TEXT, "Id of the persona."),
    _record("scope", _TEXT, "What the score covers: task, or persona for the PersonaScore over all tasks."),
    _record("task", _TEXT, "Id of the task; missing in the row of the PersonaScore."),
    _record("simulated", _BOOLEAN, "Whether the job ran on simulated models."),
    _record("score", _NUMBER, "The score, 1 to 5; missing where it does not exist.", "value"),
    _record("n", _INTEGER, "Questions that it was taken over."),
    _record("reason", _TEXT, "Why it does not exist."),
    _record("questions", _INTEGER, "Questions that were asked."),
    *(
        _record(
            f"grades_{name}", _INTEGER, f"Grades, one for each response and judge: {name}.", f"grades.{name}"
        )
        for name in GRADE_STATUSES
    ),
    *(
        _record(f"responses_{name}", _INTEGER, f"Responses: {name}.", f"responses.{name}")
        for name in RESPONSE_STATUSES
    ),
    *_PERSONA_COLUMNS,
)
"""One row for each model, persona and PersonaGym task, followed by one for the PersonaScore over the tasks."""


def _of_sentences(names: Iterable[str]) -> Iterator[Column]:
    """The columns of figures that are taken over sentences."""
    for name in names:
        yield _record(name, _NUMBER, f"The figure {name}; missing where it does not exist.", f"{name}.value")
        yield _record(f"{name}_n", _INTEGER, "Sentences that it was taken over.", f"{name}.n")
        yield _record(f"{name}_low", _NUMBER, "Lower end of its 95 % interval.", f"{name}.ci95.0")
        yield _record(f"{name}_high", _NUMBER, "Upper end of its 95 % interval.", f"{name}.ci95.1")
        yield _record(f"{name}_reason", _TEXT, "Why it does not exist.", f"{name}.reason")


JUDGING_CHECK_COLUMNS = (
    _record("judge", _TEXT, "Label of the judge."),
    _record("task", _TEXT, "Id of the task; missing in the row over all tasks."),
    _record("scale_minimum", _INTEGER, "Lowest score of the dimensions.", "scale.minimum"),
    _record("scale_maximum", _INTEGER, "Highest score of the dimensions.", "scale.maximum"),
    _record("sentences", _INTEGER, "Sentences judged both with others in one call and alone."),
    _record("responses", _INTEGER, "Responses that they are from."),
    _record("left_out", _INTEGER, "Those without a readable verdict alone, which are in no figure."),
    _record("suspicious", _INTEGER, "Those whose grouped verdict is doubtful, which are in all figures."),
    *_of_sentences(CHECK_METRICS),
)
"""One row for each judge, over all tasks and for each of them, of a job that judges several sentences a call."""

ORDER_CHECK_COLUMNS = (
    _record("judge", _TEXT, "Label of the judge."),
    _record("order", _TEXT, "How the options stood: repeated, reversed or shuffled."),
    _record("dimension", _TEXT, "Id of the dimension; missing in the row over all dimensions."),
    _record("scale_minimum", _INTEGER, "Lowest score of the dimensions.", "scale.minimum"),
    _record("scale_maximum", _INTEGER, "Highest score of the dimensions.", "scale.maximum"),
    _record("sentences", _INTEGER, "Sentences judged first and again in this order."),
    _record("responses", _INTEGER, "Responses that they are from."),
    _record("left_out", _INTEGER, "Those without a readable verdict again, which are in no figure."),
    *_of_sentences(ORDER_METRICS),
)
"""One row for each judge and order, over all dimensions and for each of them, of a job that checks the order of options."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the results.

    Attributes:
        columns: Its columns.
        records: What its rows are read from.
    """

    columns: tuple[Column, ...]
    records: Callable[[Results], Iterable[Record]]


def _personas(results: Results) -> dict[str, dict[str, str]]:
    """The columns of each persona, by its id."""
    return {
        each.id: {
            "persona_description": each.description,
            "persona_traits": "; ".join(trait.words for trait in each.traits),
        }
        for each in results.personas
    }


def _cells(results: Results) -> Iterator[Record]:
    personas, in_words = _personas(results), {each.id: each.in_words for each in results.dimensions}
    for cell in results.cells:
        trait = in_words.get(cell.dimension, {}).get(cell.level)
        known = {name: getattr(cell, name) for name in cell.model_fields_set}
        yield {**known, **personas.get(cell.persona, {}), "trait": trait}


def _persona_scores(results: Results) -> Iterator[Record]:
    personas = _personas(results)
    for one in results.persona_scores:
        whose = {"model": one.model, "persona": one.persona, "simulated": results.simulated}
        whose |= personas.get(one.persona, {})
        for id_, task in one.tasks.items():
            yield {**whose, "scope": "task", "task": id_, **dict(task)}
        yield {
            **whose,
            "scope": "persona",
            **dict(one.persona_score),
            "questions": sum(task.questions for task in one.tasks.values()),
            "grades": UnitCounts.sum([task.grades for task in one.tasks.values()]),
            "responses": one.responses,
        }


def _totals(results: Results) -> Iterator[Record]:
    personas, dimensions = _personas(results), {each.id: each for each in results.dimensions}
    for total in results.totals:
        dimension = dimensions.get(total.group.get("dimension", ""))
        words = {} if dimension is None else {"trait": _trait(dimension, total.group.get("level"))}
        words |= personas.get(total.group.get("persona", ""), {})
        group = {**dict(total), **total.group, **words, "by": ", ".join(total.by)}
        for name, figure in _figures(total):
            yield {**group, "metric": name, **figure}


def _trait(dimension: DimensionInWords, level: str | None) -> str | None:
    return dimension.label if level is None else dimension.in_words.get(level)


def _figures(total: TotalResult) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """All of a total's figures, with what is known of each."""
    for metric in METRICS:
        if metric.name not in total.metrics:
            continue
        known = total.metrics[metric.name].to_json()
        yield metric.name, known
        for name, part in zip(metric.names[1:], metric.parts, strict=True):
            of_part = {
                key.removeprefix(f"{part}_"): known[key] for key in known if key.startswith(f"{part}_")
            }
            yield name, {**of_part, "value": known[part], "left_out": total.cells - known[f"{part}_n"]}
    yield COMPOSITE, total.corrected.acc_atom_composite.to_json()


def _judging_check(results: Results) -> Iterable[Record]:
    return () if results.judging_check is None else results.judging_check.agreement


def _order_check(results: Results) -> Iterable[Record]:
    return () if results.order_check is None else results.order_check.agreement


LABEL_COLUMNS = (
    _record("annotator", _INTEGER, "Whose answer it is, as a number: 0 for whoever answered first."),
    _record("response_id", _TEXT, "Id of the response; of a pair, of its first sentence's."),
    _record("unit", _INTEGER, "The sentence's position in it, from 0; missing for the whole response."),
    _record("dimension", _TEXT, "Id of the dimension; missing for a grade by a PersonaGym task's rubric."),
    _record("answer", _TEXT, "scored or not_applicable; of a pair, which shows more: first, second, equal."),
    _record("score", _INTEGER, "The score, where the answer is scored."),
    _record("other_response_id", _TEXT, "Id of the response of a pair's second sentence."),
    _record("other_unit", _INTEGER, "That sentence's position."),
)
"""A row for each answer of a person; nobody's name."""


TABLES = {
    "cells": Table(CELL_COLUMNS, _cells),
    "totals": Table(TOTAL_COLUMNS, _totals),
    "persona_scores": Table(PERSONA_SCORE_COLUMNS, _persona_scores),
    "judging_check": Table(JUDGING_CHECK_COLUMNS, _judging_check),
    "order_check": Table(ORDER_CHECK_COLUMNS, _order_check),
}
"""The tables that are made of the results document, by their names in the API."""
