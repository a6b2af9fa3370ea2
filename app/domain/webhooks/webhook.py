"""Webhooks by the Standard Webhooks specification (standardwebhooks.com): what is told, how it is signed, when it is tried again."""

import base64
import hashlib
import hmac
from collections.abc import Sequence
from enum import StrEnum

from app.domain.jobs.status import JobStatus


class WebhookEvent(StrEnum):
    """An event that a webhook can report."""

    COMPLETED = "job.completed"
    FAILED = "job.failed"
    CANCELLED = "job.cancelled"
    PAUSED = "job.paused"
    DRIFT_DETECTED = "drift.detected"
    RUN_MISSED = "schedule.run_missed"
    RUN_SKIPPED = "schedule.run_skipped"
    RUN_FAILED = "schedule.run_failed"
    BILL_EXCEEDED = "connection.bill_exceeded"
    """A model billed a call beyond its worst case, for the first time or since the operator's last reset."""
    SURPLUS_REPLIES = "connection.surplus_replies"
    """A server sent bytes that no request was waiting for."""
    READER_ENDED = "file.reader_ended"
    """A file crashed its reader or exceeded its limits."""


EVENT_OF = {
    JobStatus.COMPLETED: WebhookEvent.COMPLETED,
    JobStatus.FAILED: WebhookEvent.FAILED,
    JobStatus.CANCELLED: WebhookEvent.CANCELLED,
    JobStatus.PAUSED: WebhookEvent.PAUSED,
}
"""The states of which somebody may be told, by what is told."""

TEST_EVENT = "webhook.test"
"""What a receiver is sent to see whether it works."""

SECRET_PREFIX = "whsec_"  # noqa: S105 - what secrets begin with, by the specification
SECRET_BYTES = 32
"""The specification asks for 24 to 64."""
FORMER_SECRET_HOURS = 24
"""How long messages are signed with a secret as well that another one has replaced."""

RETRY_SECONDS = (5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)
"""How long after each failed attempt the next one follows: the specification's own schedule, three days in all."""

MOST_ATTEMPTS = len(RETRY_SECONDS) + 1
LONGEST_JITTER = 0.2
"""So much longer a wait may be, lest all that failed together come together again."""


def encode_secret(key: bytes) -> str:
    """A key as its receiver gets it."""
    return SECRET_PREFIX + base64.b64encode(key).decode()


def sign(secrets: Sequence[str], message_id: str, timestamp: int, body: str) -> str:
    """The value of the header ``webhook-signature``: for each secret one of version 1, HMAC-SHA256.

    Args:
        secrets: Each as :func:`encode_secret` gives it; a receiver takes what any of them has signed.
        message_id: The value of ``webhook-id``.
        timestamp: The value of ``webhook-timestamp``: seconds since 1970.
        body: The request's body.
    """
    signed = f"{message_id}.{timestamp}.{body}".encode()
    keys = [base64.b64decode(secret.removeprefix(SECRET_PREFIX)) for secret in secrets]
    digests = [hmac.new(key, signed, hashlib.sha256).digest() for key in keys]
    return " ".join(f"v1,{base64.b64encode(digest).decode()}" for digest in digests)


def retry_delay(attempts: int, draw: float) -> float | None:
    """Seconds until the next attempt; ``None`` if there is to be none.

    Args:
        attempts: How many there have been, at least one.
        draw: In [0, 1): how much of the jitter.
    """
    if attempts >= MOST_ATTEMPTS:
        return None
    return RETRY_SECONDS[attempts - 1] * (1 + LONGEST_JITTER * draw)
