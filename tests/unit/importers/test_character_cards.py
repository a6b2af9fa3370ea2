"""Character cards: versions 1 to 3, as JSON and in each kind of a picture's text chunks."""

import base64
import json
import struct
import zlib
from typing import Any

import pytest

from app.domain.errors import InvalidJobError
from app.domain.jobs.import_preview import ImportPreview
from app.importers.records import Options
from tests.unit.importers.reading import read_import
from tests.unit.importers.samples import CARD, card_chunk, chunk, picture

V1: dict[str, Any] = {
    "name": "Bo",
    "description": "A shy clerk.",
    "personality": "",
    "scenario": "",
    "first_mes": "",
    "mes_example": "",
}
V3: dict[str, Any] = {
    "spec": "chara_card_v3",
    "spec_version": "3.0",
    "data": {"name": "Cy", "description": "<BOT> sings.", "assets": []},
}


def read(data: bytes) -> ImportPreview:
    return read_import(data, "", None, Options(traits={"A": "low"}))


def described(data: bytes) -> list[str]:
    preview = read(data)
    assert preview.persona_set is not None
    return [each["description"] for each in preview.persona_set["personas"]]


def test_each_version_gives_description_and_personality_with_its_name() -> None:
    assert described(json.dumps(V1).encode()) == ["Bo: A shy clerk."]
    assert described(json.dumps(CARD).encode()) == ["Ada is a blunt critic of the user.\n\nblunt, witty"]
    assert described(json.dumps(V3).encode()) == ["Cy sings."]


def test_a_nickname_stands_for_the_character_as_version_3_has_it() -> None:
    data = V3["data"] | {"name": "Cyrus", "nickname": "Cy", "description": "{{char}} sings. <char> is Cyrus."}
    assert described(json.dumps(V3 | {"data": data}).encode()) == ["Cy sings. Cy is Cyrus."]
    wrong = read(json.dumps(V3 | {"data": data | {"nickname": 5}}).encode())
    assert [each.place for each in wrong.refused_records] == ["/data/nickname"]


def test_a_persona_has_the_traits_that_were_chosen_and_what_is_not_taken_is_told() -> None:
    preview = read(json.dumps(CARD).encode())
    assert preview.persona_set is not None
    assert preview.persona_set["personas"][0]["traits"] == {"A": "low"}
    assert "first_mes, scenario" in preview.notes[0]


CODE = base64.b64encode(json.dumps(CARD).encode())


@pytest.mark.parametrize(
    "body",
    [
        card_chunk(CARD),
        chunk(b"zTXt", b"chara\0\0" + zlib.compress(CODE)),
        chunk(b"iTXt", b"chara\0\0\0\0\0" + CODE),
        chunk(b"iTXt", b"chara\0\1\0en\0chara\0" + zlib.compress(CODE)),
    ],
    ids=["tEXt", "zTXt", "iTXt", "compressed iTXt"],
)
def test_a_card_is_found_in_each_kind_of_chunk(body: bytes) -> None:
    assert described(picture(body))[0].startswith("Ada")


def test_the_later_version_of_two_cards_counts() -> None:
    assert described(picture(card_chunk(V3, b"ccv3"), card_chunk(CARD))) == ["Cy sings."]


def _with_wrong_checksum() -> bytes:
    data = bytearray(picture(card_chunk(CARD)))
    data[60] ^= 1
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "place", "words"),
    [
        (picture(), "", "no character card"),
        (_with_wrong_checksum(), "/chunks/1", "wrong checksum"),
        (picture(card_chunk(CARD))[:-4], "/chunks/3", "cut off"),
        (picture(card_chunk(CARD))[:-12], "/chunks/3", "no end"),
        (picture(chunk(b"tEXt", b"chara\0???")), "/chunks/chara", "not base64"),
        (picture(chunk(b"tEXt", b"chara\0" + base64.b64encode(b"\xff"))), "/chunks/chara", "not base64"),
        (picture(chunk(b"tEXt", b"chara\0" + base64.b64encode(b"{"))), "/chunks/chara", "line 1, column 2"),
        (picture(card_chunk([])), "/chunks/chara", "must be a JSON object"),
        (picture(chunk(b"tEXt", b"chara")), "/chunks/1", "without a text"),
        (picture(chunk(b"zTXt", b"chara\0\0nothing packed")), "/chunks/1", "can't be unpacked"),
        (picture(chunk(b"zTXt", b"chara\0\0" + zlib.compress(CODE)[:-9])), "/chunks/1", "cut off"),
        (
            picture(chunk(b"zTXt", b"chara\0\0" + zlib.compress(bytes(2**28)))),
            "/chunks/1",
            "unpacks to more than",
        ),
        (b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 2**32 - 1) + b"tEXt", "/chunks/0", "cut off"),
    ],
)
def test_a_broken_picture_is_refused_with_the_chunk(data: bytes, place: str, words: str) -> None:
    with pytest.raises(InvalidJobError) as caught:
        read(data)
    (error,) = caught.value.errors
    assert error.pointer == place
    assert words in error.message


@pytest.mark.parametrize(
    ("card", "place"),
    [
        ({**CARD, "data": 5}, "/data"),
        ({**CARD, "data": {"name": "x"}}, "/data/description"),
        ({**V1, "description": 5}, "/description"),
        ({**V1, "name": []}, "/name"),
        ({**V1, "description": " "}, "/description"),
    ],
)
def test_a_card_that_says_nothing_is_refused_with_the_field(card: dict[str, Any], place: str) -> None:
    (refused,) = read(json.dumps(card).encode()).refused_records
    assert refused.place == place
