"""What can go wrong between a client and the service."""

from collections.abc import Sequence
from dataclasses import dataclass


class AssayError(Exception):
    """A call cannot be made, or what came back is no answer of the service; the message says why."""


class UnreachableError(AssayError):
    """Nothing answers at the service's URL, or an answer broke off."""


@dataclass(frozen=True, slots=True)
class ProblemField:
    """What is wrong with one field.

    Attributes:
        pointer: JSON pointer into the body, or ``/query/…``, ``/path/…``, ``/header/…``; empty for the whole.
        message: The reason.
    """

    pointer: str
    message: str


class ProblemError(AssayError):
    """The service refused a call (RFC 9457).

    Args:
        status: The HTTP status.
        detail: What went wrong, for people.
        code: What went wrong, for programs; empty if something between here and the service refused.
        fields: The fields that are wrong.
        request_id: Names the request in the service's logs; empty if it gave none.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        code: str = "",
        fields: Sequence[ProblemField] = (),
        request_id: str = "",
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.code = code
        self.fields = tuple(fields)
        self.request_id = request_id

    def __str__(self) -> str:
        """The detail, and below it each field that is wrong."""
        return "\n".join(
            [self.detail, *(f"  {field.pointer or '/'}: {field.message}" for field in self.fields)]
        )
