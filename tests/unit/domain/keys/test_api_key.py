"""The form of API keys, and what they may do."""

import re
import zlib
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.keys.api_key import (
    ALPHABET,
    POSSIBLE,
    MalformedKeyError,
    Scope,
    allows,
    compose,
    digest,
    is_key_of,
    is_over,
    prefix_of,
)

PEPPER = b"p" * 32
numbers = st.integers(0, POSSIBLE - 1)


class TestForm:
    @given(numbers)
    def test_a_scanner_s_expression_finds_every_key(self, number: int) -> None:
        assert re.fullmatch(r"assay_[0-9A-Za-z]{50}", compose(number))

    def test_its_end_is_the_crc_32_of_the_rest(self) -> None:
        body = "assay_" + "0" * 43 + "7"
        key = compose(7)
        assert key.startswith(body)
        found = 0
        for character in key.removeprefix(body):
            found = found * 62 + ALPHABET.index(character)
        assert found == zlib.crc32(body.encode())

    @given(numbers)
    def test_what_is_shown_of_it_has_no_part_of_the_secret(self, number: int) -> None:
        secret = 32  # characters that nobody is shown, of 62 kinds: 190 bits
        assert prefix_of(compose(number)) == compose(number)[: 6 + 44 - secret]

    @given(numbers, st.integers(6, 55), st.sampled_from(ALPHABET))
    def test_one_wrong_character_is_noticed(self, number: int, place: int, character: str) -> None:
        key = compose(number)
        wrong = key[:place] + character + key[place + 1 :]
        if wrong != key:
            with pytest.raises(MalformedKeyError, match="checksum"):
                prefix_of(wrong)

    @pytest.mark.parametrize(
        "text", ["", "sk-proj-secret", compose(1)[:-1], compose(1) + "0", compose(1) + "\n"]
    )
    def test_other_texts_are_none_and_are_not_repeated(self, text: str) -> None:
        with pytest.raises(
            MalformedKeyError, match=r"^an API key is assay_ followed by 50 letters and digits$"
        ):
            prefix_of(text)


class TestDigest:
    @given(numbers)
    def test_it_knows_its_key_with_its_pepper_only(self, number: int) -> None:
        key = compose(number)
        kept = digest(PEPPER, key)
        assert is_key_of(key, kept, PEPPER)
        assert not is_key_of(key, kept, b"q" * 32)
        assert not is_key_of(compose((number + 1) % POSSIBLE), kept, PEPPER)


class TestScopes:
    @pytest.mark.parametrize(
        ("scopes", "allowed"),
        [([Scope.READ], 1), ([Scope.SUBMIT], 2), ([Scope.ADMIN], 3), ([Scope.READ, Scope.SUBMIT], 2)],
    )
    def test_each_includes_those_before_it(self, scopes: list[Scope], allowed: int) -> None:
        assert [allows(scopes, scope) for scope in Scope] == [n < allowed for n in range(3)]


def test_what_ends_never_is_never_over() -> None:
    now = datetime(2026, 11, 29, tzinfo=UTC)
    assert [is_over(end, now) for end in (None, now + timedelta(seconds=1), now)] == [False, False, True]
