"""What the atomic paper's released code writes of a model's texts: a file for each wording of a persona, with their sentences."""

import re
from collections.abc import Iterator
from typing import Any

from app.domain.judging.imported import places_of
from app.importers.content import Document, Form
from app.importers.records import (
    SEVERAL_ITEMS,
    Options,
    Record,
    Refused,
    Said,
    WrongRecordError,
    member,
    text_or_none,
)

_NAME = re.compile(r"persona_([OCEAN])_(low|neutral|high)_(\d{1,3})_[\d-]+\.json")
"""By `persona_generation/run.py`: trait, level and number of the wording; then the time."""
_NUMBER = re.compile(r"0|[1-9]\d{0,3}")


def is_responses(document: Document) -> bool:
    """Whether a file is such an object: of its responses one has a raw text."""
    value = document.value
    return (
        document.form is Form.JSON
        and isinstance(value, dict)
        and any(isinstance(each, dict) and "raw_response" in each for each in value.values())
    )


def read_responses(document: Document, options: Options) -> Iterator[Record]:
    """The text of each response with its sentences."""
    if not isinstance(document.value, dict):
        yield Refused("", "must be an object of responses by their numbers")
        return
    named = _NAME.fullmatch(document.name.replace("\\", "/").rpartition("/")[2])
    traits = options.traits or ({} if named is None else {named[1]: named[2]})
    instruction = None if named is None else int(named[3])
    for key, value in document.value.items():
        number = str(key)
        place = f"/{number.encode(errors='replace').decode()}"
        try:
            text, units = _text_and_sentences(value)
            task, item = _asked(number, value, len(document.value), next(iter(traits), None))
        except WrongRecordError as error:
            yield Refused(f"{place}{error.field}", error.reason)
            continue
        question = text_or_none(value.get("question"))
        yield Said(
            place,
            text,
            prompt=question,
            task=task,
            item=item,
            instruction=instruction,
            traits=traits,
            units=units,
        )


def _text_and_sentences(value: Any) -> tuple[str, list[str]]:
    text: str = member(value, "raw_response", str)
    units = value.get("atomic_response", [])
    if not isinstance(units, list) or not all(isinstance(each, str) for each in units):
        raise WrongRecordError("/atomic_response", "must be a list of sentences")
    missing = next((n for n, place in enumerate(places_of(units, text)) if place is None), None)
    if missing is not None:
        raise WrongRecordError(
            f"/atomic_response/{missing}", "is not in the text after the sentences before it"
        )
    return text, units


def _asked(number: str, value: Any, responses: int, dimension: str | None) -> tuple[str | None, str | None]:
    """The task and the item; neither where the question tells them, and where essays and posts can't be told apart."""
    if responses == 1 or text_or_none(value.get("question")) is not None:
        return None, None
    if _NUMBER.fullmatch(number) is None:
        raise WrongRecordError("", "must be the number of a question, from 0")
    return SEVERAL_ITEMS, None if dimension is None else f"{dimension}-{int(number) + 1}"
