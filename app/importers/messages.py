"""Chat messages, which most tools keep in some form: who said what, in order."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from app.importers.names import COLUMNS, SPEAKERS, first_of
from app.importers.records import Record, Refused, Said, WrongRecordError, text_or_none

SYSTEM_COLUMNS = ("system", "system_prompt")
TEXT_PARTS = ("text", "input_text", "output_text")
NO_ANSWER = "has no message of the assistant"
NO_TEXT = "the message of the assistant has no text"


@dataclass(frozen=True, slots=True)
class Message:
    """A message.

    Attributes:
        place: Where it stands.
        speaker: ``system``, ``user``, ``assistant`` or ``tool``.
        text: What it says; ``None`` for pictures, calls of tools and the like.
    """

    place: str
    speaker: str
    text: str | None


def read_messages(value: Any, place: str) -> list[Message]:
    """The messages of a list.

    Args:
        value: The list. Untrusted.
        place: Where it stands.

    Raises:
        WrongRecordError: It is no list of messages; the field is relative to the list.
    """
    if not isinstance(value, list):
        raise WrongRecordError("", "must be a list of messages")
    return [_message(each, n, place) for n, each in enumerate(value)]


def _message(value: Any, n: int, place: str) -> Message:
    if not isinstance(value, dict):
        raise WrongRecordError(f"/{n}", "must be a message with role and content")
    return message_of(value, f"{place}/{n}", f"/{n}/role")


def message_of(value: dict[str, Any], place: str, pointer: str) -> Message:
    """A message.

    Args:
        value: The message. Untrusted.
        place: Where it stands.
        pointer: Where its role stands, for errors.

    Raises:
        WrongRecordError: If its role is unknown.
    """
    name = value.get("role", value.get("from"))
    speaker = role_named(name)
    if speaker is None:
        shown = f" {name[:50].encode(errors='replace').decode()!r}" if isinstance(name, str) else ""
        raise WrongRecordError(pointer, f"unknown role{shown} (must be such as system, user or assistant)")
    content = next((value[key] for key in ("content", "value", "parts", "text") if key in value), None)
    return Message(place, speaker, text_of(content))


def role_named(name: Any) -> str | None:
    """Return the speaker that a role's name means; ``None`` if it is no known role."""
    return SPEAKERS.get(name.strip().casefold()) if isinstance(name, str) else None


def with_own_columns(said: Said, record: dict[str, Any]) -> Said:
    """Return a text with persona and task that its record names beside the messages.

    A system prompt beside messages is a message, and describes more than a name such as that of a character.
    """
    names = [name for name in COLUMNS["persona"] if name not in SYSTEM_COLUMNS]
    chosen = text_or_none(record.get(first_of(names[:1], record) or ""))
    persona = chosen or said.persona or text_or_none(record.get(first_of(names, record) or ""))
    task = text_or_none(record.get(first_of(COLUMNS["task"], record) or ""))
    return replace(said, persona=persona, task=task or said.task)


def text_of(content: Any) -> str | None:
    """The text of a message's content: a text, or parts of which some are texts."""
    if isinstance(content, str):
        return text_or_none(content)
    if isinstance(content, dict):
        content = content.get("parts", [content])
    if not isinstance(content, list):
        return None
    parts = [each if isinstance(each, str) else _text_of_part(each) for each in content]
    return text_or_none("\n".join(part for part in parts if part))


def _text_of_part(part: Any) -> str | None:
    if not isinstance(part, dict) or part.get("type", "text") not in TEXT_PARTS:
        return None
    return next((part[key] for key in ("text", "content") if isinstance(part.get(key), str)), None)


def persona_of(messages: list[Message]) -> str | None:
    """Whom the model is told to be: all that the system says."""
    return text_or_none("\n\n".join(each.text for each in messages if each.speaker == "system" and each.text))


def last_question(messages: list[Message]) -> str | None:
    """What the user said last."""
    return next((each.text for each in reversed(messages) if each.speaker == "user" and each.text), None)


def turns(
    messages: list[Message], place: str, model: str | None, scores: Mapping[str, float] | None = None
) -> Iterator[Record]:
    """A text for each message of the assistant, with what was asked before it.

    Args:
        messages: A conversation.
        place: Where it stands.
        model: Who answers.
        scores: Of the conversation.
    """
    persona = persona_of(messages)
    answers = [each for each in messages if each.speaker == "assistant"]
    conversation = place or "/" if len(answers) > 1 else None
    asked: str | None = None
    for each in messages:
        if each.speaker == "user":
            asked = each.text or asked
        if each.speaker != "assistant":
            continue
        if each.text is None:
            yield Refused(each.place, NO_TEXT)
        else:
            yield Said(
                each.place, each.text, persona, asked, model, scores=scores or {}, conversation=conversation
            )
    if not answers:
        yield Refused(place, NO_ANSWER)
