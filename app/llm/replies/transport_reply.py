"""What a transport brings back, or why it brings nothing."""

from collections.abc import Mapping
from typing import NamedTuple

from app.domain.providers.model import Delivery


class Reply(NamedTuple):
    """A provider's whole reply, whatever its status.

    Attributes:
        status: HTTP status.
        headers: The reply's headers, found by their names in lower case; a repeated one's values joined by ``", "``.
        body: Decoded content.
        delivery: Tells whether the reply belongs to its request; ``None`` where its connection served no other.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    delivery: Delivery | None = None


class NotConnectedError(ConnectionError):
    """No connection could be made: nothing was sent, so nothing can have been charged."""


class LostConnectionError(ConnectionError):
    """The connection broke, or what came over it was no HTTP reply, after the request may have been sent."""


def words_of(error: BaseException) -> str:
    """Return why a connection failed, without the class of the exception or its error number."""
    known = error.strerror if isinstance(error, OSError) else None
    return (known or str(error) or "the connection failed").strip()


class ReplyTooLongError(Exception):
    """The reply is longer than any answer can be."""
