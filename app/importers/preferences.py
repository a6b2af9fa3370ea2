"""Pairs of a preferred and a rejected answer, as DPO trains with.

Formats: https://huggingface.co/docs/trl/dataset_formats#preference, https://platform.openai.com/docs/guides/direct-preference-optimization
"""

from collections.abc import Iterator
from typing import Any

from app.importers.calls import reply_messages, request_messages
from app.importers.messages import Message, last_question, persona_of, with_own_columns
from app.importers.records import Record, Refused, Said, text_or_none

SIDES = ("chosen", "rejected")
PAIRS = (SIDES, ("preferred_output", "non_preferred_output"))
PROMPTS = ("prompt", "question", "input", "instruction", "conversations", "messages")


def is_pair(first: dict[str, Any]) -> bool:
    """Whether a record is a pair."""
    return _pair(first) is not None


def _pair(record: dict[str, Any]) -> tuple[str, str] | None:
    """Return the members that hold the preferred and the rejected answer."""
    pairs = (each for each in PAIRS if all(isinstance(record.get(name), str | list | dict) for name in each))
    return next(pairs, None)


def read_pair(place: str, record: dict[str, Any]) -> Iterator[Record]:
    """Both answers, as texts of the models `chosen` and `rejected`."""
    prompt = next((record[name] for name in PROMPTS if record.get(name)), None)
    own = [] if prompt is None else request_messages(prompt)
    system = text_or_none(record.get("system"))
    for side, name in zip(SIDES, _pair(record) or SIDES, strict=True):
        messages = _messages(record.get(name))
        if not messages or messages[-1].speaker != "assistant" or messages[-1].text is None:
            yield Refused(f"{place}/{name}", "has no answer")
            continue
        asked = [*own, *messages[:-1]]
        said = Said(
            f"{place}/{name}", messages[-1].text, persona_of(asked) or system, last_question(asked), side
        )
        yield with_own_columns(said, record)


def _messages(value: Any) -> list[Message]:
    """The messages of a side: the answer, perhaps after the conversation before it."""
    if isinstance(value, list):
        return request_messages(value)
    return reply_messages(value)
