"""What follows from a failed attempt at a call: which failure is tried again, how often, and after how long.

| failure | counts as an attempt | tried again | after |
|---|---|---|---|
| of the job (no credit, key refused) | | no, and the job stops | |
| of the item (prompt too long, filtered) | | no | |
| rate limit (429) | no | 200 times with all others | what the limiter says |
| of a server that is away | no | for as long as the outage lasts | as any other, and what the limiter says |
| a reply that can't be read | yes | once | as any other |
| any other that may pass | yes | as often as the policy allows | what the provider asks, and up to twice as long each time |

A call of its own and one in a batch differ only in how many attempts they are allowed; a batch's next attempt is another batch.
Webhooks follow the schedule of their specification (:func:`app.domain.webhooks.webhook.retry_delay`).
"""

from dataclasses import dataclass
from enum import Enum, auto
from http import HTTPStatus

from app.domain.providers.model import Model, Stage
from app.ports import FailureKind, ModelCallError

MOST_ATTEMPTS = 200
"""Of one call, those that don't count included, but not those of an outage: waiting for a rate limit for ever is a failure, too."""

MOST_DOUBLINGS = 10

PROVIDER_UNREACHABLE = "provider_unreachable"
"""Why a job is paused whose provider's server has been away for too long."""


class JobMustStopError(Exception):
    """The provider's answer means that no further call of this kind can succeed.

    Attributes:
        code: The provider's error code.
        model: ``connection/name`` of the model.
        stage: Of the calls; ``None`` where it is not about a call.
        status: HTTP status of the answer, if there was one.
        alike: Number of calls of the kind that failed alike, if that stops the job and not this answer alone.
    """

    def __init__(
        self,
        code: str,
        message: str,
        model: str,
        stage: Stage | None = None,
        status: int | None = None,
        *,
        alike: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.model = model
        self.stage = stage
        self.status = status
        self.alike = alike


def must_stop(
    error: ModelCallError, model: Model, stage: Stage, *, alike: int | None = None
) -> JobMustStopError:
    """What a call ends with after whose answer no call of its kind can succeed."""
    return JobMustStopError(error.code, str(error), model.full_name, stage, error.status, alike=alike)


class CallFailedError(Exception):
    """The item's call failed for good; the job goes on.

    Attributes:
        error: Of the last attempt.
    """

    def __init__(self, error: ModelCallError) -> None:
        super().__init__(f"{error.code}: {error}")
        self.error = error


class CallFilteredError(CallFailedError):
    """The provider's content filter refused the item's prompt."""


def failed_for_good(error: ModelCallError) -> CallFailedError:
    """What a call ends with whose last attempt ended with ``error``."""
    kind = CallFilteredError if error.kind is FailureKind.FILTERED else CallFailedError
    return kind(error)


class Next(Enum):
    """What follows from a failed attempt."""

    STOP_JOB = auto()
    FAIL_ITEM = auto()
    TRY_AGAIN = auto()


@dataclass(slots=True)
class Attempts:
    """The attempts at one call.

    Attributes:
        allowed: How many may fail, those that don't count left out.
        made: So far.
        rate_limited: Of these, those that met a rate limit.
        unreached: Of these, those that met a server that is away.
    """

    allowed: int
    made: int = 0
    rate_limited: int = 0
    unreached: int = 0

    @property
    def failed(self) -> int:
        """Those that count."""
        return self.made - self.rate_limited - self.unreached

    def after(self, error: ModelCallError) -> Next:
        """What follows from the last of them, which failed; see the table above."""
        if error.kind is FailureKind.JOB:
            return Next.STOP_JOB
        if error.kind is not FailureKind.RETRY:
            return Next.FAIL_ITEM
        allowed = self.allowed if error.most_attempts is None else min(self.allowed, error.most_attempts)
        spent = self.failed >= allowed or self.made - self.unreached >= MOST_ATTEMPTS
        return Next.FAIL_ITEM if spent else Next.TRY_AGAIN


def is_rate_limited(error: ModelCallError) -> bool:
    """Whether a failure is the connection's limit, so that how long to wait is the limiter's to say."""
    return error.status == HTTPStatus.TOO_MANY_REQUESTS


def longest_wait(first_seconds: float, longest_seconds: float, failures: int) -> float:
    """The longest wait before the next attempt: it doubles with every failure."""
    return min(longest_seconds, first_seconds * 2.0 ** min(failures, MOST_DOUBLINGS))
