import pytest
from pydantic import SecretStr

from app.vault.secret_cipher import SealError, SecretCipher, parse_keys

OLD, NEW = bytes(32), bytes(range(32))
KEY = SecretStr("sk-proj-4f7c19d2a8e6b035")


class TestSealing:
    def test_what_is_stored_says_nothing_and_is_another_each_time(self) -> None:
        ring = SecretCipher([OLD])
        first, second = ring.seal(KEY, "here"), ring.seal(KEY, "here")
        assert first != second
        assert "4f7c19d2a8e6b035" not in first
        assert ring.open(first, "here") == ring.open(second, "here") == KEY

    def test_it_can_be_read_only_for_what_it_was_stored_for(self) -> None:
        ring = SecretCipher([OLD])
        sealed = ring.seal(KEY, "tenant\nversion\nhttps://a.example:443")
        with pytest.raises(SealError, match="for something else"):
            ring.open(sealed, "tenant\nversion\nhttps://b.example:443")

    @pytest.mark.parametrize("change", ["", "1.", "2", "x" * 50])
    def test_what_was_changed_cannot_be_read(self, change: str) -> None:
        ring = SecretCipher([OLD])
        sealed = ring.seal(KEY, "here")
        for broken in (change, change + sealed, sealed[:-9] + change):
            if broken != sealed:
                with pytest.raises(SealError):
                    ring.open(broken, "here")

    def test_without_a_key_nothing_is_stored(self) -> None:
        assert not SecretCipher([])
        with pytest.raises(SealError, match="no key"):
            SecretCipher([]).seal(KEY, "here")


class TestRotation:
    def test_the_first_key_encrypts_and_all_can_read(self) -> None:
        before = SecretCipher([OLD]).seal(KEY, "here")
        both = SecretCipher([NEW, OLD])
        assert both.open(before, "here") == KEY
        assert not both.is_current(before)
        after = both.seal(both.open(before, "here"), "here")
        assert both.is_current(after)
        assert SecretCipher([NEW]).open(after, "here") == KEY

    def test_a_key_that_was_taken_away_too_early_is_named_as_the_reason(self) -> None:
        with pytest.raises(SealError, match="ASSAY_ENCRYPTION_KEYS"):
            SecretCipher([NEW]).open(SecretCipher([OLD]).seal(KEY, "here"), "here")


class TestKeys:
    def test_they_are_hexadecimal_with_commas_or_lines_between(self) -> None:
        assert (
            parse_keys(f"{NEW.hex()},{OLD.hex()}\n") == parse_keys(f"{NEW.hex()}\n{OLD.hex()}") == (NEW, OLD)
        )
        assert parse_keys("") == ()

    @pytest.mark.parametrize("text", ["secret", "00" * 31, "00" * 33, "zz" * 32])
    def test_what_is_none_is_named_by_its_number_alone(self, text: str) -> None:
        with pytest.raises(ValueError, match="key 2 is not 32 bytes") as refused:
            parse_keys(f"{OLD.hex()},{text}")
        assert text not in str(refused.value)
