"""Pairs of a preferred and a rejected answer, as DPO trains with (https://huggingface.co/docs/trl/dataset_formats#preference)."""

from collections.abc import Iterator
from typing import Any

from app.importers.calls import reply_messages, request_messages
from app.importers.messages import Message, last_question, persona_of, with_own_columns
from app.importers.records import Record, Refused, Said, text_or_none

SIDES = ("chosen", "rejected")
PROMPTS = ("prompt", "question", "input", "instruction")


def is_pair(first: dict[str, Any]) -> bool:
    """Whether a record is a pair."""
    return all(isinstance(first.get(side), str | list) for side in SIDES)


def read_pair(place: str, record: dict[str, Any]) -> Iterator[Record]:
    """Both answers, as texts of the models `chosen` and `rejected`."""
    prompt = next((record[name] for name in PROMPTS if record.get(name)), None)
    own = [] if prompt is None else request_messages(prompt)
    system = text_or_none(record.get("system"))
    for side in SIDES:
        messages = _messages(record.get(side))
        if not messages or messages[-1].speaker != "assistant" or messages[-1].text is None:
            yield Refused(f"{place}/{side}", "has no answer")
            continue
        asked = [*own, *messages[:-1]]
        said = Said(
            f"{place}/{side}", messages[-1].text, persona_of(asked) or system, last_question(asked), side
        )
        yield with_own_columns(said, record)


def _messages(value: Any) -> list[Message]:
    """The messages of a side: the answer, perhaps after the conversation before it."""
    if isinstance(value, list):
        return request_messages(value)
    return reply_messages(value)
