"""The kinds of files that can be imported, how each is recognised, and what of it becomes what."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from app.domain.jobs.import_preview import ImportPreview
from app.importers import character_cards, chats, tables
from app.importers.bodies import collect
from app.importers.content import Document, Form, read_document, wrong_file
from app.importers.records import Options, Record, Refused, WrongRecordError

Recognise = Callable[[Document, Options], bool]
Read = Callable[[Document, Options], Iterator[Record]]
ReadRecord = Callable[[str, dict[str, Any]], Iterator[Record]]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of files.

    Attributes:
        name: Its name.
        recognises: Whether a file is of the kind.
        read: Its records, at least one for each thing in it.
        mapping: What of the file becomes what.
    """

    name: str
    recognises: Recognise
    read: Read
    mapping: Mapping[str, str] = field(default_factory=dict)


def each_record(records: Iterator[tuple[str, Any]], read: ReadRecord) -> Iterator[Record]:
    """The records of a file's values, each of which gives at least one: what it holds, or why nothing."""
    for place, value in records:
        if isinstance(value, Refused):
            yield value
            continue
        if not isinstance(value, dict):
            yield Refused(place, "must be an object")
            continue
        try:
            yield from read(place, value)
        except WrongRecordError as error:
            yield Refused(f"{place}{error.field}", error.reason)


def _of_json(recognises: Callable[[dict[str, Any]], bool], read: ReadRecord) -> tuple[Recognise, Read]:
    """What recognises and reads JSON, or JSON Lines, of one record or many."""

    def is_one(document: Document, _: Options) -> bool:
        return document.form in {Form.JSON, Form.LINES} and recognises(document.first())

    def read_all(document: Document, _: Options) -> Iterator[Record]:
        return each_record(document.records(), read)

    return is_one, read_all


def _is_table(document: Document, options: Options) -> bool:
    first = document.first() or dict.fromkeys(tables.parquet_columns(document))
    return tables.is_table(first, options.columns)


def _read_table(document: Document, options: Options) -> Iterator[Record]:
    parquet = document.form is Form.PARQUET
    rows = tables.read_parquet(document) if parquet else document.records()
    return each_record(rows, partial(tables.read_row, options=options))


def _is_card(document: Document, _: Options) -> bool:
    return character_cards.is_picture(document) or character_cards.is_card(document.first())


def _read_cards(document: Document, _: Options) -> Iterator[Record]:
    if character_cards.is_picture(document):
        records = iter([("", character_cards.card_of_picture(document))])
    else:
        records = document.records()
    return each_record(records, character_cards.read_card)


_CHAT = {
    "persona": "system messages",
    "prompt": "the user's message before",
    "text": "the assistant's messages",
}
KINDS = (
    Kind("character_card", _is_card, _read_cards, {"persona": "description and personality"}),
    Kind("openai_messages", *_of_json(chats.is_openai_chat, chats.read_openai_chat), mapping=_CHAT),
    Kind("sharegpt", *_of_json(chats.is_sharegpt, chats.read_sharegpt), mapping=_CHAT),
    Kind("table", _is_table, _read_table, {what: " or ".join(names) for what, names in tables.USUAL.items()}),
)
"""In the order in which a file is tried: the first that recognises it reads it."""
NAMES = tuple(kind.name for kind in KINDS)


def read_import(
    data: bytes, name: str, kind: str | None, options: Options, gym_tasks: Collection[str]
) -> ImportPreview:
    """Reads a file.

    Args:
        data: Its bytes. Untrusted.
        name: Its name; may be empty.
        kind: Its kind, if the user names it.
        options: What the user says beside the file.
        gym_tasks: Ids of PersonaGym's tasks.

    Raises:
        InvalidJobError: If it can't be read, with the place.
    """
    document = read_document(data, name)
    found = next(
        (each for each in KINDS if (each.name == kind if kind else each.recognises(document, options))), None
    )
    if found is None:
        raise wrong_file(f"no kind of file that is known ({', '.join(NAMES)}); name columns, or the kind")
    return collect(found.read(document, options), found.name, found.mapping, options, gym_tasks)
