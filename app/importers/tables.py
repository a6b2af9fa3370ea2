"""Tables as data sets have them: JSON Lines, JSON lists, CSV and Parquet, one text or persona a row."""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from app.importers.calls import conversation_of, reply_messages, request_messages
from app.importers.content import parse_json
from app.importers.messages import Message, last_question, persona_of, role_named
from app.importers.names import COLUMNS, NOT_USED, SPEAKER_COLUMNS, TEXT_LISTS, first_of
from app.importers.preferences import SIDES
from app.importers.records import (
    Character,
    Options,
    Record,
    Said,
    WrongRecordError,
    id_or_none,
    number_or_none,
    text_or_none,
)

MOST_COLUMNS_SHOWN = 30
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,(?!\d{3}$)\d+")
"""`1,000` is left out: it may be a thousand."""


def columns_of(names: Mapping[Any, Any], chosen: Mapping[str, str]) -> Mapping[str, str]:
    """Which column holds what: as chosen, else by the usual names in any case.

    Args:
        names: The columns that there are.
        chosen: Columns by what they hold.
    """
    guessed = _usual_columns(tuple(names))
    if not chosen:
        return guessed
    taken = set(chosen.values())
    return {what: name for what, name in guessed.items() if name not in taken} | dict(chosen)


@lru_cache(8)  # the rows of a file usually have the same columns
def _usual_columns(names: tuple[Any, ...]) -> dict[str, str]:
    columns = dict.fromkeys(names)
    guessed = {what: first_of(usual, columns) for what, usual in COLUMNS.items()}
    guessed["text"] = guessed["text"] or first_of(TEXT_LISTS, columns)
    return {what: name for what, name in guessed.items() if name is not None}


def notes_on(names: Mapping[Any, Any], options: Options) -> Iterator[str]:
    """List the columns that are not used, with the reason where they look like something of this service."""
    columns = columns_of(names, options.columns)
    used = set(columns.values()) | ({"name"} if "text" not in columns else set())
    if "text" in columns and "task" not in columns and options.task is None:
        used.discard(columns.get("item", ""))
    if "model" not in columns and _preference(names) is not None:
        used.add("label")
    if _context(names, columns):
        used.add("input")
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
    """A row's texts, or its persona if rows have no texts.

    Raises:
        WrongRecordError: If a column that is needed is missing or holds something else.
    """
    columns = columns_of(row, options.columns)
    values = {what: row.get(name) for what, name in columns.items()}
    asked = _messages(values.get("prompt"), request_messages)
    if asked:
        values["prompt"] = last_question(asked)
    elif context := _context(row, columns):
        values["prompt"] = f"{values['prompt']}\n\n{context}"
    for what in ("persona", "prompt", "model", "task", "item"):
        if values.get(what) is not None and not isinstance(values[what], str):
            raise WrongRecordError(f"/{columns[what]}", "must be a text")
    _check_speaker(row, columns, options)
    persona = text_or_none(values.get("persona")) or persona_of(asked)
    if "text" in columns:
        score = number_of(values.get("score"))
        task = text_or_none(values.get("task"))
        for at, text in _texts(place, columns["text"], values["text"]):
            yield Said(
                at,
                text,
                persona,
                text_or_none(values.get("prompt")),
                text_or_none(values.get("model")) or _preference(row),
                task,
                text_or_none(values.get("item")) if task or options.task else None,
                scores={} if score is None else {columns["score"]: score},
                conversation=id_or_none(values.get("conversation")) or conversation_of(asked),
            )
    elif persona is not None:
        taken = {columns.get("persona"), "name"}
        unused = [name for name, value in row.items() if name not in taken and value not in (None, "")]
        yield Character(place, persona, text_or_none(row.get("name")), unused)
    else:
        raise WrongRecordError("", "has no column with a text or a persona")


def _context(row: Mapping[Any, Any], columns: Mapping[str, str]) -> str | None:
    """Return what an instruction refers to (https://github.com/tatsu-lab/stanford_alpaca#data-release)."""
    return text_or_none(row.get("input")) if columns.get("prompt") == "instruction" else None


def _preference(row: Mapping[Any, Any]) -> str | None:
    """Return `chosen` or `rejected` for a rated completion (https://huggingface.co/docs/trl/kto_trainer)."""
    label = row.get("label")
    if isinstance(label, str):
        label = {"true": True, "false": False}.get(label.strip().casefold())
    return SIDES[not label] if isinstance(label, bool) and "completion" in row else None


def _check_speaker(row: dict[str, Any], columns: Mapping[str, str], options: Options) -> None:
    """Refuse a row that the user, the system or a tool wrote, and a role in place of a persona."""
    named = columns.get("persona")
    beside = first_of(SPEAKER_COLUMNS, row) or ("name" if named is None and "text" in columns else None)
    for column in (beside, named):
        speaker = role_named(row.get(column or ""))
        if speaker in {"system", "user", "tool"}:
            raise WrongRecordError(f"/{column}", f"is a message of the {speaker}, not the persona's words")
        if speaker is not None and column == named and options.persona is None:
            reason = "names a role, not a persona; choose one with persona, or another column with column"
            raise WrongRecordError(f"/{column}", reason)


def _texts(place: str, column: str, value: Any) -> Iterator[tuple[str, str]]:
    """A row's texts with their places: its only one, or those of a list."""
    if isinstance(value, list) and value and all(isinstance(each, str) for each in value):
        yield from ((f"{place}/{column}/{n}", each) for n, each in enumerate(value))
        return
    replies = [each.text for each in _messages(value, reply_messages) if each.text]
    if replies:
        yield from ((place, each) for each in replies)
    elif isinstance(value, str):
        yield place, value
    else:
        raise WrongRecordError(f"/{column}", "is missing" if value is None else "must be a text")


def _messages(value: Any, read: Callable[[Any], list[Message]]) -> list[Message]:
    """The messages that a cell holds, also as JSON; none if it is a text."""
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        try:
            value = parse_json(value)
        except ValueError:
            return []
    if isinstance(value, dict):
        is_messages = isinstance(value.get("messages"), list) or "role" in value
    else:
        is_messages = isinstance(value, list) and bool(value) and all(map(_is_message, value))
    return read(value) if is_messages else []


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and "role" in value
