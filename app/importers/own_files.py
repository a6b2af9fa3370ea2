"""What PersonaGym wrote (answers and questions by task), and this service's own export of responses."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from app.domain.jobs.imports import persona_of_file
from app.domain.personagym.task import GymTask, task_named
from app.importers.content import Document, Form
from app.importers.records import Asked, Record, Refused, Said, WrongRecordError, number_or_none, text_or_none

QA_ENDING = "_qa"
_INNER = re.compile(r"([;\t\r\n])'")
PAIR = 2
"""A question and its answer."""
EXPORTED = {"response_id", "response_status", "persona", "persona_description", "task", "item", "text"}
"""Columns of the export `level=responses` that nothing else has together."""


def is_personagym(document: Document, tasks: Mapping[str, GymTask]) -> bool:
    """Whether a file has lists by PersonaGym's tasks."""
    value = document.value
    return (
        document.form is Form.JSON
        and isinstance(value, dict)
        and bool(value)
        and all(isinstance(each, list) for each in value.values())
        and all(task_named(tuple(tasks.values()), name) is not None for name in value)
    )


def is_scores(document: Document) -> bool:
    """Whether a file is the `scores.json` that PersonaGym's code writes at its end."""
    value = document.value
    return document.form is Form.JSON and isinstance(value, dict) and "PersonaScore" in value


def read_personagym(document: Document, tasks: Mapping[str, GymTask]) -> Iterator[Record]:
    """Questions, or pairs of question and answer; the file's name is the persona's description."""
    who = persona_of_file(document.name).removesuffix(QA_ENDING).strip() or None
    for name, listed in document.value.items() if isinstance(document.value, dict) else ():
        task = task_named(tuple(tasks.values()), str(name))
        at = f"/{str(name).encode(errors='replace').decode()}"
        if task is None or not isinstance(listed, list):
            yield Refused(at, "must be a list of one of PersonaGym's tasks")
            continue
        for n, each in enumerate(listed):
            yield _question(f"{at}/{n}", each, who, task.id)
        if not listed:
            yield Refused(at, "has no questions")


def _question(place: str, value: Any, who: str | None, task: str) -> Record:
    if isinstance(value, str):
        return Asked(place, value, who, task)
    if isinstance(value, list) and len(value) == PAIR and all(isinstance(each, str) for each in value):
        return Said(place, value[1], who, value[0], task=task)
    return Refused(place, "must be a question, or a question and its answer")


def rows_of(document: Document) -> Iterator[tuple[str, Any]]:
    """The rows of an export; those of CSV without the apostrophes that keep spreadsheets from running texts."""
    for place, row in document.records():
        if document.form is Form.CSV and isinstance(row, dict):
            yield place, {name: _INNER.sub(r"\1", text.removeprefix("'")) for name, text in row.items()}
        else:
            yield place, row


def is_export(names: Mapping[str, Any]) -> bool:
    """Whether columns are those of our export of responses."""
    return names.keys() >= EXPORTED


def read_export(rows: Iterator[tuple[str, Any]]) -> Iterator[Record]:
    """The text of each response, once, though it has a row for each dimension."""
    texts: dict[str, Said | Refused] = {}
    traits: dict[str, dict[str, str]] = {}
    for place, row in rows:
        if isinstance(row, Refused):
            texts[place] = row
            continue
        try:
            id_ = needed(row, "response_id")
            said = texts.setdefault(id_, _exported(place, row))
        except WrongRecordError as error:
            texts[place] = Refused(f"{place}{error.field}", error.reason)
            continue
        dimension, level = text_or_none(row.get("dimension")), text_or_none(row.get("level"))
        if (
            isinstance(said, Said)
            and said.persona is not None
            and dimension is not None
            and level is not None
        ):
            traits.setdefault(said.persona, {})[dimension] = level
    for each in texts.values():
        if isinstance(each, Said) and each.persona is not None:
            yield replace(each, traits=traits.get(each.persona, {}))
        else:
            yield each


def _exported(place: str, row: dict[str, Any]) -> Said | Refused:
    text = text_or_none(row.get("text"))
    if text is None:
        return Refused(place, "the response has no text")
    return Said(
        place,
        text,
        needed(row, "persona_description"),
        text_or_none(row.get("item_text")),
        needed(row, "model"),
        needed(row, "task"),
        text_or_none(row.get("item")),
        number(row, "run"),
        number(row, "instruction"),
        scores=_grade(row),
        conversation=text_or_none(row.get("conversation")),
    )


def _grade(row: dict[str, Any]) -> dict[str, float]:
    """A PersonaGym response's score, the mean over its judges."""
    value = row.get("grade")
    try:
        grade = number_or_none(float(value) if isinstance(value, str) else value)
    except ValueError:
        grade = None
    return {} if grade is None else {"grade": grade}


def needed(row: Any, name: str) -> str:
    """A column's text.

    Raises:
        WrongRecordError: If it has none.
    """
    found = text_or_none(row.get(name)) if isinstance(row, dict) else None
    if found is None:
        raise WrongRecordError(f"/{name}", "must be a text")
    return found


def number(row: dict[str, Any], name: str) -> int | None:
    """A column's number; CSV has it as a text, and leaves out what is unknown.

    Raises:
        WrongRecordError: If it is none.
    """
    value = row.get(name)
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 10:  # noqa: PLR2004 - no run has more digits
        return int(value)
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise WrongRecordError(f"/{name}", "must be a whole number")
    return value
