"""Sessions of the console: a signed cookie that names the API key and expires.

It holds no secret, only the key's prefix, and is worth as much as that key is at the moment. Who signs out ends all sessions of
his key: the key has a count of that, and a cookie holds the count at which it began. So a cookie that was copied ends too, and
nothing has to be kept of each.
"""

import hmac
from dataclasses import dataclass

from fastapi import Request, Response

from app import clock
from app.services.keys.authenticator import Holder, KeyRefusedError

COOKIE = "assay_session"
HOST_COOKIE = f"__Host-{COOKIE}"
"""Its name over TLS. Browsers take that only from this very host, and so no other name of its domain can put its own session in place."""
LASTS_SECONDS = 12 * 3600


@dataclass(frozen=True, slots=True)
class Session:
    """Somebody who showed a key before.

    Attributes:
        prefix: The key's.
        sign_outs: How often the key's sessions had been ended when this one began.
    """

    prefix: str
    sign_outs: int


@dataclass(frozen=True, slots=True)
class Signer:
    """Signs sessions.

    Attributes:
        secret: What nobody else knows.
    """

    secret: bytes

    def __repr__(self) -> str:
        return "Signer()"  # no secret in a log or a traceback

    def sign(self, session: Session, ends: int) -> str:
        """A session as a cookie, until a moment in seconds since 1970."""
        said = f"{session.prefix}.{session.sign_outs}.{ends}"
        return f"{said}.{self._signature(said)}"

    def read(self, cookie: str) -> Session:
        """What a cookie says.

        Raises:
            KeyRefusedError: If the session is over, or none of ours.
        """
        said, _, signature = cookie.rpartition(".")
        if not hmac.compare_digest(signature.encode(), self._signature(said).encode()):
            raise KeyRefusedError("invalid session: sign in again")
        prefix, sign_outs, ends = said.split(".")
        if int(ends) <= clock.now().timestamp():
            raise session_over()
        return Session(prefix, int(sign_outs))

    def _signature(self, said: str) -> str:
        return hmac.digest(self.secret, b"session 2\0" + said.encode(), "sha256").hex()


def session_over() -> KeyRefusedError:
    """Why the cookie of a session that has ended is not taken."""
    return KeyRefusedError("sign in again: the session is over")


def shown_in(request: Request) -> str | None:
    """The cookie, if the browser shows one."""
    return request.cookies.get(_name(request))


def read(request: Request, cookie: str) -> Session:
    """What a cookie says; see :meth:`Signer.read`."""
    return _signer(request).read(cookie)


def begin(request: Request, response: Response, holder: Holder) -> None:
    """Has the browser remember a key that was shown."""
    cookie = _signer(request).sign(
        Session(holder.prefix, holder.sign_outs), int(clock.now().timestamp()) + LASTS_SECONDS
    )
    response.set_cookie(
        _name(request),
        cookie,
        max_age=LASTS_SECONDS,
        secure=_is_encrypted(request),
        httponly=True,
        samesite="strict",
    )


def end(request: Request, response: Response) -> None:
    """Has the browser forget it."""
    response.delete_cookie(_name(request), secure=_is_encrypted(request), httponly=True, samesite="strict")


def _name(request: Request) -> str:
    return HOST_COOKIE if _is_encrypted(request) else COOKIE


def _is_encrypted(request: Request) -> bool:
    """Whether the browser speaks TLS, as far as a proxy says so: else it would not take such a cookie, or not send it."""
    return request.url.scheme == "https"


def _signer(request: Request) -> Signer:
    signer: Signer = request.app.state.services.signer
    return signer
