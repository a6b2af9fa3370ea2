"""Ways in which a request can fail that are the client's to mend."""

from collections.abc import Sequence

from app.domain.errors import FieldError
from app.domain.jobs.status import JobStatus


class NotFoundError(Exception):
    """There is nothing of that name that this tenant may see."""


class WrongStateError(Exception):
    """What was asked can't be done to something in its present state.

    Attributes:
        status: The job's status, where it is about a job.
    """

    def __init__(self, message: str, status: JobStatus | None = None) -> None:
        super().__init__(message)
        self.status = status


class TooOftenError(Exception):
    """What was asked has been done too often lately.

    Attributes:
        seconds: After which it can be asked for again.
    """

    def __init__(self, message: str, seconds: int) -> None:
        super().__init__(message)
        self.seconds = seconds


class BusyError(Exception):
    """So much of the kind is being done that this would take too long; a little later it will not."""


class AbandonedError(Exception):
    """Who asked has gone; nobody waits for the answer."""


class NameTakenError(Exception):
    """There is something of that name already; the message says what."""


class IdempotencyConflictError(Exception):
    """The ``Idempotency-Key`` was used for another body."""


class BeyondOwnLimitsError(Exception):
    """A key that is limited was to give more rights than it has.

    Attributes:
        errors: Each limit, with what is allowed.
    """

    def __init__(self, errors: Sequence[FieldError]) -> None:
        super().__init__("; ".join(error.message for error in errors))
        self.errors = tuple(errors)


class NotUnderCapError(Exception):
    """There is a spending cap, and what the job spends does not count against it; the message says whose, and what to do."""


class ModelNotAllowedError(Exception):
    """The operator does not allow the tenant a model that a job calls; the message names it."""


class SpendingCapError(Exception):
    """The spending cap of the API key or the tenant does not leave enough; the message says for what."""
