"""What can go wrong between the command line and the service."""

from collections.abc import Sequence
from dataclasses import dataclass


class ClientError(Exception):
    """The command cannot be done; the message says why, and what to do about it."""


class UnreachableError(ClientError):
    """Nothing answers at the service's URL."""


@dataclass(frozen=True, slots=True)
class ProblemField:
    """What is wrong with one field.

    Attributes:
        pointer: JSON pointer into the body, or ``/query/…``, ``/path/…``, ``/header/…``; empty for the whole.
        message: The reason.
    """

    pointer: str
    message: str


class ProblemError(ClientError):
    """The service refused a request (RFC 9457).

    Args:
        status: The HTTP status.
        detail: What went wrong, for people.
        fields: The fields that are wrong.
        request_id: Names the request in the service's logs; empty if it gave none.
    """

    def __init__(
        self, status: int, detail: str, fields: Sequence[ProblemField] = (), request_id: str = ""
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.fields = tuple(fields)
        self.request_id = request_id
