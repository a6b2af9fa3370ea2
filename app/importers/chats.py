"""Chat logs: OpenAI's messages (also of fine-tuning files), ShareGPT's conversations, and files of one message a row."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from app.importers.content import UNPACKED_BYTES, parse_json
from app.importers.messages import (
    NO_ANSWER,
    NO_TEXT,
    SYSTEM_COLUMNS,
    Message,
    message_of,
    read_messages,
    role_named,
    turns,
    with_own_columns,
)
from app.importers.names import (
    COLUMNS,
    CONVERSATIONS,
    MESSAGE_COLUMNS,
    SPEAKER_COLUMNS,
    first_of,
)
from app.importers.records import (
    Record,
    Refused,
    Said,
    WrongRecordError,
    id_or_none,
    text_or_none,
    wrong_file,
)


def is_openai_chat(first: dict[str, Any]) -> bool:
    """Whether a record is a list of messages with roles."""
    return _listed(first.get("messages")) is not None


def is_sharegpt(first: dict[str, Any]) -> bool:
    """Whether a record is a conversation under another name, as ShareGPT's."""
    return _listed(first.get(first_of(CONVERSATIONS, first) or "")) is not None


def _listed(value: Any) -> list[Any] | None:
    """Return a list of messages; a cell of CSV has it as JSON."""
    if isinstance(value, str) and value.lstrip()[:1] == "[":
        try:
            value = parse_json(value)
        except ValueError:
            return None
        return value if isinstance(value, list) and value and isinstance(value[0], dict) else None
    return value if isinstance(value, list) else None


def read_openai_chat(place: str, record: dict[str, Any]) -> Iterator[Record]:
    """The texts of a conversation."""
    yield from _conversation(place, record, "messages")


def read_sharegpt(place: str, record: dict[str, Any]) -> Iterator[Record]:
    """The texts of a conversation."""
    yield from _conversation(place, record, first_of(CONVERSATIONS, record) or "conversations")


def _conversation(place: str, record: dict[str, Any], name: str) -> Iterator[Record]:
    try:
        messages = read_messages(_listed(record.get(name)), f"{place}/{name}")
        system = text_or_none(record.get(first_of(list(SYSTEM_COLUMNS), record) or ""))
        if system is not None:
            messages = [*read_messages([{"role": "system", "content": system}], ""), *messages]
    except WrongRecordError as error:
        raise WrongRecordError(f"/{name}{error.field}", error.reason) from error
    for each in turns(messages, place, text_or_none(record.get(first_of(COLUMNS["model"], record) or ""))):
        yield with_own_columns(each, record) if isinstance(each, Said) else each


def is_message(first: dict[str, Any]) -> bool:
    """Whether a record is a single message: a known role speaks, and it has a text but neither prompt nor persona."""
    text = first_of([*MESSAGE_COLUMNS, *COLUMNS["text"]], first)
    others = first_of([*COLUMNS["prompt"], *COLUMNS["persona"]], first)
    speaker = role_named(first.get(first_of(SPEAKER_COLUMNS, first) or ""))
    return speaker is not None and text is not None and others is None


@dataclass(slots=True)
class _Open:
    """A conversation whose messages are rows, as far as it is read."""

    key: str
    place: str
    persona: str | None = None
    asked: str | None = None
    answered: bool = False

    def answer(self, message: Message, model: str | None) -> Record:
        """The text of the assistant's message."""
        self.answered = True
        if message.text is None:
            return Refused(message.place, NO_TEXT)
        return Said(message.place, message.text, self.persona, self.asked, model, conversation=self.key)

    def hear(self, message: Message) -> int:
        """Keep what the system or the user says; return by how many characters that is more than before."""
        before = len(self.persona or "") + len(self.asked or "")
        if message.speaker == "system":
            self.persona = "\n\n".join(each for each in (self.persona, message.text) if each) or None
        elif message.speaker == "user":
            self.asked = message.text or self.asked
        return len(self.persona or "") + len(self.asked or "") - before


def read_message_rows(records: Iterator[tuple[str, Any]]) -> Iterator[Record]:
    """The texts of conversations whose messages are rows.

    Rows of one conversation have the same id and may stand between those of others. Without ids, a system message
    after an answer begins the next conversation.
    """
    by_id: dict[str | None, _Open] = {}
    held = 0
    for place, row in records:
        if isinstance(row, Refused):
            yield row
            continue
        try:
            message, id_ = _message_row(place, row)
        except WrongRecordError as error:
            yield Refused(f"{place}{error.field}", error.reason)
            continue
        chat = by_id.setdefault(id_, _Open(id_ or place, place))
        if message.speaker == "system" and id_ is None and chat.answered:
            chat = by_id[id_] = _Open(place, place)
        if message.speaker == "assistant":
            model = text_or_none(row.get(first_of(COLUMNS["model"], row) or ""))
            yield chat.answer(message, model)
        else:
            held += chat.hear(message)
        if held > UNPACKED_BYTES:
            raise wrong_file(
                f"conversations of more than {UNPACKED_BYTES:,} characters; divide the file", place
            )
    for chat in by_id.values():
        if not chat.answered:
            yield Refused(chat.place, NO_ANSWER)


def _message_row(place: str, row: Any) -> tuple[Message, str | None]:
    if not isinstance(row, dict):
        raise WrongRecordError("", "must be an object")
    speaker = first_of(SPEAKER_COLUMNS, row) or "role"
    text = first_of([*MESSAGE_COLUMNS, *COLUMNS["text"]], row)
    message = message_of({"role": row.get(speaker), "content": row.get(text or "")}, place, f"/{speaker}")
    return message, id_or_none(row.get(first_of(COLUMNS["conversation"], row) or ""))
