"""Tables as data sets have them: JSON Lines, JSON lists, CSV and Parquet, one text or persona a row."""

from collections.abc import Iterator, Mapping
from typing import Any

from app.importers.records import (
    Character,
    Options,
    Record,
    Said,
    WrongRecordError,
    number_or_none,
    text_or_none,
)

USUAL = {
    "text": ("response", "text", "completion", "output", "generation", "generated_text", "reply"),
    "persona": ("persona", "character", "system_prompt", "system", "role"),
    "prompt": ("prompt", "question", "instruction", "input", "query"),
    "model": ("model", "model_name", "generator", "model_id"),
    "score": ("score", "rating", "grade"),
}
"""What columns are usually called, by what they hold."""


def columns_of(names: Mapping[Any, Any], chosen: Mapping[str, str]) -> dict[str, str]:
    """Which column holds what: as chosen, else by the usual names in any case.

    Args:
        names: The columns that there are.
        chosen: Columns by what they hold.
    """
    by_name = {name.casefold(): name for name in reversed(list(names)) if isinstance(name, str)}
    guessed = {
        what: next((by_name[each] for each in usual if each in by_name), None)
        for what, usual in USUAL.items()
    }
    return {what: name for what, name in guessed.items() if name is not None} | dict(chosen)


def number_of(value: Any) -> float | None:
    """A number; CSV has it as a text."""
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
    for what in ("persona", "prompt", "model"):
        if values.get(what) is not None and not isinstance(values[what], str):
            raise WrongRecordError(f"/{columns[what]}", "must be a text")
    persona = text_or_none(values.get("persona"))
    if "text" in columns:
        text = values["text"]
        if not isinstance(text, str):
            raise WrongRecordError(f"/{columns['text']}", "is missing" if text is None else "must be a text")
        score = number_of(values.get("score"))
        scores = {} if score is None else {columns["score"]: score}
        prompt, model = text_or_none(values.get("prompt")), text_or_none(values.get("model"))
        yield Said(place, text, persona, prompt, model, scores=scores)
    elif persona is not None:
        taken = {columns["persona"], "name"}
        unused = [name for name, value in row.items() if name not in taken and text_or_none(value)]
        yield Character(place, persona, text_or_none(row.get("name")), unused)
    else:
        raise WrongRecordError("", "has no column with a text or a persona")
