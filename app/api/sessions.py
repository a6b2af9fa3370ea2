"""Sessions of the console: a cookie that says which key was shown, signed and with an end.

It holds no secret, only the key's prefix, and is worth as much as that key is at the moment.
"""

import hmac
import time
from dataclasses import dataclass

from fastapi import Request, Response

from app.services.keyring import KeyRefusedError

COOKIE = "assay_session"
LASTS_SECONDS = 12 * 3600


@dataclass(frozen=True, slots=True)
class Signer:
    """Signs sessions.

    Attributes:
        secret: What nobody else knows.
    """

    secret: bytes

    def __repr__(self) -> str:
        return "Signer()"  # no secret in a log or a traceback

    def sign(self, prefix: str, ends: int) -> str:
        """A session of the key of that prefix, until a moment in seconds since 1970."""
        said = f"{prefix}.{ends}"
        return f"{said}.{self._signature(said)}"

    def read(self, session: str) -> str:
        """The prefix of a session's key.

        Raises:
            KeyRefusedError: If the session is over, or none of ours.
        """
        said, _, signature = session.rpartition(".")
        if not hmac.compare_digest(signature.encode(), self._signature(said).encode()):
            raise KeyRefusedError("sign in again: this is no session of this service")
        prefix, _, ends = said.partition(".")
        if int(ends) <= time.time():
            raise KeyRefusedError("sign in again: the session is over")
        return prefix

    def _signature(self, said: str) -> str:
        return hmac.digest(self.secret, b"session\0" + said.encode(), "sha256").hex()


def read(request: Request, session: str) -> str:
    """The prefix of a session's key; see :meth:`Signer.read`."""
    return _signer(request).read(session)


def begin(request: Request, response: Response, prefix: str) -> None:
    """Has the browser remember a key that was shown."""
    session = _signer(request).sign(prefix, int(time.time()) + LASTS_SECONDS)
    secure = request.url.scheme == "https"
    response.set_cookie(
        COOKIE, session, max_age=LASTS_SECONDS, secure=secure, httponly=True, samesite="strict"
    )


def end(response: Response) -> None:
    """Has the browser forget it."""
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")


def _signer(request: Request) -> Signer:
    signer: Signer = request.app.state.services.signer
    return signer
