"""Errors that a user can cause, each with what a client needs to mend it."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FieldError:
    """What is wrong with one field of a request.

    Attributes:
        pointer: JSON pointer (RFC 6901) to the field in the request's body, for example ``"/personas/2/traits/E"``.
        message: The reason, as a sentence for people.
    """

    pointer: str
    message: str


MOST_TOLD = 100
"""Errors that are put into words where there are many."""


class InvalidJobError(Exception):
    """A job that can't be run as it is described.

    Attributes:
        errors: Every reason found, not only the first; the message has the first hundred.
    """

    def __init__(self, errors: Sequence[FieldError]) -> None:
        super().__init__("; ".join(f"{error.pointer}: {error.message}" for error in errors[:MOST_TOLD]))
        self.errors = tuple(errors)


UNKNOWN_FIELD = "unknown field"
"""How the message about a field that there is not begins."""


def escape_pointer(token: str) -> str:
    """One reference token of a JSON pointer (RFC 6901, section 3)."""
    return token.replace("~", "~0").replace("/", "~1")


def unescape_pointer(token: str) -> str:
    """The name that a reference token of a JSON pointer stands for."""
    return token.replace("~1", "/").replace("~0", "~")
