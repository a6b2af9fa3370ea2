"""Requests and replies of model calls in the shapes of providers' and frameworks' JSON."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.importers.content import parse_json
from app.importers.messages import Message, last_question, message_of, persona_of, text_of
from app.importers.names import COLUMNS, SPEAKERS
from app.importers.records import Record, Said, WrongRecordError, optional, text_or_none

SYSTEM_MEMBERS = ("system", "system_instruction", "systemInstruction", "instructions")
MESSAGE_LISTS = ("messages", "contents", "turns")
CHOICE_LISTS = ("choices", "generations", "candidates", "output")
"""Members of a reply that list its alternatives, or (`output`) its items."""
REPLY_TEXTS = ("output_text", *COLUMNS["text"], "answer", "result", "content")
NO_CONTENT = "the texts were not recorded"
NO_CALL = "is no call of a model"
MOST_DEPTH = 8
"""Members in each other on the way to a text."""


def request_messages(value: Any, depth: int = 0) -> list[Message]:
    """What a model was asked: a request's body, a list of messages, one, or a text; also as a text of JSON."""
    value = _parsed(value)
    if isinstance(value, str):
        return [Message("", "user", text_or_none(value))]
    if isinstance(value, list):
        return _listed(value, "user")
    if not isinstance(value, dict) or depth > MOST_DEPTH:
        return []
    if _speaker(value) is not None:
        return _listed([value], "user")
    system = next((text for name in SYSTEM_MEMBERS if (text := text_of(value.get(name)))), None)
    before = [] if system is None else [Message("", "system", system)]
    listed = next((value[name] for name in MESSAGE_LISTS if isinstance(value.get(name), list)), None)
    if listed is not None:
        return [*before, *_listed(listed, "user")]
    inner = next(
        (value[name] for name in (*COLUMNS["prompt"], "prompts", "kwargs", "args") if value.get(name)), None
    )
    if inner is None and len(value) == 1:
        inner = next(iter(value.values()))
    return [*before, *request_messages(inner, depth + 1)] if inner is not None else before


def reply_messages(value: Any, depth: int = 0) -> list[Message]:  # noqa: C901, PLR0911 - one branch for each shape of a reply
    """What a model answered, a message for each choice: a reply's body, a list of messages, one, or a text; also as a text of JSON."""
    value = _parsed(value)
    if isinstance(value, str):
        return [Message("", "assistant", text_or_none(value))]
    if isinstance(value, list):
        return (
            [found for each in value for found in reply_messages(each, depth + 1)]
            if depth <= MOST_DEPTH
            else []
        )
    if not isinstance(value, dict) or depth > MOST_DEPTH:
        return []
    listed = next((value[name] for name in CHOICE_LISTS if isinstance(value.get(name), list)), None)
    if listed is not None:
        return reply_messages(listed, depth + 1)
    if isinstance(value.get("message"), dict | str):
        return reply_messages(value["message"], depth + 1)
    if isinstance(value.get("messages"), list) and value["messages"]:
        return reply_messages(value["messages"][-1], depth + 1)
    if _speaker(value) is not None:
        return [each for each in _listed([value], "assistant") if each.speaker == "assistant"]
    if value.get("type") in ("reasoning", "function_call", "tool_use", "thinking"):
        return []
    inner = next((value[name] for name in REPLY_TEXTS if value.get(name)), None)
    if isinstance(inner, list):
        text = text_of(inner)
        return [] if text is None else [Message("", "assistant", text)]
    if inner is None and len(value) == 1:
        inner = next(iter(value.values()))
    return reply_messages(inner, depth + 1) if inner is not None else []


def _listed(values: Sequence[Any], speaker: str) -> list[Message]:
    """Messages of a list; LangChain keeps one list for each prompt, of which the first is read."""
    if values and isinstance(values[0], list):
        values = values[0]
    found = []
    for each in values:
        if isinstance(each, str):
            found.append(Message("", speaker, text_or_none(each)))
        elif isinstance(each, dict):
            role = _speaker(each)
            found.append(Message("", speaker if role is None else role, text_of(_content(each))))
    return found


def _speaker(value: dict[str, Any]) -> str | None:
    """Who speaks in a message: by its role, or by the class of LangChain's messages.

    Raises:
        WrongRecordError: If its role is unknown.
    """
    if "role" in value or {"from", "value"} <= value.keys():
        return message_of(value, "", "/role").speaker
    inner = value.get("message")
    if isinstance(inner, dict) and "role" in inner:
        return message_of(inner, "", "/message/role").speaker
    role = value.get("message.role", optional(value, "kwargs", "type") or value.get("type"))
    if isinstance(value.get("id"), list) and value["id"] and isinstance(value["id"][-1], str):
        role = value["id"][-1].removesuffix("Chunk").removesuffix("Message")
    return SPEAKERS.get(role.casefold()) if isinstance(role, str) else None


def _content(value: dict[str, Any]) -> Any:
    holder = next(
        (value[name] for name in ("kwargs", "data", "message") if isinstance(value.get(name), dict)), value
    )
    names = ("content", "message.content", "parts", "text", "value")
    return next((holder[name] for name in names if name in holder), None)


def _parsed(value: Any) -> Any:
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[", '"')):
        return value
    try:
        return parse_json(value)
    except ValueError:
        return value


def call_texts(
    place: str,
    asked: list[Message],
    said: list[Message],
    model: str | None,
    scores: Mapping[str, float] | None = None,
    *,
    separate: bool = False,
) -> Iterator[Record]:
    """The text of each choice; where several prompts are asked separately, each has as many choices as the others.

    Raises:
        WrongRecordError: If there is no text.
    """
    texts = [each.text for each in said if each.speaker == "assistant" and each.text]
    if not texts:
        raise WrongRecordError("", "the model's answer has no text" if said else NO_CONTENT)
    prompts = [each.text for each in asked if each.speaker == "user"] if separate else []
    prompts = prompts or [last_question(asked)]
    persona, conversation = persona_of(asked), conversation_of(asked)
    for n, text in enumerate(texts):
        yield Said(
            place,
            text,
            persona,
            prompts[n * len(prompts) // len(texts)],
            model,
            scores=scores or {},
            conversation=conversation,
        )


def conversation_of(asked: list[Message]) -> str | None:
    """A key of the conversation that a call continues: its beginning; ``None`` for a call without earlier answers."""
    if not any(each.speaker == "assistant" for each in asked):
        return None
    first = next((each.text for each in asked if each.speaker != "system" and each.text), "")
    beginning = f"{persona_of(asked)}\0{first}".encode(errors="replace")
    return hashlib.sha256(beginning).hexdigest()[:16]
