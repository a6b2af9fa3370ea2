"""Tables as data sets have them: JSON Lines, JSON lists, CSV and Parquet, one text or persona a row."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from app.domain.personagym.task import task_named
from app.importers.names import COLUMNS, NOT_USED, first_of
from app.importers.records import (
    Character,
    Options,
    Record,
    Said,
    WrongRecordError,
    number_or_none,
    text_or_none,
)

MOST_COLUMNS_SHOWN = 30
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,(?!\d{3}$)\d+")
"""`1,000` is left out: it may be a thousand."""


def columns_of(names: Mapping[Any, Any], chosen: Mapping[str, str]) -> dict[str, str]:
    """Which column holds what: as chosen, else by the usual names in any case.

    Args:
        names: The columns that there are.
        chosen: Columns by what they hold.
    """
    guessed = {what: first_of(usual, dict(names)) for what, usual in COLUMNS.items()}
    taken = set(chosen.values())
    return {what: name for what, name in guessed.items() if name is not None and name not in taken} | dict(
        chosen
    )


def notes_on(names: Mapping[Any, Any], options: Options) -> Iterator[str]:
    """List the columns that are not used, with the reason where they look like something of this service."""
    columns = columns_of(names, options.columns)
    used = set(columns.values()) | ({"name"} if "text" not in columns else set())
    if "text" in columns and "task" not in columns and options.task is None:
        used.discard(columns.get("item", ""))
    others = [name for name in names if isinstance(name, str) and name not in used]
    shown = [
        f"{name} ({reason})" if (reason := NOT_USED.get(name.strip().casefold())) else name
        for name in others[:MOST_COLUMNS_SHOWN]
    ]
    if shown and "text" in columns:
        rest = f" and {len(others) - len(shown):,} more" if len(others) > len(shown) else ""
        yield f"Columns not used: {', '.join(shown)}{rest}."


def number_of(value: Any) -> float | None:
    """Read a number; CSV has it as a text, also with a decimal comma."""
    if isinstance(value, str) and _DECIMAL_COMMA.fullmatch(value.strip()):
        value = value.replace(",", ".")
    try:
        return number_or_none(float(value) if isinstance(value, str) else value)
    except ValueError:
        return None


def is_table(first: dict[str, Any], chosen: Mapping[str, str]) -> bool:
    """Whether a record has a column with a text or a persona."""
    return not {"text", "persona"}.isdisjoint(columns_of(first, chosen))


def read_row(place: str, row: dict[str, Any], options: Options) -> Iterator[Record]:
    """A row's text, or its persona if rows have no texts.

    Raises:
        WrongRecordError: If a column that is needed is missing or holds something else.
    """
    columns = columns_of(row, options.columns)
    values = {what: row.get(name) for what, name in columns.items()}
    for what in ("persona", "prompt", "model", "task", "item"):
        if values.get(what) is not None and not isinstance(values[what], str):
            raise WrongRecordError(f"/{columns[what]}", "must be a text")
    persona = text_or_none(values.get("persona"))
    if "text" in columns:
        text = values["text"]
        if not isinstance(text, str):
            raise WrongRecordError(f"/{columns['text']}", "is missing" if text is None else "must be a text")
        score = number_of(values.get("score"))
        task = _task_of(text_or_none(values.get("task")), options)
        yield Said(
            place,
            text,
            persona,
            text_or_none(values.get("prompt")),
            text_or_none(values.get("model")),
            task,
            text_or_none(values.get("item")) if task or options.task else None,
            scores={} if score is None else {columns["score"]: score},
        )
    elif persona is not None:
        taken = {columns["persona"], "name"}
        unused = [name for name, value in row.items() if name not in taken and text_or_none(value)]
        yield Character(place, persona, text_or_none(row.get("name")), unused)
    else:
        raise WrongRecordError("", "has no column with a text or a persona")


def _task_of(name: str | None, options: Options) -> str | None:
    """The id of the service's task that a column names by id or title; any other name as it is, to be refused."""
    if name is None:
        return None
    key = _squeezed(name)
    for task in options.atomic_tasks.values():
        if key in {_squeezed(task.id), _squeezed(task.title)}:
            return task.id
    found = task_named(tuple(options.gym_tasks.values()), name)
    return name if found is None else found.id


def _squeezed(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.casefold())
