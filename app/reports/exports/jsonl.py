"""JSON Lines exports: one object a line, texts as they are."""

from collections.abc import Sequence
from json.encoder import encode_basestring

from pydantic_core import to_json

from app.reports.exports.columns import Column
from app.reports.exports.lines import LineWriter

_LINE_BREAKS = {character.encode(): b"\\u%04x" % ord(character) for character in "\x85\u2028\u2029"}
"""JSON may hold these as they are, but many readers end a line at them."""


def jsonl_writer(columns: Sequence[Column]) -> LineWriter:
    """Writes one line for each row, its keys the columns' names; missing values are null."""
    first, *others = [f"{encode_basestring(column.name)}: " for column in columns]
    after = [*[f", {key}" for key in others], "}\n"]
    return LineWriter(columns, b"", _values, missing="null", before="{" + first, after=after)


def _values(texts: list[str | None]) -> list[bytes]:
    """Texts as JSON: all at once, with the line breaks between them that none has inside."""
    return one_line(to_json(texts, indent=0))[len("[\n") : -len("\n]")].split(b",\n") if texts else []


def one_line(text: bytes) -> bytes:
    """The text with every character escaped that some reader takes for the end of a line."""
    if not text.isascii():
        for character, escaped in _LINE_BREAKS.items():
            if character in text:
                text = text.replace(character, escaped)
    return text
