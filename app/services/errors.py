"""Errors of a request that the client can correct, and words for errors of the service."""

from collections.abc import Sequence

from sqlalchemy.exc import SQLAlchemyError

from app.db.reasons import reason
from app.domain.errors import FieldError
from app.domain.jobs.status import JobStatus
from app.domain.providers.failure import remedy


class NotFoundError(Exception):
    """The tenant has nothing of that name; the message says of what kind."""


class WrongStateError(Exception):
    """The operation is not possible in the present state.

    Attributes:
        status: The job's status, where it is about a job.
    """

    def __init__(self, message: str, status: JobStatus | None = None) -> None:
        super().__init__(message)
        self.status = status


class TooOftenError(Exception):
    """The operation was requested too often.

    Attributes:
        seconds: After which it may be requested again.
    """

    def __init__(self, message: str, seconds: int) -> None:
        super().__init__(message)
        self.seconds = seconds


class BusyError(Exception):
    """Too many operations of this kind are running; try again later."""


class AbandonedError(Exception):
    """The client has disconnected."""


class NameTakenError(Exception):
    """The name is taken; the message says by what."""


class IdempotencyConflictError(Exception):
    """The ``Idempotency-Key`` was used for another body."""


class BeyondOwnLimitsError(Exception):
    """An API key tried to give more rights than it has.

    Attributes:
        errors: Each limit, with what is allowed.
    """

    def __init__(self, errors: Sequence[FieldError]) -> None:
        super().__init__("; ".join(error.message for error in errors))
        self.errors = tuple(errors)


class NotUnderCapError(Exception):
    """A spending cap exists that the job's spending does not count against; the message says whose, and what to do."""


class CallNotAllowedError(Exception):
    """Today's connections, prices or limits do not allow a job's calls; the message says which.

    Attributes:
        code: Reason for which a job is paused, and code of a refusal.
        model: The model concerned, as ``connection/model``; ``None`` if the reason concerns all.
    """

    def __init__(self, code: str, message: str, model: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.model = model

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return remedy(self.code, model=self.model or "")


class TooManyJobsError(Exception):
    """The tenant has as many unfinished jobs as are allowed."""


class SpendingCapError(Exception):
    """The spending cap of the API key or the tenant leaves too little; the message says for what."""


def internal_cause(error: Exception) -> str:
    """Describe an error of the service without its class and text: the text might hold a persona or a response."""
    if isinstance(error, SQLAlchemyError):
        return f"the database failed: {reason(error)}"
    if isinstance(error, MemoryError):
        return "the process ran out of memory"
    if isinstance(error, TimeoutError):
        return "a step took too long"
    if isinstance(error, ConnectionError):
        return "a connection was lost"
    if isinstance(error, OSError) and error.strerror:
        return f"the operating system reported: {error.strerror}"
    return "an unexpected error occurred"
