"""Sessions of the console."""

from datetime import UTC, datetime

import pytest

from app import clock
from app.api.http.sessions import Session, Signer
from app.services.keys.authenticator import KeyRefusedError

SIGNER = Signer(b"s" * 32)
SESSION = Session("assay_abc", 3)
LATER = 4_000_000_000
"""In the year 2096: every process has to collect the same tests."""


def test_a_session_says_which_key_was_shown() -> None:
    assert SIGNER.read(SIGNER.sign(SESSION, LATER)) == SESSION


@pytest.mark.parametrize(
    "session",
    [
        SIGNER.sign(SESSION, LATER).replace("abc", "abd"),
        SIGNER.sign(SESSION, LATER).replace(".3.", ".4."),
        SIGNER.sign(SESSION, LATER).replace(f".{LATER}.", f".{LATER + 1}."),
        Signer(b"t" * 32).sign(SESSION, LATER),
        "",
        "..",
        "a.b.c",
        "é.9.é",
    ],
)
def test_what_was_not_signed_here_is_none(session: str) -> None:
    with pytest.raises(KeyRefusedError, match="invalid session"):
        SIGNER.read(session)


def test_a_session_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now", lambda: datetime.fromtimestamp(LATER, UTC))
    assert SIGNER.read(SIGNER.sign(SESSION, LATER + 1)) == SESSION
    with pytest.raises(KeyRefusedError, match="the session is over"):
        SIGNER.read(SIGNER.sign(SESSION, LATER))
