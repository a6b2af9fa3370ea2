"""What is wrong with a request, collected so that its user mends all of it at once."""

from collections.abc import Iterable

from app.domain.errors import FieldError, InvalidJobError
from app.domain.suggestion import did_you_mean

MOST_SUGGESTIONS = 20
"""Errors for which a known name near an unknown one is looked for: that takes 0.5 ms."""


class Problems:
    """The errors of a request so far."""

    def __init__(self) -> None:
        self.errors: list[FieldError] = []

    def fail(self, pointer: str, message: str) -> None:
        """Notes that something is wrong at a place."""
        self.errors.append(FieldError(pointer, message))

    @property
    def are_few(self) -> bool:
        """Whether names are still suggested."""
        return len(self.errors) < MOST_SUGGESTIONS

    def suggestion(self, name: str, known: Iterable[str]) -> str:
        """As :func:`did_you_mean`, for the first errors."""
        return did_you_mean(name, known) if self.are_few else ""

    def raise_if_any(self) -> None:
        """Raises :class:`InvalidJobError` if anything is wrong."""
        if self.errors:
            raise InvalidJobError(self.errors)
