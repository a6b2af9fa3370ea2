"""Character cards of versions 1 to 3, as JSON or in a picture's chunks (PNG, section 11.3.4)."""

import base64
import binascii
import re
import struct
import zlib
from collections.abc import Iterator
from typing import Any

from app.importers.content import Document, Form, parse_json
from app.importers.records import (
    PERSONA_CHARACTERS,
    Character,
    Record,
    WrongRecordError,
    substituted,
    text_or_none,
    wrong_file,
)

KEYWORDS = ("ccv3", "chara")
"""Of the chunks that hold a card; the later version first."""
CARD_BYTES = 4 * 1024 * 1024
"""The longest card that a compressed chunk may unpack to."""
TAKEN = ("description", "personality")
NICKNAME = "nickname"
"""Of version 3: what stands for the card's ``{{char}}`` instead of the name."""
SIGNATURE_BYTES = 8
_CHAR = re.compile(r"\{\{char\}\}|<BOT>|<CHAR>", re.IGNORECASE)
_USER = re.compile(r"\{\{user\}\}|<USER>", re.IGNORECASE)


def is_card(first: dict[str, Any]) -> bool:
    """Whether a record is a card of any version."""
    if str(first.get("spec", "")).startswith("chara_card_v"):
        return True
    return {"name", "description", "personality", "first_mes"} <= first.keys()


def read_card(place: str, card: dict[str, Any]) -> Iterator[Record]:
    """The character of a card: its description and personality, with its nickname or name for the card's ``{{char}}``.

    Raises:
        WrongRecordError: If it has none of both, or of other types.
    """
    field = "/data" if "spec" in card else ""
    data = card.get("data") if "spec" in card else card
    if not isinstance(data, dict):
        raise WrongRecordError("/data", "must be an object with the card's fields")
    for each in ("name", NICKNAME, *TAKEN):
        if data.get(each) is not None and not isinstance(data[each], str):
            raise WrongRecordError(f"{field}/{each}", "must be a text")
    name = text_or_none(data.get("name"))
    parts = [part for part in (text_or_none(data.get(each)) for each in TAKEN) if part]
    if not parts:
        raise WrongRecordError(f"{field}/description", "description and personality are empty")
    called = text_or_none(data.get(NICKNAME)) or name
    try:
        text = substituted(_CHAR, lambda _: called or "the character", "\n\n".join(parts), PERSONA_CHARACTERS)
        text = substituted(_USER, lambda _: "the user", text, PERSONA_CHARACTERS).strip()
    except WrongRecordError as error:
        raise WrongRecordError(f"{field}/description", error.reason) from error
    if name is not None and name.casefold() not in text.casefold():
        text = f"{name}: {text}"
    unused = [each for each in data if each not in {"name", NICKNAME, *TAKEN} and data[each]]
    yield Character(place, text, name, unused)


def card_of_picture(document: Document) -> dict[str, Any]:
    """The card in a picture's text chunks.

    Raises:
        InvalidJobError: If there is none, or the picture is broken before it.
    """
    texts = dict(_texts(document.whole()))
    keyword = next((each for each in KEYWORDS if each in texts), None)
    if keyword is None:
        raise wrong_file("the picture has no character card (no chunk `chara` or `ccv3`)")
    try:
        card = parse_json(base64.b64decode(_unpacked(*texts[keyword]), validate=True).decode())
    except (binascii.Error, UnicodeDecodeError) as error:
        raise wrong_file("the card is not base64 of UTF-8", f"/chunks/{keyword}") from error
    except ValueError as error:
        raise wrong_file(f"the card is not JSON: {error}", f"/chunks/{keyword}") from error
    if not isinstance(card, dict):
        raise wrong_file("the card must be a JSON object", f"/chunks/{keyword}")
    return card


def is_picture(document: Document) -> bool:
    """Whether a file is a PNG picture."""
    return document.form is Form.PNG


def _texts(data: bytes) -> Iterator[tuple[str, tuple[bytes, bytes, int]]]:
    """The text chunks that may hold a card, by keyword: kind, what follows the keyword, and number."""
    for number, kind, body in _chunks(data):
        if kind not in {b"tEXt", b"zTXt", b"iTXt"}:
            continue
        keyword, nul, rest = body.partition(b"\0")
        name = keyword.decode("latin-1").casefold()
        if name not in KEYWORDS:
            continue
        if not nul:
            raise wrong_file("a text chunk without a text", f"/chunks/{number}")
        yield name, (kind, rest, number)


def _unpacked(kind: bytes, rest: bytes, number: int) -> bytes:
    packed = kind == b"zTXt"
    if packed:
        rest = rest[1:]
    elif kind == b"iTXt":
        packed = rest[:1] == b"\x01"
        rest = rest[2:].partition(b"\0")[2].partition(b"\0")[2]
    if not packed:
        return rest
    unpacking = zlib.decompressobj()
    try:
        text = unpacking.decompress(rest, CARD_BYTES)
    except zlib.error as error:
        raise wrong_file("a compressed text that can't be unpacked", f"/chunks/{number}") from error
    if unpacking.unconsumed_tail:
        raise wrong_file(f"a text that unpacks to more than {CARD_BYTES:,} bytes", f"/chunks/{number}")
    if not unpacking.eof:
        raise wrong_file("a compressed text that is cut off", f"/chunks/{number}")
    return text


def _chunks(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """The chunks in order, each with its number from 0."""
    position, number = SIGNATURE_BYTES, 0
    while position < len(data):
        if position + 12 > len(data):
            raise wrong_file("the picture is cut off", f"/chunks/{number}")
        (length,) = struct.unpack_from(">I", data, position)
        kind = data[position + 4 : position + 8]
        end = position + 12 + length
        if end > len(data):
            raise wrong_file("the picture is cut off", f"/chunks/{number}")
        (told,) = struct.unpack_from(">I", data, end - 4)
        if zlib.crc32(memoryview(data)[position + 4 : end - 4]) != told:
            raise wrong_file("a chunk with a wrong checksum (CRC)", f"/chunks/{number}")
        yield number, kind, data[position + 8 : end - 4]
        if kind == b"IEND":
            return
        position, number = end, number + 1
    raise wrong_file("the picture is cut off: it has no end", f"/chunks/{number}")
