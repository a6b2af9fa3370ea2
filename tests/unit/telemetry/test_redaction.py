import base64
import logging
from collections import OrderedDict
from urllib.parse import quote

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.telemetry import redaction
from app.telemetry.redaction import PIECE, Traces, redact_logging, redacted, traces_of

RANDOM = "q7Zf3+Lw/9KxTb2YhVn5RcD8sJmA0uEg"
KEY = f"sk-ant-api03-{RANDOM}"
TEXT = st.text(st.characters(codec="utf-8"), max_size=60)


def pieces(form: str) -> list[str]:
    return [form[n : n + PIECE] for n in range(len(form) - PIECE + 1)]


class TestTraces:
    @given(before=TEXT, after=TEXT, start=st.integers(0, len(RANDOM)), length=st.integers(PIECE, len(KEY)))
    def test_no_piece_is_left(self, before: str, after: str, start: int, length: int) -> None:
        shown = Traces(KEY).removed(before + RANDOM[start : start + length] + after)
        assert not any(piece in shown for piece in pieces(RANDOM))

    @given(before=st.binary(max_size=20), after=st.binary(max_size=20))
    def test_no_piece_is_left_in_base64(self, before: bytes, after: bytes) -> None:
        encoded = base64.b64encode(before + KEY.encode() + after).decode()
        shown = Traces(KEY).removed(encoded)
        found = [piece for piece in pieces(encoded) if piece in shown]
        assert all(
            RANDOM.encode() not in base64.b64decode(piece + "=" * (-len(piece) % 4)) for piece in found
        )
        inner = len(before + b"sk-ant-api03-")
        first, last = -(-inner * 8 // 6), (inner + len(RANDOM)) * 8 // 6
        assert not any(piece in shown for piece in pieces(encoded[first:last]))

    def test_none_is_left_in_a_url(self) -> None:
        shown = Traces(KEY).removed(f"https://example.com/?key={quote(KEY, safe='')}&more=1")
        assert shown == "https://example.com/?key=sk-ant-api03-[key]&more=1"

    @pytest.mark.parametrize(
        "text", ["", "sk-ant-api03-", "a text about keys such as sk-ant-api03-…", RANDOM[: PIECE - 1]]
    )
    def test_other_texts_stay_as_they_are(self, text: str) -> None:
        assert Traces(KEY).removed(text) == text

    def test_a_piece_in_the_middle_is_all_that_goes(self) -> None:
        assert Traces(KEY).removed(f"no key {RANDOM[3:20]}*** here") == "no key [key]*** here"
        assert Traces(KEY).removed(f"{RANDOM} and {RANDOM}") == "[key] and [key]"

    def test_a_short_secret_goes_as_a_whole_only(self) -> None:
        traces = Traces("simulated")
        assert traces.removed("the key simulated") == "the key [key]"
        assert traces.pieces_removed("simulated") == "simulated"


class TestKnown:
    def test_many_keys_take_no_more_memory_and_the_one_in_use_stays_known(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(redaction, "_known", OrderedDict())
        first = traces_of(RANDOM)
        for n in range(100):
            traces_of(f"{n:0>500}")
            assert traces_of(RANDOM) is first
        assert sum(map(len, redaction._known)) <= redaction.MOST_CHARACTERS
        assert RANDOM[:PIECE] not in redacted(f"sent {RANDOM}")


class TestLines:
    @pytest.mark.parametrize(
        ("line", "shown"),
        [
            ("Authorization: Bearer abc.def-123456", "Authorization: Bearer [key]"),
            ("key sk-0123456789abcdef refused", "key [key] refused"),
            ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "[key]"),
            ("postgresql://assay:hunter2@db:5432/assay", "postgresql://assay:[key]@db:5432/assay"),
            ("postgresql://assay:hun/ter?2@x#y@db:5432/assay", "postgresql://assay:[key]@db:5432/assay"),
            ("redis://:hunter/2@queue:6379/0", "redis://:[key]@queue:6379/0"),
            ('{"event": "announced again", "shards": 3}', '{"event": "announced again", "shards": 3}'),
        ],
    )
    def test_what_looks_like_a_secret_goes(self, line: str, shown: str) -> None:
        assert redacted(line) == shown

    def test_what_was_known_as_one_goes_from_libraries_logs_and_tracebacks(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        secret = "Zx81Zx82Zx83Zx84Zx85"
        traces_of(secret)
        redact_logging()
        try:
            int(secret)
        except ValueError:
            logging.getLogger("some.library").exception("with %s", f"{secret[:14]}***")
        assert "[key]" in caplog.text
        assert "Zx82Zx83" not in caplog.text

    def test_what_the_database_s_driver_quotes_goes_from_libraries_logs(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        redact_logging()
        told = psycopg.errors.UniqueViolation("Key (text)=(I am shy)")
        error = RuntimeError("a batch was refused")
        error.__cause__ = told
        for words in ("never retrieved: %r", "raised unexpected: %s"):
            logging.getLogger("some.library").log(logging.ERROR, words, told, exc_info=error)
        assert "shy" not in caplog.text
        assert "raised unexpected: UniqueViolation" in caplog.text
        assert "a batch was refused" in caplog.text
