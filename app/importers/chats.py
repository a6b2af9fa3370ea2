"""Chat logs: OpenAI's messages (also of fine-tuning files) and ShareGPT's conversations."""

from collections.abc import Iterator
from typing import Any

from app.importers.messages import read_messages, turns
from app.importers.records import Record, WrongRecordError, text_or_none


def is_openai_chat(first: dict[str, Any]) -> bool:
    """Whether a record is a list of messages with roles."""
    return isinstance(first.get("messages"), list)


def is_sharegpt(first: dict[str, Any]) -> bool:
    """Whether a record is a conversation of ShareGPT."""
    return isinstance(first.get("conversations"), list) or isinstance(first.get("conversation"), list)


def read_openai_chat(place: str, record: dict[str, Any]) -> Iterator[Record]:
    """The texts of a conversation."""
    yield from _conversation(place, record, "messages")


def read_sharegpt(place: str, record: dict[str, Any]) -> Iterator[Record]:
    """The texts of a conversation."""
    yield from _conversation(place, record, "conversations" if "conversations" in record else "conversation")


def _conversation(place: str, record: dict[str, Any], name: str) -> Iterator[Record]:
    try:
        messages = read_messages(record.get(name), f"{place}/{name}")
        system = text_or_none(record.get("system"))
        if system is not None:
            messages = [*read_messages([{"role": "system", "content": system}], ""), *messages]
    except WrongRecordError as error:
        raise WrongRecordError(f"/{name}{error.field}", error.reason) from error
    yield from turns(messages, place, text_or_none(record.get("model")))
