"""Chat logs: OpenAI's messages (also of fine-tuning files), ShareGPT's conversations, and files of one message a row."""

from collections.abc import Iterator
from typing import Any

from app.importers.content import UNPACKED_BYTES
from app.importers.messages import Message, message_of, read_messages, turns
from app.importers.names import (
    COLUMNS,
    CONVERSATION_COLUMNS,
    CONVERSATIONS,
    MESSAGE_COLUMNS,
    SPEAKER_COLUMNS,
    first_of,
)
from app.importers.parquet import size_of
from app.importers.records import Record, Refused, WrongRecordError, text_or_none, wrong_file


def is_openai_chat(first: dict[str, Any]) -> bool:
    """Whether a record is a list of messages with roles."""
    return isinstance(first.get("messages"), list)


def is_sharegpt(first: dict[str, Any]) -> bool:
    """Whether a record is a conversation under another name, as ShareGPT's."""
    return isinstance(first.get(first_of(CONVERSATIONS, first) or ""), list)


def read_openai_chat(place: str, record: dict[str, Any]) -> Iterator[Record]:
    """The texts of a conversation."""
    yield from _conversation(place, record, "messages")


def read_sharegpt(place: str, record: dict[str, Any]) -> Iterator[Record]:
    """The texts of a conversation."""
    yield from _conversation(place, record, first_of(CONVERSATIONS, record) or "conversations")


def _conversation(place: str, record: dict[str, Any], name: str) -> Iterator[Record]:
    try:
        messages = read_messages(record.get(name), f"{place}/{name}")
        system = text_or_none(record.get("system"))
        if system is not None:
            messages = [*read_messages([{"role": "system", "content": system}], ""), *messages]
    except WrongRecordError as error:
        raise WrongRecordError(f"/{name}{error.field}", error.reason) from error
    yield from turns(messages, place, text_or_none(record.get("model")))


def is_message(first: dict[str, Any]) -> bool:
    """Whether a record is a single message: it says who speaks, and has a text but neither prompt nor persona."""
    speaker, text = first_of(SPEAKER_COLUMNS, first), first_of([*MESSAGE_COLUMNS, *COLUMNS["text"]], first)
    others = first_of([*COLUMNS["prompt"], *COLUMNS["persona"]], first)
    return isinstance(first.get(speaker or ""), str) and text is not None and others is None


def read_message_rows(records: Iterator[tuple[str, Any]]) -> Iterator[Record]:
    """The texts of conversations whose messages are rows: by the column that names them; else each begins with a system message."""
    conversation = _Rows("", None)
    for place, row in records:
        if isinstance(row, Refused):
            yield row
            continue
        try:
            message, id_ = _message_row(place, row)
        except WrongRecordError as error:
            yield Refused(f"{place}{error.field}", error.reason)
            continue
        if conversation.ends_before(message, id_):
            yield from conversation.read()
            conversation = _Rows(place, id_)
        conversation.add(place, message, row)
    yield from conversation.read()


def _message_row(place: str, row: Any) -> tuple[Message, Any]:
    if not isinstance(row, dict):
        raise WrongRecordError("", "must be an object")
    speaker = first_of(SPEAKER_COLUMNS, row) or "role"
    text = first_of([*MESSAGE_COLUMNS, *COLUMNS["text"]], row)
    message = message_of({"role": row.get(speaker), "content": row.get(text or "")}, place, f"/{speaker}")
    return message, row.get(first_of(CONVERSATION_COLUMNS, row) or "")


class _Rows:
    """The messages of a conversation, row by row."""

    def __init__(self, place: str, id_: Any) -> None:
        self._place, self._id, self._size = place, id_, 0
        self._messages: list[Message] = []
        self._model: str | None = None

    def ends_before(self, message: Message, id_: Any) -> bool:
        """Whether a message begins another conversation."""
        answered = any(each.speaker == "assistant" for each in self._messages)
        again = message.speaker == "system" and id_ is None and answered
        return bool(self._messages) and (id_ != self._id or again)

    def add(self, place: str, message: Message, row: dict[str, Any]) -> None:
        """Add a message."""
        if not self._messages:
            self._place, self._id = place, row.get(first_of(CONVERSATION_COLUMNS, row) or "")
        self._size += size_of(row)
        if self._size > UNPACKED_BYTES:
            raise wrong_file(f"a conversation of more than {UNPACKED_BYTES:,} bytes; divide the file", place)
        self._messages.append(message)
        if message.speaker == "assistant":
            self._model = self._model or text_or_none(row.get(first_of(COLUMNS["model"], row) or ""))

    def read(self) -> Iterator[Record]:
        """Its texts."""
        if self._messages:
            yield from turns(self._messages, self._place, self._model)
