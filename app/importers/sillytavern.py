"""SillyTavern's chats: a line of data on the chat, and one for each message with its alternatives (swipes).

Format: https://github.com/SillyTavern/SillyTavern/blob/release/public/script.js (`saveChat`).
"""

from collections.abc import Iterator
from typing import Any, TypeAlias

from app.importers.records import Record, Refused, Said, optional, text_or_none

OTHER = "is a message of another character of a group chat; save one character's messages with its persona"
GREETING = "is the character's greeting, which its card has, and no model wrote"

_Turn: TypeAlias = tuple[str, dict[str, Any], str | None, Any]
"""Place, message, the user's last words, and the character's name in the head."""


def is_chat(first: dict[str, Any]) -> bool:
    """Whether a record is the first line of a chat, or a message."""
    head = {"user_name", "character_name"} <= first.keys()
    return head or {"mes", "is_user"} <= first.keys()


def read_chat(records: Iterator[tuple[str, Any]]) -> Iterator[Record]:
    """The text of each message of a character, and of each of its alternatives, with what the user said before it."""
    found = _own(list(_messages(records)))
    places = [each for each in found if not isinstance(each, Refused)]
    answered = sum(not _is_greeting(message, asked) for _, message, asked, _ in places)
    for each in found:
        if isinstance(each, Refused):
            yield each
            continue
        place, message, asked, _ = each
        if _is_greeting(message, asked):
            yield Refused(place, GREETING)
            continue
        model = text_or_none(optional(message, "extra", "model"))
        conversation = "chat" if answered > 1 else None
        for at, text in _texts(place, message):
            if text is None:
                yield Refused(at, "must be a text")
            else:
                yield Said(at, text, None, asked, model, conversation=conversation)


def _own(found: list[_Turn | Refused]) -> list[_Turn | Refused]:
    """Refuse other characters' messages in a group chat, whose head may name one character."""
    turns = [each for each in found if not isinstance(each, Refused)]
    names = {text_or_none(message.get("name")) for _, message, _, _ in turns}
    if len(names) <= 1:
        return found
    return [
        Refused(each[0], OTHER) if not isinstance(each, Refused) and each[1].get("name") != each[3] else each
        for each in found
    ]


def _messages(
    records: Iterator[tuple[str, Any]],
) -> Iterator[_Turn | Refused]:
    """The character's messages, each with what the user said last and the name in the chat's head."""
    asked: str | None = None
    character: Any = None
    for place, record in records:
        if isinstance(record, dict) and "character_name" in record:
            character = record["character_name"]
        if isinstance(record, Refused):
            yield record
        elif not isinstance(record, dict) or ("mes" not in record and "chat_metadata" not in record):
            if not (isinstance(record, dict) and "user_name" in record):
                yield Refused(place, "must be a message")
        elif "mes" not in record or record.get("is_system") is True:
            continue  # the head, or a remark of the program
        elif record.get("is_user") is True:
            asked = text_or_none(record["mes"]) or asked
        else:
            yield place, record, asked, character


def _is_greeting(message: dict[str, Any], asked: str | None) -> bool:
    made = (
        message.get("gen_started") or optional(message, "extra", "model") or optional(message, "extra", "api")
    )
    return asked is None and not made


def _texts(place: str, message: dict[str, Any]) -> Iterator[tuple[str, str | None]]:
    swipes = message.get("swipes")
    if isinstance(swipes, list) and swipes:
        yield from (
            (f"{place}/swipes/{n}", each if isinstance(each, str) else None) for n, each in enumerate(swipes)
        )
    else:
        yield f"{place}/mes", message["mes"] if isinstance(message["mes"], str) else None
